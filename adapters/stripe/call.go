package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"
	"github.com/stripe/stripe-go/v76/paymentintent"

	"orderonce/domain/order"
)

// The keys of the metadata of what is made at Stripe.
const (
	MetaOrder       = "orderId"
	MetaScope       = "scope"
	MetaFingerprint = "fingerprint"
)

// The field of an intent to expand for its charge, the permission that this needs, and
// the largest page of a list (docs.stripe.com/expand, /api/pagination).
const (
	LatestCharge = "latest_charge"
	ReadCharges  = "Charges and Refunds: Read"
	PageSize     = 100
)

// Call is one call to Stripe. It is the stripe.Backend of a resource client, such as
// paymentintent.Client{B: call}: it sends that client's request, and it keeps the
// response as it arrived.
//
// stripe-go's own backend would run `uname -a` in a cold start (1.3 to 1.7 ms), invent an
// idempotency key for a write without one, and retry. It would also decode into
// stripe.PaymentIntent, for which a new process first builds reflection tables: 4 to 11
// ms, against 0.2 ms for PaymentIntent.
type Call struct {
	stripe.Backend // nil: the other methods are not used

	// Permission is what a restricted key needs, as the Dashboard names it; "" means that of
	// PaymentIntents.
	Permission string
	// FinalRefusal means that a stored refusal is not a spent idempotency key: another key
	// would not change it.
	FinalRefusal bool

	client    *Client
	name      string         // such as "confirm intent pi_1"
	intent    order.IntentID // that the path or a parameter names; "" if none is named
	invalidID bool
	method    string
	response  Response
	apiError  apiError // the body of an error response
	err       error    // why the response is not what was asked for
}

// Call sends a request of stripe-go's. It does not decode the response. Every error is a
// *order.PaymentError.
func (c *Call) Call(
	method, path, _ string, params stripe.ParamsContainer, v stripe.LastResponseSetter,
) error {
	body := new(form.Values)
	form.AppendTo(body, params)
	return c.CallRaw(method, path, "", body, params.GetParams(), v)
}

// CallRaw is Call for a list. The list stays empty, so its iterator ends after one page.
func (c *Call) CallRaw(
	method, path, _ string, body *form.Values, params *stripe.Params, _ stripe.LastResponseSetter,
) error {
	c.method = method
	r := Request{Method: method, Path: path, Params: body.ToValues()}
	if params.IdempotencyKey != nil {
		r.Key = *params.IdempotencyKey
	}
	if err := c.validate(r); err != nil {
		return err
	}
	response, err := c.client.exchange(params.Context, r)
	switch {
	case errors.Is(err, ErrNotSent):
		return c.Fail(order.KindUnavailable, fmt.Errorf("%w: %w", ErrNotSent, networkError(err)))
	case err != nil:
		return c.Fail(order.KindUnknown, networkError(err))
	}
	c.receive(response)
	return nil
}

// Read reads the call's intent, with these of its fields expanded.
func (c *Call) Read(ctx context.Context, expand ...string) error {
	params := new(stripe.PaymentIntentParams)
	params.Context = ctx
	for _, field := range expand {
		params.AddExpand(field)
	}
	_, err := paymentintent.Client{B: c}.Get(string(c.intent), params)
	return err
}

// ErrNotID means that a call names an invalid id.
var ErrNotID = errors.New("not the id of an object at Stripe")

var errNoKey = errors.New("no idempotency key: want one for every write")

// validate refuses a request that must not be sent. A read of an invalid id is not
// Refused: a corrupt row may be the cause, and its order may have been charged.
func (c *Call) validate(r Request) error {
	switch {
	case r.Method != http.MethodGet && r.Key == "":
		return c.Fail(order.KindRefused, errNoKey)
	case c.invalidID && r.Method == http.MethodGet:
		return c.Fail(order.KindMisconfigured, ErrNotID)
	case c.invalidID:
		return c.Fail(order.KindRefused, ErrNotID)
	case c.client.misconfigured != nil:
		return c.Fail(order.KindMisconfigured, c.client.misconfigured)
	}
	return nil
}

// receive keeps a response. An error response without Stripe's error object, such as a
// proxy's HTML page, is unreadable whatever its status.
func (c *Call) receive(r Response) {
	var body struct {
		Error *apiError `json:"error"`
	}
	switch {
	case r.Status == http.StatusOK:
		c.response = r
	case r.Status < http.StatusBadRequest:
		c.response, c.err = r, errUnreadable
	case json.Unmarshal(r.Body, &body) != nil || body.Error == nil:
		c.err = errUnreadable
	default:
		c.response, c.apiError = r, *body.Error
	}
}

// Fail is an error of the call.
func (c *Call) Fail(k order.ErrorKind, err error) error {
	return &order.PaymentError{
		Kind: k, Code: string(c.apiError.Code), RequestID: c.response.Header.Get("Request-Id"),
		Err: fmt.Errorf("%s: %w", c.name, err),
	}
}

// Replayed reports whether the response was stored under the idempotency key.
func (c *Call) Replayed() bool { return c.response.Header.Get("Idempotent-Replayed") == "true" }

// Date returns Stripe's time at the response.
func (c *Call) Date() (time.Time, error) { return http.ParseTime(c.response.Header.Get("Date")) }

// Object decodes and converts a response that is not an intent. err is the error of the
// call, notThis that of another body.
//
//nolint:ireturn // U is a struct
func Object[T, U any](c *Call, err, notThis error, convert func(T) (U, error)) (converted U, _ error) {
	var body T
	switch {
	case err != nil:
		return converted, err
	case c.response.Status != http.StatusOK || c.err != nil:
		return converted, c.Reject(c.err)
	case json.Unmarshal(c.response.Body, &body) != nil:
		return converted, c.Fail(order.KindUnknown, notThis)
	}
	if converted, err = convert(body); err != nil {
		return *new(U), c.Fail(order.KindUnknown, err)
	}
	return converted, nil
}

// List is a page of a list or a search (docs.stripe.com/api/pagination).
type List[T any] struct {
	Data []T  `json:"data"`
	More bool `json:"has_more"`
}

// Page decodes a page, and converts what is in it.
func Page[T, U any](c *Call, err, notThis error, convert func(T) (U, error)) (List[U], error) {
	return Object(c, err, notThis, func(l List[T]) (List[U], error) { return Convert(l, notThis, convert) })
}

// Convert converts what is in a page. It returns notThis if the page does not have what
// it promises: one without data, or with more behind nothing, must not look like the end.
func Convert[T, U any](l List[T], notThis error, convert func(T) (U, error)) (List[U], error) {
	if l.Data == nil || l.More && len(l.Data) == 0 {
		return List[U]{}, notThis
	}
	all := List[U]{Data: make([]U, len(l.Data)), More: l.More}
	for i, o := range l.Data {
		var err error
		if all.Data[i], err = convert(o); err != nil {
			return List[U]{}, err
		}
	}
	return all, nil
}
