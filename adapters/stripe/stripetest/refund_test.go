package stripetest_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"

	"orderonce/adapters/stripe/stripetest"
)

// refunded returns the charge's amount_refunded, and whether it is refunded in full.
func (w *world) refunded(intent string) (amount int64, whole bool) {
	w.t.Helper()
	var body struct {
		Charge stripe.Charge `json:"latest_charge"`
	}
	must(w.t, json.Unmarshal(w.get(root+"/"+intent, "expand[]=latest_charge").Body(), &body))
	return body.Charge.AmountRefunded, body.Charge.Refunded
}

// docs.stripe.com/api/refunds/create: in part or in full, never more than is left;
// docs.stripe.com/error-codes: charge_already_refunded, charge_disputed.
func TestAChargeIsRefundedUpToItsAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id, unpaid := w.pay("pm_card_visa"), w.create("pm_card_visa")
	for _, step := range []struct {
		claim string
		do    func() stripetest.Response
		want  string
		left  int64
	}{
		{"no intent", func() stripetest.Response { return w.post(refunds, "", "") }, invalidRequest + " parameter_missing", 1999},
		{"another intent", func() stripetest.Response { return w.refund("pi_nope", "1", "") }, resourceMissing, 1999},
		{"an unpaid one", func() stripetest.Response { return w.refund(unpaid, "1", "") }, invalidRequest, 1999},
		{"nothing", func() stripetest.Response { return w.refund(id, "0", "a") }, notAnInteger, 1999},
		{"a fraction", func() stripetest.Response { return w.refund(id, "1.5", "a") }, notAnInteger, 1999},
		{
			"an unknown reason",
			func() stripetest.Response { return w.post(refunds, "a", "payment_intent="+id+"&reason=why") }, invalidRequest, 1999,
		},
		{"a part", func() stripetest.Response { return w.refund(id, "1000", "a") }, succeeded, 999},
		{"the same key", func() stripetest.Response { return w.refund(id, "1000", "a") }, succeeded + " replayed", 999},
		{
			"the same key and another amount",
			func() stripetest.Response { return w.refund(id, "1001", "a") }, "400 idempotency_error", 999,
		},
		{"more than is left", func() stripetest.Response { return w.refund(id, "1000", "b") }, invalidRequest, 999},
		{
			"the stored refusal",
			func() stripetest.Response { return w.refund(id, "1000", "b") }, invalidRequest + " replayed", 999,
		},
		{"what is left", func() stripetest.Response { return w.post(refunds, "c", "payment_intent="+id) }, succeeded, 0},
		{
			"one more", func() stripetest.Response { return w.refund(id, "1", "d") },
			invalidRequest + " charge_already_refunded", 0,
		},
		{"a read", func() stripetest.Response { return w.get(refunds+"/re_000001", "") }, succeeded, 0},
	} {
		if got := summary(step.do()); got != step.want {
			t.Errorf("%s: got %q, want %q", step.claim, got, step.want)
		}
		if got, whole := w.refunded(id); got != 1999-step.left || whole != (step.left == 0) {
			t.Errorf("%s: got %d refunded, in full %t, want %d left", step.claim, got, whole, step.left)
		}
	}
}

func TestARefundIsRefused(t *testing.T) {
	t.Parallel()
	testScenarios(t, map[string]scenario{
		// support.stripe.com/questions/deprecation-of-fractional-isk-charges-and-refunds.
		"with a fraction that the currency does not have": {exchanges: func(w *world) []exchange {
			id := w.post(root, "", "amount=200000&currency=isk&payment_method=pm_card_visa&confirm=true&off_session=true").Intent.ID
			return []exchange{
				{w.refund(id, "150", ""), invalidRequest + " invalid_charge_amount_no_decimal_compatible"},
				{w.refund(id, "100", ""), succeeded},
			}
		}},
		"while a dispute is not won": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.pay("pm_card_visa")
			d, err := w.OpenDispute(w.now, id)
			must(w.t, err)
			disputed := exchange{w.refund(id, "1", "a"), invalidRequest + " charge_disputed"}
			if _, err := w.RefundInDashboard(w.now, id, 1); !errors.Is(err, stripetest.ErrNotAllowed) {
				w.t.Errorf("in the Dashboard: got %v, want %v", err, stripetest.ErrNotAllowed)
			}
			must(w.t, w.CloseDispute(d.ID, true))
			if err := w.CloseDispute(d.ID, false); !errors.Is(err, stripetest.ErrNotAllowed) {
				w.t.Errorf("closed twice: got %v, want %v", err, stripetest.ErrNotAllowed)
			}
			if _, err := w.OpenDispute(w.now, w.create("pm_card_visa")); !errors.Is(err, stripetest.ErrNotAllowed) {
				w.t.Errorf("a dispute of an unpaid intent: got %v, want %v", err, stripetest.ErrNotAllowed)
			}
			return []exchange{disputed, {w.refund(id, "1", "b"), succeeded}}
		}},
		// docs.stripe.com/rate-limits: object locks.
		"while another executes": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.pay("pm_card_visa")
			const form = "payment_intent=pi_000001&amount=1000"
			ticket, _ := w.Begin(w.now, request("POST", refunds, "a", form))
			return []exchange{
				{w.post(refunds, "a", form), keyInUse},
				{w.refund(id, "1000", "b"), lockTimeout},
				{w.End(w.now, ticket), succeeded},
			}
		}},
		// A key that was pruned is a new request, whose refund may double the first.
		"under the same key within a day": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.pay("pm_card_visa")
			exchanges := []exchange{{w.refund(id, "900", "a"), succeeded}, {w.refund(id, "900", "a"), succeeded + " replayed"}}
			w.now = w.now.Add(24 * time.Hour)
			return append(exchanges, exchange{w.refund(id, "900", "a"), succeeded})
		}},
	})
}

// docs.stripe.com/refunds: a refund that fails, even after it has succeeded, gives the
// amount back; docs.stripe.com/testing: pm_card_pendingRefund.
func TestARefundMayFailOrBeCanceledLater(t *testing.T) {
	t.Parallel()
	const pending, action, paid = stripetest.RefundPending, stripetest.RefundRequiresAction, stripetest.RefundSucceeded
	const failed, canceled = stripetest.RefundFailed, stripetest.RefundCanceled
	const visa, slow = "pm_card_visa", "pm_card_pendingRefund"
	for _, tt := range []struct {
		card  string
		steps []stripetest.RefundStatus
		ok    bool
		left  int64
	}{
		{visa, []stripetest.RefundStatus{failed}, true, 1999},
		{visa, []stripetest.RefundStatus{canceled}, false, 999},
		{visa, []stripetest.RefundStatus{failed, paid}, false, 1999},
		{slow, []stripetest.RefundStatus{paid, failed}, true, 1999},
		{slow, []stripetest.RefundStatus{canceled}, false, 999},
		{slow, []stripetest.RefundStatus{action, canceled}, true, 1999},
		{slow, []stripetest.RefundStatus{action, pending, paid}, true, 999},
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.pay(tt.card)
		made := w.refund(id, "1000", "a").Refund
		if want := map[string]stripetest.RefundStatus{visa: paid, slow: pending}[tt.card]; made.Status != want {
			t.Errorf("%s: got %s, want %s", tt.card, made.Status, want)
		}
		var err error
		for _, s := range tt.steps {
			err = errors.Join(err, w.ChangeRefund(made.ID, s))
		}
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, stripetest.ErrNotAllowed) {
			t.Errorf("%s %v: got error %v, want one: %t", tt.card, tt.steps, err, !tt.ok)
		}
		if got, _ := w.refunded(id); got != 1999-tt.left {
			t.Errorf("%s %v: got %d refunded, want %d left", tt.card, tt.steps, got, tt.left)
		}
		if now := w.get(refunds+"/"+made.ID, "").Refund; (now.Failure != "") != (now.Status == failed) {
			t.Errorf("%s %v: got %s with failure reason %q", tt.card, tt.steps, now.Status, now.Failure)
		}
	}
}

// docs.stripe.com/error-low-level: a 500 may be rolled forward; and a request may be
// executed long after its client gave up.
func TestAFailedRefundMayBeExecutedLater(t *testing.T) {
	t.Parallel()
	for fault, again := range map[stripetest.FaultKind]string{
		stripetest.ServerErrorBeforeEffect: "500 api_error replayed",
		stripetest.ServerErrorAfterEffect:  "500 api_error replayed",
		stripetest.LoseRequest:             succeeded,
		stripetest.LoseResponse:            succeeded + " replayed",
		stripetest.Unavailable:             succeeded,
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.pay("pm_card_visa")
		w.Fail(stripetest.Fault{Kind: fault, On: stripetest.CreateRefund, OrderID: "ORD1"})
		w.refund(id, "1000", "a")
		alone := w.clone()
		alone.RollForward(w.now)
		if executed := fault != stripetest.Unavailable; executed != (len(alone.Refunds()) == 1) {
			t.Errorf("%s: got %d refunds later, want one: %t", fault, len(alone.Refunds()), executed)
		}
		if got := summary(w.refund(id, "1000", "a")); got != again {
			t.Errorf("%s: got %q, want %q", fault, got, again)
		}
		for range 2 {
			w.RollForward(w.now)
		}
		if got := len(w.Refunds()); got != 1 {
			t.Errorf("%s: got %d refunds, want 1", fault, got)
		}
	}
}

// docs.stripe.com/api/events/types. The object of an event is as it was then.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	paid, bounced := w.pay("pm_card_visa"), w.pay("pm_usBankAccount_processing")
	must(t, w.Settle(w.now, bounced, false))
	must(t, w.EditInDashboard(w.now, bounced))
	must(t, w.CancelInDashboard(w.now, bounced))
	must(t, w.ChangeRefund(w.refund(paid, "1000", "a").Refund.ID, stripetest.RefundFailed))
	d, err := w.OpenDispute(w.now, paid)
	must(t, err)
	must(t, w.CloseDispute(d.ID, false))
	type event struct{ Type, ID, Status, Intent string }
	var got []event
	for _, e := range w.Events() {
		var body stripe.Event
		must(t, json.Unmarshal(e.Body(w.now), &body))
		o := body.Data.Object
		intent, _ := o["payment_intent"].(string)
		got = append(got, event{string(body.Type), o["id"].(string), o["status"].(string), intent})
	}
	want := []event{
		{"payment_intent.succeeded", paid, "succeeded", ""},
		{"payment_intent.processing", bounced, "processing", ""},
		{"payment_intent.payment_failed", bounced, "requires_payment_method", ""},
		{"payment_intent.canceled", bounced, "canceled", ""},
		{"refund.created", "re_000001", "succeeded", paid},
		{"charge.refunded", "ch_000001", "succeeded", paid},
		{"refund.updated", "re_000001", "failed", paid},
		{"refund.failed", "re_000001", "failed", paid},
		{"charge.dispute.created", "du_000001", "needs_response", paid},
		{"charge.dispute.closed", "du_000001", "lost", paid},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
