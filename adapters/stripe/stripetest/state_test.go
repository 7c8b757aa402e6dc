package stripetest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

func (w *world) state() string { return string(w.AppendState(w.now, nil)) }

func (w *world) clone() *world { return &world{Machine: w.Clone(), t: w.t, now: w.now} }

func TestClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	w.Fail(stripetest.Fault{Kind: stripetest.RateLimited, On: stripetest.Read, Times: 2})
	ticket, _ := w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true"))
	before := w.state()

	other := w.clone()
	if other.state() != before {
		t.Fatal("a clone is not in the state of its original")
	}
	other.read(id)
	other.Card("pm_x", stripetest.Declines)
	other.DeleteCustomer("cus_2")
	got := []string{summary(other.End(other.now, ticket))}
	other.createUnder("k2")
	if w.state() != before {
		t.Error("got a change of the original, want one of the clone only")
	}
	got = append(got, summary(w.End(w.now, ticket)))
	if diff := cmp.Diff(got, []string{"200 succeeded", "200 succeeded"}); diff != "" {
		t.Errorf("responses of the clone and its original (-got +want):\n%s", diff)
	}
	for name, each := range map[string]*world{"clone": other, "original": w} {
		if got := each.Charges("ORD1"); len(got) != 1 {
			t.Errorf("%s: got charges %v, want 1", name, got)
		}
	}
}

func TestAppendState(t *testing.T) {
	t.Parallel()

	t.Run("every change that can matter later changes the state", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_authenticationRequired")
		seen := map[string]string{w.state(): "the beginning"}
		var ticket stripetest.Ticket
		steps := []struct {
			name string
			do   func()
		}{
			{"a card", func() { w.Card("pm_x", stripetest.Declines) }},
			{"a fault", func() { w.Fail(stripetest.Fault{Kind: stripetest.Garbage, On: stripetest.List, Times: 2}) }},
			{"a fault used once", func() { w.Do(w.now, request("GET", root, "", "")) }},
			{
				"a begun call",
				func() { ticket, _ = w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true")) },
			},
			{"its effect", func() { w.Effect(w.now, ticket) }},
			{"its end", func() { w.End(w.now, ticket) }},
			{"an older key", func() { w.now = w.now.Add(time.Hour) }},
			{"an expired key", func() { w.now = w.now.Add(24 * time.Hour) }},
			{"a payment", func() { _ = w.CustomerPays(w.now, id) }},
			{"a dispute", func() { _, _ = w.OpenDispute(w.now, id) }},
			{"its end", func() { _ = w.CloseDispute("du_000001", true) }},
			{"a refund", func() { _, _ = w.RefundInDashboard(w.now, id, 10) }},
			{"its failure", func() { _ = w.ChangeRefund("re_000001", stripetest.RefundFailed) }},
			{"a fault of a refund", func() {
				w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect, On: stripetest.CreateRefund})
			}},
			{"a failed request for one", func() { w.post(refunds, "r", "payment_intent="+id) }},
			{"its execution", func() { w.RollForward(w.now) }},
			{"another intent", func() { w.create("pm_card_visa") }},
			{"a deleted customer", func() { w.DeleteCustomer("cus_1") }},
			{"a detached method", func() { w.DetachMethod("pm_card_visa") }},
		}
		for _, step := range steps {
			step.do()
			if earlier, known := seen[w.state()]; known {
				t.Errorf("after %s: got the state after %s, want another", step.name, earlier)
			}
			seen[w.state()] = step.name
		}
	})

	t.Run("the fault of an executing call, and the call of a fault, are part of the state", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for _, fault := range []stripetest.Fault{
			{}, {Kind: stripetest.ServerErrorBeforeEffect}, {Kind: stripetest.Garbage, Number: 1}, {Kind: stripetest.Garbage, Number: 2},
		} {
			w := newWorld(t, stripetest.Rules{})
			if fault.Kind != "" {
				w.Fail(fault)
			}
			w.Begin(w.now, request("POST", root, "k", creation("pm_card_visa")))
			seen[w.state()] = true
		}
		if len(seen) != 4 {
			t.Errorf("got %d states, want 4", len(seen))
		}
	})

	t.Run("reads, refusals, request ids and the date do not change the state", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		other := w.clone()
		other.now = other.now.AddDate(1, 2, 3)
		other.get(root)
		other.post(root, "bad", "amount=0")
		for _, each := range []*world{w, other} {
			each.confirm(each.create("pm_card_chargeDeclined"), "k")
			each.now = each.now.Add(time.Hour)
		}
		if w.state() != other.state() {
			t.Errorf("states differ:\n%q\n%q", w.state(), other.state())
		}
	})
}

// TestEveryInterleaving visits every order in which two clients, each trying twice, can
// confirm one intent while the bank wants nothing and keys are forgotten at any moment.
func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	type node struct {
		*world
		tickets [2]stripetest.Ticket
		phase   [2]int // Begin, Effect and End of a first try, then of a second.
	}
	start := newWorld(t, stripetest.Rules{})
	id := start.create("pm_card_visa")
	step := func(n node, client int) node {
		n.world = n.clone()
		switch n.phase[client] % 3 {
		case 0:
			key := []string{"a", "b"}[client]
			ticket, refusal := n.Begin(n.now, request("POST", root+"/"+id+"/confirm", key, "off_session=true"))
			n.tickets[client] = ticket
			if refusal != nil {
				n.phase[client] += 2
			}
		case 1:
			n.Effect(n.now, n.tickets[client])
		default:
			n.End(n.now, n.tickets[client])
		}
		n.phase[client]++
		return n
	}
	type place struct {
		state   string
		tickets [2]stripetest.Ticket
		phase   [2]int
	}
	seen := map[place]bool{}
	paid := 0
	queue := []node{{world: start}}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		at := place{n.state(), n.tickets, n.phase}
		if seen[at] {
			continue
		}
		seen[at] = true
		if got := len(n.Charges("ORD1")); got > 1 {
			t.Fatalf("after %v: got %d charges, want at most 1", n.phase, got)
		} else if n.phase == [2]int{6, 6} {
			paid += got
		}
		for client := range 2 {
			if n.phase[client] < 6 {
				queue = append(queue, step(n, client))
			}
		}
		expired := n
		expired.world = n.clone()
		expired.ForgetKeys()
		queue = append(queue, expired)
	}
	if paid == 0 {
		t.Error("got no interleaving that charges, want some")
	}
	t.Logf("%d distinct states, %d ends, all paid at most once", len(seen), paid)
}
