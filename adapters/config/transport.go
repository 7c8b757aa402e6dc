package config

import (
	"net"
	"net/http"
	"time"
)

// The metric of timed requests; docs/reference/metrics.md explains it. Whoever makes a Timed transport observes it.
const (
	MetricCallLatency = "CallLatency"
	DimensionCall     = "Call" // what the Timed transport's name says of a request
)

// NewTransport is for a client that has at most calls requests under way at once, each of which should be answered within
// answer. Every step has its own bound, so that a back end that hangs costs a known part of the deadline.
func NewTransport(calls int, answer time.Duration) *http.Transport {
	return &http.Transport{
		// No Proxy: the default one would read the environment behind our back.
		DialContext:           dialer().DialContext,
		TLSHandshakeTimeout:   2 * time.Second,
		ResponseHeaderTimeout: answer,
		MaxIdleConns:          0,     // no bound in all: the one for each host holds
		MaxIdleConnsPerHost:   calls, // the default of 2 makes a batch shake hands again for nearly every call
		IdleConnTimeout:       50 * time.Second,
		// HTTP/1.1 only, as stripe-go has it: one connection for all would stall a whole batch at once.
		ForceAttemptHTTP2: false,
	}
}

func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:   time.Second,      // within a region, or to a public API, a handshake takes milliseconds
		KeepAlive: 15 * time.Second, // notices a peer that vanished while the environment was frozen
	}
}

// Timed tells observe about each request: the name that name gives it, the status of the answer, 0 if there was none, and
// the time up to the answer's header, without its body.
func Timed(
	next http.RoundTripper,
	observe func(call string, status int, d time.Duration),
	name func(*http.Request) string,
	now func() time.Time,
) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		began, status := now(), 0
		response, err := next.RoundTrip(request)
		if err == nil {
			status = response.StatusCode
		}
		observe(name(request), status, now().Sub(began))
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
