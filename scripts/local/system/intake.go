package system

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"orderonce/adapters/apigateway/apigatewaytest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
)

// routeIntake adds the routes of the entrance by HTTP, which require a signature.
func (s *System) routeIntake(api *apigatewaytest.API) {
	for _, route := range []string{"PUT /orders/{orderId}", "POST /orders", "GET /orders/{orderId}"} {
		if s.Intake != nil {
			api.Routes[route] = s.Intake.Invoke
		}
		api.Authorizers[route] = apigatewaytest.IAM
	}
}

// Answer is the response to a request.
type Answer struct {
	Status int
	Body   string
}

// PutOrder puts an order by HTTP, as the IAM user "shop". The body is a message of
// docs/reference/message.md.
func (s *System) PutOrder(ctx context.Context, id, body string) (Answer, error) {
	a, err := s.CallAPI(ctx, http.MethodPut, "/orders/"+id, body)
	m := invariants.NewMessage(jobs.NewDecoder(), body, "")
	decided := a.Status == http.StatusConflict || a.Status < http.StatusMultipleChoices
	if err == nil && m.Invalid == nil && decided {
		var shown struct{ Status any } // the number of an error is not a status of the order
		_ = json.Unmarshal([]byte(a.Body), &shown)
		status, accepted := shown.Status.(string)
		s.put.Lock()
		defer s.put.Unlock()
		s.requests = append(s.requests, invariants.Request{Order: m.Order, Accepted: accepted, Status: status})
	}
	return a, err
}

// CallAPI sends a signed request with a JSON body, and further headers in the form "Name:
// value".
func (s *System) CallAPI(ctx context.Context, method, path, body string, header ...string) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.API.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=shop/20260101/"+sqstest.Region+"/execute-api")
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	text, err := io.ReadAll(response.Body)
	return Answer{Status: response.StatusCode, Body: string(text)}, err
}
