package schema_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/apigateway/apigatewaytest"
	"orderonce/adapters/httpapi"
	intakequeue "orderonce/adapters/sqs/intake"
	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// world is the handler with the queue's decoder, behind an HTTP API, over tables and a
// queue in memory.
type world struct {
	api    *apigatewaytest.API
	orders *ordertest.Memory
	now    time.Time

	down bool
	sent []order.Order
}

func newWorld() *world {
	w := &world{orders: new(ordertest.Memory), now: time.UnixMilli(1_790_000_000_000)}
	entrance := &intake.Intake{
		Book: &intaketest.Memory{Orders: w.orders}, Queue: w, Now: func() time.Time { return w.now },
	}
	handle := apigateway.Handle(httpapi.New(httpapi.Options{
		Put: entrance.Put, Post: entrance.Post, Get: entrance.Get, Decode: intakequeue.NewDecoder(), Caller: caller,
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
	}))
	w.api = &apigatewaytest.API{
		Routes:      map[string]func(context.Context, []byte) ([]byte, error){},
		Authorizers: map[string]apigatewaytest.Authorizer{},
		Now:         func() time.Time { return w.now },
	}
	for _, route := range []string{putRoute, postRoute, getRoute} {
		w.api.Authorizers[route] = authorize
		w.api.Routes[route] = lambda.NewHandler(handle).Invoke
	}
	return w
}

const (
	putRoute  = "PUT /orders/{orderId}"
	postRoute = "POST /orders"
	getRoute  = "GET /orders/{orderId}"
)

// authorize is IAM, but for a token, and for a route that somebody left open.
func authorize(r *http.Request) (*events.APIGatewayV2HTTPRequestContextAuthorizerDescription, int) {
	switch signed := r.Header.Get("Authorization"); {
	case signed == "open":
		return nil, http.StatusOK
	case strings.HasPrefix(signed, "Bearer"):
		return apigatewaytest.JWT(r)
	}
	return apigatewaytest.IAM(r)
}

// caller is an IAM user. A token has no owner here.
func caller(ctx context.Context) (intake.Caller, error) {
	c, known := apigateway.CallerOf(ctx)
	switch {
	case !known:
		return "", httpapi.ErrUnauthenticated
	case c.Principal == "":
		return "", httpapi.ErrForbidden
	}
	return intake.NewCaller(c.Principal), nil
}

var errDown = errors.New("queue down")

// Send implements intake.Queue.
func (w *world) Send(_ context.Context, o order.Order, _ time.Time, _ order.Trace) error {
	if w.down {
		return errDown
	}
	w.sent = append(w.sent, o)
	return nil
}

const signature = "AWS4-HMAC-SHA256 Credential=shop/20260101/eu-west-1/execute-api/aws4_request"

// request is one request of a client; the zero Content and Authorization are valid ones.
type request struct {
	method, path, body     string
	key                    string
	content, authorization string
}

func (w *world) do(ctx context.Context, in request) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, in.method, in.path, strings.NewReader(in.body))
	r.Header.Set("Content-Type", cmp.Or(in.content, "application/json"))
	r.Header.Set("Authorization", cmp.Or(in.authorization, signature))
	if in.key != "" {
		r.Header.Set("Idempotency-Key", in.key)
	}
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	return out
}

// settle lets a worker claim the orders that were sent, and end them with a status.
func (w *world) settle(ctx context.Context, s order.Status, failure string) error {
	for _, o := range w.sent {
		c, err := order.Begin(ctx, w.orders, o, order.Lease{Owner: "w", From: w.now, Until: w.now.Add(time.Minute)}, nil)
		if err == nil {
			err = errors.Join(
				c.Bind(ctx, w.orders, order.Intent{ID: "pi_1", Mode: order.TestMode}, w.now),
				c.Finish(ctx, w.orders, order.Outcome{Status: s, Intent: "pi_1", Failure: failure}, w.now),
			)
		}
		if err != nil {
			return err
		}
	}
	w.sent = nil
	return nil
}
