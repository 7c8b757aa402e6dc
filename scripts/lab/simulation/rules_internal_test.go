package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// A change of a row that breaks no rule, by what makes it.
const (
	claimed   = "a claim"
	takenOver = "a takeover"
	bound     = "a bind"
	released  = "a release"
	finished  = "a finish"
	turned    = "a settle"
)

// steps returns one such change of each kind, one after the other.
func steps(t *testing.T) map[string]*change {
	t.Helper()
	fresh := func() *World { return NewLab().World(one(declined), func(int) int { return 0 }) }
	w := fresh()
	first, second := &Worker{World: w, name: "A"}, &Worker{World: w, name: "B"}
	at := func(d time.Duration) time.Time { return w.start.Add(d) }
	did := map[string]*change{}
	row := order.Record{}
	add := func(name string, by *Worker, call call, knows knowledge, makes func(r *order.Record)) {
		before := row
		row.Events = slices.Clone(row.Events)
		makes(&row)
		c := change{World: fresh(), before: before, after: row}
		c.order, c.deed = c.oracle.orders[0], deed{by: by, call: call, at: row.UpdatedAt, knows: knows}
		did[name] = &c
	}
	add(claimed, first, call{name: ordertest.Begin}, knowledge{}, func(r *order.Record) {
		*r = order.Record{
			OrderID: "ORD-1", CustomerID: "CUST987", Status: order.Open, Owner: "owner-A", Attempt: 1, Until: at(time.Minute),
			CreatedAt: at(0), UpdatedAt: at(0), DueAt: at(15 * time.Minute),
		}
	})
	add(bound, first, call{name: ordertest.Bind}, knowledge{intent: "pi_000001"}, func(r *order.Record) {
		r.Intent, r.UpdatedAt = "pi_000001", at(time.Second)
	})
	add(released, first, call{name: ordertest.Release, detail: "provider_unknown"}, knowledge{}, func(r *order.Record) {
		r.Owner, r.Until, r.LastError, r.UpdatedAt = "", time.Time{}, "provider_unknown", at(2*time.Second)
	})
	add("another claim", second, call{name: ordertest.Begin}, knowledge{}, func(r *order.Record) {
		r.Owner, r.Attempt, r.Until = "owner-B", 2, at(2*time.Minute)
		r.UpdatedAt, r.DueAt = at(time.Minute), at(16*time.Minute)
	})
	add(takenOver, first, call{name: ordertest.Begin}, knowledge{}, func(r *order.Record) {
		r.Owner, r.Attempt, r.Until = "owner-A-2", 3, at(time.Hour)
		r.UpdatedAt, r.DueAt = at(50*time.Minute), at(65*time.Minute)
	})
	add(finished, first, call{name: ordertest.Finish}, knowledge{failure: "no_money"}, func(r *order.Record) {
		r.Status, r.Owner, r.Until, r.Failure, r.Seq = order.ActionRequired, "", time.Time{}, "no_money", 1
		r.UpdatedAt, r.DueAt = at(51*time.Minute), at(51*time.Minute+day)
		r.Events = append(r.Events, order.Event{
			Seq: 1, From: order.Open, To: order.ActionRequired, Intent: r.Intent, Failure: "no_money", At: r.UpdatedAt,
		})
	})
	add(turned, second, call{name: settle}, knowledge{}, func(r *order.Record) {
		r.Status, r.Failure, r.Seq, r.UpdatedAt, r.DueAt = order.Paid, "", 2, at(52*time.Minute), time.Time{}
		r.Events = append(r.Events, order.Event{Seq: 2, From: order.ActionRequired, To: order.Paid, Intent: r.Intent, At: r.UpdatedAt})
	})
	return did
}

// spoilt is what breaks one rule, in a change that breaks none without it.
type spoilt struct {
	rule  string // the beginning of what it says
	in    string
	name  string
	spoil func(c *change)
}

func spoiltClaims() []spoilt {
	return []spoilt{
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
		{"each claim counts", takenOver, "the owner had a claim before", func(c *change) { c.oracle.owners = []string{"owner-A-2"} }},
		{"nobody takes over", takenOver, "the lease runs", func(c *change) { c.before.Until = c.after.UpdatedAt.Add(time.Minute) }},
		{"nobody takes over", takenOver, "it is the last instant of the lease", func(c *change) { c.before.Until = c.after.UpdatedAt }},
		{"a lease ends", takenOver, "it is over when it begins", func(c *change) { c.after.Until = c.after.UpdatedAt }},
		{"a lease ends", claimed, "it lasts an hour", func(c *change) { c.after.Until = c.after.UpdatedAt.Add(time.Hour) }},
		{"only the owner", bound, "another one binds", func(c *change) { c.before.Owner, c.after.Owner = "owner-B", "owner-B" }},
		{"only the owner", finished, "nobody has the order", func(c *change) { c.before.Owner = "" }},
		{"only the owner", released, "an owner with a longer name has it", func(c *change) { c.before.Owner = "owner-A1" }},
		{"an intent is bound once", finished, "there is another one", func(c *change) { c.after.Intent = "pi_000002" }},
		{"an intent is bound once", takenOver, "it is forgotten", func(c *change) { c.after.Intent = "" }},
		{"the intent that is bound", bound, "Stripe answered with another one", func(c *change) { c.deed.knows.intent = "pi_000002" }},
		{"the intent that is bound", claimed, "a claim binds it", func(c *change) { c.after.Intent = "pi_000001" }},
	}
}

func spoiltContents() []spoilt {
	told := func(c *change) *order.Event { return &c.after.Events[len(c.after.Events)-1] }
	return []spoilt{
		{"failure is", finished, "there is none", func(c *change) { c.after.Failure = "" }},
		{"failure is", finished, "it is another one", func(c *change) { c.after.Failure = "lost_card" }},
		{"failure is", turned, "a paid order has one", func(c *change) { c.after.Failure = "no_money" }},
		{"failure is", bound, "an open order has one", func(c *change) { c.after.Failure = "no_money" }},
		{"lastError is", released, "there is none", func(c *change) { c.after.LastError = "" }},
		{"lastError is", released, "it is another one", func(c *change) { c.after.LastError = "refused" }},
		{"lastError is", takenOver, "a claim forgets it", func(c *change) { c.after.LastError = "" }},
		{"events are only added", turned, "one is gone", func(c *change) { c.after.Events = c.after.Events[1:] }},
		{"events are only added", turned, "one has changed", func(c *change) { c.after.Events[0].Failure = "" }},
		{"an event says", finished, "its number", func(c *change) { told(c).Seq++ }},
		{"an event says", finished, "from", func(c *change) { told(c).From = order.Pending }},
		{"an event says", finished, "to", func(c *change) { told(c).To = order.Paid }},
		{"an event says", finished, "its intent", func(c *change) { told(c).Intent = "" }},
		{"an event says", finished, "its failure", func(c *change) { told(c).Failure = "" }},
		{"an event says", finished, "its time", func(c *change) { told(c).At = c.before.UpdatedAt }},
		{"updatedAt is", finished, "it is the claim's", func(c *change) { c.after.UpdatedAt = c.before.UpdatedAt }},
		{"updatedAt is", turned, "it is before the operator asked", func(c *change) { c.deed.by.begun = c.after.UpdatedAt.Add(1) }},
		{"updatedAt is", turned, "it is later than the call", func(c *change) { c.deed.at = c.after.UpdatedAt.Add(-1) }},
		{"createdAt is", takenOver, "it is the takeover's", func(c *change) { c.after.CreatedAt = c.after.UpdatedAt }},
		{"createdAt is", claimed, "it is not the claim's", func(c *change) { c.after.CreatedAt = c.after.UpdatedAt.Add(1) }},
		{"an order is in the index", turned, "a paid order is due", func(c *change) { c.after.DueAt = c.before.DueAt }},
		{"an order is in the index", finished, "it waits and is never due", func(c *change) { c.after.DueAt = time.Time{} }},
		{
			"an order is in the index", finished, "it is due as an open one",
			func(c *change) { c.after.DueAt = c.after.UpdatedAt.Add(15 * time.Minute) },
		},
		{
			"an order is in the index", claimed, "it is due while it is worked on",
			func(c *change) { c.after.DueAt = c.after.UpdatedAt.Add(time.Minute) },
		},
		{"an order is in the index", bound, "it is due too late", func(c *change) { c.after.DueAt = c.after.UpdatedAt.Add(16 * time.Minute) }},
		{"an order is in the index", released, "it is never due", func(c *change) { c.after.DueAt = time.Time{} }},
	}
}

func TestEachRuleOfARowSeesWhatBreaksIt(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range slices.Concat(spoiltClaims(), spoiltContents()) {
		c := steps(t)[s.in]
		s.spoil(c)
		found := false
		for _, r := range rules() {
			if strings.HasPrefix(r.says, s.rule) {
				found, seen[r.says] = true, true
				if r.holds(c) {
					t.Errorf("%s, and %s: got no violation of %q", s.in, s.name, r.says)
				}
			}
		}
		if !found {
			t.Errorf("no rule begins with %q", s.rule)
		}
	}
	for _, r := range rules() {
		if !seen[r.says] {
			t.Errorf("nothing breaks %q here", r.says)
		}
	}
}

func TestAHistoryThatIsRightBreaksNoRule(t *testing.T) {
	t.Parallel()
	for name, c := range steps(t) {
		for _, r := range rules() {
			if !r.holds(c) {
				t.Errorf("%s: got a violation of %q", name, r.says)
			}
		}
	}
}

// What a person writes by mistake is no worker's fault.
func TestWhatAPersonWritesBreaksNoRule(t *testing.T) {
	t.Parallel()
	c := steps(t)[bound]
	c.deed = deed{}
	c.after.Intent = "pi_000009"
	for _, r := range rules() {
		if !r.holds(c) {
			t.Errorf("got a violation of %q", r.says)
		}
	}
}

// acted is a call that a worker must not make, knowing what it knows; and what makes it
// right.
type acted struct {
	name   string
	call   call
	knows  knowledge
	breaks Invariant
	says   string
	right  func(k *knowledge)
}

func actedCases(now time.Time) []acted {
	none := func(*knowledge) {}
	const mine = "pi_000001" // of ORD-1
	confirm, bind := call{name: ordertest.Confirm, subject: mine}, call{name: ordertest.Bind, subject: mine}
	finish := call{name: ordertest.Finish, detail: "paid"}
	refused := call{name: ordertest.Finish, detail: "refused"}
	base := knowledge{
		order: "ORD-1", until: now.Add(time.Minute), intent: mine, status: order.Paid, asked: ordertest.Read,
		last: ordertest.Read,
	}
	but := func(change func(k *knowledge)) knowledge {
		k := base
		change(&k)
		return k
	}
	return []acted{
		{
			"a confirmation with too little time", confirm,
			but(func(k *knowledge) { k.until = now.Add(confirmTime - 1) }), SettlesSoon, "too little of the lease",
			func(k *knowledge) { k.until = now.Add(confirmTime) },
		},
		{
			"a confirmation after a wrong answer", confirm, but(func(k *knowledge) { k.wrong = true }),
			ChargedAmount, "made for something else", func(k *knowledge) { k.wrong = false },
		},
		{
			"a bind after a wrong answer", bind, but(func(k *knowledge) { k.wrong = true }), ChargedAmount,
			"made for something else", func(k *knowledge) { k.wrong = false },
		},
		{
			"a bind of another order's intent", bind, but(func(k *knowledge) { k.order = "ORD-2" }), ChargedAmount,
			"made for something else", func(k *knowledge) { k.order = "ORD-1" },
		},
		{
			"a finish after a wrong answer", finish, but(func(k *knowledge) { k.wrong = true }), ChargedAmount,
			"made for something else", func(k *knowledge) { k.wrong = false },
		},
		{
			"a finish as something else", finish, but(func(k *knowledge) { k.status = order.Pending }), BooksAgree,
			"say paid, and Stripe did not", func(k *knowledge) { k.status = order.Paid },
		},
		{
			"a finish that asks nobody", finish,
			but(func(k *knowledge) { k.asked, k.status, k.intent = "", "", "" }), BooksAgree,
			"say paid, and Stripe did not", func(k *knowledge) { *k = base },
		},
		{
			"a finish after no answer", finish, but(func(k *knowledge) { k.trouble = order.KindUnknown }), BooksAgree,
			"say paid, and Stripe did not", func(k *knowledge) { k.trouble = "" },
		},
		{
			"another reason than Stripe's",
			call{name: ordertest.Release, detail: "misconfigured"},
			but(func(k *knowledge) { k.trouble = order.KindUnavailable }),
			EverythingEnds, "Stripe's answer was: unavailable",
			func(k *knowledge) { k.trouble = order.KindMisconfigured },
		},
		{
			"a refused read refuses the order", refused, but(func(k *knowledge) { k.trouble, k.status = order.KindRefused, "" }),
			BooksAgree, "was not asked what became",
			func(k *knowledge) { k.asked, k.last = ordertest.Prepare, ordertest.Prepare },
		},
		{
			"a refused order is released",
			call{name: ordertest.Release, detail: "refused"},
			but(func(*knowledge) {}),
			EverythingEnds, "its row stays open", none,
		},
		{"a refused confirmation is believed", refused, but(func(k *knowledge) {
			k.asked, k.last, k.trouble, k.status = ordertest.Confirm, ordertest.Confirm, order.KindRefused, ""
		}), BooksAgree, "was not asked what became", func(k *knowledge) { k.asked, k.last = ordertest.Prepare, ordertest.Prepare }},
		{
			"an intent with an outcome is given up", refused, but(func(k *knowledge) { k.status = order.Canceled }),
			BooksAgree, "was not asked what became", func(k *knowledge) { k.status = order.Open },
		},
		{"a stray is confirmed", call{name: ordertest.Confirm, subject: "pi_000002"}, base, ChargedAmount, "made for something else", none},
	}
}

func TestEachCallThatAWorkerMustNotMakeIsSeen(t *testing.T) {
	t.Parallel()
	for _, a := range actedCases(dawn()) {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			try := func(right bool) *Violation {
				h := byHand(t, one(visa))
				h.prepares(h.order(0))
				h.begins(0)
				h.straying(h.oracle.orders[0], otherCurrency)
				c := a.call
				h.k.knows, h.k.stood = a.knows, h.now
				if right {
					a.right(&h.k.knows)
					if c.subject == "pi_000002" {
						c.subject = "pi_000001"
					}
					if c.name == ordertest.Release && c.detail == "refused" {
						c.detail = "key_reused"
					}
				}
				h.oracle.asks(h.k, c)
				h.oracle.conclude(h.World)
				return h.oracle.broken
			}
			if got := try(false); got == nil || got.Invariant != a.breaks || !strings.Contains(got.Detail, a.says) {
				t.Errorf("got %v, want %s: ... %s ...", got, a.breaks, a.says)
			}
			if got := try(true); got != nil {
				t.Errorf("the twin that is right: got %v", got)
			}
		})
	}
}

// A graver promise that breaks later is what the story is about; else the story ends
// where the first one broke.
func TestTheGraverPromiseIsTold(t *testing.T) {
	t.Parallel()
	w := NewLab().World(one(visa), func(int) int { return 0 }).Tell()
	w.tell("A", "", "first", "")
	w.oracle.note(w, 0, BooksAgree, "ORD-1", "noticed")
	w.tell("A", "", "second", "")
	later := w.oracle
	later.must(false, ChargedOnce, "ORD-1", "charged")
	later.conclude(w)
	if later.broken.Invariant != ChargedOnce || len(w.history) != 2 {
		t.Errorf("got %v after %d lines, want %s after 2", later.broken, len(w.history), ChargedOnce)
	}
	w.oracle.must(false, CheapDuplicate, "ORD-1", "dear")
	w.oracle.conclude(w)
	if w.oracle.broken.Invariant != BooksAgree || len(w.history) != 1 {
		t.Errorf("got %v after %d lines, want %s after 1", w.oracle.broken, len(w.history), BooksAgree)
	}
}

// The page lists the rules that are checked, and no others.
func TestThePageListsEveryRule(t *testing.T) {
	t.Parallel()
	var want []string
	for _, r := range rules() {
		want = append(want, "| "+r.says+" | "+string(r.breaks)+" | "+r.protects+" |")
	}
	_, table, _ := strings.Cut(document(t, "docs/reference/proof-in-words.md"), "| rule | breaks | protects |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if d := cmp.Diff(strings.Split(table, "\n"), want); d != "" {
		t.Errorf("(-page +rules)\n%s", d)
	}
}
