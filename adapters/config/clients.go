package config

import (
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"time"
)

// The metric of the calls that a function makes; docs/reference/metrics.md explains it.
const (
	MetricCallLatency = "CallLatency"
	DimensionCall     = "Call" // the name of the call
)

// AWSResponseTimeout bounds the wait for one response of an AWS service. It is far above
// what they need and far below an order's budget, so that a retry still has time.
const AWSResponseTimeout = 2 * time.Second

// Clients makes HTTP clients that observe the latency of every call as MetricCallLatency.
type Clients struct {
	MaxCalls int // concurrent calls to one service
	Observe  func(metric, dimension, value string, d time.Duration)
	Now      func() time.Time
}

// AWS returns a client for one AWS service. SES alone sends the name of a call, such as
// DynamoDB_20120810.UpdateItem, in no header.
func (c Clients) AWS() *http.Client {
	name := func(request *http.Request) string { return request.Header.Get("X-Amz-Target") }
	return &http.Client{Transport: c.Transport(AWSResponseTimeout, name)}
}

// Transport returns a transport for one service. Each response should arrive within
// responseTimeout, and callName returns a call's value of DimensionCall.
func (c Clients) Transport(
	responseTimeout time.Duration, callName func(*http.Request) string,
) http.RoundTripper {
	return c.Measure(callName)(NewTransport(c.MaxCalls, responseTimeout))
}

// Measure returns a function that wraps a transport: it observes the time up to the
// header of each response, or up to the error.
func (c Clients) Measure(callName func(*http.Request) string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			start := c.Now()
			response, err := next.RoundTrip(request)
			c.Observe(MetricCallLatency, DimensionCall, callName(request), c.Now().Sub(start))
			return response, err
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// LoadCertificates loads the root certificates that calls to address will need. It takes
// 11 to 14 ms with the CPU of a cold start, and far longer with the CPU of an invocation,
// while an order's lease runs. A plain HTTP address needs none.
func LoadCertificates(address URL) {
	if !strings.HasPrefix(string(address), "http:") {
		_, _ = x509.SystemCertPool() // the first TLS handshake reports what is wrong with them
	}
}

// NewTransport returns a transport for at most maxCalls concurrent calls to one service.
// Each step of a call has its own bound: 1 s to connect, 2 s for the TLS handshake,
// responseTimeout for the header of the response. So a service that hangs costs a known
// part of the deadline.
func NewTransport(maxCalls int, responseTimeout time.Duration) *http.Transport {
	return &http.Transport{
		// No Proxy: http.ProxyFromEnvironment would read the environment a second time.
		DialContext:           dialer().DialContext,
		TLSHandshakeTimeout:   2 * time.Second,
		ResponseHeaderTimeout: responseTimeout,
		MaxIdleConns:          0,        // no limit over all hosts
		MaxIdleConnsPerHost:   maxCalls, // the default of 2 repeats TLS handshakes in every batch
		IdleConnTimeout:       50 * time.Second,
		// HTTP/1.1 only, as in stripe-go: one HTTP/2 connection for all calls would stall a
		// whole batch at once.
		ForceAttemptHTTP2: false,
	}
}

func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:   time.Second,      // within a region, or to a public API, connecting takes milliseconds
		KeepAlive: 15 * time.Second, // detects a peer that went away while the execution environment was frozen
	}
}
