package config_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/config"
)

// send makes a call with a client of that configuration, whatever the service is.
func send(ctx context.Context, cfg aws.Config) error {
	_, err := sqs.NewFromConfig(cfg).SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String("https://sqs.example/1/dead"), MessageBody: aws.String("m"),
	})
	return err
}

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

// If this test passes without WholeBody, remove WholeBody.
func TestTheEndOfABodyIsReadAfterTheResponse(t *testing.T) {
	backend := &early{}
	err := send(t.Context(), readAWS(t).Config(config.SQS, backend))
	if err == nil || !strings.Contains(err.Error(), "Refused") {
		t.Fatalf("got error %v, want the response", err)
	}
	if n, err := io.Copy(io.Discard, backend.sent); n != 0 || err != nil { // as net/http does
		t.Errorf("got %d more bytes of the body and error %v, want its end", n, err)
	}
}

type writes struct {
	net.Conn

	n int
}

func (w *writes) Write(b []byte) (int, error) {
	w.n++
	return w.Conn.Write(b)
}

// Without WholeBody, net/http writes the header of a request by itself.
func TestARequestIsOneWrite(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	conn := &writes{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed, err := new(net.Dialer).DialContext(ctx, network, address)
		conn.Conn = dialed
		return conn, err
	}}
	defer transport.CloseIdleConnections()
	cfg := readAWS(t, "AWS_ENDPOINT_URL="+server.URL).Config(config.SQS, &http.Client{Transport: transport})
	if err := send(t.Context(), cfg); err == nil || conn.n != 1 {
		t.Errorf("got error %v after %d writes, want a refusal after 1", err, conn.n)
	}
}
