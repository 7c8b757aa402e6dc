package config_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

// observation is one call of Clients.Observe.
type observation struct {
	Metric, Dimension, Value string
	Latency                  time.Duration
}

// observing returns Clients whose clock advances by a second each time it is read.
func observing(got *[]observation) config.Clients {
	now := time.Unix(0, 0)
	return config.Clients{
		MaxCalls: 1,
		Observe: func(metric, dimension, value string, d time.Duration) {
			*got = append(*got, observation{metric, dimension, value, d})
		},
		Now: func() time.Time {
			now = now.Add(time.Second)
			return now
		},
	}
}

func TestEveryCallIsObservedWithOrWithoutAResponse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lost" {
			panic(http.ErrAbortHandler) // closes the connection
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	var got []observation
	callName := func(r *http.Request) string { return r.Method + " " + r.URL.Path }
	client := &http.Client{Transport: observing(&got).Transport(time.Minute, callName)}

	if err := get(t, client, server.URL+"/answered"); err != nil {
		t.Error(err)
	}
	if err := get(t, client, server.URL+"/lost"); err == nil {
		t.Error("got no error of a closed connection")
	}

	want := []observation{
		{"CallLatency", "Call", "GET /answered", time.Second},
		{"CallLatency", "Call", "GET /lost", time.Second},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("observations: got -, want +\n%s", diff)
	}
}

func TestAnAWSCallIsObservedUnderItsTarget(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	must(t, err)
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.UpdateItem")

	var got []observation
	response, err := observing(&got).AWS().Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()

	want := []observation{{"CallLatency", "Call", "DynamoDB_20120810.UpdateItem", time.Second}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("observations: got -, want +\n%s", diff)
	}
}
