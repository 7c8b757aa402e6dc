// Package apigateway serves an http.Handler behind an HTTP API of Amazon API Gateway: it
// turns an event of payload format 2.0 into a request and the response into the answer.
// CallerOf returns the identity that the route's authorizer verified. The package does
// not know what is served, and no cookies.
//
// Source:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html.
package apigateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Handle returns h as a Lambda function. An error means that the event is not one of an
// HTTP API; the API then answers 500.
func Handle(
	h http.Handler,
) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		r, err := request(ctx, e)
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		w := response{header: http.Header{}}
		h.ServeHTTP(&w, r)
		return w.event(), nil
	}
}

// request converts an event. Header names are lower case in the event, and a header that
// was sent twice has its values joined by commas. A body that is not text is in base64.
func request(ctx context.Context, e events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(e.Body); err != nil {
			return nil, fmt.Errorf("body of API Gateway event: %w", err)
		}
	}
	target := url.URL{Path: e.RawPath, RawQuery: e.RawQueryString}
	method := e.RequestContext.HTTP.Method
	ctx = withCaller(ctx, e.RequestContext.Authorizer)
	r, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("API Gateway event: %w", err)
	}
	for name, value := range e.Headers {
		r.Header.Set(name, value)
	}
	r.Host, r.RemoteAddr = r.Header.Get("Host"), e.RequestContext.HTTP.SourceIP
	return r, nil
}

type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. The first status counts.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

func (w *response) event() events.APIGatewayV2HTTPResponse {
	w.WriteHeader(http.StatusOK)
	e := events.APIGatewayV2HTTPResponse{
		StatusCode: w.status, Headers: map[string]string{}, Body: w.body.String(),
	}
	for name, values := range w.header {
		e.Headers[name] = strings.Join(values, ",")
	}
	if !utf8.ValidString(e.Body) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(w.body.Bytes()), true
	}
	return e
}
