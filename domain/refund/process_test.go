package refund_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// step is a change of the world, and then a delivery or a refresh.
type step struct {
	after time.Duration
	do    func(*world)
	want  string // see outcome; "refresh" is a refresh alone
}

// outcome describes a delivery and what it leaves: verdict, reason, whether it does not
// count toward parking and whether the message waits for the end of a lease; the order,
// the refund, and how many times the bank made it.
func (w *world) outcome(r order.Result) string {
	w.Helper()
	word := func(is bool, s string) string {
		if is {
			return " " + s
		}
		return ""
	}
	a, i := w.account(), w.item()
	open := i.Status == refund.Open
	return strings.TrimSpace(fmt.Sprintf("%s %s", r.Verdict, r.Reason)) +
		word(r.Transient, "transient") + word(!r.NotBefore.IsZero(), "held") +
		fmt.Sprintf(": %s, %s", a.Status, i.Status) + word(open && i.Owner != "", "claimed") +
		word(open && !i.SentAt.IsZero(), "sent") + fmt.Sprintf(", made %d", w.made("R1")) +
		word(a.Outside != 0, fmt.Sprint("outside ", a.Outside))
}

// take takes the steps of a refund of an amount. At each the invariants hold.
func (w *world) take(amount int64, steps []step) {
	w.Helper()
	for n, s := range steps {
		w.wait(s.after)
		if s.do != nil {
			s.do(w)
		}
		var got string
		if strings.HasPrefix(s.want, "refresh") {
			w.refresh()
			got = "refresh" + w.outcome(order.Result{})
		} else {
			next := w.item().Attempt + 1
			r := w.deliver("R1", amount)
			got = w.outcome(r)
			status := w.account().Status
			if r.Attempt != 0 && r.Attempt != next || r.Takeover != (r.Attempt > 1) || r.Verdict == order.Done && r.Status != status {
				w.Errorf("step %d: got %+v, want attempt %d and the order %s", n+1, r, next, status)
			}
		}
		if got != s.want {
			w.Errorf("step %d: got %q, want %q", n+1, got, s.want)
		}
		w.check()
	}
}

// fails makes the next request for a refund fail.
func fails(f ordertest.Fault) func(*world) {
	return func(w *world) { w.bank.Fail(refundtest.Create, f) }
}

// on makes something happen in place of a call of the next delivery.
func on(call refundtest.Call, f func(w *world, do func() error) error) func(*world) {
	return func(w *world) {
		w.fault = func(c refundtest.Call, do func() error) error {
			if c != call {
				return do()
			}
			return f(w, do)
		}
	}
}

// answers makes the provider answer the next delivery's request with an error.
func answers(k order.ErrorKind) func(*world) {
	return on(refundtest.Create, func(*world, func() error) error {
		return &order.PaymentError{Kind: k, Code: "pretend", Err: errors.New("pretend")}
	})
}

// all does several things.
func all(do ...func(*world)) func(*world) {
	return func(w *world) {
		for _, f := range do {
			f(w)
		}
	}
}

var errDown = errors.New("down")

func dispute(w *world) { w.bank.Dispute("pi_1") }

func complete(w *world) { w.bank.Complete() }

func inDashboard(amount int64) func(*world) {
	return func(w *world) { w.bank.InDashboard("pi_1", usd(amount)) }
}

func forgetful(w *world) { w.bank.KeyLife = 0 }

func lag(d time.Duration) func(*world) { return func(w *world) { w.bank.Lag = d } }

func skew(d time.Duration) func(*world) { return func(w *world) { w.skew = d } }

// hourly returns a step that the worker repeats each hour, 21 times.
func hourly(do func(*world), want string) (steps []step) {
	for range 21 {
		steps = append(steps, step{time.Hour, do, want})
	}
	return steps
}

const (
	late = 16 * time.Minute // after the longest lease

	settled   = "done settled: partially_refunded, succeeded, made 1"
	whole     = "done settled: refunded, succeeded, made 1"
	refused   = "done refund_refused: paid, refused, made 0"
	unmade    = "redeliver provider_unknown transient held: paid, open claimed sent, made 0"
	unheard   = "redeliver provider_unknown transient held: paid, open claimed sent, made 1"
	unknown   = "park refund_unknown: paid, unknown, made 0"
	unknown1  = "park refund_unknown: paid, unknown, made 1"
	busy      = "redeliver in_progress transient held: paid, open claimed sent, made 0"
	busy1     = "redeliver in_progress transient held: paid, open claimed sent, made 1"
	wrongKey  = "redeliver misconfigured transient: paid, open, made 0"
	wrongLate = "redeliver misconfigured transient: paid, open sent, made 0"
	turned    = "redeliver provider_unavailable transient: paid, open sent, made 0"
	throttled = "redeliver store_unavailable transient: paid, open, made 0"
	explained = "redeliver refund_unexplained: paid, open sent, made 1" // by nothing
)

func TestProcess(t *testing.T) {
	for claim, tt := range map[string]struct {
		amount int64
		steps  []step
	}{
		"a rate limit": {half, []step{{0, fails(ordertest.ReturnsUnavailable), turned}, {0, nil, settled}}},
		"a wrong key":  {half, []step{{0, fails(ordertest.ReturnsMisconfigured), wrongKey}, {0, nil, settled}}},
		"a request that was lost": {half, []step{
			{0, fails(ordertest.LosesRequest), unmade}, {0, nil, busy}, {late, nil, settled},
		}},
		"a response that was lost": {half, []step{
			{0, fails(ordertest.LosesResponse), unheard}, {0, nil, busy1}, {late, nil, settled},
		}},
		"a stored 500 after the effect": {half, []step{
			{0, fails(ordertest.StoresFailureAfterEffect), unheard}, {0, nil, busy1}, {late, nil, settled},
		}},
		// A stored 500 may be completed days later, so a small refund is parked and never
		// repeated.
		"a stored 500 of half of the charge": {half, []step{
			{0, fails(ordertest.StoresFailure), unmade},
			{0, nil, busy},
			{late, nil, "redeliver provider_replayed_failure transient: paid, open sent, made 0"},
			{20*time.Hour - late, nil, unknown},
			{6 * day, complete, "refresh: partially_refunded, succeeded, made 1"},
		}},
		"a stored 500 of more than half": {half + 1, []step{
			{0, fails(ordertest.StoresFailure), unmade},
			{20 * time.Hour, nil, settled},
			{6 * day, complete, "refresh: partially_refunded, succeeded, made 1"},
		}},
		// A worker whose clock is 30 hours fast sends a request. A day later its key may be
		// forgotten, whatever that clock said.
		"the age of a request is measured by the provider's clock": {half, []step{
			{0, all(fails(ordertest.StoresFailure), skew(30*time.Hour)), unmade},
			{25 * time.Hour, skew(0), unknown},
			{0, complete, unknown1},
		}},
		// The number of the key is recorded, so that the third attempt does not begin with
		// the first key again, which holds a failure for a day.
		"a big refund gets a new key for each stored failure": {total, []step{
			{0, fails(ordertest.StoresFailure), unmade},
			{late, on(refundtest.Create, func(w *world, do func() error) error { // replays the failure
				err := do()
				if w.item().KeySeq == 1 {
					fails(ordertest.StoresFailure)(w)
				}
				return err
			}), unmade},
			{late, nil, whole},
		}},
		"the provider completes a request just before it refuses the next": {total, []step{
			{0, fails(ordertest.StoresFailure), unmade},
			{late, on(refundtest.Create, func(w *world, do func() error) error {
				if w.item().KeySeq == 2 {
					complete(w)
				}
				return do()
			}), whole},
		}},

		"the charge is disputed":                  {half, []step{{0, dispute, refused}}},
		"others gave too much back":               {total, []step{{0, inDashboard(half), refused}}},
		"others gave half back, and half is left": {half, []step{{0, inDashboard(half), settled}}},
		"it was made, and the list lags": {total, []step{
			{0, all(lag(time.Hour), forgetful, fails(ordertest.LosesResponse)), unheard},
			{late, nil, explained},
			{2 * time.Hour, nil, whole},
		}},
		"it was made after another one failed, and the list shows neither": {total, []step{
			{0, func(w *world) {
				inDashboard(half)(w)
				w.wait(day)
				w.bank.Return()
				w.bank.Lag = 14 * time.Hour
				fails(ordertest.StoresFailureAfterEffect)(w)
			}, unheard},
			{late, nil, explained},
			{2 * time.Hour, nil, explained},
		}},
		"it was made under a key that holds a failure, the list lags, and the charge is disputed": {total, []step{
			{0, all(lag(time.Hour), fails(ordertest.StoresFailureAfterEffect)), unheard},
			{late, dispute, explained},
			{2 * time.Hour, nil, whole},
		}},
		"it was made under a key that is forgotten, the list lags, and the charge is disputed": {total, []step{
			{0, all(lag(30*time.Hour), fails(ordertest.LosesResponse)), unheard},
			{25 * time.Hour, dispute, unknown1},
			{2 * time.Hour, nil, unknown1},
		}},
		// A dispute explains a refusal while the key of an earlier request certainly lives.
		"disputed before twenty hours": {total, []step{
			{0, fails(ordertest.LosesRequest), unmade},
			{20*time.Hour - time.Second, all(dispute, answers(order.KindRefused)), refused},
		}},
		"disputed after twenty hours": {total, []step{
			{0, fails(ordertest.LosesRequest), unmade},
			{20 * time.Hour, all(dispute, answers(order.KindRefused)), unknown},
		}},

		// A request that was refused, or sent with a wrong key, made nothing and never will,
		// so the time for repeating one does not run. One that was lost before still counts.
		"a wrong key for a day": {half, append(hourly(answers(order.KindMisconfigured), wrongKey), step{time.Hour, nil, settled})},
		"refused for a day": {half, append(
			hourly(answers(order.KindRefused), "redeliver refund_unexplained: paid, open, made 0"), step{time.Hour, nil, settled},
		)},
		"a request was lost before a wrong key": {half, []step{
			{0, fails(ordertest.LosesRequest), unmade},
			{time.Hour, answers(order.KindMisconfigured), wrongLate},
			{19 * time.Hour, answers(order.KindMisconfigured), unknown},
			{0, complete, unknown1},
		}},
		"a request was turned away before a wrong key": {half, []step{
			{0, fails(ordertest.ReturnsUnavailable), turned},
			{time.Hour, answers(order.KindMisconfigured), wrongLate},
			{19 * time.Hour, nil, unknown},
		}},
		"a request was lost before a refusal": {half, []step{
			{0, fails(ordertest.LosesRequest), unmade},
			{time.Hour, answers(order.KindRefused), "redeliver refund_unexplained: paid, open sent, made 0"},
			{19 * time.Hour, nil, unknown},
			{0, complete, unknown1},
		}},

		"too little time is left": {half, []step{
			{0, func(w *world) { w.left = 10*time.Second - 1 }, "redeliver out_of_time transient: paid, open, made 0"},
			{0, func(w *world) { w.left = 10 * time.Second }, settled},
		}},
		// An attempt whose Mark fails has sent nothing.
		"a mark that fails ends the claim": {half, []step{
			{0, on(refundtest.Mark, func(*world, func() error) error { return errDown }), throttled},
			{0, on(refundtest.Mark, func(_ *world, do func() error) error { return errors.Join(do(), errDown) }), throttled},
			{0, nil, settled},
		}},
		"a key that another refund used": {half, []step{{0, answers(order.KindKeyReused), "park key_reused: paid, open sent, made 0"}}},
		// Only the attempt that holds the claim may move the message to the dead letters.
		"a claim that was lost": {half, []step{{0, func(w *world) {
			w.fault = func(c refundtest.Call, do func() error) error {
				switch c { //nolint:exhaustive // the other calls are made
				case refundtest.Create:
					return &order.PaymentError{Kind: order.KindKeyReused, Err: errDown}
				case refundtest.Release:
					w.wait(late)
					on(refundtest.Read, func(*world, func() error) error { return errDown })(w)
					w.deliver("R1", half)
				}
				return do()
			}
		}, "redeliver claim_lost transient: paid, open sent, made 0"}}},
	} {
		t.Run(claim, func(t *testing.T) { newWorld(t).take(tt.amount, tt.steps) })
	}
}

func TestARefundIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	w.take(total, []step{{0, nil, whole}})
	fresh := []refundtest.Call{refundtest.Load, refundtest.Begin, refundtest.Read, refundtest.Mark, refundtest.Create, refundtest.Finish}
	if diff := cmp.Diff(w.calls, fresh); diff != "" {
		t.Errorf("calls of a new refund (-got +want):\n%s", diff)
	}
	w.take(total, []step{{20 * day, nil, "done duplicate: refunded, succeeded, made 1"}})
	if diff := cmp.Diff(w.calls, []refundtest.Call{refundtest.Load}); diff != "" {
		t.Errorf("calls of a duplicate (-got +want):\n%s", diff)
	}
	w.take(half, []step{{0, nil, "park conflict: refunded, succeeded, made 1"}})
}

// crash is the panic value of a worker that dies.
type crash struct{}

// diesAt makes the next worker die just before or after its nth call, from 0.
func diesAt(n int, before bool) func(*world) {
	return func(w *world) {
		w.fault = func(_ refundtest.Call, do func() error) error {
			if n--; n == -1 && before {
				panic(crash{})
			}
			err := do()
			if n == -1 {
				panic(crash{})
			}
			return err
		}
	}
}

// dies delivers the refund to a worker that dies.
func (w *world) dies(amount int64) {
	w.Helper()
	defer func() {
		if p := recover(); p != (crash{}) {
			w.Fatalf("got %v, want a crash", p)
		}
	}()
	w.deliver("R1", amount)
}

// Every worker dies at every call, and the message comes back after up to twenty days,
// whether the bank keeps keys for a day, or keeps none.
func TestARefundSurvivesEveryCrash(t *testing.T) {
	for _, keyLife := range []time.Duration{day, 0} {
		for _, later := range []time.Duration{0, time.Hour, 25 * time.Hour, 5 * day, 20 * day} {
			for _, amount := range []int64{total, half + 1, half} {
				for n := range 12 {
					w := newWorld(t)
					w.bank.KeyLife = keyLife
					diesAt(n/2, n%2 == 0)(w)
					w.dies(amount)
					w.wait(later)
					w.deliver("R1", amount)
					w.wait(time.Hour) // past every lease
					got := w.deliver("R1", amount)
					w.check()
					unknown := got.Reason == refund.ReasonUnknown
					if got.Verdict == order.Redeliver || unknown == (w.made("R1") == 1) || t.Failed() {
						t.Fatalf("keys live %v, back after %v, %d, death %d: got %+v, made %d times, want it made or unknown",
							keyLife, later, amount, n, got, w.made("R1"))
					}
				}
			}
		}
	}
}

// The time of a request is recorded before the request.
func TestAWorkerThatDiesAfterItsRequestLeavesItsTime(t *testing.T) {
	w := newWorld(t)
	all(fails(ordertest.StoresFailure), on(refundtest.Create, func(_ *world, do func() error) error {
		_ = do()
		panic(crash{})
	}))(w)
	w.dies(half)
	w.take(half, []step{{25 * time.Hour, nil, unknown}, {0, complete, unknown1}})
}

// A response that is about another refund is never recorded: the next delivery looks at
// the provider again.
func TestAWrongResponseIsNotRecorded(t *testing.T) {
	for field, change := range map[string]func(*refund.Refund){
		"scope":    func(r *refund.Refund) { r.Scope = "other" },
		"orderId":  func(r *refund.Refund) { r.OrderID = "OTHER" },
		"refundId": func(r *refund.Refund) { r.For = "R2" },
		"intent":   func(r *refund.Refund) { r.Intent = "pi_2" },
		"amount":   func(r *refund.Refund) { r.Total.Amount-- },
		"currency": func(r *refund.Refund) { r.Total.Currency = "eur" },
	} {
		t.Run(field, func(t *testing.T) {
			w := newWorld(t)
			w.answers = change
			w.take(half, []step{
				{0, nil, "redeliver mismatch held: paid, open claimed sent, made 1"},
				{time.Hour, func(w *world) { w.answers = nil }, settled},
			})
		})
	}
}

// Stripe takes no fraction of a currency that has none, at any time.
func TestAnAmountThatTheCurrencyDoesNotHaveIsRefused(t *testing.T) {
	for currency, want := range map[string]string{
		"isk": refused, "ugx": refused, "kwd": refused, "usd": settled, "jpy": settled,
	} {
		w := newWorldOf(t, func(d *order.Draft) {
			d.Currency, d.Lines[0].UnitAmount, d.Lines[1].UnitAmount = currency, 2000, 2000
		})
		w.take(1505, []step{{0, nil, want}})
	}
}

// An order that nothing but a person can bring to payment is not waited for.
func TestARefundWaitsOnlyForAnOrderThatMayBePaid(t *testing.T) {
	for status, want := range map[order.Status]string{
		order.Open: "redeliver not_charged transient", order.Pending: "redeliver not_charged transient",
		order.ActionRequired: "redeliver not_charged transient", order.Declined: "park not_charged",
		order.Canceled: "park not_charged", order.Refused: "park not_charged", order.OutOfStock: "park not_charged",
	} {
		w := newWorld(t)
		w.orders.Edit(orderID, func(r *order.Record) { r.Status = status })
		w.take(1, []step{{0, nil, fmt.Sprintf("%s: %s, , made 0", want, status)}})
	}
	newWorld(t).take(total+1, []step{{0, nil, "park refund_exceeds: paid, , made 0"}})
}
