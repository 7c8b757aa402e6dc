package charge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// An attempt may crash before it records the failure, and a person may then edit the
// intent, which clears its last error. The next attempt finds the failure.
func TestTheNextAttemptFindsTheFailure(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card    stripetest.Card
		edited  bool
		status  order.Status
		failure string
	}{
		"a decline has its code":                  {stripetest.LostCard, false, order.Declined, "lost_card"},
		"a decline without a code has its type":   {stripetest.DeclinesUncoded, false, order.Declined, "card_error"},
		"an edited one may have neither":          {stripetest.DeclinesUncoded, true, order.Declined, "unexplained"},
		"an expired card is declined":             {stripetest.ExpiredCard, true, order.Declined, "expired_card"},
		"a payment that Radar blocks is declined": {stripetest.Blocked, true, order.Declined, "highest_risk_level"},
		"a card without sufficient funds is declined": {
			stripetest.InsufficientFunds, true, order.Declined, "insufficient_funds",
		},
		"a payment that requires authentication is not declined": {
			stripetest.NeedsCustomer, true, order.ActionRequired, "authentication_required",
		},
	} {
		for name, call := range map[string]func(rigtest.Prepared) (order.Intent, error){
			"read":                               rigtest.Prepared.Read,
			"confirmed again":                    func(p rigtest.Prepared) (order.Intent, error) { return p.Confirm(2) },
			"confirmed again under the same key": func(p rigtest.Prepared) (order.Intent, error) { return p.Confirm(1) },
		} {
			p := rigtest.Prepare(t, tt.card)
			if got, err := p.Confirm(1); err != nil || got.State != order.NeedsMethod {
				t.Fatalf("%s: got %+v, %v, want an intent that needs a method", claim, got, err)
			}
			if tt.edited {
				p.Edit()
			}
			intent, err := call(p)
			want := order.Outcome{Status: tt.status, Intent: p.Intent.ID, Failure: tt.failure}
			if got, settled := order.OutcomeOf(intent); err != nil || !settled || got != want {
				t.Errorf("%s, %s: got %+v, %v, want %+v", claim, name, got, err, want)
			}
		}
	}
}

// Only an intent that has failed and was edited since costs one more call.
func TestTheChargeIsReadOnlyIfNothingElseExplainsTheFailure(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card   stripetest.Card
		edited bool
		reads  int
	}{
		"an unconfirmed intent":                      {card: "", reads: 1},
		"a paid intent":                              {card: stripetest.Succeeds, reads: 1},
		"a paid intent that was edited":              {card: stripetest.Succeeds, edited: true, reads: 1},
		"a processing intent":                        {card: stripetest.Processing, reads: 1},
		"a declined intent":                          {card: stripetest.LostCard, reads: 1},
		"an unconfirmed intent that was edited":      {card: "", edited: true, reads: 1},
		"a declined intent that was edited":          {card: stripetest.LostCard, edited: true, reads: 2},
		"an unexplained decline that was not edited": {card: stripetest.DeclinesUncoded, reads: 1},
	} {
		p := rigtest.Prepare(t, tt.card)
		if tt.card != "" {
			_, err := p.Confirm(1)
			rigtest.Must(t, err)
		}
		if tt.edited {
			p.Edit()
		}
		_, err := p.Read()
		if got := p.Count(stripetest.Read); err != nil || got != tt.reads {
			t.Errorf("%s: got %d reads, %v, want %d", claim, got, err, tt.reads)
		}
	}
}

func TestAMissingPermissionToReadChargesIsMisconfigured(t *testing.T) {
	t.Parallel()
	p := rigtest.PrepareWith(t, "rk_test_pretend4242", stripetest.Rules{Lacks: "rak_charge_read"}, stripetest.NeedsCustomer)
	_, err := p.Confirm(1)
	rigtest.Must(t, err)
	p.Edit()
	want := "misconfigured: read intent pi_000001 with its latest charge: stripe: 403 invalid_request_error " +
		`(a restricted key needs the permission "Charges and Refunds: Read") (request req_000004)`
	if got, err := p.Read(); err == nil || err.Error() != want || got != (order.Intent{}) {
		t.Errorf("got %+v, %v, want %s", got, err, want)
	}
}

func TestA403NamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"prepare": `(a restricted key needs the permission "PaymentIntents: Write")`,
		"confirm": `(a restricted key needs the permission "PaymentIntents: Write")`,
		"read":    `(a restricted key needs the permission "PaymentIntents: Read")`,
	} {
		_, err := rigtest.Methods(t, rigtest.Responding(t, rigtest.Failure(403, rigtest.InvalidRequest, "")))[name](t.Context())
		if rigtest.KindOf(t, err) != order.KindMisconfigured || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it misconfigured and %s", name, err, want)
		}
		_, err = rigtest.Methods(t, rigtest.Responding(t, rigtest.Failure(401, rigtest.InvalidRequest, "")))[name](t.Context())
		if rigtest.KindOf(t, err) != order.KindMisconfigured || strings.Contains(err.Error(), "permission") {
			t.Errorf("%s, 401: got %v, want it misconfigured without a permission", name, err)
		}
	}
}

// The intent that is returned is the second read's, because the customer may have paid
// since the first one.
func TestTheSecondReadDecides(t *testing.T) {
	t.Parallel()
	needsMethod := func(lastError, charge string) rigtest.Response {
		return rigtest.OK(rigtest.IntentWithCharge("requires_payment_method", lastError, charge))
	}
	edited := needsMethod(rigtest.Null, rigtest.Charge)
	for claim, tt := range map[string]struct {
		second  rigtest.Response
		state   order.IntentState
		failure order.Failure
		kind    order.ErrorKind
		text    string // of the error
	}{
		"the customer has paid since the first read": {
			second: rigtest.OK(rigtest.IntentWithCharge("succeeded", rigtest.Null, rigtest.Charge)), state: order.Succeeded,
		},
		"another card has failed since the first read": {
			second:  needsMethod(rigtest.DeclinedError, rigtest.ExpandedCharge),
			state:   order.NeedsMethod,
			failure: order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"},
		},
		"the charge is not expanded": {
			second: edited, kind: order.KindMisconfigured,
			text: "read intent pi_3Pretend with its latest charge: latest charge not expanded: got only its id",
		},
		"the property cannot be expanded": {second: rigtest.Failure(400, rigtest.InvalidRequest, ""), kind: order.KindMisconfigured},
		"a rate limit":                    {second: rigtest.Failure(429, rigtest.InvalidRequest, ""), kind: order.KindUnavailable},
		"a server error":                  {second: rigtest.Failure(500, rigtest.APIError, ""), kind: order.KindUnknown},
		"a charge that is not an object":  {second: needsMethod(rigtest.Null, "5"), kind: order.KindUnknown},
		"a failure code that is a number": {second: needsMethod(rigtest.Null, `{"failure_code":5}`), kind: order.KindUnknown},
		"another intent":                  {second: rigtest.OK(`{"id":"pi_4","status":"succeeded"}`), kind: order.KindUnknown},
	} {
		for _, first := range []string{"read", "confirm"} {
			var sent []string
			p := rigtest.Options(t, "", rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.Method+" "+r.URL.RequestURI()+", a "+stripe.CallName(r))
				switch {
				case r.URL.RawQuery != "":
					return tt.second.RoundTrip(r)
				case r.Method == http.MethodPost:
					return rigtest.Failure(400, rigtest.UnexpectedState, edited.Body).RoundTrip(r)
				}
				return edited.RoundTrip(r)
			}))
			got, err := rigtest.Methods(t, p)[first](t.Context())
			if kind := rigtest.KindOf(t, err); kind != tt.kind {
				t.Errorf("%s, %s: got %q (%v), want %q", claim, first, kind, err, tt.kind)
			}
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s, %s: got %v, want it to contain %q", claim, first, err, tt.text)
			}
			if got.State != tt.state || got.Failure != tt.failure {
				t.Errorf("%s, %s: got %+v, want %q with %+v", claim, first, got, tt.state, tt.failure)
			}
			want := []string{
				"GET /v1/payment_intents/pi_3Pretend, a GET /v1/payment_intents/{id}",
				"GET /v1/payment_intents/pi_3Pretend?expand[0]=latest_charge, a GET /v1/payment_intents/{id}",
			}
			if first == "confirm" {
				want[0] = "POST /v1/payment_intents/pi_3Pretend/confirm, a POST /v1/payment_intents/{id}/confirm"
			}
			if diff := cmp.Diff(sent, want); diff != "" {
				t.Errorf("%s, %s: requests (-got +want):\n%s", claim, first, diff)
			}
		}
	}
}
