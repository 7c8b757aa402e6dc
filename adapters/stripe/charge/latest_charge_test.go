package charge_test

import (
	stdcmp "cmp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// An attempt may crash before it records the failure, and a person may then edit the
// intent, which clears its last error. The next attempt finds the failure. Only an intent
// that has failed and was edited since costs one more call.
func TestTheNextAttemptFindsTheFailure(t *testing.T) {
	for claim, tt := range map[string]struct {
		card    string // "" is an intent that is not confirmed
		edited  bool
		status  order.Status
		failure string
		reads   int
	}{
		"an unconfirmed intent":                   {"", false, "", "", 1},
		"an unconfirmed intent that was edited":   {"", true, "", "", 1},
		"a paid intent that was edited":           {"pm_card_visa", true, order.Paid, "", 1},
		"a processing intent":                     {"pm_usBankAccount_processing", false, order.Pending, "", 1},
		"a decline has its code":                  {"pm_card_chargeDeclinedLostCard", false, order.Declined, "lost_card", 1},
		"a decline without a code has its type":   {"pm_card_chargeDeclinedUncoded", false, order.Declined, "card_error", 1},
		"an edited one may have neither":          {"pm_card_chargeDeclinedUncoded", true, order.Declined, "unexplained", 2},
		"an expired card is declined":             {"pm_card_chargeDeclinedExpiredCard", true, order.Declined, "expired_card", 2},
		"a payment that Radar blocks is declined": {"pm_card_radarBlock", true, order.Declined, "highest_risk_level", 2},
		"a payment that requires authentication is not declined": {
			"pm_card_authenticationRequired", true, order.ActionRequired, "authentication_required", 2,
		},
	} {
		for _, attempt := range []int{0, 1, 2} { // read, confirmed again under the same key, and under another
			p := rigtest.Prepare(t, stdcmp.Or(tt.card, "pm_1"))
			if tt.card != "" {
				_, err := p.Confirm(1)
				rigtest.Must(t, err)
			}
			if tt.edited {
				p.Edit()
			}
			next := p.Read
			if attempt > 0 && tt.failure != "" {
				next = func() (order.Intent, error) { return p.Confirm(attempt) }
			}
			intent, err := next()
			want := order.Outcome{Status: tt.status, Intent: p.Intent.ID, Failure: tt.failure}
			if tt.status == "" {
				want = order.Outcome{}
			}
			if got, _ := order.OutcomeOf(intent); err != nil || got != want {
				t.Errorf("%s, attempt %d: got %+v, %v, want %+v", claim, attempt, got, err, want)
			}
			if got := p.Count(stripetest.Read); attempt == 0 && got != tt.reads {
				t.Errorf("%s: got %d reads, want %d", claim, got, tt.reads)
			}
		}
	}
}

func TestA403NamesTheMissingPermission(t *testing.T) {
	for name, want := range map[string]string{
		"prepare": `"PaymentIntents: Write"`, "confirm": `"PaymentIntents: Write"`, "read": `"PaymentIntents: Read"`,
	} {
		for status, named := range map[int]bool{403: true, 401: false} {
			p := rigtest.Responding(rigtest.Failure(status, rigtest.InvalidRequest))
			_, err := rigtest.Methods(t, p)[name](t.Context())
			got := strings.Contains(err.Error(), "(a restricted key needs the permission "+want+")")
			if rigtest.KindOf(t, err) != order.KindMisconfigured || got != named {
				t.Errorf("%s, %d: got %v, want it misconfigured, with the permission: %t", name, status, err, named)
			}
		}
	}
	edited := rigtest.IntentWith("requires_payment_method", rigtest.Null, rigtest.Charge)
	p := rigtest.Responding(rigtest.OK(edited), rigtest.Failure(403, rigtest.InvalidRequest))
	want := "misconfigured: read intent pi_3Pretend with its latest charge: stripe: 403 invalid_request_error " +
		`(a restricted key needs the permission "Charges and Refunds: Read") (request req_pretend)`
	if _, err := rigtest.Methods(t, p)["read"](t.Context()); err == nil || err.Error() != want {
		t.Errorf("the latest charge: got %v, want %s", err, want)
	}
}

// The intent that is returned is the second read's, because the customer may have paid
// since the first one.
func TestTheSecondReadDecides(t *testing.T) {
	needsMethod := func(lastError, charge string) stripe.Response {
		return rigtest.OK(rigtest.IntentWith("requires_payment_method", lastError, charge))
	}
	edited := needsMethod(rigtest.Null, rigtest.Charge)
	for claim, tt := range map[string]struct {
		second  stripe.Response
		state   order.IntentState
		failure string
		kind    order.ErrorKind
	}{
		"the customer has paid since the first read": {
			second: rigtest.OK(rigtest.IntentWith("succeeded", rigtest.Null, rigtest.Charge)), state: order.Succeeded,
		},
		"another card has failed since the first read": {
			second: needsMethod(rigtest.DeclinedError, rigtest.ExpandedCharge), state: order.NeedsMethod, failure: "card_declined",
		},
		"the charge is not expanded":      {second: edited, kind: order.KindMisconfigured},
		"the property cannot be expanded": {second: rigtest.Failure(400, rigtest.InvalidRequest), kind: order.KindMisconfigured},
		"a rate limit":                    {second: rigtest.Failure(429, rigtest.InvalidRequest), kind: order.KindUnavailable},
		"a server error":                  {second: rigtest.Failure(500, rigtest.APIError), kind: order.KindUnknown},
		"a charge that is not an object":  {second: needsMethod(rigtest.Null, "5"), kind: order.KindUnknown},
		"a failure code that is a number": {second: needsMethod(rigtest.Null, `{"failure_code":5}`), kind: order.KindUnknown},
		"another intent":                  {second: rigtest.OK(`{"id":"pi_4","status":"succeeded"}`), kind: order.KindUnknown},
	} {
		for first, request := range map[string]string{
			"read": "GET /v1/payment_intents/pi_3Pretend ", "confirm": "POST /v1/payment_intents/pi_3Pretend/confirm off_session=true",
		} {
			var sent []string
			p := rigtest.Exchanging(func(r stripe.Request) (stripe.Response, error) {
				sent = append(sent, r.Method+" "+r.Path+" "+r.Params.Encode())
				switch {
				case len(sent) > 1:
					return tt.second, nil
				case r.Key != "":
					return rigtest.FailureWith(400, rigtest.UnexpectedState, string(edited.Body)), nil
				}
				return edited, nil
			})
			got, err := rigtest.Methods(t, p)[first](t.Context())
			if kind := rigtest.KindOf(t, err); kind != tt.kind || got.State != tt.state || got.Failure.Code != tt.failure {
				t.Errorf("%s, %s: got %+v, %v, want %q, %q, %q", claim, first, got, err, tt.state, tt.failure, tt.kind)
			}
			want := []string{request, "GET /v1/payment_intents/pi_3Pretend expand%5B0%5D=latest_charge"}
			if diff := cmp.Diff(sent, want); diff != "" {
				t.Errorf("%s, %s: requests (-got +want):\n%s", claim, first, diff)
			}
		}
	}
}
