package settle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// reconciler returns a Reconciler of four orders at once that rechecks refunds.
func (w *world) reconciler() *settle.Reconciler {
	r := &settle.Reconciler{Follower: w.follower(), Waiting: w, Parallel: 4}
	r.Refunds = func(context.Context, order.ID) (int, error) { w.note("refunds"); return 0, nil }
	return r
}

// run rechecks what is due, for a minute that does not pass.
func (w *world) run() settle.Reconciled {
	w.Helper()
	done, err := w.reconciler().Run(w.Context(), w.now.Add(time.Minute))
	w.must(err)
	return done
}

func (w *world) addPending(count int) {
	w.Helper()
	for i := range count {
		w.deliver(order.ID(fmt.Sprintf("order-%d", i)), ordertest.TakesDays, "")
	}
}

// due makes an order due now, as one of its refunds that waits does.
func (w *world) due(id order.ID) { w.store.Edit(id, func(r *order.Record) { r.DueAt = w.now }) }

func errDown() error {
	return &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("down")}
}

func errAccount() error {
	return &order.PaymentError{Kind: order.KindMisconfigured, Err: errors.New("no such intent")}
}

func TestReconcileSettlesWhatTheProviderSettled(t *testing.T) {
	w := newWorld(t)
	w.deliver("paid", ordertest.Pays, "")
	w.deliver("died", ordertest.Pays, ordertest.Confirm)
	w.deliver("never-confirmed", ordertest.Pays, ordertest.Bind)
	w.deliver("no-intent", ordertest.Pays, ordertest.Begin)
	w.deliver("cleared", ordertest.TakesDays, "")
	w.deliver("pending", ordertest.TakesDays, "")
	w.bank.Clear("pi_4")
	w.wait(3 * time.Hour)
	noIntent := w.record("no-intent")
	got := w.run()
	want := settle.Reconciled{
		Followed: map[settle.Followed]int{settle.HintSettled: 2, settle.HintUnchanged: 2, settle.HintNoIntent: 1},
		NoIntent: []order.Record{noIntent},
		Oldest:   map[order.Status]time.Duration{order.Open: 3 * time.Hour, order.Pending: 3 * time.Hour},
		Overdue:  2*time.Hour + 45*time.Minute, // an open order was due after 15 minutes
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for id, status := range map[order.ID]order.Status{
		"paid": order.Paid, "died": order.Paid, "cleared": order.Paid, "pending": order.Pending, "no-intent": order.Open,
		"never-confirmed": order.Open,
	} {
		if r := w.record(id); r.Status != status {
			t.Errorf("%s is %s, want %s", id, r.Status, status)
		}
	}
	if diff := cmp.Diff(w.counts(), map[string]int{"load": 5, "read": 4, "finish": 2, "postpone": 3}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if again := w.run(); len(again.Followed) > 0 {
		t.Errorf("a second run at once rechecked %v, want none", again.Followed)
	}
}

func TestOrdersAreRecheckedInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPending(8)
		w.wait(2 * time.Hour)
		var reads atomic.Int64
		four := make(chan struct{}) // closed by the fourth read, so that fewer at once are a deadlock
		w.reads = func(order.IntentID) error {
			if reads.Add(1) == 4 {
				close(four)
			}
			<-four
			return nil
		}
		if got := w.run(); got.Followed[settle.HintUnchanged] != 8 {
			t.Errorf("got %+v, want eight rechecks", got)
		}
	})
}

func TestReconcileContinuesWhereARunEnded(t *testing.T) {
	w := newWorld(t)
	const orders = 100
	w.addPending(orders)
	w.wait(2 * time.Hour)
	runs := 0
	for more := true; more && runs < 9; runs++ {
		r, until, last := w.reconciler(), w.now.Add(time.Minute), w.counts()["load"]+30
		r.Now = func() time.Time { // the time is over after 30 rechecks, and up to three that began before
			if w.counts()["load"] >= last {
				return until
			}
			return w.now
		}
		done, err := r.Run(t.Context(), until)
		w.must(err)
		more = done.More
	}
	diff := cmp.Diff(w.counts(), map[string]int{"load": orders, "read": orders, "postpone": orders})
	if diff != "" || runs != 4 {
		t.Errorf("got %d runs, want 4; calls (-got +want):\n%s", runs, diff)
	}
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
	before  func(w *world, r *settle.Reconciler)
	want    string // what counts returns
	outage  string // what the error of the run contains; "": no error
	more    bool
	calls   string // unless it is ""
}

// A store or a provider that answers nobody, or not ten orders in a row, is down. What is
// wrong with single orders is not an outage, whatever their number.
func TestReconcile(t *testing.T) {
	for _, cases := range []map[string]reconcileCase{outageCases(), orderCases(), refundAndStockCases()} {
		for claim, tt := range cases {
			t.Run(claim, func(t *testing.T) {
				w := newWorld(t)
				w.addPending(tt.pending)
				w.wait(2 * time.Hour)
				r := w.reconciler()
				tt.before(w, r)
				got, err := r.Run(t.Context(), w.now.Add(time.Minute))
				if counts(got) != tt.want || got.More != tt.more {
					t.Errorf("got %s, more: %t, want %s, %t", counts(got), got.More, tt.want, tt.more)
				}
				if (err == nil) != (tt.outage == "") || !strings.Contains(fmt.Sprint(err), tt.outage) {
					t.Errorf("got error %v, want %q", err, tt.outage)
				}
				if calls := strings.TrimPrefix(fmt.Sprint(w.counts()), "map"); tt.calls != "" && calls != tt.calls {
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
}

// unread fails each Load.
func unread(err error) func(*world, *settle.Reconciler) {
	return func(w *world, r *settle.Reconciler) {
		r.Parallel = 1
		w.loads = func(order.ID) error { return err }
	}
}

// fails fails each Read, in turn, that is not answered.
func fails(err error, answered func(read int) bool) func(*world, *settle.Reconciler) {
	return func(w *world, r *settle.Reconciler) {
		r.Parallel = 1
		read := 0
		w.reads = func(order.IntentID) error {
			if read++; answered(read) {
				return nil
			}
			return err
		}
	}
}

func never(int) bool { return false }

func outageCases() map[string]reconcileCase {
	const noStore, down = "access denied", "unavailable: down"
	errStore, errUnknown := errors.New(noStore), &order.PaymentError{Kind: order.KindUnknown}
	return map[string]reconcileCase{
		"three of four are unanswered": {
			100, fails(errDown(), func(read int) bool { return read%4 == 0 }), "[unavailable:75 unchanged:25]", "", false, "",
		},
		"the answers cannot be read": {
			100, fails(errUnknown, func(read int) bool { return read == 100 }), "[unavailable:99 unchanged:1]", "", false, "",
		},
		"the provider fails after five answers": {
			50, fails(errDown(), func(read int) bool { return read <= 5 }), "[unavailable:10 unchanged:5]", down, true, "",
		},
		"an answer that arrives after the run gave up": {50, func(w *world, r *settle.Reconciler) {
			end := make(chan struct{})
			r.Parallel, w.dueEnd = 2, func() { close(end) }
			var read atomic.Int64
			w.reads = func(order.IntentID) error {
				if read.Add(1) > 1 {
					return errDown()
				}
				<-end
				return nil
			}
		}, "[unavailable:10 unchanged:1]", down, true, ""},
		"the store returns no row":         {2, unread(errStore), "[unavailable:2]", noStore, false, ""},
		"the store returns no row of many": {50, unread(errStore), "[unavailable:10]", noStore, true, ""},
		"the provider does not answer":     {2, fails(errDown(), never), "[unavailable:2]", down, false, ""},
		"a recheck cannot be postponed": {
			2, func(w *world, _ *settle.Reconciler) { w.saves = func(ordertest.Call) error { return errStore } },
			"[unavailable:2]", noStore, false, "",
		},
		"no answer beside a row that is corrupt": {2, func(w *world, _ *settle.Reconciler) {
			w.reads = func(order.IntentID) error { return errDown() }
			w.loads = func(id order.ID) error {
				if id == "order-0" {
					return order.ErrCorrupt
				}
				return nil
			}
		}, "[failed:1 unavailable:1]", down, false, ""},
	}
}

// settledSince settles each order between Due and Load, and fails each Read.
func settledSince(err error) func(*world, *settle.Reconciler) {
	return func(w *world, _ *settle.Reconciler) {
		w.loads = func(id order.ID) error {
			w.bank.Clear("pi_1")
			paid := order.Outcome{Intent: "pi_1", Status: order.Paid}
			return order.Settle(w.Context(), w.store, w.record(id), paid, w.now)
		}
		w.reads = func(order.IntentID) error { return err }
	}
}

func orderCases() map[string]reconcileCase {
	return map[string]reconcileCase{
		"an order that is settled waits no more": {
			1, func(w *world, _ *settle.Reconciler) { w.bank.Clear("pi_1") }, "[settled:1]", "", false,
			"[finish:1 load:1 read:1]",
		},
		"a run that settled an order is no outage": {2, func(w *world, _ *settle.Reconciler) {
			w.bank.Clear("pi_1")
			w.reads = func(id order.IntentID) error {
				if id == "pi_2" {
					return errDown()
				}
				return nil
			}
		}, "[settled:1 unavailable:1]", "", false, ""},
		"a row is corrupt":                 {2, unread(order.ErrCorrupt), "[failed:2]", "", false, "[load:2]"},
		"the rows are of a newer release":  {50, unread(order.ErrUnknownVersion), "[failed:50]", "", false, ""},
		"each intent is another account's": {50, fails(errAccount(), never), "[failed:50]", "", false, ""},
		"each intent belongs to another sum": {1, func(w *world, _ *settle.Reconciler) {
			w.change = func(i *order.Intent) { i.Total.Amount++ }
		}, "[mismatched:1]", "", false, "[load:1 postpone:1 read:1]"},
		"an order that was settled since it was listed": {
			1, settledSince(nil), "[unchanged:1]", "", false, "[load:1 read:1 refunds:1]",
		},
		"an order that was settled since it was listed, and cannot be read": {
			1, settledSince(errAccount()), "[failed:1]", "", false, "[load:1 read:1]", // it is not due again
		},
		"an order that was erased since it was listed": {1, func(w *world, _ *settle.Reconciler) {
			w.loads = func(id order.ID) error { w.store.Delete(id); return nil }
		}, "[]", "", false, "[load:1]"},
	}
}

func refundAndStockCases() map[string]reconcileCase {
	const refunds, down = "[load:1 postpone:1 read:1 refunds:1]", "unavailable: down"
	refund := func(do func(w *world, id order.ID) error) func(*world, *settle.Reconciler) {
		return func(w *world, r *settle.Reconciler) {
			w.deliver("order", ordertest.Pays, "")
			w.due("order")
			r.Refunds = func(_ context.Context, id order.ID) (int, error) {
				w.note("refunds")
				return 0, do(w, id)
			}
		}
	}
	returns := func(err error) func(*world, order.ID) error { return func(*world, order.ID) error { return err } }
	declined := func(cancel func(order.Record) (order.Record, error)) func(*world, *settle.Reconciler) {
		return func(w *world, r *settle.Reconciler) {
			w.deliver("order", ordertest.Declines, "")
			w.wait(25 * time.Hour)
			r.CancelDeclined = func(_ context.Context, r order.Record) (order.Record, error) { return cancel(r) }
		}
	}
	return map[string]reconcileCase{
		"a refund that still waits":       {0, refund(returns(nil)), "[unchanged:1]", "", false, refunds},
		"the provider of refunds is down": {0, refund(returns(errDown())), "[unavailable:1]", down, false, refunds},
		"the key cannot read refunds":     {0, refund(returns(errAccount())), "[failed:1]", "", false, refunds},
		"a paid order that is not paid at the provider": {
			0, refund(returns(&order.TransitionError{From: order.Paid, To: order.Declined})), "[mismatched:1]", "", false, "",
		},
		"a refund that was settled": {0, refund(func(w *world, id order.ID) error {
			w.store.Edit(id, func(r *order.Record) { r.Seq, r.DueAt = r.Seq+1, time.Time{} })
			return nil
		}), "[]", "", false, refunds},
		"a row that changed is an answer of the store": {0, func(w *world, r *settle.Reconciler) {
			w.saves = func(ordertest.Call) error { return order.ErrStale }
			declined(func(r order.Record) (order.Record, error) { return r, errors.New("no stock table") })(w, r)
		}, "[failed:1]", "", false, ""},
		"a customer pays while the stock is freed": {
			0, declined(func(r order.Record) (order.Record, error) { r.Status = order.Paid; return r, nil }),
			"[settled:1]", "", false, "[load:1 read:1]",
		},
		"the provider fails while the stock is freed": {
			0, declined(func(order.Record) (order.Record, error) { return order.Record{}, errDown() }),
			"[unavailable:1]", down, false, "[load:1 postpone:1 read:1]",
		},
	}
}

func TestOrdersAreRecheckedSoonAfterAnOutage(t *testing.T) {
	w := newWorld(t)
	w.addPending(50)
	w.wait(2 * time.Hour)
	r := w.reconciler()
	fails(errDown(), func(read int) bool { return read <= 5 })(w, r)
	if _, err := r.Run(t.Context(), w.now.Add(time.Minute)); err == nil {
		t.Error("got no error, want that the provider is down")
	}
	w.reads = nil
	w.wait(30 * time.Minute)
	if got := w.run(); got.Followed[settle.HintUnchanged] != 45 {
		t.Errorf("half an hour later: got %+v, want every other order rechecked", got)
	}
}

func TestAFailedRecheckIsPostponed(t *testing.T) {
	for claim, tt := range map[string]struct {
		card  ordertest.Card
		due   time.Duration // after the delivery; 0 if the order's status says it
		first time.Duration
	}{
		"a pending order":                {ordertest.TakesDays, 0, 15 * time.Minute},
		"an order that has just changed": {ordertest.TakesDays, time.Minute, 15 * time.Minute},
		"a declined order is not lost":   {ordertest.Declines, 0, 6 * time.Hour},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			w.deliver("order", tt.card, "")
			w.reads = func(order.IntentID) error { return errAccount() }
			if tt.due != 0 {
				w.store.Edit("order", func(r *order.Record) { r.DueAt = w.now.Add(tt.due) })
			}
			w.now = w.record("order").DueAt
			var waits []time.Duration
			for range 20 {
				if got := w.run(); len(got.Failed) != 1 || got.Failed[0].OrderID != "order" {
					t.Fatalf("got %+v, want the failed recheck", got)
				}
				due := w.record("order").DueAt
				waits = append(waits, due.Sub(w.now))
				w.now = due
			}
			if !slices.IsSorted(waits) || waits[0] != tt.first || waits[19] != 6*time.Hour {
				t.Errorf("got rechecks after %v, want %v first, growing to six hours", waits, tt.first)
			}
			w.reads = nil
			if got := w.run(); got.Followed[settle.HintUnchanged] != 1 {
				t.Errorf("afterwards: got %+v, want the order rechecked", got)
			}
		})
	}
}

func TestAnOrderOfAnotherModeIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.deliver("declined", ordertest.Declines, "")
	w.deliver("pending", ordertest.TakesDays, "")
	w.deliver("open", ordertest.Pays, ordertest.Begin) // of no mode
	w.deliver("refunded", ordertest.Pays, "")
	w.due("refunded")
	w.wait(25 * time.Hour)
	r := w.reconciler()
	r.Mode = order.LiveMode
	got, err := r.Run(t.Context(), w.now.Add(time.Minute))
	w.must(err)
	want, n := map[settle.Followed]int{settle.HintForeign: 3, settle.HintNoIntent: 1}, w.counts()
	diff := cmp.Diff(got.Followed, want)
	if diff != "" || n["read"]+n["refunds"] > 0 || got.Oldest[order.Pending] > 0 {
		t.Errorf("got %+v and calls %v, want three orders skipped (-got +want):\n%s", got, n, diff)
	}
	w.wait(7 * time.Hour)
	r.Mode = order.TestMode
	if got, err = r.Run(t.Context(), w.now.Add(time.Minute)); err != nil || got.Followed[settle.HintUnchanged] != 3 {
		t.Errorf("with the right key: got %+v, %v, want each rechecked", got, err)
	}
}

func TestARunReportsTheLatestRecheck(t *testing.T) {
	w := newWorld(t)
	w.deliver("first", ordertest.TakesDays, "")
	w.wait(30 * time.Minute)
	w.addPending(20)
	w.wait(8 * time.Hour)
	w.reads = func(id order.IntentID) error {
		if id == "pi_1" { // also of a recheck that fails
			return errAccount()
		}
		return nil
	}
	got := w.run()
	if got.Overdue != 7*time.Hour+30*time.Minute {
		t.Errorf("got %v, want 7h30m: the first order was due after an hour", got.Overdue)
	}
	if oldest := got.Oldest[order.Pending]; oldest != 8*time.Hour+30*time.Minute {
		t.Errorf("got the oldest order after %v, want 8h30m", oldest)
	}
}

func TestAnInterruptedRunReportsNoFailedRecheck(t *testing.T) {
	w := newWorld(t)
	w.addPending(20)
	w.wait(2 * time.Hour)
	ctx, interrupt := context.WithCancel(t.Context())
	w.reads = func(order.IntentID) error { interrupt(); return ctx.Err() }
	r := w.reconciler()
	r.Parallel = 1
	got, err := r.Run(ctx, w.now.Add(time.Minute))
	n := w.counts()
	if err != nil || len(got.Failed)+len(got.Unavailable) > 0 || !got.More || n["load"] != 1 || n["postpone"] > 0 {
		t.Errorf("got %+v, %v and calls %v, want one recheck, unreported", got, err, n)
	}
}

func TestPacedCallsWait(t *testing.T) {
	bank, allowed := &ordertest.Bank{Scope: "test"}, 0
	i, err := bank.Prepare(t.Context(), ordertest.Order("ORD-1"), order.PrepareKey("test", "ORD-1"))
	if err != nil {
		t.Fatal(err)
	}
	p := settle.Paced{Payments: bank, Canceler: bank, Allow: func(context.Context) error { allowed++; return nil }}
	_, readErr := p.Read(t.Context(), i.ID)
	canceled, cancelErr := p.CancelIntent(t.Context(), i.ID, order.CancelKey("test", "ORD-1", noon()))
	if readErr != nil || cancelErr != nil || canceled.State != order.IntentCanceled || allowed != 2 {
		t.Errorf("got %v, %v, %+v and %d calls allowed, want it canceled, and 2", readErr, cancelErr, canceled, allowed)
	}
	p.Allow = func(context.Context) error { return context.Canceled }
	_, readErr = p.Read(t.Context(), i.ID)
	_, cancelErr = p.CancelIntent(t.Context(), i.ID, order.CancelKey("test", "ORD-1", noon()))
	if !errors.Is(readErr, context.Canceled) || !errors.Is(cancelErr, context.Canceled) {
		t.Errorf("got %v and %v, want no call", readErr, cancelErr)
	}
}

func TestARecheckIsPostponedByTheTimeThatTheOrderHasWaited(t *testing.T) {
	w := newWorld(t)
	w.deliver("order", ordertest.TakesDays, "")
	var rechecks []string
	for range 8 {
		w.now = w.record("order").DueAt
		rechecks = append(rechecks, w.now.Sub(noon()).String())
		w.run()
	}
	want := []string{"1h0m0s", "2h0m0s", "4h0m0s", "8h0m0s", "16h0m0s", "32h0m0s", "56h0m0s", "80h0m0s"}
	if diff := cmp.Diff(rechecks, want); diff != "" {
		t.Errorf("rechecks after (-got +want):\n%s", diff)
	}
}

func TestADeclinedOrderIsRecheckedOnce(t *testing.T) {
	for paid, want := range map[bool]order.Status{true: order.Paid, false: order.Declined} {
		w := newWorld(t)
		w.deliver("order", ordertest.Declines, "")
		if paid {
			w.bank.CustomerPays("pi_1")
		}
		for _, tt := range []struct {
			wait     time.Duration
			rechecks int
		}{{23 * time.Hour, 0}, {2 * time.Hour, 1}, {1000 * time.Hour, 0}} {
			w.wait(tt.wait)
			if got := w.run(); len(got.Followed) != tt.rechecks || len(got.Oldest) > 0 {
				t.Errorf("paid %t, %v later: got %+v, want %d rechecks", paid, tt.wait, got, tt.rechecks)
			}
		}
		if r := w.record("order"); r.Status != want {
			t.Errorf("paid %t: got %s, want %s", paid, r.Status, want)
		}
	}
}

func TestNoRecheckBeginsAfterTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.addPending(2)
		w.wait(3 * time.Hour)
		w.loads = func(order.ID) error {
			synctest.Wait() // for the run, which waits for this recheck
			w.wait(time.Hour)
			return nil
		}
		r := w.reconciler()
		r.Parallel = 1
		got, err := r.Run(t.Context(), w.now.Add(time.Minute))
		if n := w.counts()["load"]; err != nil || !got.More || n != 1 {
			t.Errorf("got %d rechecks, more: %t, error %v, want 1 recheck and more", n, got.More, err)
		}
	})
}

func TestReconcileFreesStock(t *testing.T) {
	w := newWorld(t)
	w.store = ordertest.NewMemoryWithStock()
	for sku := range ordertest.Order("ORD-1").Quantities() {
		_, err := w.store.AddStock(t.Context(), sku, 3)
		w.must(err)
	}
	w.deliver("declined", ordertest.Declines, "")
	w.deliver("asked", ordertest.NeedsAuthentication, "")
	w.deliver("pending", ordertest.TakesDays, "")
	cancellation := order.Cancellation{Store: w.store, Payments: w.bank, Canceler: w.bank, Scope: "test"}
	r := w.reconciler()
	r.CancelDeclined = func(ctx context.Context, r order.Record) (order.Record, error) {
		return cancellation.CancelDeclined(ctx, r, 40*time.Hour, w.now)
	}
	for day, want := range []string{"[unchanged:3]", "[freed:2 unchanged:1]", "[unchanged:1]"} {
		w.wait(25 * time.Hour)
		if got, err := r.Run(t.Context(), w.now.Add(time.Minute)); err != nil || counts(got) != want {
			t.Errorf("day %d: got %s, %v, want %s", day, counts(got), err, want)
		}
	}
	if s := w.store.PeekStock("MUG"); s.Available != 2 || s.Reserved != 1 {
		t.Errorf("got %+v, want the stock of the pending order reserved", s)
	}
}

// A refused order that holds stock waits for a person, and a declined one for a run that
// frees its stock. No other recheck ends that.
func TestAnOrderThatHoldsStockStaysInTheIndex(t *testing.T) {
	for status, died := range map[order.Status]ordertest.Call{order.Refused: ordertest.Bind, order.Declined: ""} {
		w := newWorld(t)
		w.deliver("order", ordertest.Declines, died)
		w.store.Edit("order", func(r *order.Record) {
			r.Status, r.Stock, r.Owner, r.Until = status, order.Quantities{"MUG": 1}, "", time.Time{}
		})
		w.wait(25 * time.Hour)
		got := w.run()
		if counts(got) != "[unchanged:1]" || len(got.Oldest) > 0 || len(got.NoIntent) > 0 {
			t.Errorf("%s: got %+v, want one recheck, and no order that waits for its charge", status, got)
		}
		if due := w.record("order").DueAt.Sub(w.now); due != 24*time.Hour {
			t.Errorf("%s: got due after %v, want another recheck a day later", status, due)
		}
	}
}
