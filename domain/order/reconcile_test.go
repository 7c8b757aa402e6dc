package order_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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
	lists          order.ID      // instead of the orders that are due, unless ""
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
		if n.lists != "" {
			yield(n.lists, nil)
			return
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

// due makes an order due now, as one of its refunds that waits does.
func (n *night) due(id order.ID) {
	before := peek(n.store, id)
	after := before
	after.DueAt = n.now
	n.store.Replace(before, after)
}

// counts returns how many orders had which result, as text.
func counts(r settle.Reconciled) string {
	all := map[string]int{}
	for followed, n := range r.Followed {
		all[string(followed)] = n
	}
	for name, n := range map[string]int{
		"failed": len(r.Failed), "unavailable": len(r.Unavailable), "mismatched": len(r.Mismatched),
	} {
		if n > 0 {
			all[name] = n
		}
	}
	return strings.TrimPrefix(fmt.Sprint(all), "map")
}

// reconcileCase is one run over orders that wait.
type reconcileCase struct {
	pending int // orders that wait for the bank
	breaks  func(n *night)
	want    string // what counts returns
	err     error  // the outage
	more    bool
	calls   string // unless it is ""
}

// A store or a provider that answers nobody, or not ten orders in a row, is down. What is
// wrong with single orders is not an outage, whatever their number.
func TestReconcile(t *testing.T) {
	t.Parallel()
	errStore := errors.New("access denied")
	const refunds = "map[load:1 postpone:1 read:1 refunds:1]"
	unread := func(err error) func(*night) {
		return func(n *night) { n.unread = func(order.ID) error { return err } }
	}
	fails := func(err error) func(*night) {
		return func(n *night) { n.fails = func(order.IntentID) error { return err } }
	}
	failsBut := func(err error, answered func(read int) bool) func(*night) {
		return func(n *night) {
			n.parallel = 1
			read := 0
			n.fails = func(order.IntentID) error {
				if read++; answered(read) {
					return nil
				}
				return err
			}
		}
	}
	refund := func(err error) func(*night) {
		return func(n *night) {
			n.add("order", ordertest.Pays, "")
			n.due("order")
			n.refunds = func(order.ID) error { return err }
		}
	}
	declined := func(cancel func(r order.Record) (order.Record, error)) func(*night) {
		return func(n *night) {
			n.add("order", ordertest.Declines, "")
			n.now = n.now.Add(25 * time.Hour)
			n.cancelDeclined = func(_ context.Context, r order.Record) (order.Record, error) { return cancel(r) }
		}
	}
	for claim, tt := range map[string]reconcileCase{
		"an order that is settled waits no more": {
			1, func(n *night) { n.bank.Clear("pi_1") }, "[settled:1]", nil, false, "map[finish:1 load:1 read:1]",
		},
		"a run that settled an order is no outage": {
			2, func(n *night) {
				n.bank.Clear("pi_1")
				n.fails = func(id order.IntentID) error {
					if id == "pi_2" {
						return errDown
					}
					return nil
				}
			}, "[settled:1 unavailable:1]", nil, false, "",
		},
		"three of four are unanswered": {
			100, failsBut(errDown, func(read int) bool { return read%4 == 0 }), "[unavailable:75 unchanged:25]", nil, false, "",
		},
		"the answers cannot be read": {
			100, failsBut(&order.PaymentError{Kind: order.KindUnknown}, func(read int) bool { return read == 100 }),
			"[unavailable:99 unchanged:1]", nil, false, "",
		},
		"the provider fails after five answers": {
			50, failsBut(errDown, func(read int) bool { return read <= 5 }), "[unavailable:10 unchanged:5]", errDown, true, "",
		},
		"an answer that arrives after the run gave up": {
			50, func(n *night) {
				n.parallel, n.listed = 2, make(chan struct{})
				var read atomic.Int64
				n.fails = func(order.IntentID) error {
					if read.Add(1) > 1 {
						return errDown
					}
					<-n.listed
					return nil
				}
			}, "[unavailable:10 unchanged:1]", errDown, true, "",
		},
		"the store returns no row": {2, unread(errStore), "[unavailable:2]", errStore, false, ""},
		"the store returns no row of many": {
			50, func(n *night) { n.parallel = 1; unread(errStore)(n) }, "[unavailable:10]", errStore, true, "",
		},
		"the provider does not answer": {2, fails(errDown), "[unavailable:2]", errDown, false, ""},
		"a recheck cannot be postponed": {
			2, func(n *night) { n.unmoved = errStore }, "[unavailable:2]", errStore, false, "",
		},
		"a row is corrupt":                 {2, unread(order.ErrCorrupt), "[failed:2]", nil, false, "map[load:2]"},
		"the rows are of a newer release":  {50, unread(order.ErrUnknownVersion), "[failed:50]", nil, false, ""},
		"each intent is another account's": {50, fails(errAccount), "[failed:50]", nil, false, ""},
		"each intent belongs to another sum": {
			1, func(n *night) { n.overcharges = 1 }, "[mismatched:1]", nil, false, "map[load:1 postpone:1 read:1]",
		},
		"no answer beside a row that is corrupt": {
			2, func(n *night) {
				fails(errDown)(n)
				n.unread = func(id order.ID) error {
					if id == "order-0" {
						return order.ErrCorrupt
					}
					return nil
				}
			}, "[failed:1 unavailable:1]", errDown, false, "",
		},
		"a row that changed is an answer of the store": {
			0, func(n *night) {
				n.unmoved = order.ErrStale
				declined(func(r order.Record) (order.Record, error) { return r, errors.New("no stock table") })(n)
			}, "[failed:1]", nil, false, "",
		},
		"a customer pays while the stock is freed": {
			0, declined(func(r order.Record) (order.Record, error) { r.Status = order.Paid; return r, nil }),
			"[settled:1]", nil, false, "map[load:1 read:1]",
		},
		"the provider fails while the stock is freed": {
			0, declined(func(order.Record) (order.Record, error) { return order.Record{}, errDown }),
			"[unavailable:1]", errDown, false, "map[load:1 postpone:1 read:1]",
		},
		"an order that was settled since it was listed": {
			0, func(n *night) { n.add("order", ordertest.Pays, ""); n.lists = "order" }, "[unchanged:1]", nil, false,
			"map[load:1 read:1 refunds:1]",
		},
		"an order that was erased since it was listed": {
			0, func(n *night) { n.lists = "erased" }, "[]", nil, false, "map[load:1]",
		},
		"a refund that still waits":       {0, refund(nil), "[unchanged:1]", nil, false, refunds},
		"the provider of refunds is down": {0, refund(errDown), "[unavailable:1]", errDown, false, refunds},
		"the key cannot read refunds":     {0, refund(errAccount), "[failed:1]", nil, false, refunds},
		"a paid order that is not paid at the provider": {
			0, refund(&order.TransitionError{From: order.Paid, To: order.Declined}), "[mismatched:1]", nil, false, "",
		},
		"a refund that was settled": {
			0, func(n *night) {
				refund(nil)(n)
				n.refunds = func(id order.ID) error {
					before := peek(n.store, id)
					after := before
					after.Seq, after.DueAt = after.Seq+1, time.Time{}
					n.store.Replace(before, after)
					return nil
				}
			}, "[]", nil, false, refunds,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			n.addPending(tt.pending)
			n.now = n.now.Add(2 * time.Hour)
			tt.breaks(n)
			got, err := n.tryRun(1000)
			if counts(got) != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || got.More != tt.more {
				t.Errorf("got %s, %v, more: %t, want %s, %v, %t", counts(got), err, got.More, tt.want, tt.err, tt.more)
			}
			if calls := fmt.Sprint(n.calls); tt.calls != "" && calls != tt.calls {
				t.Errorf("got calls %s, want %s", calls, tt.calls)
			}
			for _, f := range slices.Concat(got.Failed, got.Unavailable) {
				if f.OrderID == "" || f.Err == nil {
					t.Errorf("got %+v, want the order and its error", f)
				}
			}
		})
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

type slow struct{ *night }

func (s slow) Load(ctx context.Context, id order.ID) (order.Record, error) {
	synctest.Wait()
	s.now = s.now.Add(time.Hour)
	return s.night.Load(ctx, id)
}

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
