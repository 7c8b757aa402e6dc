package stripetest_test

import (
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

func (w *world) state() string { return string(w.AppendState(w.now, nil)) }

func TestAChangeOfACloneDoesNotChangeItsOriginal(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	paid, id := w.pay("pm_card_visa"), w.create("pm_card_visa")
	w.refund(paid, "10", "")
	_, err := w.OpenDispute(w.now, paid)
	must(t, err)
	w.Fail(stripetest.Fault{Kind: stripetest.RateLimited, On: stripetest.Read, Times: 2})
	ticket, _ := w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true"))
	before, other := w.state(), w.clone()
	if other.state() != before {
		t.Fatal("a clone is not in the state of its original")
	}
	must(t, other.CloseDispute("du_000001", true))
	must(t, other.ChangeRefund("re_000001", stripetest.RefundFailed))
	other.get(root+"/"+id, "")
	other.Card("pm_x", stripetest.Declines)
	other.DeleteCustomer("cus_2")
	other.createUnder("k2")
	other.want("the clone's call", other.End(other.now, ticket), succeeded)
	if w.state() != before {
		t.Error("got a change of the original, want one of the clone only")
	}
	w.want("the original's call", w.End(w.now, ticket), succeeded)
}

func TestEveryChangeThatCanMatterLaterChangesTheState(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_authenticationRequired")
	seen := map[string]string{w.state(): "the beginning"}
	var ticket stripetest.Ticket
	begin := func() { ticket, _ = w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true")) }
	fail := func(f stripetest.Fault) func() { return func() { w.Fail(f) } }
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"a card", func() { w.Card("pm_x", stripetest.Declines) }},
		{"a fault", fail(stripetest.Fault{Kind: stripetest.Garbage, On: stripetest.List, Times: 2})},
		{"a fault used once", func() { w.get(root, "") }},
		{"a fault of a call", fail(stripetest.Fault{Kind: stripetest.Garbage, Number: 99})},
		{"a begun call", begin},
		{"its effect", func() { w.Effect(w.now, ticket) }},
		{"its end", func() { w.End(w.now, ticket) }},
		{"an older key", func() { w.now = w.now.Add(time.Hour) }},
		{"an expired key", func() { w.now = w.now.Add(24 * time.Hour) }},
		{"a payment", func() { _ = w.CustomerPays(w.now, id) }},
		{"a dispute", func() { _, _ = w.OpenDispute(w.now, id) }},
		{"its end", func() { _ = w.CloseDispute("du_000001", true) }},
		{"a refund", func() { _, _ = w.RefundInDashboard(w.now, id, 10) }},
		{"its failure", func() { _ = w.ChangeRefund("re_000001", stripetest.RefundFailed) }},
		{"a fault of a refund", fail(stripetest.Fault{
			Kind: stripetest.ServerErrorBeforeEffect, On: stripetest.CreateRefund,
		})},
		{"a failed request for one", func() { w.post(refunds, "r", "payment_intent="+id) }},
		{"its execution", func() { w.RollForward(w.now) }},
		{"another intent", func() { w.create("pm_card_visa") }},
		{"a deleted customer", func() { w.DeleteCustomer("cus_1") }},
		{"a detached method", func() { w.DetachMethod("pm_card_visa") }},
	} {
		step.do()
		if earlier, known := seen[w.state()]; known {
			t.Errorf("after %s: got the state after %s, want another", step.name, earlier)
		}
		seen[w.state()] = step.name
	}
}

func TestReadsRefusalsRequestIDsAndTheDateDoNotChangeTheState(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	other := w.clone()
	other.now = other.now.AddDate(1, 2, 3)
	other.get(root, "")
	other.post(root, "bad", "amount=0")
	for _, each := range []*world{w, other} {
		each.confirm(each.create("pm_card_chargeDeclined"), "k")
		each.now = each.now.Add(time.Hour)
	}
	if w.state() != other.state() {
		t.Errorf("states differ:\n%q\n%q", w.state(), other.state())
	}
}
