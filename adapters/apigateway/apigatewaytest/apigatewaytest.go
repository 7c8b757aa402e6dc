// Package apigatewaytest is a double of an HTTP API of Amazon API Gateway with one Lambda
// function behind it. It turns requests into events of payload format 2.0, without
// cookies, and knows nothing of what they are about.
//
// Sources, in https://docs.aws.amazon.com/apigateway/latest/developerguide/: payload
// format and responses: http-api-develop-integrations-lambda.html; routes:
// http-api-develop-routes.html; authorizers: http-api-access-control-iam.html,
// http-api-jwt-authorizer.html; quotas (a request of 10 MB, an integration of 30 s, not
// adjustable): http-api-quotas.html.
package apigatewaytest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/internal/awstest"
)

// The limits of an HTTP API.
const (
	MaxBody = 10 << 20
	Timeout = 30 * time.Second
)

// API is an HTTP API. Its zero value has no routes.
type API struct {
	// Routes are the functions by route key, such as "POST /stripe/webhook" or "GET
	// /orders/{orderId}". A function gets an event and returns the response, both JSON.
	Routes map[string]func(context.Context, []byte) ([]byte, error)
	// Authorizers are those of the routes, by route key. A route without one is open.
	Authorizers map[string]Authorizer
	// Now is the clock of the events' time.
	Now func() time.Time
}

// Server is an API that listens on 127.0.0.1.
type Server = awstest.HTTP

// Serve starts a server for the API on a free port. Close stops it.
func Serve(api *API) (*Server, error) { return awstest.Listen(api) }

// ServeHTTP invokes the function of the request's route.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, parameters := a.route(r)
	if key == "" {
		refuse(w, http.StatusNotFound)
		return
	}
	caller, status := a.authorize(key, r)
	if status != http.StatusOK {
		refuse(w, status)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge)
		return
	}
	e := a.event(r, body)
	e.RouteKey, e.RequestContext.RouteKey, e.PathParameters = key, key, parameters
	e.RequestContext.Authorizer = caller
	payload, _ := json.Marshal(e) // strings and numbers always encode
	ctx, cancel := context.WithTimeout(r.Context(), Timeout)
	defer cancel()
	out, err := a.Routes[key](ctx, payload)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		refuse(w, http.StatusServiceUnavailable)
	case err != nil:
		refuse(w, http.StatusInternalServerError)
	default:
		respond(w, out)
	}
}

// event returns the event of a request. A body is text if its content type is JSON, as it
// is for other types of text that no client of ours sends, else base64.
func (a *API) event(r *http.Request, body []byte) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RawPath: r.URL.Path, RawQueryString: r.URL.RawQuery,
		Headers: map[string]string{"host": r.Host}, Body: string(body),
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			Stage: "$default", TimeEpoch: a.Now().UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: r.Method, Path: r.URL.Path, Protocol: r.Proto, SourceIP: "127.0.0.1", UserAgent: r.UserAgent(),
			},
		},
	}
	for name, values := range r.Header {
		e.Headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // an unknown type is not text
	if kind != "application/json" {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return e
}

// respond sends a function's response. JSON without a statusCode is the body.
func respond(w http.ResponseWriter, out []byte) {
	var e events.APIGatewayV2HTTPResponse
	err := json.Unmarshal(out, &e)
	if e.StatusCode == 0 {
		e = events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK, Body: string(out)}
		e.Headers = map[string]string{"Content-Type": "application/json"}
	}
	body := []byte(e.Body)
	if err == nil && e.IsBase64Encoded {
		body, err = base64.StdEncoding.DecodeString(e.Body)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError)
		return
	}
	for name, value := range e.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(e.StatusCode)
	_, _ = w.Write(body)
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"message":%q}`, http.StatusText(status))
}
