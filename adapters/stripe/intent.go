package stripe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

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
	LatestCharge *Charge                    `json:"latest_charge"` // nil until a confirmation is attempted
}

// expandedIntent is a PaymentIntent that may arrive as its id alone, which counts as
// none.
type expandedIntent struct{ PaymentIntent }

// UnmarshalJSON accepts both forms.
func (i *expandedIntent) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		return nil
	}
	return json.Unmarshal(b, &i.PaymentIntent)
}

// Order converts the intent. An intent in a status that this application never causes has
// no State: it exists all the same, and it may have moved money.
func (i *PaymentIntent) Order() (order.Intent, error) {
	intent, err := i.toOrder(order.Failure{})
	if err != nil && i.ID != "" {
		return order.Intent{
			ID:      order.IntentID(i.ID),
			OrderID: order.ID(i.Metadata[MetaOrder]), Scope: order.Scope(i.Metadata[MetaScope]),
		}, nil
	}
	return intent, err
}

// toOrder converts the intent. outer is the failure that the error around it reports.
func (i *PaymentIntent) toOrder(outer order.Failure) (order.Intent, error) {
	if i.ID == "" {
		return order.Intent{}, errNoIntent
	}
	state, known := stateOf(i.Status)
	if !known {
		return order.Intent{}, fmt.Errorf("unknown PaymentIntent status %s", name(string(i.Status)))
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
	case stripe.PaymentIntentStatusRequiresCapture: // only with manual capture, which Prepare does not request
	}
	return "", false
}

// errorCodes are the reason why a payment did not succeed. Every Stripe error has a type,
// only some have a code (docs.stripe.com/api/errors).
type errorCodes struct {
	Type        stripe.ErrorType `json:"type"`
	Code        stripe.ErrorCode `json:"code"`
	DeclineCode string           `json:"decline_code"`
}

// unexplained is the code of a failure for which Stripe shows no reason. It is not a code
// of Stripe's.
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
// charge such an order would look unconfirmed and stay open, because Stripe refuses to
// confirm it.
func (i *PaymentIntent) failure(outer order.Failure) order.Failure {
	switch {
	case i.LastError != nil:
		return i.LastError.failure()
	case outer != (order.Failure{}):
		return outer
	case i.LatestCharge != nil && i.Status == stripe.PaymentIntentStatusRequiresPaymentMethod:
		return i.LatestCharge.failure()
	}
	return order.Failure{}
}

// Charge is an intent's latest charge: its id alone, or the charge itself if the request
// expanded it.
type Charge struct {
	Expanded    bool                `json:"-"`
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

// UnmarshalJSON accepts both forms.
func (c *Charge) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		return nil
	}
	type plain Charge
	c.Expanded = true
	return json.Unmarshal(b, (*plain)(c))
}

// failure is why the charge failed. failure_code is an error code, such as card_declined
// or authentication_required. outcome.reason is the issuer's decline code, or why Stripe
// blocked the payment (docs.stripe.com/api/charges/object).
func (c *Charge) failure() order.Failure {
	return order.Failure{Code: cmp.Or(c.FailureCode, unexplained), DeclineCode: c.Outcome.Reason}
}

// needsCharge reports whether only the latest charge, which the response names and does
// not contain, can explain the intent's failure f.
func (i *PaymentIntent) needsCharge(f order.Failure) bool {
	return i.LatestCharge != nil && !i.LatestCharge.Expanded && i.LastError == nil && f.Code == unexplained
}
