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

// response is what came back for a call.
type response struct {
	status    int // 0: nothing that can be read
	replayed  bool
	requestID string
	kind      stripe.ErrorType
	code      stripe.ErrorCode
	param     string
	intent    order.Intent // with an empty ID if none came back, or none that can be used
	// unexplained is set if the intent has failed, and only its latest charge can tell why.
	unexplained bool
	err         error // why intent has no ID, or what Stripe said about it
}

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
	LatestCharge *charge                    `json:"latest_charge"` // nil until a confirmation is attempted
}

// failure is why a payment did not succeed. Every error of Stripe's has a type, only some have a code
// (docs.stripe.com/api/errors).
type failure struct {
	Type        string `json:"type"`
	Code        string `json:"code"`
	DeclineCode string `json:"decline_code"`
}

// unexplained is the code of a failure for which Stripe shows no reason. Stripe has no such code.
const unexplained = "unexplained"

// order is never the empty Failure, which would mean that nothing has failed.
func (f failure) order() order.Failure {
	return order.Failure{Code: cmp.Or(f.Code, f.Type, unexplained), DeclineCode: f.DeclineCode}
}

// failed is why the intent's last confirmation did not succeed, from the best source left: the intent's last error, the
// error that the intent came in, or the latest charge of an intent that wants a payment method again. Stripe clears the
// last error "if the PaymentIntent is later updated for any reason", as by an edit in the Dashboard, while the latest
// charge is null only "until PaymentIntent confirmation is attempted" (docs.stripe.com/api/payment_intents/object).
// Without the charge such an order would count as never tried, and stay open for ever, because it cannot be confirmed.
func (a *answer) failed(outer order.Failure) order.Failure {
	switch {
	case a.LastError != nil:
		return a.LastError.order()
	case outer != (order.Failure{}):
		return outer
	case a.LatestCharge != nil && a.Status == stripe.PaymentIntentStatusRequiresPaymentMethod:
		return a.LatestCharge.failed()
	}
	return order.Failure{}
}

var (
	errUnreadable = errors.New("unreadable response") // its text could be anything, so no error repeats it
	errNoID       = errors.New("response without an intent")
	errOther      = errors.New("response about another intent")
)

// parse reads what Backend.Do made of the response.
func (c call) parse(a *answer, err error) response {
	var refused *stripe.Error
	var network net.Error
	switch {
	case errors.As(err, &refused):
		return c.parseError(refused)
	case errors.As(err, &network):
		return response{err: c.redactNetwork(err)}
	case a.LastResponse == nil:
		return response{err: errUnreadable}
	}
	r := response{status: a.LastResponse.StatusCode, replayed: replayed(a.LastResponse), requestID: a.LastResponse.RequestID}
	if err != nil || r.status != http.StatusOK {
		r.err = errUnreadable
		return r
	}
	r.intent, r.err = c.intentOf(a, order.Failure{})
	r.unexplained = a.unexplained(r.intent)
	return r
}

func (c call) parseError(e *stripe.Error) response {
	r := response{
		status: e.HTTPStatusCode, replayed: replayed(e.LastResponse), requestID: e.RequestID,
		kind: e.Type, code: e.Code, param: e.Param,
		err: fmt.Errorf("status %d %s: %s", e.HTTPStatusCode, cmp.Or(string(e.Code), string(e.Type)), c.redact(e.Msg)),
	}
	if r.status == http.StatusForbidden {
		r.err = fmt.Errorf("%w (a restricted key needs the permission %q)", r.err, c.permission())
	}
	var body struct {
		Error struct {
			Intent answer `json:"payment_intent"`
		} `json:"error"`
	}
	if json.Unmarshal(e.LastResponse.RawJSON, &body) != nil {
		return r
	}
	var outer order.Failure
	// The other errors are about the request, or about us, and not about a payment.
	if r.status == http.StatusPaymentRequired && kindOf(e.Code) != order.Misconfigured {
		outer = failure{Type: string(e.Type), Code: string(e.Code), DeclineCode: string(e.DeclineCode)}.order()
	}
	r.intent, _ = c.intentOf(&body.Error.Intent, outer) // r.err says more
	r.unexplained = body.Error.Intent.unexplained(r.intent)
	return r
}

func (c call) intentOf(a *answer, outer order.Failure) (order.Intent, error) {
	state, known := stateOf(a.Status)
	switch {
	case a.ID == "":
		return order.Intent{}, errNoID
	case c.bound != "" && a.ID != string(c.bound):
		return order.Intent{}, errOther
	case !known:
		return order.Intent{}, fmt.Errorf("unknown intent status %q", redactIDs(string(a.Status)))
	}
	return order.Intent{
		ID:      order.IntentID(a.ID),
		State:   state,
		Total:   order.Money{Amount: a.Amount, Currency: order.Currency(a.Currency)},
		OrderID: order.ID(a.Metadata[metaOrder]),
		Scope:   order.Scope(a.Metadata[metaScope]),
		Failure: a.failed(outer),

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

func (c call) fail(t order.ErrorKind, requestID string, err error) error {
	return &order.PaymentError{Kind: t, RequestID: requestID, Err: fmt.Errorf("%s: %w", c.name, err)}
}
