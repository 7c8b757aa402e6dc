package order_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// night is a store with orders that wait, and a bank.
type night struct {
	t     *testing.T
	store *ordertest.Memory
	bank  *ordertest.Bank
	now   time.Time

	mu    sync.Mutex
	calls map[string]int
	fails func(order.IntentID) error // Read
	// unread are the errors of Load, and unmoved is that of Postpone.
	unread  func(order.ID) error
	unmoved error
	mode    order.Mode // of the bank's key
	// overcharges is how much more the records say than the bank.
	overcharges    int64
	parallel       int           // 0 is 4
	listed         chan struct{} // closed at the end of Due, unless nil
	refunds        func(order.ID) error
	cancelDeclined func(context.Context, order.Record) (order.Record, error)
}

func peek(s *ordertest.Memory, id order.ID) order.Record {
	r, _ := s.Peek(id)
	return r
}

func newNight(t *testing.T) *night {
	t.Helper()
	return &night{
		t: t, store: new(ordertest.Memory), bank: &ordertest.Bank{Scope: "test"}, now: noon(), calls: map[string]int{},
	}
}

// add processes an order up to a call, after which its worker dies; "" is to the end.
func (n *night) add(id order.ID, card ordertest.Card, last ordertest.Call) {
	n.t.Helper()
	o, err := order.New(with(func(d *order.Draft) { d.ID, d.Payment.Method = string(id), ordertest.PaymentMethod(card) }))
	if err != nil {
		n.t.Fatal(err)
	}
	w := &world{
		T: n.t, order: o, store: n.store, bank: n.bank, payments: n.bank, sent: n.now, now: n.now, lease: time.Minute,
	}
	if last == "" {
		w.deliver(noFault)
		return
	}
	w.crashAfter(last)
}

func (n *night) count(call string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[call]++
}

func (n *night) Load(ctx context.Context, id order.ID) (order.Record, error) {
	n.count("load")
	if n.unread != nil {
		if err := n.unread(id); err != nil {
			return order.Record{}, err
		}
	}
	r, err := n.store.Load(ctx, id)
	r.Total.Amount += n.overcharges
	return r, err
}

func (n *night) Save(ctx context.Context, before, after order.Record) (order.Record, error) {
	call := ordertest.CallOf(before, after)
	n.count(string(call))
	if call == ordertest.Postpone && n.unmoved != nil {
		return order.Record{}, n.unmoved
	}
	return n.store.Save(ctx, before, after)
}

func (n *night) Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) {
		if n.listed != nil {
			defer close(n.listed)
		}
		n.store.Due(ctx, at)(yield)
	}
}

func (n *night) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	n.count("read")
	if n.fails != nil {
		if err := n.fails(id); err != nil {
			return order.Intent{}, err
		}
	}
	return n.bank.Read(ctx, id)
}

// payments are the other methods of the port, which a run never calls.
type payments struct {
	*night
	order.Payments
}

func (p payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return p.night.Read(ctx, id)
}

// run reconciles until the time is over, which is after as many looks as the budget says,
// and up to three that began before.
func (n *night) run(budget int) settle.Reconciled {
	n.t.Helper()
	done, err := n.tryRun(budget)
	if err != nil {
		n.t.Fatal(err)
	}
	return done
}

func (n *night) tryRun(budget int) (settle.Reconciled, error) {
	until, last := n.now.Add(time.Minute), n.calls["load"]+budget
	r := settle.Reconciler{
		Follower: settle.Follower{
			Store: n, Payments: payments{night: n}, Scope: "test", Mode: n.mode,
			Now: func() time.Time {
				n.mu.Lock()
				defer n.mu.Unlock()
				if n.calls["load"] >= last {
					return until
				}
				return n.now
			},
			Refunds: func(_ context.Context, id order.ID) (int, error) {
				n.count("refunds")
				if n.refunds == nil {
					return 0, nil
				}
				return 0, n.refunds(id)
			},
		},
		Waiting: n, Parallel: stdcmp.Or(n.parallel, 4), CancelDeclined: n.cancelDeclined,
	}
	return r.Run(n.t.Context(), until)
}

func TestReconcileSettlesWhatTheProviderSettled(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("paid", ordertest.Pays, "")
	n.add("died", ordertest.Pays, ordertest.Confirm)
	n.add("never-confirmed", ordertest.Pays, ordertest.Bind)
	n.add("no-intent", ordertest.Pays, ordertest.Begin)
	n.add("cleared", ordertest.TakesDays, "")
	n.add("pending", ordertest.TakesDays, "")
	n.bank.Clear("pi_4")
	n.now = n.now.Add(3 * time.Hour)
	noIntent := peek(n.store, "no-intent")
	got := n.run(100)
	want := settle.Reconciled{
		Followed: map[settle.Followed]int{settle.HintSettled: 2, settle.HintUnchanged: 2, settle.HintNoIntent: 1},
		NoIntent: []order.Record{noIntent},
		Oldest:   map[order.Status]time.Duration{order.Open: 2 * time.Hour, order.Pending: 3 * time.Hour},
		Overdue:  2 * time.Hour,
	}
	if diff := cmp.Diff(got, want, cmpopts.EquateApprox(0, 0)); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for id, status := range map[order.ID]order.Status{
		"paid": order.Paid, "died": order.Paid, "cleared": order.Paid, "pending": order.Pending, "no-intent": order.Open,
		"never-confirmed": order.Open,
	} {
		if r := peek(n.store, id); r.Status != status {
			t.Errorf("%s is %s, want %s", id, r.Status, status)
		}
	}
	if diff := cmp.Diff(n.calls, map[string]int{"load": 5, "read": 4, "finish": 2, "postpone": 3}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if again := n.run(100); len(again.Followed) > 0 {
		t.Errorf("a second run at once looked at %v, want none", again.Followed)
	}
}

func TestOrdersAreLookedAtInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNight(t)
		n.addPending(8)
		n.now = n.now.Add(2 * time.Hour)
		var reads atomic.Int64
		four := make(chan struct{}) // closed by the fourth read, so that fewer at once are a deadlock
		n.fails = func(order.IntentID) error {
			if reads.Add(1) == 4 {
				close(four)
			}
			<-four
			return nil
		}
		if got := n.run(100); got.Followed[settle.HintUnchanged] != 8 {
			t.Errorf("got %+v, want eight looks", got)
		}
	})
}

func TestReconcileGoesOnWhereARunEnded(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	const orders = 100
	n.addPending(orders)
	n.now = n.now.Add(2 * time.Hour)
	runs := 0
	for more := true; more && runs < 9; runs++ {
		more = n.run(30).More
	}
	if diff := cmp.Diff(n.calls, map[string]int{"load": orders, "read": orders, "postpone": orders}); diff != "" || runs != 4 {
		t.Errorf("got %d runs, want 4; calls (-got +want):\n%s", runs, diff)
	}
}

// errDown is the answer of a provider that is down, and errAccount that to an intent of
// another account.
var (
	errDown    = &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("down")}
	errAccount = &order.PaymentError{Kind: order.KindMisconfigured, Code: "resource_missing", Err: errors.New("no such intent")}
)

func (n *night) addPending(count int) {
	n.t.Helper()
	for i := range count {
		n.add(order.ID(fmt.Sprintf("order-%d", i)), ordertest.TakesDays, "")
	}
}

func TestReconcileStopsWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.parallel = 1
	n.addPending(50)
	n.now = n.now.Add(2 * time.Hour)
	read := 0
	n.fails = func(order.IntentID) error {
		if read++; read <= 5 { // it was up when the run began
			return nil
		}
		return errDown
	}
	got, err := n.tryRun(1000)
	if len(got.Unavailable) != 10 || !got.More || !errors.Is(err, errDown) {
		t.Errorf("got %+v and %v, want ten looks and that the provider is down", got, err)
	}
	n.fails, n.now = nil, n.now.Add(30*time.Minute)
	if got := n.run(1000); got.Followed[settle.HintUnchanged] != 45 {
		t.Errorf("half an hour later: got %+v, want every other order looked at", got)
	}
}

// A run that gave up reports the outage, also if the answer to an earlier look arrives
// afterwards.
func TestReconcileReportsAnOutageDespiteALateAnswer(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.addPending(50)
	n.now, n.listed = n.now.Add(2*time.Hour), make(chan struct{})
	var read atomic.Int64
	n.fails = func(order.IntentID) error {
		if read.Add(1) > 1 {
			return errDown
		}
		<-n.listed
		return nil
	}
	if got, err := n.tryRun(1000); got.Followed[settle.HintUnchanged] != 1 || !errors.Is(err, errDown) {
		t.Errorf("got %+v and %v, want one late answer and that the provider is down", got, err)
	}
}

// The answer that settles an order shows that the provider is up.
func TestARunThatSettledAnOrderIsNoOutage(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.addPending(2)
	n.bank.Clear("pi_1")
	n.now = n.now.Add(2 * time.Hour)
	n.fails = func(id order.IntentID) error {
		if id == "pi_2" {
			return errDown
		}
		return nil
	}
	if got := n.run(10); got.Followed[settle.HintSettled] != 1 || len(got.Unavailable) != 1 {
		t.Errorf("got %+v, want one order settled and one unavailable", got)
	}
}

// A single error in a row of answers is not an outage, nor is any number of other errors.
func TestReconcileGoesOnUnlessManyLooksInARowAreUnanswered(t *testing.T) {
	t.Parallel()
	for claim, fails := range map[string]func(int) error{
		"three of four are unanswered": func(n int) error {
			if n%4 > 0 {
				return errDown
			}
			return nil
		},
		"one key cannot read": func(int) error { return errAccount },
		"the answers cannot be read": func(n int) error {
			if n == 100 {
				return nil
			}
			return &order.PaymentError{Kind: order.KindUnknown}
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			n.parallel = 1
			n.addPending(100)
			n.now = n.now.Add(2 * time.Hour)
			read := 0
			n.fails = func(order.IntentID) error { read++; return fails(read) }
			got := n.run(1000)
			if claim == "the answers cannot be read" && len(got.Unavailable) != 99 {
				t.Errorf("got %+v, want them unavailable: the provider may answer later", got)
			}
			if looks := got.Followed[settle.HintUnchanged] + len(got.Failed) + len(got.Unavailable); looks != 100 || got.More {
				t.Errorf("got %d looks of 100: %+v", looks, got)
			}
		})
	}
}

// A store that returns no row is down, also for the two orders of a small shop.
func TestARunThatGetsNoAnswerIsAnError(t *testing.T) {
	t.Parallel()
	errStore := errors.New("access denied")
	for claim, tt := range map[string]struct {
		breaks func(*night)
		orders int
		want   error
	}{
		"the store returns no row":         {func(n *night) { n.unread = func(order.ID) error { return errStore } }, 2, errStore},
		"the store returns no row of many": {func(n *night) { n.unread = func(order.ID) error { return errStore } }, 50, errStore},
		"the provider does not answer":     {func(n *night) { n.fails = func(order.IntentID) error { return errDown } }, 2, errDown},
		"beside a row that is corrupt": {func(n *night) {
			n.fails = func(order.IntentID) error { return errDown }
			n.unread = func(id order.ID) error {
				if id == "order-0" {
					return order.ErrCorrupt
				}
				return nil
			}
		}, 2, errDown},
		"a look cannot be postponed":          {func(n *night) { n.unmoved = errStore }, 2, errStore},
		"a row is corrupt":                    {func(n *night) { n.unread = func(order.ID) error { return order.ErrCorrupt } }, 2, nil},
		"the rows are those of newer release": {func(n *night) { n.unread = func(order.ID) error { return order.ErrUnknownVersion } }, 50, nil},
		"every intent is another account's":   {func(n *night) { n.fails = func(order.IntentID) error { return errAccount } }, 50, nil},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			n.addPending(tt.orders)
			n.now = n.now.Add(2 * time.Hour)
			tt.breaks(n)
			got, err := n.tryRun(1000)
			looks := got.Unavailable
			if tt.want == nil {
				looks = got.Failed
			}
			if !errors.Is(err, tt.want) || len(looks) == 0 || looks[0].Err == nil || len(looks[0].OrderID) == 0 {
				t.Errorf("got %v and %+v, want the error %v and the orders with their errors", err, got, tt.want)
			}
			if more := tt.want != nil && tt.orders == 50; got.More != more {
				t.Errorf("got more: %t, want %t", got.More, more)
			}
		})
	}
}

// Rows that only a newer release or a person can read cannot be postponed. They cost no
// call of the provider.
func TestReconcileLooksPastRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	for i := range 310 {
		n.add(order.ID(fmt.Sprintf("damaged-%d", i)), ordertest.TakesDays, "")
	}
	n.add("later", ordertest.TakesDays, "")
	n.now = n.now.Add(2 * time.Hour)
	n.unread = func(id order.ID) error {
		switch {
		case id == "later":
			return nil
		case strings.HasSuffix(string(id), "1"):
			return order.ErrUnknownVersion
		}
		return order.ErrCorrupt
	}
	for range 2 {
		got := n.run(1000)
		if len(got.Failed) != 310 || got.Followed[settle.HintUnchanged] != 1 || got.More || n.calls["read"] != 1 {
			t.Errorf("got %+v and calls %v, want every order looked at and one call of the provider", got, n.calls)
		}
		n.now, n.calls["read"] = n.now.Add(3*time.Hour), 0
	}
}

// An order that always fails is looked at again and again, and leaves the others their
// looks: 15 minutes later at first, and every six hours at last.
func TestAFailedLookIsPostponed(t *testing.T) {
	t.Parallel()
	for claim, card := range map[string]ordertest.Card{
		"a pending order": ordertest.TakesDays, "a declined order is not lost": ordertest.Declines,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			n.add("order", card, "")
			n.fails = func(order.IntentID) error { return errAccount }
			n.now = peek(n.store, "order").DueAt
			var waits []time.Duration
			for range 20 {
				got := n.run(10)
				if len(got.Failed) != 1 || got.Failed[0].OrderID != "order" || !errors.Is(got.Failed[0].Err, errAccount) {
					t.Fatalf("got %+v, want the failed look with its error", got)
				}
				due := peek(n.store, "order").DueAt
				waits = append(waits, due.Sub(n.now))
				n.now = due
			}
			if !slices.IsSorted(waits) || waits[0] < 15*time.Minute || waits[19] != 6*time.Hour {
				t.Errorf("got looks after %v, want 15 minutes at least, growing to six hours", waits)
			}
			if card == ordertest.TakesDays && waits[0] != 15*time.Minute {
				t.Errorf("got the first look after %v, want 15 minutes", waits[0])
			}
			n.fails = nil
			if got := n.run(10); got.Followed[settle.HintUnchanged] != 1 {
				t.Errorf("afterwards: got %+v, want the order looked at", got)
			}
		})
	}
}

// Twenty rows that always fail were due first.
func TestOrdersThatAlwaysFailHideNoOthers(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	const bad, good = 20, 160
	n.addPending(bad)
	n.now = n.now.Add(time.Second)
	for i := range good {
		n.add(order.ID(fmt.Sprintf("paid-%d", i)), ordertest.TakesDays, "")
	}
	for i := range good {
		n.bank.Clear(order.IntentID(fmt.Sprintf("pi_%d", bad+i+1)))
	}
	n.fails = func(id order.IntentID) error {
		if i, _ := strconv.Atoi(strings.TrimPrefix(string(id), "pi_")); i <= bad {
			return errAccount
		}
		return nil
	}
	n.now = n.now.Add(2 * time.Hour)
	got := n.run(1000)
	if got.Followed[settle.HintSettled] != good || len(got.Failed) != bad || got.More {
		t.Errorf("got %+v, want %d orders settled and %d failed looks", got, good, bad)
	}
	if again := n.run(1000); len(again.Failed) > 0 {
		t.Errorf("at once again: got %+v, want no order due", again)
	}
}

// A test-mode row stays in a table after go-live. Nothing is lost if the key is the wrong
// one for an hour.
func TestAnOrderOfAnotherModeIsSkipped(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("declined", ordertest.Declines, "")
	n.add("pending", ordertest.TakesDays, "")
	n.add("open", ordertest.Pays, ordertest.Begin) // of no mode
	n.add("refunded", ordertest.Pays, "")
	refunded := peek(n.store, "refunded")
	refunded.DueAt = n.now // one of its refunds waits
	n.store.Replace(peek(n.store, "refunded"), refunded)
	n.now, n.mode = n.now.Add(25*time.Hour), order.LiveMode
	got := n.run(10)
	want := map[settle.Followed]int{settle.HintForeign: 3, settle.HintNoIntent: 1}
	if diff := cmp.Diff(got.Followed, want); diff != "" || n.calls["read"]+n.calls["refunds"] > 0 || got.Oldest[order.Pending] > 0 {
		t.Errorf("got %+v and calls %v, want three orders skipped (-got +want):\n%s", got, n.calls, diff)
	}
	n.now, n.mode = n.now.Add(7*time.Hour), order.TestMode
	if got := n.run(10); got.Followed[settle.HintUnchanged] != 3 {
		t.Errorf("with the right key: got %+v, want each looked at", got)
	}
}

func TestARunReportsTheLatestLook(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("first", ordertest.TakesDays, "")
	n.now = n.now.Add(30 * time.Minute)
	n.addPending(20)
	n.now = n.now.Add(8 * time.Hour)
	n.fails = func(id order.IntentID) error {
		if id == "pi_1" { // also of a look that fails
			return errAccount
		}
		return nil
	}
	got := n.run(100)
	if got.Overdue != 7*time.Hour+30*time.Minute {
		t.Errorf("got %v, want 7h30m: the first order was due after an hour", got.Overdue)
	}
	if oldest := got.Oldest[order.Pending]; oldest != 8*time.Hour+30*time.Minute {
		t.Errorf("got the oldest order after %v, want 8h30m", oldest)
	}
}

func TestAnOrderThatTheRunSettlesWaitsNoMore(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("paid", ordertest.TakesDays, "")
	n.bank.Clear("pi_1")
	n.now = n.now.Add(3 * time.Hour)
	if got := n.run(10); got.Followed[settle.HintSettled] != 1 || len(got.Oldest) > 0 {
		t.Errorf("got %+v, want it settled and none that waits", got)
	}
}

// The store is up if it says that another one changed the record.
func TestAStaleRecordIsAnAnswerOfTheStore(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.Declines, "")
	n.cancelDeclined = func(_ context.Context, r order.Record) (order.Record, error) { return r, errors.New("no stock table") }
	n.unmoved = order.ErrStale
	n.now = n.now.Add(25 * time.Hour)
	if got := n.run(10); len(got.Failed) != 1 || len(got.Unavailable) > 0 {
		t.Errorf("got %+v, want a failed look", got)
	}
}

func TestAnOrderThatItsCustomerPaysWhileItsStockAreFreedIsSettled(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.Declines, "")
	n.cancelDeclined = func(_ context.Context, r order.Record) (order.Record, error) {
		r.Status = order.Paid
		return r, nil
	}
	n.now = n.now.Add(25 * time.Hour)
	if got := n.run(10); got.Followed[settle.HintSettled] != 1 || n.calls["postpone"] > 0 {
		t.Errorf("got %+v and calls %v, want it settled", got, n.calls)
	}
}

func TestAnInterruptedRunReportsNoFailedLook(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.addPending(20)
	n.now = n.now.Add(2 * time.Hour)
	ctx, interrupt := context.WithCancel(t.Context())
	r := settle.Reconciler{
		Follower: settle.Follower{
			Store: n, Scope: "test", Now: func() time.Time { return n.now },
			Payments: settle.Paced{Payments: payments{night: n}, Allow: func(context.Context) error {
				interrupt()
				return ctx.Err()
			}},
		},
		Waiting: n, Parallel: 1,
	}
	got, err := r.Run(ctx, n.now.Add(time.Minute))
	if err != nil || len(got.Failed)+len(got.Unavailable) > 0 || !got.More || n.calls["load"] != 1 || n.calls["postpone"] > 0 {
		t.Errorf("got %+v, %v and calls %v, want one look, unreported", got, err, n.calls)
	}
}

// Each call of the provider waits, those that cancel an order for its stock as well.
func TestPacedCallsWait(t *testing.T) {
	t.Parallel()
	bank, allowed := &ordertest.Bank{Scope: "test"}, 0
	i, err := bank.Prepare(t.Context(), ordertest.Order("ORD-1"), order.PrepareKey("test", "ORD-1"))
	if err != nil {
		t.Fatal(err)
	}
	p := settle.Paced{Payments: bank, Canceler: bank, Allow: func(context.Context) error { allowed++; return nil }}
	c := order.Cancellation{Store: new(ordertest.Memory), Payments: p, Canceler: p, Scope: "test"}
	r := order.Record{
		OrderID: "ORD-1", Status: order.Declined, Intent: i.ID, Total: i.Total, Stock: order.Quantities{"MUG": 1},
	}
	_, _ = c.CancelDeclined(t.Context(), r, 0, noon()) // the store has no such order
	if _, err := p.CancelIntent(t.Context(), i.ID, order.CancelKey("test", "ORD-1", noon())); err != nil || allowed != 2 {
		t.Errorf("got error %v and %d calls allowed, want 2: a Read and a cancel", err, allowed)
	}
	p.Allow = func(context.Context) error { return context.Canceled }
	_, readErr := p.Read(t.Context(), i.ID)
	_, cancelErr := p.CancelIntent(t.Context(), i.ID, order.CancelKey("test", "ORD-1", noon()))
	if !errors.Is(readErr, context.Canceled) || !errors.Is(cancelErr, context.Canceled) {
		t.Errorf("got %v and %v, want no call", readErr, cancelErr)
	}
}

func TestALookIsPostponedByTheTimeThatTheOrderHasWaited(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.TakesDays, "")
	began, looks := n.now, []string{}
	for range 8 {
		n.now = peek(n.store, "order").DueAt
		looks = append(looks, n.now.Sub(began).String())
		n.run(10)
	}
	want := []string{"1h0m0s", "2h0m0s", "4h0m0s", "8h0m0s", "16h0m0s", "32h0m0s", "56h0m0s", "80h0m0s"}
	if diff := cmp.Diff(looks, want); diff != "" {
		t.Errorf("looks after (-got +want):\n%s", diff)
	}
}

func TestReconcileReportsADisagreementOnce(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.TakesDays, "")
	n.overcharges = 1
	n.now = n.now.Add(2 * time.Hour)
	got := n.run(10)
	if len(got.Mismatched) != 1 || got.Mismatched[0].OrderID != "order" || n.calls["postpone"] != 1 {
		t.Errorf("got calls %v and %v, want one disagreement, postponed", n.calls, got.Mismatched)
	}
	if again := n.run(10); len(again.Mismatched) > 0 {
		t.Errorf("at once again: got %v, want nothing due", again.Mismatched)
	}
}

// A paid order that the provider does not show as paid is one for a person.
func TestAnInvalidTransitionIsADisagreement(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.Pays, "")
	due := peek(n.store, "order")
	due.DueAt = n.now
	n.store.Replace(peek(n.store, "order"), due)
	n.refunds = func(order.ID) error { return &order.TransitionError{From: order.Paid, To: order.Declined} }
	if got := n.run(10); len(got.Mismatched) != 1 || got.Mismatched[0].OrderID != "order" || len(got.Failed) > 0 {
		t.Errorf("got %+v, want a disagreement", got)
	}
}

// laggingIndex returns an order that is settled already.
type laggingIndex struct {
	*night
	id order.ID
}

func (x laggingIndex) Due(context.Context, time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) { yield(x.id, nil) }
}

func TestASettledOrderOfALaggingIndexIsLeft(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("paid", ordertest.Pays, "")
	now := func() time.Time { return n.now }
	for _, id := range []order.ID{"paid", "erased"} {
		r := settle.Reconciler{
			Follower: settle.Follower{Store: n, Payments: payments{night: n}, Scope: "test", Now: now},
			Waiting:  laggingIndex{n, id},
		}
		got, err := r.Run(t.Context(), n.now.Add(time.Minute))
		if err != nil || len(got.Oldest)+len(got.Failed)+len(got.Unavailable) > 0 || n.calls["postpone"]+n.calls["finish"] > 0 {
			t.Errorf("%s: got %+v, %v and calls %v, want no waiting order and no write", id, got, err, n.calls)
		}
	}
}

// The webhook of a payment may meet the lease of the worker that records the decline, and
// no other one follows.
func TestReconcileLooksOnceAtADeclinedOrder(t *testing.T) {
	t.Parallel()
	for paid, want := range map[bool]order.Status{true: order.Paid, false: order.Declined} {
		n := newNight(t)
		n.add("order", ordertest.Declines, "")
		if paid {
			n.bank.CustomerPays("pi_1")
		}
		n.now = n.now.Add(23 * time.Hour)
		early := n.run(10)
		n.now = n.now.Add(2 * time.Hour)
		got := n.run(10)
		n.now = n.now.Add(1000 * time.Hour)
		again := n.run(10)
		if r := peek(n.store, "order"); r.Status != want || len(early.Followed)+len(again.Followed) > 0 || len(got.Followed) != 1 ||
			len(got.Oldest) > 0 {
			t.Errorf("paid %t: got %s, %+v, %+v and %+v, want it %s after one look a day later", paid, r.Status, early, got, again, want)
		}
	}
}

// A failed look would put the order back into the index, where nothing ends its looks.
func TestReconcileLeavesAnOrderThatWasSettledMeanwhile(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.TakesDays, "")
	n.now = n.now.Add(2 * time.Hour)
	n.unread = func(id order.ID) error { // between Due and Load
		r := peek(n.store, id)
		return order.Settle(t.Context(), n.store, r, order.Outcome{Intent: r.Intent, Status: order.Canceled}, n.now)
	}
	n.fails = func(order.IntentID) error { return errAccount }
	if got := n.run(10); len(got.Failed) != 1 {
		t.Errorf("got %+v, want one failed look", got)
	}
	if r := peek(n.store, "order"); r.Status != order.Canceled || !r.DueAt.IsZero() {
		t.Errorf("got %s, due %s, want it canceled and never due", r.Status, r.DueAt)
	}
}

// slow is a store whose Load takes an hour, and begins when nothing else can continue.
type slow struct{ *night }

func (s slow) Load(ctx context.Context, id order.ID) (order.Record, error) {
	synctest.Wait()
	s.now = s.now.Add(time.Hour)
	return s.night.Load(ctx, id)
}

// The second look waits for the first, which uses up the time.
func TestNoLookBeginsAfterTheTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNight(t)
		n.add("first", ordertest.TakesDays, "")
		n.add("second", ordertest.TakesDays, "")
		n.now = n.now.Add(3 * time.Hour)
		r := settle.Reconciler{
			Follower: settle.Follower{
				Store: slow{n}, Payments: payments{night: n}, Scope: "test",
				Now: func() time.Time { return n.now },
			},
			Waiting: n, Parallel: 1,
		}
		got, err := r.Run(t.Context(), n.now.Add(time.Minute))
		if err != nil || !got.More || n.calls["load"] != 1 {
			t.Errorf("got %d looks, more: %t, error %v, want 1 look and more", n.calls["load"], got.More, err)
		}
	})
}

// A charged order is due while one of its refunds waits.
func TestReconcileLooksAtRefunds(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		settles  bool
		err      error
		want     settle.Reconciled
		postpone int
	}{
		"a refund that still waits": {
			want: settle.Reconciled{Followed: map[settle.Followed]int{settle.HintUnchanged: 1}}, postpone: 1,
		},
		"a refund that was settled": {settles: true, want: settle.Reconciled{}, postpone: 1},
		"the provider is down": {
			err: errDown, want: settle.Reconciled{Unavailable: []settle.FailedRecheck{{OrderID: "order", Err: errDown}}}, postpone: 1,
		},
		"the key lacks the permission": {
			err: errAccount, want: settle.Reconciled{Failed: []settle.FailedRecheck{{OrderID: "order", Err: errAccount}}}, postpone: 1,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			n.add("order", ordertest.Pays, "")
			due := peek(n.store, "order")
			due.DueAt = n.now
			n.store.Replace(peek(n.store, "order"), due)
			n.refunds = func(id order.ID) error {
				if r := peek(n.store, id); tt.settles {
					r.Seq, r.DueAt = r.Seq+1, time.Time{}
					n.store.Replace(peek(n.store, id), r)
				}
				return tt.err
			}
			got, _ := n.tryRun(10)
			if len(got.Followed) == 0 {
				got.Followed = nil
			}
			got.Oldest = nil
			if diff := cmp.Diff(got, tt.want, cmpopts.EquateErrors()); diff != "" || n.calls["refunds"] != 1 || n.calls["postpone"] != tt.postpone {
				t.Errorf("calls %v, (-got +want):\n%s", n.calls, diff)
			}
			if again := n.run(10); len(again.Followed)+len(again.Failed)+len(again.Unavailable) > 0 {
				t.Errorf("at once again: got %v, want nothing due", again)
			}
		})
	}
}
