package stripe

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/stripe/stripe-go/v76"
)

// Exchange sends a request to Stripe and returns the response. After an error Stripe may
// or may not have done what the request asks for.
type Exchange func(context.Context, Request) (Response, error)

// Request is one request to Stripe's API before it becomes HTTP.
type Request struct {
	Method string     // GET or POST
	Path   string     // such as /v1/payment_intents/pi_1/confirm
	Params url.Values // the query of a GET, the form of a POST
	Key    string     // the idempotency key of a POST; "" for a GET
}

// Response is Stripe's response to a Request as it arrived.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// ErrNotSent means that an Exchange certainly did not send a request.
var ErrNotSent = errors.New("not sent")

// NotSentError is a reason why an Exchange sends nothing.
type NotSentError string

// Error returns the reason.
func (e NotSentError) Error() string { return string(e) }

// NewExchange returns the Exchange over HTTP. It uses Key, BaseURL, Timeout and
// Transport.
func NewExchange(o Options) Exchange {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	client := &http.Client{
		Transport: o.Transport,
		Timeout:   o.Timeout,
		// Stripe never redirects: do not follow anyone else's redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	baseURL := strings.TrimSuffix(cmp.Or(o.BaseURL, stripe.APIURL), "/")
	authorization := "Bearer " + strings.TrimSpace(o.Key) // secrets are often stored with a newline
	return func(ctx context.Context, r Request) (Response, error) {
		req, err := newRequest(ctx, baseURL, r)
		if err != nil {
			return Response{}, err
		}
		req.Header.Set("Authorization", authorization)
		res, err := client.Do(req)
		if err != nil {
			return Response{}, err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return Response{Status: res.StatusCode, Header: res.Header, Body: body}, err
	}
}

func newRequest(ctx context.Context, baseURL string, r Request) (*http.Request, error) {
	// As in stripe-go the parameters are sorted by name, and brackets are not escaped.
	body := strings.ReplaceAll(strings.ReplaceAll(r.Params.Encode(), "%5B", "["), "%5D", "]")
	address := baseURL + r.Path
	if r.Method == http.MethodGet && body != "" {
		address, body = address+"?"+body, ""
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Stripe-Version", stripe.APIVersion)
	req.Header.Set("User-Agent", "Stripe/v1 GoBindings/"+stripe.ClientVersion)
	if r.Method != http.MethodGet {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Idempotency-Key", r.Key)
	}
	return req, nil
}

// networkError returns why there is no response, without the URL and without what the
// other side sent, which net/http repeats if that is not HTTP.
func networkError(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, network := errors.AsType[net.Error](err)
	_, ours := errors.AsType[NotSentError](err)
	ended := errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if certificate || network || ours || ended {
		return err
	}
	return errUnreadable
}
