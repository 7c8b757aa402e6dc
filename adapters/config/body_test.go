package config_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// early is a service whose response arrives before the client has looked for the end of
// the request's body.
type early struct{ sent io.ReadCloser }

func (e *early) Do(r *http.Request) (*http.Response, error) {
	e.sent = r.Body
	_, err := io.CopyN(io.Discard, r.Body, r.ContentLength)
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(`{"__type":"Refused"}`)), Request: r,
	}, err
}

// If this test passes without PlainBody, remove PlainBody.
func TestTheEndOfABodyIsReadAfterTheResponse(t *testing.T) {
	for service, client := range clients {
		backend := &early{}
		call := client(t.Context(), readAWS(t).Config(service, backend))
		if err := call(); err == nil || !strings.Contains(err.Error(), "Refused") {
			t.Fatalf("%s: got error %v, want the response", service, err)
		}
		if n, err := io.Copy(io.Discard, backend.sent); n != 0 || err != nil { // as net/http does
			t.Errorf("%s: got %d more bytes of the body and error %v, want its end", service, n, err)
		}
	}
}
