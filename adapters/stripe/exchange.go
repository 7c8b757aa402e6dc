package stripe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/stripe/stripe-go/v76"
)

// Exchange sends a request to Stripe and returns the response. An error means that there
// is no response: Stripe may or may not have done what the request asks for.
type Exchange func(context.Context, Request) (Response, error)

// client is the Exchange over HTTP, by stripe-go's backend.
//
// It calls Backend.Do and not Backend.Call, which runs `uname -a` in a cold start (1.3 to
// 1.7 ms), sends our host's name, and invents an idempotency key for a write without one.
type client struct {
	key     string
	backend *stripe.BackendImplementation
}

func (c *client) exchange(ctx context.Context, r Request) (Response, error) {
	req, body, err := c.newRequest(ctx, r)
	if err != nil {
		return Response{}, err
	}
	var decoded struct{ stripe.APIResource } // only the raw response counts: parse reads it
	err = c.backend.Do(req, body, &decoded)
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		return rawResponse(e.LastResponse), nil
	}
	if decoded.LastResponse != nil {
		return rawResponse(decoded.LastResponse), nil
	}
	if _, network := errors.AsType[net.Error](err); network {
		return Response{}, err
	}
	return Response{}, errUnreadable // an error body that is not JSON, or half a body
}

func rawResponse(r *stripe.APIResponse) Response {
	return Response{Status: r.StatusCode, Header: r.Header, Body: r.RawJSON}
}

func (c *client) newRequest(ctx context.Context, r Request) (*http.Request, *bytes.Buffer, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, c.backend.URL+r.Path, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Stripe-Version", stripe.APIVersion)
	req.Header.Set("User-Agent", "Stripe/v1 GoBindings/"+stripe.ClientVersion)
	form := encode(r.Params)
	if r.Method == http.MethodGet {
		req.URL.RawQuery = form
		return req, nil, nil
	}
	body := bytes.NewBufferString(form)
	req.ContentLength = int64(body.Len()) // Do sets the body; without a length it would be sent in chunks
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", r.Key)
	return req, body, nil
}

// networkError returns why there is no response, without the URL, which the call's name
// replaces, and without what the other side sent: net/http repeats it in the error of a
// response that is not HTTP.
func networkError(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, network := errors.AsType[net.Error](err)
	_, session := errors.AsType[sessionError](err)
	ended := errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if certificate || network || session || ended {
		return err
	}
	return unreadableError{err}
}

// unreadableError is an error that may repeat what the other side sent, with another
// text.
type unreadableError struct{ error }

func (unreadableError) Error() string   { return errUnreadable.Error() }
func (e unreadableError) Unwrap() error { return e.error }
