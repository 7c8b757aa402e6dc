package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A service that hangs may cost a known part of an invocation's time at each step, and no
// more.
func TestEveryStepOfACallHasABound(t *testing.T) {
	t.Parallel()
	transport := NewTransport(7, 3*time.Second)
	got := map[string]time.Duration{
		"connect":                dialer().Timeout,
		"TLS handshake":          transport.TLSHandshakeTimeout,
		"response header":        transport.ResponseHeaderTimeout,
		"idle connection":        transport.IdleConnTimeout,
		"keep-alive of a socket": dialer().KeepAlive,
	}
	want := map[string]time.Duration{
		"connect":                time.Second,
		"TLS handshake":          2 * time.Second,
		"response header":        3 * time.Second,
		"idle connection":        50 * time.Second,
		"keep-alive of a socket": 15 * time.Second,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("bounds: got -, want +\n%s", diff)
	}
}

func TestTheTransportDependsOnItsArgumentsOnly(t *testing.T) {
	t.Parallel()
	transport := NewTransport(7, 3*time.Second)
	if transport.Proxy != nil {
		t.Error("Proxy is set, which reads the environment")
	}
	type limits struct{ IdlePerHost, Idle, ConnectionsPerHost int }
	got := limits{transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.MaxConnsPerHost}
	if want := (limits{IdlePerHost: 7}); got != want {
		t.Errorf("limits = %+v, want %+v", got, want)
	}
	if transport.ForceAttemptHTTP2 {
		t.Error("ForceAttemptHTTP2 is set, and one connection can stall a whole batch")
	}
}
