package config_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

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
		together <- struct{}{} // no call gets a response before all have arrived
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
		t.Errorf("connections of three batches of %d calls = %d, want %d", calls, len(opened), calls)
	}
}

func TestTransportEndsACallWithoutAResponse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	defer server.Close()
	client := &http.Client{Transport: config.NewTransport(1, 10*time.Millisecond)}
	if err := get(t, client, server.URL); err == nil {
		t.Error("got no error of a server that never responds")
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
