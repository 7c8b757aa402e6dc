package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// allowing is a server that answers the scripts of every origin, as the engine does, and
// repeats the Host that it was called with.
func allowing(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = fmt.Fprint(w, "reached as "+r.Host)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTheGateRefusesOtherPagesAndNames(t *testing.T) {
	t.Parallel()
	target, g := allowing(t), new(gate)
	must(t, g.serve(0, target.URL))
	t.Cleanup(func() { must(t, g.Close()) })
	at := g.servers[0].URL
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
		body   string
	}{
		"a program": {
			func(*http.Request) {}, http.StatusOK, "reached as " + strings.TrimPrefix(at, "http://"),
		},
		"a page of another origin": {
			func(r *http.Request) { r.Header.Set("Origin", "https://example.com") },
			http.StatusForbidden, "another origin",
		},
		"a page, by its browser": {
			func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
			http.StatusForbidden, "another origin",
		},
		"a name that points here": {
			func(r *http.Request) { r.Host = "rebound.example.com:8000" },
			http.StatusForbidden, "want 127.0.0.1 or localhost",
		},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("{}"))
		must(t, err)
		tt.change(r)
		response, err := http.DefaultClient.Do(r)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != tt.status || !strings.Contains(string(body), tt.body) {
			t.Errorf("%s: got %d %q, want %d and %q", name, response.StatusCode, body, tt.status, tt.body)
		}
	}
	if got, want := g.outside(target.URL+"/000/orders"), at+"/000/orders"; got != want {
		t.Errorf("the URL for others: got %q, want %q", got, want)
	}
}
