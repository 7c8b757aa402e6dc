package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/stage"
)

// The changes of a row that break no rule, by what makes them.
const (
	claimed   = "a claim"
	bound     = "a bind"
	released  = "a release"
	takenOver = "a takeover"
	finished  = "a finish"
	postponed = "a postponed recheck"
	settled   = "a settle"
	disputed  = "a dispute"
)

// changes returns one correct change of each kind, each after the previous one.
func changes() map[string]*change {
	first, second := &Worker{Name: "A"}, &Worker{Name: "B"}
	at := func(d time.Duration) time.Time { return start().Add(d) }
	all := map[string]*change{}
	row := order.Record{}
	add := func(name string, by *Worker, c Call, known knowledge, set func(r *order.Record)) {
		before := row
		row.Events = slices.Clone(row.Events)
		set(&row)
		x := &tracked{id: "ORD-1", status: order.Open, parked: make([]order.Reason, 1)}
		all[name] = &change{order: x, before: before, after: row, cause: Cause{by, c, row.UpdatedAt, known}}
	}
	add(claimed, first, Call{Name: ordertest.Begin}, knowledge{}, func(r *order.Record) {
		*r = order.Record{
			OrderID: "ORD-1", CustomerID: "CUST987", Status: order.Open, Owner: "owner-A", Attempt: 1, Until: at(time.Minute),
			CreatedAt: at(0), UpdatedAt: at(0), DueAt: at(15 * time.Minute),
		}
	})
	add(bound, first, Call{Name: ordertest.Bind}, knowledge{intent: "pi_000001"}, func(r *order.Record) {
		r.Intent, r.UpdatedAt = "pi_000001", at(time.Second)
	})
	add(released, first, Call{Name: ordertest.Release, Detail: "provider_unknown"}, knowledge{}, func(r *order.Record) {
		r.Owner, r.Until, r.LastError, r.UpdatedAt = "", time.Time{}, "provider_unknown", at(2*time.Second)
	})
	add("another claim", second, Call{Name: ordertest.Begin}, knowledge{}, func(r *order.Record) {
		r.Owner, r.Attempt, r.Until = "owner-B", 2, at(2*time.Minute)
		r.UpdatedAt, r.DueAt = at(time.Minute), at(16*time.Minute)
	})
	add(takenOver, first, Call{Name: ordertest.Begin}, knowledge{}, func(r *order.Record) {
		r.Owner, r.Attempt, r.Until = "owner-A-2", 3, at(time.Hour)
		r.UpdatedAt, r.DueAt = at(50*time.Minute), at(65*time.Minute)
	})
	add(finished, first, Call{Name: ordertest.Finish}, knowledge{failure: "no_money"}, func(r *order.Record) {
		r.Status, r.Owner, r.Until, r.Failure, r.Seq = order.ActionRequired, "", time.Time{}, "no_money", 1
		r.UpdatedAt, r.DueAt = at(51*time.Minute), at(51*time.Minute+Day)
		r.Events = append(r.Events, order.Event{
			Seq: 1, From: order.Open, To: order.ActionRequired, Intent: r.Intent, Failure: "no_money", At: r.UpdatedAt,
		})
	})
	add(postponed, second, Call{Name: ordertest.Postpone}, knowledge{}, func(r *order.Record) { r.DueAt = at(77 * time.Hour) })
	all[postponed].cause.at = at(53 * time.Hour)
	add(settled, second, Call{Name: Settle}, knowledge{}, func(r *order.Record) {
		r.Status, r.Failure, r.Seq, r.UpdatedAt, r.DueAt = order.Paid, "", 2, at(52*time.Minute), time.Time{}
		r.Events = append(r.Events, order.Event{Seq: 2, From: order.ActionRequired, To: order.Paid, Intent: r.Intent, At: r.UpdatedAt})
	})
	add(disputed, second, Call{Name: "dispute"}, knowledge{}, func(r *order.Record) {
		r.UpdatedAt = at(53 * time.Minute)
		d := order.Dispute{ID: "du_1", Status: order.DisputeOpen, CreatedAt: at(0)}
		*r = r.With(order.Event{From: r.Status, To: r.Status, Intent: r.Intent, Dispute: d, At: r.UpdatedAt})
		r.Dispute = d
	})
	return all
}

// mistake is what breaks one rule, in a change that is correct without it.
type mistake struct {
	rule  string // the beginning of its text
	in    string
	name  string
	apply func(c *change)
}

func claimMistakes() []mistake {
	return []mistake{
		{"a new row is open", claimed, "it has an intent", func(c *change) { c.after.Intent = "pi_1" }},
		{"a new row is open", claimed, "it is paid", func(c *change) { c.after.Status = order.Paid }},
		{"a new row is open", claimed, "it has a reason", func(c *change) { c.after.LastError = "refused" }},
		{"a new row is open", claimed, "it has a failure", func(c *change) { c.after.Failure = "no_money" }},
		{"a new row is open", claimed, "it has made a transition", func(c *change) { c.after.Seq = 1 }},
		{"owner and lease", released, "the lease stays", func(c *change) { c.after.Until = c.before.Until }},
		{"owner and lease", takenOver, "there is no lease", func(c *change) { c.after.Until = time.Time{} }},
		{"owner and lease", finished, "a settled order is held", func(c *change) {
			c.after.Owner, c.after.Until = c.before.Owner, c.before.Until
		}},
		{"each claim counts", takenOver, "it is not counted", func(c *change) { c.after.Attempt = c.before.Attempt }},
		{"each claim counts", takenOver, "it is counted twice", func(c *change) { c.after.Attempt++ }},
		{"each claim counts", bound, "a bind is counted", func(c *change) { c.after.Attempt++ }},
		{"each claim counts", takenOver, "the owner had a claim before", func(c *change) { c.used = true }},
		{"no attempt takes over", takenOver, "the lease has not ended", func(c *change) {
			c.before.Until = c.after.UpdatedAt.Add(time.Minute)
		}},
		{"no attempt takes over", takenOver, "it is the last instant of the lease", func(c *change) {
			c.before.Until = c.after.UpdatedAt
		}},
		{"a lease ends", takenOver, "it ends when it begins", func(c *change) { c.after.Until = c.after.UpdatedAt }},
		{"a lease ends", claimed, "it lasts an hour", func(c *change) { c.after.Until = c.after.UpdatedAt.Add(time.Hour) }},
		{"only the owner", bound, "another attempt binds", func(c *change) {
			c.before.Owner, c.after.Owner = "owner-B", "owner-B"
		}},
		{"only the owner", finished, "no attempt holds the order", func(c *change) { c.before.Owner = "" }},
		{"only the owner", released, "an owner with a longer name holds it", func(c *change) { c.before.Owner = "owner-A1" }},
		{"an intent is bound once", finished, "there is another one", func(c *change) { c.after.Intent = "pi_000002" }},
		{"an intent is bound once", takenOver, "it is removed", func(c *change) { c.after.Intent = "" }},
		{"the bound intent", bound, "Stripe returned another one", func(c *change) { c.cause.known.intent = "pi_000002" }},
		{"the bound intent", claimed, "a claim binds it", func(c *change) { c.after.Intent = "pi_000001" }},
	}
}

func contentMistakes() []mistake {
	event := func(c *change) *order.Event { return &c.after.Events[len(c.after.Events)-1] }
	return []mistake{
		{"failure is", finished, "there is none", func(c *change) { c.after.Failure = "" }},
		{"failure is", finished, "it is another one", func(c *change) { c.after.Failure = "lost_card" }},
		{"failure is", settled, "a paid order has one", func(c *change) { c.after.Failure = "no_money" }},
		{"failure is", bound, "an open order has one", func(c *change) { c.after.Failure = "no_money" }},
		{"lastError is", released, "there is none", func(c *change) { c.after.LastError = "" }},
		{"lastError is", released, "it is another one", func(c *change) { c.after.LastError = "refused" }},
		{"lastError is", takenOver, "a claim removes it", func(c *change) { c.after.LastError = "" }},
		{"the intent of a lost row", released, "another reason notes one", func(c *change) { c.after.Suspect = "pi_000001" }},
		{"the intent of a lost row", takenOver, "a claim removes it", func(c *change) {
			c.before.Suspect, c.after.Intent = "pi_000001", ""
		}},
		{"events are only added", settled, "one is gone", func(c *change) { c.after.Events = c.after.Events[1:] }},
		{"events are only added", settled, "one has changed", func(c *change) { c.after.Events[0].Failure = "" }},
		{"an event says", disputed, "its dispute", func(c *change) { event(c).Dispute.ID = "du_2" }},
		{"an event says", disputed, "a status", func(c *change) { event(c).To = order.Declined }},
		{"an event says", finished, "its time", func(c *change) { event(c).At = c.before.UpdatedAt }},
	}
}

func timeMistakes() []mistake {
	due := func(d time.Duration) func(c *change) {
		return func(c *change) { c.after.DueAt = c.after.UpdatedAt.Add(d) }
	}
	never := func(c *change) { c.after.DueAt = time.Time{} }
	return []mistake{
		{"updatedAt is", finished, "it is the claim's", func(c *change) { c.after.UpdatedAt = c.before.UpdatedAt }},
		{"updatedAt is", settled, "it is before the operator began", func(c *change) {
			c.cause.by.Begun = c.after.UpdatedAt.Add(1)
		}},
		{"updatedAt is", settled, "it is after the call", func(c *change) { c.cause.at = c.after.UpdatedAt.Add(-1) }},
		{"createdAt is", takenOver, "it is the takeover's", func(c *change) { c.after.CreatedAt = c.after.UpdatedAt }},
		{"createdAt is", claimed, "it is not the claim's", func(c *change) {
			c.after.CreatedAt = c.after.UpdatedAt.Add(1)
		}},
		{"an unsettled order", settled, "a paid order is due", func(c *change) { c.after.DueAt = c.before.DueAt }},
		{"an unsettled order", finished, "it waits and is never due", never},
		{"an unsettled order", finished, "it is due like an open one", due(15 * time.Minute)},
		{"an unsettled order", claimed, "it is due while it is worked on", due(time.Minute)},
		{"an unsettled order", bound, "it is due too late", due(16 * time.Minute)},
		{"an unsettled order", released, "it is never due", never},
		{"a recheck postpones", postponed, "for years", due(10 * 365 * Day)},
		{"a recheck postpones", postponed, "by less than the status's time", due(60 * time.Hour)},
		{"a recheck postpones", postponed, "for ever", never},
		{"a recheck postpones", postponed, "by a day although it failed", func(c *change) { c.cause.known.unsaved = true }},
		{"a recheck postpones", postponed, "by a day although Stripe did not answer", func(c *change) {
			c.cause.known.failed = order.KindUnknown
		}},
		{"a recheck that finds", postponed, "it releases the order's reason", func(c *change) { c.after.LastError = "" }},
		{"a recheck that finds", postponed, "it is an attempt", func(c *change) { c.after.Attempt++ }},
	}
}

func TestEachRuleOfARowDetectsItsMistakes(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range slices.Concat(claimMistakes(), contentMistakes(), timeMistakes()) {
		c := changes()[m.in]
		m.apply(c)
		found := false
		for _, r := range NewRules() {
			if strings.HasPrefix(r.says, m.rule) {
				found, seen[r.says] = true, true
				if r.holds(c) {
					t.Errorf("%s, and %s: got no violation of %q", m.in, m.name, r.says)
				}
			}
		}
		if !found {
			t.Errorf("no rule begins with %q", m.rule)
		}
	}
	for _, r := range NewRules() {
		if !seen[r.says] {
			t.Errorf("no mistake breaks %q", r.says)
		}
	}
}

func TestEachCallThatAWorkerMustNotMakeIsDetected(t *testing.T) {
	t.Parallel()
	confirm, bind := Call{Name: ordertest.Confirm, Subject: "pi_000001"}, Call{Name: ordertest.Bind, Subject: "pi_000001"}
	finish, refused := Call{Name: ordertest.Finish, Detail: "paid"}, Call{Name: ordertest.Finish, Detail: "refused"}
	released := func(why string) Call { return Call{Name: ordertest.Release, Detail: why} }
	foreign := func(c ordertest.Call) Call { return Call{Name: c, Subject: "pi_000002"} }
	wrong, nothing := func(k *knowledge) { k.wrong = true }, func(*knowledge) {}
	const other, paid, state = "made for something else", "say paid, and Stripe did not", "state of its intent"
	for _, n := range []struct {
		name   string
		call   Call
		knows  func(k *knowledge)
		breaks stage.Invariant
		says   string
	}{
		{"a confirmation with too little time", confirm, func(k *knowledge) {
			k.until = start().Add(ConfirmTime - 1)
		}, SettlesSoon, "too little of the lease"},
		{"a confirmation after a wrong response", confirm, wrong, ChargedAmount, other},
		{"a bind after a wrong response", bind, wrong, ChargedAmount, other},
		{"a bind of another order's intent", bind, func(k *knowledge) { k.order = "ORD-2" }, ChargedAmount, other},
		{"a finish after a wrong response", finish, wrong, ChargedAmount, other},
		{"a finish with another status", finish, func(k *knowledge) { k.status = order.Pending }, BooksAgree, paid},
		{"a finish without asking", finish, func(k *knowledge) { k.asked, k.status, k.intent = "", "", "" }, BooksAgree, paid},
		{"a finish without a response", finish, func(k *knowledge) { k.failed = order.KindUnknown }, BooksAgree, paid},
		{"another reason than Stripe's", released("misconfigured"), func(k *knowledge) {
			k.failed = order.KindUnavailable
		}, EverythingEnds, "Stripe's response was: unavailable"},
		{"a refused order is released", released("refused"), nothing, EverythingEnds, "its row stays open"},
		{"a refused read refuses the order", refused, func(k *knowledge) {
			k.failed, k.status = order.KindRefused, ""
		}, BooksAgree, state},
		{"a refused confirmation refuses the order", refused, func(k *knowledge) {
			k.asked, k.last, k.failed, k.status = ordertest.Confirm, ordertest.Confirm, order.KindRefused, ""
		}, BooksAgree, state},
		{"an intent with an outcome is refused", refused, func(k *knowledge) { k.status = order.Canceled }, BooksAgree, state},
		{"a foreign intent is canceled", foreign(ordertest.Cancel), nothing, ChargedAmount, other},
		{"a foreign intent is confirmed", foreign(ordertest.Confirm), nothing, ChargedAmount, other},
	} {
		s := newScene()
		s.intent(stripetest.StatusRequiresConfirmation)
		s.Foreign(s.intent(stripetest.StatusRequiresConfirmation).ID)
		s.worker.known = knowledge{
			order: "ORD-1", until: start().Add(time.Minute), intent: "pi_000001", status: order.Paid,
			asked: ordertest.Read, last: ordertest.Read,
		}
		n.knows(&s.worker.known)
		s.Calls(s.worker, n.call, s.now)
		if got, _ := s.Conclude(); !wants(got, n.breaks, n.says) {
			t.Errorf("%s: got %v, want %s: ... %s ...", n.name, got, n.breaks, n.says)
		}
	}
}

func TestOnlyAnOperatorClosesAnOrderAndOnlyWithoutAnIntent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cancels bool
		intent  string
		allowed bool
	}{{true, "", true}, {false, "", false}, {true, "pi_000001", false}} {
		s := newScene()
		s.intent(stripetest.StatusRequiresConfirmation)
		s.worker.Cancels = tt.cancels
		s.Returned(s.worker, Call{Name: ordertest.Load, Subject: "ORD-1"}, tt.intent, nil)
		s.Calls(s.worker, Call{Name: Settle, Subject: "ORD-1", Detail: "canceled"}, s.now)
		got, _ := s.Conclude()
		if (got == nil) != tt.allowed || !tt.allowed && !wants(got, BooksAgree, "is to say canceled") {
			t.Errorf("operator: %t, intent %q: got %v, want allowed: %t", tt.cancels, tt.intent, got, tt.allowed)
		}
	}
}

func TestThePageListsEveryRule(t *testing.T) {
	t.Parallel()
	var want []string
	for _, r := range NewRules() {
		want = append(want, "| "+r.says+" | "+string(r.breaks))
	}
	_, table, _ := strings.Cut(document(t, "docs/reference/proof-in-words.md"), "| rule | breaks | protects |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for row := range strings.SplitSeq(table, "\n") {
		got = append(got, row[:strings.LastIndex(strings.TrimSuffix(row, " |"), " | ")])
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("(-page +rules)\n%s", d)
	}
}
