package config_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

func TestTransportKeepsAConnectionForEachCall(t *testing.T) {
	t.Parallel()
	const calls = 10
	var mu sync.Mutex
	opened := map[string]bool{}
	together := make(chan struct{}, calls)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		opened[r.RemoteAddr] = true
		mu.Unlock()
		together <- struct{}{} // nobody is answered before all have asked
		for len(together) < calls && r.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: config.NewTransport(calls, time.Minute)}
	for range 3 {
		var batch sync.WaitGroup
		for range calls {
			batch.Go(func() {
				if err := get(t, client, server.URL); err != nil {
					t.Error(err)
				}
			})
		}
		batch.Wait()
		for range calls {
			<-together
		}
	}
	if len(opened) != calls {
		t.Errorf("%d connections for three batches of %d calls, want them used again", len(opened), calls)
	}
}

func TestTransportGivesUpOnASilentServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	client := &http.Client{Transport: config.NewTransport(1, 10*time.Millisecond)}
	if err := get(t, client, server.URL); err == nil {
		t.Error("a server that never answers was waited for")
	}
}

func get(t *testing.T, client *http.Client, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTimed(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	lost := errors.New("connection reset")
	type observation struct {
		Call   string
		Status int
		Took   time.Duration
	}
	var got []observation
	transport := config.Timed(
		answers(func(r *http.Request) (*http.Response, error) {
			now = now.Add(time.Second)
			if r.URL.Path == "/lost" {
				return nil, lost
			}
			return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody}, nil
		}),
		func(call string, status int, took time.Duration) { got = append(got, observation{call, status, took}) },
		func(r *http.Request) string { return r.Method + " " + r.URL.Path },
		func() time.Time { return now },
	)
	client := &http.Client{Transport: transport}
	if err := get(t, client, "http://pretend/answered"); err != nil {
		t.Error(err)
	}
	if err := get(t, client, "http://pretend/lost"); !errors.Is(err, lost) {
		t.Errorf("error = %v, want the transport's own", err)
	}
	want := []observation{{"GET /answered", 418, time.Second}, {"GET /lost", 0, time.Second}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}
