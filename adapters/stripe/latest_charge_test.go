package stripe_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// An attempt may crash before it records the failure, and a person may then edit the
// intent, which clears its last error.
func TestAnEditInTheDashboardHidesNoFailure(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card stripetest.Card
		want order.Outcome
	}{
		"a payment that requires authentication is not declined": {
			stripetest.NeedsCustomer, order.Outcome{Status: order.ActionRequired, Failure: "authentication_required"},
		},
		"a card without sufficient funds is declined": {
			stripetest.InsufficientFunds, order.Outcome{Status: order.Declined, Failure: "insufficient_funds"},
		},
		"an expired card is declined": {
			stripetest.ExpiredCard, order.Outcome{Status: order.Declined, Failure: "expired_card"},
		},
		"a payment that Radar blocks is declined": {
			stripetest.Blocked, order.Outcome{Status: order.Declined, Failure: "highest_risk_level"},
		},
	} {
		type method func(context.Context, *stripe.Payments, order.IntentID) (order.Intent, error)
		confirm := func(attempt int) method {
			return func(ctx context.Context, p *stripe.Payments, id order.IntentID) (order.Intent, error) {
				return p.Confirm(ctx, id, order.ConfirmKey(scope, "ORD-1", attempt))
			}
		}
		for name, method := range map[string]method{
			"read": func(ctx context.Context, p *stripe.Payments, id order.IntentID) (order.Intent, error) {
				return p.Read(ctx, id)
			},
			"confirmed again": confirm(2), "confirmed again under the same key": confirm(1),
		} {
			t.Run(claim+", "+name, func(t *testing.T) {
				t.Parallel()
				s := newStripe(t)
				p, o := newPayments(t, s.URL, nil), newOrder(t, "pm_1")
				var err error
				s.Machine(func(m *stripetest.Machine) { m.Card("pm_1", tt.card) })
				id := declineOrder(t, p, o)
				s.Machine(func(m *stripetest.Machine) { err = m.EditInDashboard(s.Now(), string(id)) })
				if err != nil {
					t.Fatal(err)
				}
				intent, err := method(t.Context(), p, id)
				want := tt.want
				want.Intent = id
				if got, settled := order.OutcomeOf(intent); err != nil || !settled || got != want {
					t.Errorf("got %+v, %v, want %+v", got, err, want)
				}
				if got := ledger(s, o.ID(), stripetest.Charged); len(got) != 0 {
					t.Errorf("got charges %v, want none", got)
				}
			})
		}
	}
}

// declineOrder prepares and confirms an order whose payment fails.
func declineOrder(t *testing.T, p *stripe.Payments, o order.Order) order.IntentID {
	t.Helper()
	intent, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
	if err != nil {
		t.Fatal(err)
	}
	intent, err = p.Confirm(t.Context(), intent.ID, order.ConfirmKey(scope, o.ID(), 1))
	if err != nil || intent.State != order.NeedsMethod {
		t.Fatalf("got %+v, %v, want an intent that needs a method", intent, err)
	}
	return intent.ID
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
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newStripe(t)
			p, ctx, o := newPayments(t, s.URL, nil), t.Context(), newOrder(t, "pm_1")
			intent, err := p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
			if err != nil {
				t.Fatal(err)
			}
			if tt.card != "" {
				s.Machine(func(m *stripetest.Machine) { m.Card("pm_1", tt.card) })
				if _, err := p.Confirm(ctx, intent.ID, order.ConfirmKey(scope, o.ID(), 1)); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Count(stripetest.Read); got != 0 {
				t.Errorf("before Read: got %d reads, want 0", got)
			}
			if tt.edited {
				s.Machine(func(m *stripetest.Machine) { err = m.EditInDashboard(s.Now(), string(intent.ID)) })
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Read(ctx, intent.ID); err != nil {
				t.Error(err)
			}
			if got := s.Count(stripetest.Read); got != tt.reads {
				t.Errorf("got %d reads, want %d", got, tt.reads)
			}
		})
	}
}

func TestAMissingPermissionToReadChargesIsMisconfigured(t *testing.T) {
	t.Parallel()
	const restricted = "rk_test_pretend4242"
	s := newStripeWith(t, stripetest.Rules{NoCharges: true})
	p := stripe.New(stripe.Options{
		Key: restricted, BaseURL: s.URL, Scope: scope, Transport: requireKey{t, http.DefaultTransport},
	})
	o := newOrder(t, "pm_card_authenticationRequired")
	id := declineOrder(t, p, o)
	if got, err := p.Read(t.Context(), id); err != nil || got.Failure.Code != "authentication_required" {
		t.Errorf("before the edit: got %+v, %v, want the intent", got, err)
	}
	var err error
	s.Machine(func(m *stripetest.Machine) { err = m.EditInDashboard(s.Now(), string(id)) })
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() (order.Intent, error){
		"read": func() (order.Intent, error) { return p.Read(t.Context(), id) },
		"confirm": func() (order.Intent, error) {
			return p.Confirm(t.Context(), id, order.ConfirmKey(scope, o.ID(), 2))
		},
	} {
		got, err := call()
		if kindOf(t, err) != order.KindMisconfigured || got != (order.Intent{}) {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, order.KindMisconfigured)
			continue
		}
		for _, want := range []string{
			": read intent " + string(id) + " with its latest charge: status 403", "'rak_charge_read'",
			`(a restricted key needs the permission "Charges and Refunds: Read")`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want it to contain %s", name, err, want)
			}
		}
		if strings.Contains(err.Error(), restricted) {
			t.Errorf("%s: got %q, want no key in it", name, err)
		}
	}
}

func TestA403NamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"prepare": `(a restricted key needs the permission "PaymentIntents: Write")`,
		"confirm": `(a restricted key needs the permission "PaymentIntents: Write")`,
		"read":    `(a restricted key needs the permission "PaymentIntents: Read")`,
	} {
		_, err := methods(t, responding(t, failure(403, invalidRequest, "")))[name](t.Context())
		if kindOf(t, err) != order.KindMisconfigured || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it misconfigured and %s", name, err, want)
		}
		_, err = methods(t, responding(t, failure(401, invalidRequest, "")))[name](t.Context())
		if kindOf(t, err) != order.KindMisconfigured || strings.Contains(err.Error(), "permission") {
			t.Errorf("%s, 401: got %v, want it misconfigured without a permission", name, err)
		}
	}
}

// The intent that is returned is the second read's, because the customer may have paid
// since the first one.
func TestTheSecondReadDecides(t *testing.T) {
	t.Parallel()
	needsMethod := func(lastError, charge string) response {
		return ok(intentWithCharge("requires_payment_method", lastError, charge))
	}
	edited := needsMethod(null, charge)
	for claim, tt := range map[string]struct {
		second  response
		state   order.IntentState
		failure order.Failure
		kind    order.ErrorKind
		text    string // of the error
	}{
		"the customer has paid since the first read": {
			second: ok(intentWithCharge("succeeded", null, charge)), state: order.Succeeded,
		},
		"another card has failed since the first read": {
			second:  needsMethod(declinedError, expandedCharge),
			state:   order.NeedsMethod,
			failure: order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"},
		},
		"the charge is not expanded": {
			second: edited, kind: order.KindMisconfigured,
			text: "read intent pi_3Pretend with its latest charge: latest charge not expanded: got only its id",
		},
		"the property cannot be expanded": {second: failure(400, invalidRequest, ""), kind: order.KindMisconfigured},
		"a rate limit":                    {second: failure(429, invalidRequest, ""), kind: order.KindUnavailable},
		"a server error":                  {second: failure(500, apiError, ""), kind: order.KindUnknown},
		"a charge that is not an object":  {second: needsMethod(null, "5"), kind: order.KindUnknown},
		"a failure code that is a number": {second: needsMethod(null, `{"failure_code":5}`), kind: order.KindUnknown},
		"another intent":                  {second: ok(`{"id":"pi_4","status":"succeeded"}`), kind: order.KindUnknown},
	} {
		for _, first := range []string{"read", "confirm"} {
			var sent []string
			p := newPayments(t, "", roundTripFunc(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.Method+" "+r.URL.RequestURI()+", a "+stripe.CallName(r))
				switch {
				case r.URL.RawQuery != "":
					return tt.second.roundTrip(r)
				case r.Method == http.MethodPost:
					return failure(400, unexpectedState, edited.body).roundTrip(r)
				}
				return edited.roundTrip(r)
			}))
			got, err := methods(t, p)[first](t.Context())
			if kind := kindOf(t, err); kind != tt.kind {
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
				"GET /v1/payment_intents/pi_3Pretend?expand[]=latest_charge, a GET /v1/payment_intents/{id}",
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
