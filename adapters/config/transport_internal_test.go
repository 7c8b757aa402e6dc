package config

import (
	"testing"
	"time"
)

// A back end that hangs may cost a known part of an invocation's time at each step, and no more.
func TestEveryStepOfACallIsBounded(t *testing.T) {
	t.Parallel()
	transport := NewTransport(7, 3*time.Second)
	for step, bound := range map[string]struct{ got, want time.Duration }{
		"to connect":                       {dialer().Timeout, time.Second},
		"to shake hands":                   {transport.TLSHandshakeTimeout, 2 * time.Second},
		"to answer":                        {transport.ResponseHeaderTimeout, 3 * time.Second},
		"to keep an idle connection":       {transport.IdleConnTimeout, 50 * time.Second},
		"to notice a peer that is no more": {dialer().KeepAlive, 15 * time.Second},
	} {
		if bound.got != bound.want {
			t.Errorf("time %s = %v, want %v", step, bound.got, bound.want)
		}
	}
}

func TestTheTransportDependsOnNothingButItsArguments(t *testing.T) {
	t.Parallel()
	transport := NewTransport(7, 3*time.Second)
	if transport.Proxy != nil {
		t.Error("it has a proxy, which reads the environment")
	}
	if transport.MaxIdleConnsPerHost != 7 || transport.MaxIdleConns != 0 || transport.MaxConnsPerHost != 0 {
		t.Errorf("idle connections for a host = %d, in all = %d; connections = %d; want 7 and no other bound",
			transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.MaxConnsPerHost)
	}
	if transport.ForceAttemptHTTP2 {
		t.Error("it attempts HTTP/2, whose one connection can stall a whole batch")
	}
}
