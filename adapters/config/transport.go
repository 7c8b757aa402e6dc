package config

import (
	"net"
	"net/http"
	"time"
)

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
