package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A service that hangs may cost a known part of an invocation's time at each step, and no
// more. A proxy would be read from the environment; one HTTP/2 connection can stall a
// whole batch.
func TestEveryStepOfACallHasABound(t *testing.T) {
	x := NewTransport(7, 3*time.Second)
	got := []time.Duration{
		dialer().Timeout, x.TLSHandshakeTimeout, x.ResponseHeaderTimeout, x.IdleConnTimeout, dialer().KeepAlive,
	}
	want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 50 * time.Second, 15 * time.Second}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("bounds (-got +want):\n%s", diff)
	}
	if x.MaxIdleConnsPerHost != 7 || x.MaxIdleConns != 0 || x.MaxConnsPerHost != 0 || x.Proxy != nil || x.ForceAttemptHTTP2 {
		t.Errorf("got %+v, want seven idle connections, no proxy and HTTP/1.1", x)
	}
}
