package refund_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// Each transition of a refund, over a store in memory.
func TestTransitions(t *testing.T) {
	t.Parallel()
	for claim, test := range map[string]func(storeTest){
		"a new refund is claimed and reserves its amount":                     storeTest.begins,
		"a refund of an order that is not charged is refused":                 storeTest.notCharged,
		"a refund of more than is left is refused":                            storeTest.exceeds,
		"begin again by the same owner is no new attempt":                     storeTest.beginsAgain,
		"a running lease is respected, and an expired one taken over":         storeTest.takesOver,
		"a refund in another currency than the order's is invalid":            storeTest.otherCurrency,
		"an order has a limited number of refunds":                            storeTest.limits,
		"another content under the id is a conflict":                          storeTest.conflicts,
		"mark keeps the first time and the newest key":                        storeTest.marks,
		"every write needs the claim":                                         storeTest.needsTheClaim,
		"finish records outcome, sums, status and one event":                  storeTest.finishes,
		"finish with the recorded outcome changes nothing":                    storeTest.finishesAgain,
		"refunds of one order settle side by side":                            storeTest.sideBySide,
		"a refused or failed refund gives its amount back":                    storeTest.givesBack,
		"a released refund keeps its amount, and its id":                      storeTest.releases,
		"release of a claim without a sent time removes it":                   storeTest.unsends,
		"apply records what the bank did later":                               storeTest.applies,
		"apply of a change that is out of date returns ErrStale":              storeTest.appliesStale,
		"apply leaves what was begun meanwhile":                               storeTest.appliesBesideBegin,
		"refunds that race for the rest of a charge never get more than that": storeTest.races,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			orders := new(ordertest.Memory)
			test(storeTest{T: t, Memory: refundtest.NewMemory(orders), orders: orders}.of(""))
		})
	}
}

// storeTest is one order of 39.98 USD.
type storeTest struct {
	*testing.T
	*refundtest.Memory

	orders order.Store
	order  order.Order
}

const paidFor = 3998

// of returns the test of another order.
func (x storeTest) of(name string) storeTest {
	x.order = ordertest.Order(order.ID("O" + name))
	return x
}

func at(d time.Duration) time.Time { return noon().Add(d) }

func lease(owner string, from time.Time) order.Lease {
	return order.Lease{Owner: owner, From: from, Until: from.Add(order.MaxLease)}
}

// pay brings the order to a status; Open leaves it claimed.
func (x storeTest) pay(s order.Status) {
	x.Helper()
	l := order.Lease{Owner: "charge", From: noon(), Until: at(time.Minute)}
	c, err := order.Begin(x.Context(), x.orders, x.order, l, nil)
	if err == nil && s != order.Open {
		err = c.Bind(x.Context(), x.orders, order.Intent{ID: "pi_1", Mode: order.TestMode}, noon())
	}
	if err == nil && s != order.Open {
		err = c.Finish(x.Context(), x.orders, order.Outcome{Status: s, Intent: "pi_1"}, noon())
	}
	x.must(err)
}

func (x storeTest) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x storeTest) want(err, want error) {
	x.Helper()
	if !errors.Is(err, want) {
		x.Errorf("got error %v, want %v", err, want)
	}
}

func (x storeTest) request(id string, amount int64) refund.Request {
	x.Helper()
	r, err := refund.New(refund.Draft{
		OrderID: string(x.order.ID()), RefundID: id, Amount: amount, Reason: string(refund.Duplicate),
	})
	x.must(err)
	return r
}

func (x storeTest) begin(id string, amount int64, l order.Lease) (refund.Claim, error) {
	x.Helper()
	return refund.Begin(x.Context(), x, x.request(id, amount), l)
}

func (x storeTest) mustBegin(id string, amount int64) refund.Claim {
	x.Helper()
	c, err := x.begin(id, amount, lease("first of "+id, noon()))
	x.must(err)
	return c
}

func (x storeTest) account() refund.Account {
	x.Helper()
	a, err := x.Load(x.Context(), x.order.ID())
	x.must(err)
	return a
}

// wantAccount compares the whole account.
func (x storeTest) wantAccount(want refund.Account) {
	x.Helper()
	if diff := cmp.Diff(x.account(), want); diff != "" {
		x.Errorf("account (-got +want):\n%s", diff)
	}
}

// wantEvent compares the order's last event.
func (x storeTest) wantEvent(want order.Event) {
	x.Helper()
	r, err := x.orders.Load(x.Context(), x.order.ID())
	x.must(err)
	got := r.Events[len(r.Events)-1]
	got.At = got.At.UTC()
	if diff := cmp.Diff(got, want); diff != "" || len(r.Events) != r.Seq || got.Validate() != nil {
		x.Errorf("%d events for seq %d, the last (-got +want):\n%s", len(r.Events), r.Seq, diff)
	}
}

// wantDue checks when the index of waiting orders shows the order.
func (x storeTest) wantDue() {
	x.Helper()
	if a := x.account(); !a.Due.Equal(a.DueAt()) {
		x.Errorf("got the order due at %v, want %v", a.Due, a.DueAt())
	}
}

// wantUnchanged checks that f changes nothing.
func (x storeTest) wantUnchanged(f func()) {
	x.Helper()
	before := x.account()
	f()
	x.wantAccount(before)
}

func (x storeTest) begins() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", 1000)
	want := refund.Account{
		OrderID: x.order.ID(), Status: order.Paid, Charged: x.order.Total(), Intent: "pi_1", Seq: 1,
		Items: []refund.Item{{
			ID: "R1", Amount: 1000, Reason: refund.Duplicate, Fingerprint: x.request("R1", 1000).Fingerprint(),
			Status: refund.Open, Owner: "first of R1", Until: at(order.MaxLease), Attempt: 1, KeySeq: 1,
			CreatedAt: noon(), UpdatedAt: noon(),
		}},
		UpdatedAt: noon(), Due: noon().Add(30 * time.Minute),
	}
	x.wantAccount(want)
	x.wantDue()
	if a := c.Account; a.Intent != "pi_1" || a.Seq != 1 || len(a.Items) != 1 || a.Left() != paidFor-1000 {
		x.Errorf("got claim %+v, want the account", c)
	}
}

func (x storeTest) notCharged() {
	_, err := x.begin("R1", 1, lease("first", noon()))
	x.want(err, order.ErrNotFound)
	for _, s := range []order.Status{
		order.Open, order.Pending, order.ActionRequired, order.Declined, order.Canceled,
	} {
		x := x.of(string(s))
		x.pay(s)
		x.wantUnchanged(func() {
			_, err := x.begin("R1", 1, lease("first", noon()))
			if e, is := errors.AsType[*refund.NotChargedError](err); !is || e.Status != s {
				x.Errorf("order %s: got %v, want a NotChargedError", s, err)
			}
		})
	}
}

func (x storeTest) exceeds() {
	x.pay(order.Paid)
	x.mustBegin("R1", paidFor-10)
	x.wantUnchanged(func() {
		_, err := x.begin("R2", 11, lease("second", noon()))
		if e, is := errors.AsType[*refund.ExceedsError](err); !is || e.Left != 10 {
			x.Errorf("got %v, want an ExceedsError with 10 left", err)
		}
	})
	x.mustBegin("R3", 10)
}

func (x storeTest) otherCurrency() {
	x.pay(order.Paid)
	in := func(currency string) (refund.Claim, error) {
		r, err := refund.New(refund.Draft{
			OrderID: string(x.order.ID()), RefundID: "R1", Amount: 1000, Currency: currency,
			Reason: string(refund.Duplicate),
		})
		x.must(err)
		return refund.Begin(x.Context(), x, r, lease("first of R1", noon()))
	}
	invalid := func() {
		_, err := in("eur")
		if _, is := errors.AsType[*order.InvalidError](err); !is {
			x.Errorf("got %v, want an InvalidError", err)
		}
	}
	x.wantUnchanged(invalid)
	_, err := in("usd")
	x.must(err)
	x.wantUnchanged(invalid)
	x.wantUnchanged(func() { x.mustBegin("R1", 1000) }) // the same refund, without a currency
}

func (x storeTest) limits() {
	x.pay(order.Paid)
	for n := range refund.MaxRefunds {
		c := x.mustBegin(fmt.Sprint("R", n), 1)
		if n%2 == 0 {
			x.must(c.Finish(x.Context(), x, refund.Outcome{Status: refund.Refused}, noon()))
		}
	}
	x.wantUnchanged(func() {
		_, err := x.begin("MORE", 1, lease("second", noon()))
		x.want(err, refund.ErrTooMany)
	})
	_, err := x.begin("R1", 1, lease("second", at(time.Hour)))
	x.must(err)
}

func (x storeTest) beginsAgain() {
	x.pay(order.Paid)
	first := x.mustBegin("R1", 1000)
	x.wantUnchanged(func() {
		if again := x.mustBegin("R1", 1000); again.Account.Items[0].Attempt != first.Account.Items[0].Attempt {
			x.Errorf("got attempt %d, want %d", again.Account.Items[0].Attempt, first.Account.Items[0].Attempt)
		}
	})
}

func (x storeTest) takesOver() {
	x.pay(order.Paid)
	x.mustBegin("R1", paidFor)
	x.wantUnchanged(func() {
		_, err := x.begin("R1", paidFor, lease("second", at(order.MaxLease)))
		if e, is := errors.AsType[*order.InProgressError](err); !is || !e.Until.Equal(at(order.MaxLease)) {
			x.Errorf("got %v, want an InProgressError", err)
		}
	})
	later := at(order.MaxLease + time.Millisecond)
	c, err := x.begin("R1", paidFor, lease("second", later)) // nothing is left of the charge
	x.must(err)
	want := refund.Item{
		ID: "R1", Amount: paidFor, Reason: refund.Duplicate, Fingerprint: x.request("R1", paidFor).Fingerprint(),
		Status: refund.Open, Owner: "second", Until: later.Add(order.MaxLease), Attempt: 2, KeySeq: 1,
		CreatedAt: noon(), UpdatedAt: later,
	}
	if diff := cmp.Diff(x.account().Items, []refund.Item{want}); diff != "" || c.Account.Items[0].Attempt != 2 {
		x.Errorf("(-got +want):\n%s", diff)
	}
}

func (x storeTest) conflicts() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", 1000)
	conflict := func() {
		_, err := x.begin("R1", 1001, lease("second", at(time.Hour)))
		x.want(err, order.ErrConflict)
		if _, named := errors.AsType[*refund.ConflictError](err); !named {
			x.Errorf("got %v, want an error that names the refund id", err)
		}
	}
	x.wantUnchanged(conflict)
	x.must(c.Finish(x.Context(), x, refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}, at(time.Second)))
	x.wantUnchanged(conflict)
}

func (x storeTest) marks() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", 1000)
	for n := range 2 {
		marked, err := c.Mark(x.Context(), x, n+1, at(time.Duration(n+1)*time.Minute))
		x.must(err)
		i := marked.Account.Items[0]
		if !i.SentAt.Equal(at(time.Minute)) || i.KeySeq != n+1 || x.account().Items[0].KeySeq != n+1 {
			x.Errorf("mark %d: got %+v, want the first time and key %d", n+1, i, n+1)
		}
	}
}

func (x storeTest) needsTheClaim() {
	x.pay(order.Paid)
	lost := x.mustBegin("R1", 1000)
	_, err := x.begin("R1", 1000, lease("second", at(time.Hour)))
	x.must(err)
	x.wantUnchanged(func() {
		_, err := lost.Mark(x.Context(), x, 2, noon())
		x.want(err, order.ErrClaimLost)
		x.want(lost.Release(x.Context(), x, order.ReasonUnavailable, noon()), order.ErrClaimLost)
		made := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
		x.want(lost.Finish(x.Context(), x, made, noon()), order.ErrClaimLost)
	})
}

func (x storeTest) finishes() {
	for s, want := range map[refund.Status]order.Status{
		refund.Pending: order.PartiallyRefunded, refund.Succeeded: order.PartiallyRefunded,
		refund.Failed: order.Paid, refund.Refused: order.Paid, refund.Unknown: order.Paid,
	} {
		x := x.of(string(s))
		x.pay(order.Paid)
		c := x.mustBegin("R1", 1000)
		o := refund.Outcome{Status: s, Refund: "re_1", Failure: "code"}
		x.must(c.Finish(x.Context(), x, o, at(time.Second)))
		a := x.account()
		i := a.Items[0]
		if a.Status != want || a.Seq != 2 || i.Status != s || i.Refund != "re_1" || i.Failure != "code" ||
			i.Owner != "" || !i.Until.IsZero() || !i.UpdatedAt.Equal(at(time.Second)) {
			x.Errorf("%s: got %+v, want the order %s and the outcome without a claim", s, a, want)
		}
		x.wantEvent(order.Event{
			Seq: 2, From: order.Paid, To: want, Intent: "pi_1", Failure: "code", At: at(time.Second),
			Refund: order.RefundEvent{ID: "R1", Status: string(s), Amount: 1000},
		})
		x.wantDue()
		_, err := x.begin("R1", 1000, lease("second", at(time.Hour)))
		if e, is := errors.AsType[*refund.SettledError](err); !is || e.Item.Status != s || e.Order != want {
			x.Errorf("%s: begin again: got %v, want a SettledError", s, err)
		}
	}
}

func (x storeTest) finishesAgain() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", paidFor)
	o := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
	x.must(c.Finish(x.Context(), x, o, at(time.Second)))
	if a := x.account(); a.Status != order.Refunded {
		x.Errorf("got the order %s, want it refunded", a.Status)
	}
	x.wantUnchanged(func() { x.must(c.Finish(x.Context(), x, o, at(time.Minute))) })
	x.wantUnchanged(func() {
		x.want(c.Finish(x.Context(), x, refund.Outcome{Status: refund.Refused}, noon()), order.ErrClaimLost)
	})
}

func (x storeTest) sideBySide() {
	x.pay(order.Paid)
	var claims []refund.Claim
	for n := range 3 {
		claims = append(claims, x.mustBegin(fmt.Sprint("R", n), 1000))
	}
	for n, c := range claims { // each claim is older than the others' outcomes
		made := refund.Outcome{Status: refund.Succeeded, Refund: refund.ProviderID(fmt.Sprint("re_", n))}
		x.must(c.Finish(x.Context(), x, made, noon()))
		x.wantDue()
	}
	if a := x.account(); a.Seq != 4 || a.Refunded() != 3000 || a.Left() != paidFor-3000 {
		x.Errorf("got %+v, want three refunds with three events", a)
	}
	x.mustBegin("R9", paidFor-3000)
}

func (x storeTest) givesBack() {
	x.pay(order.Paid)
	for _, s := range []refund.Status{refund.Failed, refund.Refused} {
		c := x.mustBegin("R-"+string(s), paidFor)
		x.must(c.Finish(x.Context(), x, refund.Outcome{Status: s}, noon()))
	}
	x.mustBegin("R3", paidFor)
}

func (x storeTest) releases() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", paidFor)
	x.must(c.Release(x.Context(), x, order.ReasonUnavailable, at(time.Second)))
	i := x.account().Items[0]
	if i.Owner != "" || !i.Until.IsZero() || i.LastError != "provider_unavailable" || i.Status != refund.Open {
		x.Errorf("got %+v, want it open without a claim", i)
	}
	_, err := x.begin("R2", 1, lease("second", noon()))
	if _, is := errors.AsType[*refund.ExceedsError](err); !is {
		x.Errorf("another refund: got %v, want an ExceedsError", err)
	}
	_, err = x.begin("R1", paidFor, lease("second", at(time.Second)))
	x.must(err)
}

// unsends releases a claim twice after its Mark: with the time of Mark, and without.
func (x storeTest) unsends() {
	x.pay(order.Paid)
	begun := x.mustBegin("R1", 1000)
	for n, keep := range []bool{false, true} {
		lease := lease(fmt.Sprint("worker ", n), at(time.Duration(n)*time.Second))
		c, err := x.begin("R1", 1000, lease)
		if n == 0 {
			c, err = begun, nil
		}
		x.must(err)
		marked, err := c.Mark(x.Context(), x, 1, noon())
		x.must(err)
		if keep {
			c = marked
		}
		x.must(c.Release(x.Context(), x, order.ReasonMisconfigured, at(time.Duration(n)*time.Second)))
		if i := x.account().Items[0]; i.SentAt.IsZero() == keep || i.Owner != "" {
			x.Errorf("got %+v, want a time of the first request: %t", i, keep)
		}
	}
}

// settled returns the account as it is, and with an outcome of its first refund.
func (x storeTest) settled(o refund.Outcome) (before, after refund.Account) {
	x.Helper()
	before = x.account()
	after, err := refund.Settled(before, before.Items[0].ID, o, at(time.Hour))
	x.must(err)
	return before, after
}

func (x storeTest) applies() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", paidFor)
	x.must(c.Finish(x.Context(), x, refund.Outcome{Status: refund.Pending, Refund: "re_1"}, noon()))
	for _, s := range []refund.Status{refund.Succeeded, refund.Failed} {
		before, after := x.settled(refund.Outcome{Status: s, Refund: "re_1"})
		_, err := refund.Apply(x.Context(), x, before, after)
		x.must(err)
		after.Events = nil
		x.wantAccount(after)
		x.wantDue()
	}
	x.mustBegin("R2", paidFor)
}

func (x storeTest) appliesStale() {
	x.pay(order.Paid)
	c := x.mustBegin("R1", 1000)
	succeeded := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
	before, after := x.settled(succeeded)
	x.must(c.Finish(x.Context(), x, succeeded, noon()))
	x.wantUnchanged(func() {
		_, err := refund.Apply(x.Context(), x, before, after)
		x.want(err, order.ErrStale)
	})
}

func (x storeTest) appliesBesideBegin() {
	x.pay(order.Paid)
	x.mustBegin("R1", 1000)
	seen, after := x.settled(refund.Outcome{Status: refund.Succeeded, Refund: "re_1"})
	later := x.mustBegin("R2", 500)
	_, err := refund.Apply(x.Context(), x, seen, after)
	x.must(err)
	x.wantDue()
	if a := x.account(); len(a.Items) != 2 || a.Left() != paidFor-1500 {
		x.Errorf("got %+v, want both refunds", a)
	}
	x.must(later.Finish(x.Context(), x, refund.Outcome{Status: refund.Succeeded, Refund: "re_2"}, at(time.Hour)))
	if a := x.account(); a.Refunded() != 1500 || a.Seq != 3 {
		x.Errorf("got %+v, want both made", a)
	}
	seen.Items, seen.Seq, after.Seq = nil, 3, 4 // as if Refresh had not seen R1 before it was begun
	after.Events[0].Seq = 4
	x.wantUnchanged(func() {
		_, err := refund.Apply(x.Context(), x, seen, after)
		x.want(err, order.ErrStale)
	})
}

func (x storeTest) races() {
	x.pay(order.Paid)
	var wg sync.WaitGroup
	errs := make([]error, 12)
	for n := range errs {
		r := x.request(fmt.Sprint("R", n), 1000)
		wg.Go(func() { _, errs[n] = refund.Begin(x.Context(), x, r, lease(fmt.Sprint("owner ", n), noon())) })
	}
	wg.Wait()
	claimed := len(slices.DeleteFunc(errs, func(err error) bool { return err != nil }))
	if a := x.account(); claimed != 3 || len(a.Items) != 3 || a.Left() != paidFor-3000 {
		x.Errorf("got %d claims and %+v, want three of 10.00", claimed, a)
	}
}
