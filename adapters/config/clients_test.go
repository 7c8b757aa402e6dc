package config_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

type observation struct {
	Metric, Dimension, Value string
	Latency                  time.Duration
}

// A call is observed with or without a response, under its target.
func TestEveryCallIsObserved(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lost" {
			panic(http.ErrAbortHandler) // closes the connection
		}
	}))
	defer server.Close()
	var got []observation
	now := time.Unix(0, 0)
	client := config.Clients{
		MaxCalls: 1,
		Observe: func(metric, dimension, value string, d time.Duration) {
			got = append(got, observation{metric, dimension, value, d})
		},
		Now: func() time.Time { now = now.Add(time.Second); return now },
	}.AWS()
	for _, path := range []string{"/answered", "/lost"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		must(t, err)
		request.Header.Set("X-Amz-Target", "DynamoDB"+path)
		response, err := client.Do(request)
		if (err == nil) != (path == "/answered") {
			t.Errorf("%s: got error %v", path, err)
		}
		if err == nil {
			_ = response.Body.Close()
		}
	}
	want := []observation{
		{"CallLatency", "Call", "DynamoDB/answered", time.Second}, {"CallLatency", "Call", "DynamoDB/lost", time.Second},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("observations (-got +want):\n%s", diff)
	}
}
