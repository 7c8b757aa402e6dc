package stripe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"orderonce/domain/order"
)

// expandCharge asks for the latest charge itself in the place of its id (docs.stripe.com/expand).
const expandCharge = "expand[]=latest_charge"

// charge is an intent's latest charge: its id alone, or the charge, if the request asked for it.
type charge struct {
	expanded    bool
	FailureCode string `json:"failure_code"`
	Outcome     struct {
		Reason string `json:"reason"`
	} `json:"outcome"`
}

// UnmarshalJSON accepts both forms.
func (c *charge) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte(`"`)) {
		return nil
	}
	type plain charge
	c.expanded = true
	return json.Unmarshal(b, (*plain)(c))
}

// failed is why the charge failed. failure_code is one of the error codes, such as card_declined or
// authentication_required, and outcome.reason is the issuer's decline code, or why Stripe blocked the payment
// (docs.stripe.com/api/charges/object).
func (c *charge) failed() order.Failure {
	return order.Failure{Code: cmp.Or(c.FailureCode, unexplained), DeclineCode: c.Outcome.Reason}
}

// unexplained reports whether only the charge, which is not there, can tell why the intent i has failed.
func (a *answer) unexplained(i order.Intent) bool {
	return a.LatestCharge != nil && !a.LatestCharge.expanded && a.LastError == nil && i.Failure.Code == unexplained
}

var errHidden = errors.New("the intent's latest charge is not shown, only its id")

// explained returns the intent of a reply. If it has failed and its last error is cleared, it is read again together with
// its latest charge: a bank that wants the customer must not be taken for one that declined. One more read of the intent,
// and not of the charge, because then intent and charge are of one moment: the customer may just have paid.
func (p *Payments) explained(ctx context.Context, id order.IntentID, r reply, err error) (order.Intent, error) {
	if err != nil || !r.unexplained {
		return r.Intent, err
	}
	c := call{
		name: "read intent " + string(id) + " with its latest charge", method: http.MethodGet,
		path: intents + "/" + string(id), query: expandCharge, bound: id,
	}
	r, err = p.do(ctx, c)
	if err == nil && r.unexplained {
		err = c.fail(order.Misconfigured, "", errHidden)
	}
	if err != nil {
		return order.Intent{}, err
	}
	return r.Intent, nil
}

// permission is what a restricted key needs for the call, as the Dashboard names it
// (docs.stripe.com/keys/restricted-api-keys). Write includes Read, and an object that is expanded needs its own
// permission (docs.stripe.com/stripe-apps/reference/permissions).
func (c call) permission() string {
	switch {
	case c.query == expandCharge:
		return "Charges and Refunds: Read"
	case c.method == http.MethodGet:
		return "PaymentIntents: Read"
	}
	return "PaymentIntents: Write"
}
