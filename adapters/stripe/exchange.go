package stripe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/stripe/stripe-go/v76"
)

// Exchange sends a request to Stripe and returns the response. An error means that there
// is no response: Stripe may or may not have done what the request asks for.
type Exchange func(context.Context, Request) (Response, error)

// client is the Exchange over HTTP.
//
// It is not stripe-go's Backend. Backend.Call runs `uname -a` before the first request of
// a process (1.3 to 1.7 ms of a cold start), sends our host's name in every request, and
// makes up an idempotency key for a write that has none.
type client struct {
	key     string
	baseURL string
	http    *http.Client
}

func (c *client) exchange(ctx context.Context, r Request) (Response, error) {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return Response{}, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = res.Body.Close() }() // what was read is all that counts
	body, err := io.ReadAll(res.Body)
	if _, network := errors.AsType[net.Error](err); err != nil && !network {
		return Response{}, errUnreadable // such as half a body
	}
	return Response{Status: res.StatusCode, Header: res.Header, Body: body}, err
}

func (c *client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	url, form := c.baseURL+r.Path, encode(r.Params)
	if r.Method == http.MethodGet {
		req, err := http.NewRequestWithContext(ctx, r.Method, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		req.URL.RawQuery = form
		return c.authorize(req), nil
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, url, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", r.Key.String())
	return c.authorize(req), nil
}

func (c *client) authorize(req *http.Request) *http.Request {
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Stripe-Version", stripe.APIVersion)
	req.Header.Set("User-Agent", "Stripe/v1 GoBindings/"+stripe.ClientVersion)
	return req
}
