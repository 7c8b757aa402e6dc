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

// TestAnEditInTheDashboardHidesNoFailure is an attempt that died before it could write down what the bank said, and a person who
// edited the intent since, which clears its last error.
func TestAnEditInTheDashboardHidesNoFailure(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card stripetest.Card
		want order.Outcome
	}{
		"a bank that wants the customer did not decline": {
			stripetest.NeedsCustomer, order.Outcome{Status: order.ActionRequired, Failure: "authentication_required"},
		},
		"a card without funds is declined": {
			stripetest.InsufficientFunds, order.Outcome{Status: order.Declined, Failure: "insufficient_funds"},
		},
		"an expired card is declined": {
			stripetest.ExpiredCard, order.Outcome{Status: order.Declined, Failure: "expired_card"},
		},
		"a payment that Radar blocked is declined": {
			stripetest.Blocked, order.Outcome{Status: order.Declined, Failure: "highest_risk_level"},
		},
	} {
		again := func(attempt int) func(context.Context, *stripe.Payments, order.IntentID) (order.Intent, error) {
			return func(ctx context.Context, p *stripe.Payments, id order.IntentID) (order.Intent, error) {
				return p.Confirm(ctx, id, order.ConfirmKey(scope, "ORD-1", attempt))
			}
		}
		for name, look := range map[string]func(context.Context, *stripe.Payments, order.IntentID) (order.Intent, error){
			"read": func(ctx context.Context, p *stripe.Payments, id order.IntentID) (order.Intent, error) {
				return p.Read(ctx, id)
			},
			"confirmed again": again(2), "confirmed again under the same key": again(1),
		} {
			t.Run(claim+", "+name, func(t *testing.T) {
				t.Parallel()
				s := pretend(t)
				p, o := open(t, s.URL, nil), orderOf(t, "pm_1")
				var err error
				s.Machine(func(m *stripetest.Machine) { m.Card("pm_1", tt.card) })
				id := failed(t, p, o)
				s.Machine(func(m *stripetest.Machine) { err = m.EditInDashboard(s.Now(), string(id)) })
				if err != nil {
					t.Fatal(err)
				}
				intent, err := look(t.Context(), p, id)
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

// failed prepares and confirms an order in vain.
func failed(t *testing.T, p *stripe.Payments, o order.Order) order.IntentID {
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

// TestTheChargeIsAskedForOnlyIfNothingElseTells counts calls: no order whose intent was not edited costs one more.
func TestTheChargeIsAskedForOnlyIfNothingElseTells(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card   stripetest.Card
		edited bool
		reads  int
	}{
		"an intent that waits":                       {card: "", reads: 1},
		"a paid intent":                              {card: stripetest.Succeeds, reads: 1},
		"a paid intent that was edited":              {card: stripetest.Succeeds, edited: true, reads: 1},
		"an intent that takes days":                  {card: stripetest.Processing, reads: 1},
		"a declined intent":                          {card: stripetest.LostCard, reads: 1},
		"an intent that waits and was edited":        {card: "", edited: true, reads: 1},
		"a declined intent that was edited":          {card: stripetest.LostCard, edited: true, reads: 2},
		"an unexplained decline that was not edited": {card: stripetest.DeclinesUncoded, reads: 1},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := pretend(t)
			p, ctx, o := open(t, s.URL, nil), t.Context(), orderOf(t, "pm_1")
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
				t.Errorf("before: read %d times, want never", got)
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
				t.Errorf("read %d times, want %d", got, tt.reads)
			}
		})
	}
}

func TestAKeyThatMayNotReadChargesIsMisconfigured(t *testing.T) {
	t.Parallel()
	const restricted = "rk_test_pretend4242"
	s := pretendWith(t, stripetest.Rules{NoCharges: true})
	p := stripe.New(stripe.Options{Key: restricted, BaseURL: s.URL, Scope: scope, Transport: keyed{t, http.DefaultTransport}})
	o := orderOf(t, "pm_card_authenticationRequired")
	id := failed(t, p, o)
	if got, err := p.Read(t.Context(), id); err != nil || got.Failure.Code != "authentication_required" {
		t.Errorf("before the edit: got %+v, %v, want the intent", got, err)
	}
	var err error
	s.Machine(func(m *stripetest.Machine) { err = m.EditInDashboard(s.Now(), string(id)) })
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() (order.Intent, error){
		"read":    func() (order.Intent, error) { return p.Read(t.Context(), id) },
		"confirm": func() (order.Intent, error) { return p.Confirm(t.Context(), id, order.ConfirmKey(scope, o.ID(), 2)) },
	} {
		got, err := call()
		if kindOf(t, err) != order.Misconfigured || got != (order.Intent{}) {
			t.Errorf("%s: got %+v, %v, want our mistake", name, got, err)
			continue
		}
		for _, want := range []string{
			": read intent " + string(id) + " with its latest charge: status 403", "'rak_charge_read'",
			`(a restricted key needs the permission "Charges and Refunds: Read")`,
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not name %s", name, err, want)
			}
		}
		if strings.Contains(err.Error(), restricted) {
			t.Errorf("%s: %q repeats the key", name, err)
		}
	}
}

func TestARefusedCallNamesThePermissionThatItNeeds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"prepare": `(a restricted key needs the permission "PaymentIntents: Write")`,
		"confirm": `(a restricted key needs the permission "PaymentIntents: Write")`,
		"read":    `(a restricted key needs the permission "PaymentIntents: Read")`,
	} {
		_, err := calls(t, offline(t, said{403, false, failure(invalid)}))[name](t.Context())
		if kindOf(t, err) != order.Misconfigured || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it misconfigured and %s", name, err, want)
		}
		_, err = calls(t, offline(t, said{401, false, failure(invalid)}))[name](t.Context())
		if kindOf(t, err) != order.Misconfigured || strings.Contains(err.Error(), "permission") {
			t.Errorf("%s with a key that is none: got %v, want it misconfigured and no word of permissions", name, err)
		}
	}
}

// TestTheSecondReadDecides is what comes back when the charge is asked for. The intent is of that moment, and no longer of
// the first read's.
func TestTheSecondReadDecides(t *testing.T) {
	t.Parallel()
	edited := said{200, false, charged("requires_payment_method", none, charge)}
	for claim, tt := range map[string]struct {
		second  said
		state   order.IntentState
		failure order.Failure
		trouble order.ErrorKind
	}{
		"the customer has paid since": {second: said{200, false, charged("succeeded", none, charge)}, state: order.Succeeded},
		"another card has failed since": {
			second:  said{200, false, charged("requires_payment_method", declined, wanted)},
			state:   order.NeedsMethod,
			failure: order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"},
		},
		"the charge is not shown":         {second: edited, trouble: order.Misconfigured},
		"the property cannot be expanded": {second: said{400, false, failure(invalid)}, trouble: order.Misconfigured},
		"too many requests":               {second: said{429, false, failure(invalid)}, trouble: order.Unavailable},
		"a server error":                  {second: said{500, false, failure(broken)}, trouble: order.Unknown},
		"a charge that is no charge":      {second: said{200, false, charged("requires_payment_method", none, "5")}, trouble: order.Unknown},
		"a failure code that is a number": {
			second: said{200, false, charged("requires_payment_method", none, `{"failure_code":5}`)}, trouble: order.Unknown,
		},
		"another intent than was asked for": {second: said{200, false, `{"id":"pi_4","status":"succeeded"}`}, trouble: order.Unknown},
	} {
		for _, first := range []string{"read", "confirm"} {
			var sent []string
			p := open(t, "", roundTrip(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.Method+" "+r.URL.RequestURI()+", a "+stripe.CallName(r))
				switch {
				case r.URL.RawQuery != "":
					return tt.second.respond(r)
				case r.Method == http.MethodPost:
					return said{400, false, in(settled, edited.body)}.respond(r)
				}
				return edited.respond(r)
			}))
			got, err := calls(t, p)[first](t.Context())
			if hidden := claim == "the charge is not shown"; hidden && (err == nil || !strings.Contains(err.Error(),
				"read intent pi_3Pretend with its latest charge: latest charge not expanded: got only its id")) {
				t.Errorf("%s, %s: got %v, want it to say so", claim, first, err)
			}
			if got.State != tt.state || got.Failure != tt.failure || kindOf(t, err) != tt.trouble {
				t.Errorf("%s, %s: got %+v, %v, want %q with %+v, or %q", claim, first, got, err, tt.state, tt.failure, tt.trouble)
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
