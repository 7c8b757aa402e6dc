package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"orderonce/scripts/local/system/systemtest"
)

// TestTheGateRefusesOtherPages has a server that answers the scripts of every origin, as
// the engine does. Package console tests what is refused.
func TestTheGateRefusesOtherPages(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = fmt.Fprint(w, "reached as "+r.Host)
	}))
	t.Cleanup(target.Close)
	g := new(gate)
	systemtest.Must(t, g.serve(0, target.URL))
	t.Cleanup(func() { systemtest.Must(t, g.Close()) })
	at := g.servers[0].URL
	for origin, want := range map[string]string{
		"": "reached as " + strings.TrimPrefix(at, "http://"), "https://example.com": "another origin",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader("{}"))
		systemtest.Must(t, err)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		response, err := http.DefaultClient.Do(r)
		systemtest.Must(t, err)
		body, err := io.ReadAll(response.Body)
		systemtest.Must(t, errors.Join(err, response.Body.Close()))
		if !strings.Contains(string(body), want) {
			t.Errorf("from %q: got %d %q, want %q", origin, response.StatusCode, body, want)
		}
	}
	if got, want := g.outside(target.URL+"/000/orders"), at+"/000/orders"; got != want {
		t.Errorf("the URL for others: got %q, want %q", got, want)
	}
}
