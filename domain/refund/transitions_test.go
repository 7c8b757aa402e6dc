package refund_test

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

func at(d time.Duration) time.Time { return noon().Add(d) }

func lease(owner string, from time.Time) order.Lease {
	return order.Lease{Owner: owner, From: from, Until: from.Add(order.MaxLease)}
}

func TestCheckBegin(t *testing.T) {
	fingerprint := request(t, "R1", 3000).Fingerprint()
	held := refund.Item{
		ID: "R1", Amount: 3000, Fingerprint: fingerprint, Status: refund.Open, Owner: "first", Until: at(order.MaxLease),
	}
	failed := refund.Item{ID: "R1", Amount: 3000, Fingerprint: fingerprint, Status: refund.Failed}
	other := refund.Item{ID: "R2", Amount: 999, Status: refund.Open}
	late := at(order.MaxLease + time.Millisecond)
	euros := &order.InvalidError{Of: "refund", Problems: []order.Problem{
		{Field: "currency", Value: order.Quote("eur"), Want: "usd, as the order"},
	}}
	full := append(make([]refund.Item, refund.MaxRefunds-1), held)
	running := &order.InProgressError{Until: held.Until}
	for claim, tt := range map[string]struct {
		status   order.Status // "" is paid
		items    []refund.Item
		id       string      // "" is R1
		amount   int64       // 0 is 3000
		currency string      // "" is the order's
		lease    order.Lease // none is that of another worker, late
		want     error
	}{
		"an open order":                    {status: order.Open, want: &refund.NotChargedError{Status: order.Open}},
		"a pending order":                  {status: order.Pending, want: &refund.NotChargedError{Status: order.Pending}},
		"a declined order":                 {status: order.Declined, want: &refund.NotChargedError{Status: order.Declined}},
		"a new refund":                     {amount: total},
		"of a refunded order":              {status: order.Refunded},
		"the order's currency":             {currency: "usd"},
		"another currency":                 {currency: "eur", want: euros},
		"all that is left":                 {items: []refund.Item{other}, amount: 2999},
		"more than is left":                {items: []refund.Item{other}, want: &refund.ExceedsError{Amount: 3000, Left: 2999}},
		"too many refunds":                 {items: full, id: "R3", amount: 1, want: refund.ErrTooMany},
		"one of too many":                  {items: full},
		"the same owner again":             {items: []refund.Item{held}, lease: lease("first", noon())},
		"under a running lease":            {items: []refund.Item{held}, lease: lease("a", held.Until), want: running},
		"after its lease":                  {items: []refund.Item{held}},
		"in euros, after its lease":        {items: []refund.Item{held}, currency: "eur", want: euros},
		"with another amount":              {items: []refund.Item{held}, amount: 2999, want: &refund.ConflictError{ID: "R1"}},
		"that failed":                      {items: []refund.Item{failed}, want: &refund.SettledError{Item: failed}},
		"that failed, with another amount": {items: []refund.Item{failed}, amount: 1, want: &refund.ConflictError{ID: "R1"}},
	} {
		t.Run(claim, func(t *testing.T) {
			a := refund.Account{
				Status: stdcmp.Or(tt.status, order.Paid), Charged: order.Money{Amount: total, Currency: "usd"}, Items: tt.items,
			}
			r, err := refund.New(refund.Draft{
				OrderID: string(orderID), RefundID: stdcmp.Or(tt.id, "R1"), Amount: stdcmp.Or(tt.amount, 3000),
				Currency: tt.currency, Reason: string(refund.RequestedByCustomer),
			})
			if err != nil {
				t.Fatal(err)
			}
			l := stdcmp.Or(tt.lease, lease("a", late))
			got, want := fmt.Sprintf("%T %[1]v", refund.CheckBegin(a, r, l)), fmt.Sprintf("%T %[1]v", tt.want)
			if got != want {
				t.Errorf("got error %s, want %s", got, want)
			}
		})
	}
}

// Each transition of a refund, over a store in memory.
func TestTransitions(t *testing.T) {
	for claim, test := range map[string]func(storeTest){
		"a new refund is claimed and reserves its amount":             storeTest.begins,
		"begin again by the same owner is no new attempt":             storeTest.beginsAgain,
		"a running lease is respected, and an expired one taken over": storeTest.takesOver,
		"mark keeps the first time and the newest key":                storeTest.marks,
		"every write needs the claim":                                 storeTest.needsTheClaim,
		"finish records outcome, sums, status and one event":          storeTest.finishes,
		"finish with the recorded outcome changes nothing":            storeTest.finishesAgain,
		"refunds of one order settle side by side":                    storeTest.sideBySide,
		"a refused or failed refund gives its amount back":            storeTest.givesBack,
		"a released refund keeps its amount, and its id":              storeTest.releases,
		"release of a claim without a sent time removes it":           storeTest.unsends,
		"apply records what the bank did later":                       storeTest.applies,
		"apply of a change that is out of date returns ErrStale":      storeTest.appliesStale,
		"apply leaves what was begun meanwhile":                       storeTest.appliesBesideBegin,
	} {
		t.Run(claim, func(t *testing.T) {
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

// of returns the test of another order.
func (x storeTest) of(name string) storeTest {
	x.order = ordertest.Order(order.ID("O" + name))
	return x
}

// pay pays the order.
func (x storeTest) pay() {
	x.Helper()
	l := order.Lease{Owner: "charge", From: noon(), Until: at(time.Minute)}
	c, err := order.Begin(x.Context(), x.orders, x.order, l, nil)
	x.must(err)
	x.must(c.Bind(x.Context(), x.orders, order.Intent{ID: "pi_1", Mode: order.TestMode}, noon()))
	x.must(c.Finish(x.Context(), x.orders, order.Outcome{Status: order.Paid, Intent: "pi_1"}, noon()))
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
	x.pay()
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
	if a := c.Account; a.Intent != "pi_1" || a.Seq != 1 || len(a.Items) != 1 || a.Left() != total-1000 {
		x.Errorf("got claim %+v, want the account", c)
	}
}

func (x storeTest) beginsAgain() {
	x.pay()
	first := x.mustBegin("R1", 1000)
	x.wantUnchanged(func() {
		if again := x.mustBegin("R1", 1000); again.Account.Items[0].Attempt != first.Account.Items[0].Attempt {
			x.Errorf("got attempt %d, want %d", again.Account.Items[0].Attempt, first.Account.Items[0].Attempt)
		}
	})
}

func (x storeTest) takesOver() {
	x.pay()
	x.mustBegin("R1", total)
	x.wantUnchanged(func() {
		_, err := x.begin("R1", total, lease("second", at(order.MaxLease)))
		if _, running := errors.AsType[*order.InProgressError](err); !running {
			x.Errorf("got %v, want an InProgressError", err)
		}
	})
	later := at(order.MaxLease + time.Millisecond)
	c, err := x.begin("R1", total, lease("second", later)) // nothing is left of the charge
	x.must(err)
	want := refund.Item{
		ID: "R1", Amount: total, Reason: refund.Duplicate, Fingerprint: x.request("R1", total).Fingerprint(),
		Status: refund.Open, Owner: "second", Until: later.Add(order.MaxLease), Attempt: 2, KeySeq: 1,
		CreatedAt: noon(), UpdatedAt: later,
	}
	if diff := cmp.Diff(x.account().Items, []refund.Item{want}); diff != "" || c.Account.Items[0].Attempt != 2 {
		x.Errorf("(-got +want):\n%s", diff)
	}
}

func (x storeTest) marks() {
	x.pay()
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
	x.pay()
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
		x.pay()
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
	x.pay()
	c := x.mustBegin("R1", total)
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
	x.pay()
	var claims []refund.Claim
	for n := range 3 {
		claims = append(claims, x.mustBegin(fmt.Sprint("R", n), 1000))
	}
	for n, c := range claims { // each claim is older than the others' outcomes
		made := refund.Outcome{Status: refund.Succeeded, Refund: refund.ProviderID(fmt.Sprint("re_", n))}
		x.must(c.Finish(x.Context(), x, made, noon()))
		x.wantDue()
	}
	if a := x.account(); a.Seq != 4 || a.Refunded() != 3000 || a.Left() != total-3000 {
		x.Errorf("got %+v, want three refunds with three events", a)
	}
	x.mustBegin("R9", total-3000)
}

func (x storeTest) givesBack() {
	x.pay()
	for _, s := range []refund.Status{refund.Failed, refund.Refused} {
		c := x.mustBegin("R-"+string(s), total)
		x.must(c.Finish(x.Context(), x, refund.Outcome{Status: s}, noon()))
	}
	x.mustBegin("R3", total)
}

func (x storeTest) releases() {
	x.pay()
	c := x.mustBegin("R1", total)
	x.must(c.Release(x.Context(), x, order.ReasonUnavailable, at(time.Second)))
	i := x.account().Items[0]
	if i.Owner != "" || !i.Until.IsZero() || i.LastError != "provider_unavailable" || i.Status != refund.Open {
		x.Errorf("got %+v, want it open without a claim", i)
	}
	_, err := x.begin("R2", 1, lease("second", noon()))
	if _, is := errors.AsType[*refund.ExceedsError](err); !is {
		x.Errorf("another refund: got %v, want an ExceedsError", err)
	}
	_, err = x.begin("R1", total, lease("second", at(time.Second)))
	x.must(err)
}

// unsends releases a claim twice after its Mark: with the time of Mark, and without.
func (x storeTest) unsends() {
	x.pay()
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
	x.pay()
	c := x.mustBegin("R1", total)
	x.must(c.Finish(x.Context(), x, refund.Outcome{Status: refund.Pending, Refund: "re_1"}, noon()))
	for _, s := range []refund.Status{refund.Succeeded, refund.Failed} {
		before, after := x.settled(refund.Outcome{Status: s, Refund: "re_1"})
		_, err := refund.Apply(x.Context(), x, before, after)
		x.must(err)
		after.Events = nil
		x.wantAccount(after)
		x.wantDue()
	}
	x.mustBegin("R2", total)
}

func (x storeTest) appliesStale() {
	x.pay()
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
	x.pay()
	x.mustBegin("R1", 1000)
	seen, after := x.settled(refund.Outcome{Status: refund.Succeeded, Refund: "re_1"})
	later := x.mustBegin("R2", 500)
	_, err := refund.Apply(x.Context(), x, seen, after)
	x.must(err)
	x.wantDue()
	if a := x.account(); len(a.Items) != 2 || a.Left() != total-1500 {
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
