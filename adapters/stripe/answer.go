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
		there && h.status == http.StatusPaymentRequired && !c.burnt(h),
		there && h.status == http.StatusBadRequest && h.code == stripe.ErrorCodePaymentIntentUnexpectedState && !c.burnt(h):
		return h.intent, nil
	case h.status >= 400 && h.replayed:
		trouble = order.Replayed
	case h.status == http.StatusConflict, h.status == http.StatusTooManyRequests, h.status == http.StatusServiceUnavailable:
		trouble = order.NotNow // a twin is running; a limit or a lock; nobody is there
	case h.status < 400, h.status >= 500, h.status == http.StatusFailedDependency: // 424: somebody behind Stripe failed
		trouble = order.Unknown
	case h.status == http.StatusUnauthorized, h.status == http.StatusForbidden:
		trouble = order.Misconfigured
	case h.kind == stripe.ErrorTypeIdempotency:
		trouble = order.KeyReused
	case h.status == http.StatusNotFound && (c.bound != "" || h.code != stripe.ErrorCodeResourceMissing):
		trouble = order.Misconfigured // the intent is in another account or mode; or this is not Stripe's address
	}
	return order.Intent{}, c.fail(trouble, h.requestID, h.err)
}

// burnt reports whether an error is all that this key will ever bring. Confirm reads on; Prepare needs another key.
func (c call) burnt(h heard) bool { return h.replayed && c.bound == "" }

// answer is a PaymentIntent as far as it is read here. Decoding into stripe.PaymentIntent would first build reflection
// tables for every type within its reach: 5 to 11 ms in a new
// process, against 0.2 ms for this.
type answer struct {
	stripe.APIResource
	ID        string                     `json:"id"`
	Status    stripe.PaymentIntentStatus `json:"status"`
	Amount    int64                      `json:"amount"`
	Currency  string                     `json:"currency"`
	Metadata  map[string]string          `json:"metadata"`
	LastError struct {
		Code        string `json:"code"`
		DeclineCode string `json:"decline_code"`
	} `json:"last_payment_error"`
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
	h.intent, h.err = c.intentOf(a)
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
	h.intent, _ = c.intentOf(&body.Error.Intent) // h.err says more
	if h.status == http.StatusPaymentRequired && h.intent.Failure == (order.Failure{}) {
		h.intent.Failure = order.Failure{Code: string(e.Code), DeclineCode: string(e.DeclineCode)} // it is the last error
	}
	return h
}

func (c call) intentOf(a *answer) (order.Intent, error) {
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
		Failure: order.Failure{Code: a.LastError.Code, DeclineCode: a.LastError.DeclineCode},
	}, nil
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
