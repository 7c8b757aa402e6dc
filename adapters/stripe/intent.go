package stripe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// Errors of responses that do not show what was asked for.
var (
	ErrOtherIntent = errors.New("response with another PaymentIntent")
	ErrNotExpanded = errors.New("latest charge not expanded: got only its id")

	errUnreadable = errors.New("unreadable response") // the body could be anything, so no error repeats it
	errNoIntent   = errors.New("response without a PaymentIntent")
)

// Expandable is a field that names another object: null, the object's id, or the object
// itself if the request expanded the field (docs.stripe.com/expand).
type Expandable[T any] struct {
	Named  bool
	Object *T // nil unless expanded
}

// UnmarshalJSON accepts each form.
func (e *Expandable[T]) UnmarshalJSON(b []byte) error {
	if e.Named = !bytes.Equal(b, []byte("null")); bytes.HasPrefix(b, []byte(`"`)) {
		return nil
	}
	return json.Unmarshal(b, &e.Object)
}

// PaymentIntent is the part of a PaymentIntent that is read.
type PaymentIntent struct {
	ID           string                     `json:"id"`
	Status       stripe.PaymentIntentStatus `json:"status"`
	Amount       int64                      `json:"amount"`
	Currency     string                     `json:"currency"`
	Created      int64                      `json:"created"` // seconds since 1970
	Livemode     bool                       `json:"livemode"`
	Metadata     map[string]string          `json:"metadata"`
	LastError    *errorCodes                `json:"last_payment_error"`
	LatestCharge Expandable[Charge]         `json:"latest_charge"` // null until a confirmation is attempted
}

// Charge is the part of a charge that is read.
type Charge struct {
	Status      stripe.ChargeStatus `json:"status"`
	Captured    int64               `json:"amount_captured"`
	Refunded    int64               `json:"amount_refunded"`
	Disputed    bool                `json:"disputed"`
	Refunds     *json.RawMessage    `json:"refunds"` // nil unless the request expanded them
	FailureCode string              `json:"failure_code"`
	Outcome     struct {
		Reason string `json:"reason"`
	} `json:"outcome"`
}

// Order converts the intent, also one in a status that this application never causes.
func (i PaymentIntent) Order() (order.Intent, error) {
	intent, err := i.toOrder(order.Failure{})
	if i.ID != "" {
		return intent, nil
	}
	return intent, err
}

// toOrder converts the intent. outer is the failure that the error around it reports. An
// intent in an unknown status is an error too.
func (i PaymentIntent) toOrder(outer order.Failure) (intent order.Intent, err error) {
	if i.ID == "" {
		return order.Intent{}, errNoIntent
	}
	state, known := states[i.Status]
	if !known {
		state = order.IntentState(i.Status)
		err = fmt.Errorf("unknown PaymentIntent status %s", name(string(i.Status)))
	}
	mode := order.TestMode
	if i.Livemode {
		mode = order.LiveMode
	}
	return order.Intent{
		ID:          order.IntentID(i.ID),
		State:       state,
		Total:       order.Money{Amount: i.Amount, Currency: order.Currency(i.Currency)},
		OrderID:     order.ID(i.Metadata[MetaOrder]),
		Scope:       order.Scope(i.Metadata[MetaScope]),
		Fingerprint: order.Fingerprint(i.Metadata[MetaFingerprint]),
		Mode:        mode,
		Failure:     i.failure(outer),
	}, err
}

// states are the statuses that this application causes. It never causes requires_capture,
// which needs a manual capture.
var states = map[stripe.PaymentIntentStatus]order.IntentState{ //nolint:gochecknoglobals // a constant
	stripe.PaymentIntentStatusRequiresPaymentMethod: order.NeedsMethod,
	stripe.PaymentIntentStatusRequiresConfirmation:  order.NeedsConfirmation,
	stripe.PaymentIntentStatusRequiresAction:        order.NeedsAction,
	stripe.PaymentIntentStatusProcessing:            order.Processing,
	stripe.PaymentIntentStatusCanceled:              order.IntentCanceled,
	stripe.PaymentIntentStatusSucceeded:             order.Succeeded,
}

// errorCodes are the reason why a payment did not succeed. Every Stripe error has a type,
// only some have a code (docs.stripe.com/api/errors).
type errorCodes struct {
	Type        stripe.ErrorType `json:"type"`
	Code        stripe.ErrorCode `json:"code"`
	DeclineCode string           `json:"decline_code"`
}

// unexplained is our code of a failure for which Stripe shows no reason.
const unexplained = "unexplained"

// failure never returns the zero Failure, which means that nothing has failed.
func (e errorCodes) failure() order.Failure {
	return order.Failure{Code: cmp.Or(string(e.Code), string(e.Type), unexplained), DeclineCode: e.DeclineCode}
}

// failure is why the intent's last confirmation did not succeed, from the best source
// that is left: the intent's last error, the error around the intent, or the latest
// charge of an intent that needs a payment method again.
//
// Stripe clears the last error "if the PaymentIntent is later updated for any reason",
// for example in the Dashboard (docs.stripe.com/api/payment_intents/object). Without the
// charge such an order would look unconfirmed and stay open. A charge's outcome.reason is
// the issuer's decline code, or why Stripe blocked the payment.
func (i PaymentIntent) failure(outer order.Failure) order.Failure {
	charge := i.LatestCharge
	switch {
	case i.LastError != nil:
		return i.LastError.failure()
	case outer != (order.Failure{}):
		return outer
	case !charge.Named || i.Status != stripe.PaymentIntentStatusRequiresPaymentMethod:
		return order.Failure{}
	case charge.Object == nil:
		return order.Failure{Code: unexplained}
	}
	return order.Failure{
		Code: cmp.Or(charge.Object.FailureCode, unexplained), DeclineCode: charge.Object.Outcome.Reason,
	}
}

// needsCharge reports whether only the latest charge, which is not expanded, can explain
// the failure.
func (i PaymentIntent) needsCharge(f order.Failure) bool {
	return i.LatestCharge.Named && i.LatestCharge.Object == nil && i.LastError == nil && f.Code == unexplained
}
