package stripe

import (
	"cmp"
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

// The keys of the metadata of an intent or refund.
const (
	MetaOrder       = "orderId"
	MetaScope       = "scope"
	MetaFingerprint = "fingerprint"
)

const (
	// LatestCharge is the field of an intent to expand for its charge
	// (docs.stripe.com/expand).
	LatestCharge = "latest_charge"
	// ReadCharges is the permission to expand it. An expanded object needs its own
	// permission (docs.stripe.com/stripe-apps/reference/permissions).
	ReadCharges = "Charges and Refunds: Read"
	// PageSize is the largest page of a list (docs.stripe.com/api/pagination).
	PageSize = 100
)

// Call is one call to Stripe. It is the stripe.Backend of a resource client, such as
// paymentintent.Client{B: call}: it sends that client's request, and it keeps the
// response as it arrived.
//
// stripe-go's own backend would run `uname -a` in a cold start (1.3 to 1.7 ms), send our
// host's name, invent an idempotency key for a write without one, and retry. It would
// also decode into stripe.PaymentIntent, for which a new process first builds reflection
// tables of every type within reach: 4 to 11 ms, against 0.2 ms for PaymentIntent.
type Call struct {
	stripe.Backend // nil, because the other methods of the interface are not used

	// Permission is the permission that a restricted key needs, as the Dashboard names it;
	// "" means that of PaymentIntents. Write includes Read.
	Permission string
	// FinalRefusal means that a stored refusal is not a spent idempotency key: another key
	// would not change it.
	FinalRefusal bool

	client    *Client
	name      string         // such as "confirm intent pi_1"
	intent    order.IntentID // that the path or a parameter names; "" if none is named
	invalidID bool
	method    string
	reply     reply
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
	return c.send(params.Context, r)
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
var ErrNotID = errors.New("not the id of a PaymentIntent or refund")

var errNoKey = errors.New("no idempotency key: want one for every write")

// validate refuses a request that must not be sent.
//
// A read of an invalid id is Misconfigured and not Refused, because a corrupt row may be
// the cause, and its order may have been charged.
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

func (c *Call) send(ctx context.Context, r Request) error {
	response, err := c.client.exchange(ctx, r)
	switch {
	case errors.Is(err, ErrNotSent):
		return c.Fail(order.KindUnavailable, fmt.Errorf("%w: %w", ErrNotSent, networkError(err)))
	case err != nil:
		return c.Fail(order.KindUnknown, networkError(err))
	}
	c.reply = parse(response)
	return nil
}

// Fail is an error of the call.
func (c *Call) Fail(k order.ErrorKind, err error) error {
	return &order.PaymentError{
		Kind: k, Code: string(c.reply.apiError.Code), RequestID: c.reply.requestID,
		Err: fmt.Errorf("%s: %w", c.name, err),
	}
}

// Decode decodes a response that is not an intent. notThis is the error of another body.
func (c *Call) Decode(body any, notThis error) error {
	switch {
	case c.reply.status != http.StatusOK || c.reply.err != nil:
		return c.Reject(c.reply.err)
	case json.Unmarshal(c.reply.body, body) != nil:
		return c.Fail(order.KindUnknown, notThis)
	}
	return nil
}

// List is a page of a list or a search (docs.stripe.com/api/pagination).
type List[T any] struct {
	Data []T  `json:"data"`
	More bool `json:"has_more"`
}

// Whole reports whether the page has what it promises: one without data, or with more
// behind nothing, must not look like the end.
func (l List[T]) Whole() bool { return l.Data != nil && (!l.More || len(l.Data) > 0) }

// Page decodes a page. err is the error of the call, notThis that of another body.
func Page[T any](c *Call, err, notThis error) (List[T], error) {
	if err != nil {
		return List[T]{}, err
	}
	var page List[T]
	if err := c.Decode(&page, notThis); err != nil {
		return List[T]{}, err
	}
	if !page.Whole() {
		return List[T]{}, c.Fail(order.KindUnknown, notThis)
	}
	return page, nil
}

// Replayed reports whether the response is the one that is stored under the idempotency
// key.
func (c *Call) Replayed() bool { return c.reply.replayed }

// Date returns Stripe's time at the response.
func (c *Call) Date() (time.Time, error) { return http.ParseTime(c.reply.date) }

// permission is the permission that a restricted key needs for the call.
func (c *Call) permission() string {
	if c.method == http.MethodGet {
		return cmp.Or(c.Permission, "PaymentIntents: Read")
	}
	return cmp.Or(c.Permission, "PaymentIntents: Write")
}
