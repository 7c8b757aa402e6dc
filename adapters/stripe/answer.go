package stripe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// heard is what came back for a call.
type heard struct {
	status    int // 0: nothing that can be read
	replayed  bool
	requestID string
	kind      stripe.ErrorType
	code      stripe.ErrorCode
	intent    order.Intent // with an empty ID if none came back, or none that can be used
	err       error        // then: why
}

// mean is the one table from what Stripe says to an intent or a trouble (docs.stripe.com/api/errors, /error-low-level).
// The first row that fits counts.
func (c call) mean(h heard) (order.Intent, error) {
	trouble := order.Refused
	switch there := h.intent.ID != ""; {
	case there && h.status == http.StatusOK,
		there && h.status == http.StatusPaymentRequired && !c.burnt(h) && !ours(h.code),
		there && h.status == http.StatusBadRequest && h.code == stripe.ErrorCodePaymentIntentUnexpectedState && !c.burnt(h):
		return h.intent, nil
	case h.status >= 400 && h.replayed:
		trouble = order.Replayed
	case h.status == http.StatusConflict, h.status == http.StatusTooManyRequests, h.status == http.StatusServiceUnavailable:
		trouble = order.NotNow // a twin is running; a limit or a lock; nobody is there
	case h.status < 400, h.status >= 500, h.status == http.StatusFailedDependency: // 424: somebody behind Stripe failed
		trouble = order.Unknown
	case h.status == http.StatusUnauthorized, h.status == http.StatusForbidden, ours(h.code):
		trouble = order.Misconfigured
	case c.method == http.MethodGet: // of an id that Stripe gave us: whatever is wrong, it is not the order
		trouble = order.Misconfigured
	case h.kind == stripe.ErrorTypeIdempotency:
		trouble = order.KeyReused
	case h.status == http.StatusNotFound && (c.bound != "" || h.code != stripe.ErrorCodeResourceMissing):
		trouble = order.Misconfigured // the intent is in another account or mode; or this is not Stripe's address
	}
	return order.Intent{}, c.fail(trouble, h.requestID, h.err)
}

// ours reports whether an error is about our key, account or mode, which no order can help (docs.stripe.com/error-codes). The
// code says so whatever the status is: 401 for an expired key (github.com/stripe/stripe-cli/issues/1341), 403 for a publishable
// one (github.com/SiimKirjanen/seatreg/issues/97), and the InvalidRequestError that Stripe's libraries make of 400 and 404 for an
// account that is not activated (github.com/antiwork/gumroad/pull/4479).
//
// A customer or payment method of the other mode has no such code. It is resource_missing, like one that never was, and only the
// message tells the two apart ("a similar object exists in live mode": github.com/dj-stripe/dj-stripe/issues/1113).
func ours(code stripe.ErrorCode) bool {
	switch code { //nolint:exhaustive // the others are about what was asked for
	case stripe.ErrorCodeAPIKeyExpired, stripe.ErrorCodePlatformAPIKeyExpired, stripe.ErrorCodeSecretKeyRequired,
		stripe.ErrorCodeAccountInvalid, stripe.ErrorCodeLivemodeMismatch, stripe.ErrorCodeTestmodeChargesOnly:
		return true
	}
	return false
}

// burnt reports whether an error is all that this key will ever bring. Confirm reads on; Prepare needs another key.
func (c call) burnt(h heard) bool { return h.replayed && c.bound == "" }

// answer is a PaymentIntent as far as it is read here. Decoding into stripe.PaymentIntent would first build reflection
// tables for every type within its reach: 5 to 11 ms in a new process, against 0.2 ms for this.
type answer struct {
	stripe.APIResource
	ID           string                     `json:"id"`
	Status       stripe.PaymentIntentStatus `json:"status"`
	Amount       int64                      `json:"amount"`
	Currency     string                     `json:"currency"`
	Livemode     bool                       `json:"livemode"`
	Metadata     map[string]string          `json:"metadata"`
	LastError    *failure                   `json:"last_payment_error"`
	LatestCharge any                        `json:"latest_charge"` // nil: none; else its id, which nothing here needs
}

// failure is why a payment did not succeed. Every error of Stripe's has a type, only some have a code
// (docs.stripe.com/api/errors).
type failure struct {
	Type        string `json:"type"`
	Code        string `json:"code"`
	DeclineCode string `json:"decline_code"`
}

// unexplained stands for the code of a failure whose reason nobody tells any more. It is ours, Stripe has no such code.
const unexplained = "unexplained"

// order is never the empty Failure, which would mean that nothing has failed.
func (f failure) order() order.Failure {
	return order.Failure{Code: cmp.Or(f.Code, f.Type, unexplained), DeclineCode: f.DeclineCode}
}

// failed is why the intent's last confirmation did not succeed, by the best witness left: the intent's last error, the error
// around the intent, or a charge of an intent that wants a payment method again. Stripe clears the last error "if the
// PaymentIntent is later updated for any reason", while the latest charge is null only "until PaymentIntent confirmation is
// attempted" (docs.stripe.com/api/payment_intents/object). Without the charge such an order would count as never tried, and stay
// open for ever, because it cannot be confirmed. The price: a bank that only wanted the customer is no longer told from one
// that said no.
func (a *answer) failed(around order.Failure) order.Failure {
	switch {
	case a.LastError != nil:
		return a.LastError.order()
	case around != (order.Failure{}):
		return around
	case a.LatestCharge != nil && a.Status == stripe.PaymentIntentStatusRequiresPaymentMethod:
		return failure{}.order()
	}
	return order.Failure{}
}

var (
	errUnreadable = errors.New("an answer that cannot be read") // its text could be anything, so no error repeats it
	errNoID       = errors.New("an answer without an intent")
	errOther      = errors.New("an answer about another intent")
)

// hear reads what Backend.Do made of the answer.
func (c call) hear(a *answer, err error) heard {
	var refused *stripe.Error
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return c.hearError(refused)
	case errors.As(err, &network):
		return heard{err: redacted{err}}
	case a.LastResponse == nil:
		return heard{err: errUnreadable}
	}
	h := heard{status: a.LastResponse.StatusCode, replayed: replayed(a.LastResponse), requestID: a.LastResponse.RequestID}
	if err != nil || h.status != http.StatusOK {
		h.err = errUnreadable
		return h
	}
	h.intent, h.err = c.intentOf(a, order.Failure{})
	return h
}

func (c call) hearError(e *stripe.Error) heard {
	h := heard{
		status: e.HTTPStatusCode, replayed: replayed(e.LastResponse), requestID: e.RequestID, kind: e.Type, code: e.Code,
		err: fmt.Errorf("status %d %s: %s", e.HTTPStatusCode, cmp.Or(string(e.Code), string(e.Type)), redact(e.Msg)),
	}
	var body struct {
		Error struct {
			Intent answer `json:"payment_intent"`
		} `json:"error"`
	}
	if json.Unmarshal(e.LastResponse.RawJSON, &body) != nil {
		return h
	}
	var around order.Failure
	if h.status == http.StatusPaymentRequired { // the other refusals are about the call, not about a payment
		around = failure{Type: string(e.Type), Code: string(e.Code), DeclineCode: string(e.DeclineCode)}.order()
	}
	h.intent, _ = c.intentOf(&body.Error.Intent, around) // h.err says more
	return h
}

func (c call) intentOf(a *answer, around order.Failure) (order.Intent, error) {
	state, known := stateOf(a.Status)
	switch {
	case a.ID == "":
		return order.Intent{}, errNoID
	case c.bound != "" && a.ID != string(c.bound):
		return order.Intent{}, errOther
	case !known:
		return order.Intent{}, fmt.Errorf("the intent is in the unknown status %q", redact(string(a.Status)))
	}
	return order.Intent{
		ID:      order.IntentID(a.ID),
		State:   state,
		Total:   order.Money{Amount: a.Amount, Currency: order.Currency(a.Currency)},
		OrderID: order.ID(a.Metadata[metaOrder]),
		Scope:   order.Scope(a.Metadata[metaScope]),
		Failure: a.failed(around),

		Fingerprint: order.Fingerprint(a.Metadata[metaFingerprint]),
		Mode:        modeOf(a.Livemode),
	}, nil
}

func modeOf(live bool) order.Mode {
	if live {
		return order.LiveMode
	}
	return order.TestMode
}

func stateOf(s stripe.PaymentIntentStatus) (state order.IntentState, known bool) {
	switch s {
	case stripe.PaymentIntentStatusRequiresPaymentMethod:
		return order.NeedsMethod, true
	case stripe.PaymentIntentStatusRequiresConfirmation:
		return order.NeedsConfirmation, true
	case stripe.PaymentIntentStatusRequiresAction:
		return order.NeedsAction, true
	case stripe.PaymentIntentStatusProcessing:
		return order.Processing, true
	case stripe.PaymentIntentStatusCanceled:
		return order.IntentCanceled, true
	case stripe.PaymentIntentStatusSucceeded:
		return order.Succeeded, true
	case stripe.PaymentIntentStatusRequiresCapture: // only with manual capture, which Prepare does not ask for
	}
	return "", false
}

func replayed(r *stripe.APIResponse) bool { return r.Header.Get("Idempotent-Replayed") == "true" }

func (c call) fail(t order.Trouble, requestID string, err error) error {
	return &order.PaymentError{Trouble: t, RequestID: requestID, Err: fmt.Errorf("%s: %w", c.name, err)}
}
