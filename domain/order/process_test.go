package order_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// confirmTime is how long a Confirm of the tests may take.
const confirmTime = 10 * time.Second

// world is one order's store, provider and clock. Its time moves only when a test moves
// it.
type world struct {
	*testing.T

	order    order.Order
	store    *ordertest.Memory
	bank     *ordertest.Bank
	payments order.Payments // the bank, or what stands before it
	sent     time.Time      // when the order's message was first sent
	now      time.Time
	lease    time.Duration
	attempts int
	lost     bool             // the store lost the record, which therefore may not name a charged intent
	calls    []ordertest.Call // of the last delivery
}

func newWorld(t *testing.T, c ordertest.Card) *world {
	t.Helper()
	o, err := order.New(with(func(d *order.Draft) { d.Payment.Method = ordertest.PaymentMethod(c) }))
	if err != nil {
		t.Fatal(err)
	}
	bank := &ordertest.Bank{Scope: "test"}
	return &world{
		T: t, order: o, store: new(ordertest.Memory), bank: bank, payments: bank, sent: noon(), now: noon(),
		lease: time.Minute,
	}
}

func asIs(_ ordertest.Call, do func() error) error { return do() }

// deliver processes the order once, under a new lease, with something around each call to
// a port.
func (w *world) deliver(around ordertest.Interceptor) order.Result {
	w.calls = nil
	w.attempts++
	wire := ordertest.Intercepted{
		Claims:   w.store,
		Payments: w.payments,
		Intercept: func(c ordertest.Call, do func() error) error {
			w.calls = append(w.calls, c)
			return around(c, do)
		},
	}
	p := order.Processor{
		Claims: wire, Payments: wire, Scope: "test", Now: func() time.Time { return w.now }, ConfirmTime: confirmTime,
	}
	owner := "worker " + strconv.Itoa(w.attempts)
	return p.Process(
		w.Context(),
		w.order,
		w.sent,
		order.Lease{Owner: owner, From: w.now, Until: w.now.Add(w.lease)},
	)
}

// redeliver is deliver once every earlier lease has ended.
func (w *world) redeliver(around ordertest.Interceptor) order.Result {
	w.now = w.now.Add(time.Hour)
	return w.deliver(around)
}

// crash is deliver to a worker that dies; it reports whether it lived to die.
func (w *world) crash(around ordertest.Interceptor) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died = r.(ordertest.Crash); !died {
				panic(r)
			}
		}
	}()
	w.redeliver(around)
	return false
}

func (w *world) record() order.Record {
	w.Helper()
	r, err := w.store.Load(w.Context(), w.order.ID())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// claim begins the order as an earlier attempt did.
func (w *world) claim() order.Claim {
	w.Helper()
	c, err := w.store.Begin(
		w.Context(),
		w.order,
		order.Lease{Owner: "earlier", From: w.now, Until: w.now.Add(w.lease)},
	)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// claimAndRelease leaves a record behind that one attempt gave up.
func (w *world) claimAndRelease() {
	w.Helper()
	if err := w.store.Release(w.Context(), w.claim(), order.ReasonUnknown, w.now); err != nil {
		w.Fatal(err)
	}
}

// bind has an earlier attempt bind the intent and give up.
func (w *world) bind(id order.IntentID) {
	w.Helper()
	c := w.claim()
	err := w.store.Bind(w.Context(), c, order.Intent{ID: id}, w.now)
	if err = errors.Join(err, w.store.Release(w.Context(), c, order.ReasonUnknown, w.now)); err != nil {
		w.Fatal(err)
	}
}

// prepare has somebody use a key at the bank before.
func (w *world) prepare(o order.Order, k order.Key) order.IntentID {
	w.Helper()
	i, err := w.bank.Prepare(w.Context(), o, k)
	if err != nil {
		w.Fatal(err)
	}
	return i.ID
}

// burn has the bank keep a failure under a key.
func (w *world) burn(k order.Key) {
	w.bank.Fail(ordertest.Prepare, ordertest.StoresFailure)
	if _, err := w.bank.Prepare(w.Context(), w.order, k); err == nil {
		w.Fatal("the key is not burnt")
	}
}

// twice is the order with other content.
func (w *world) twice() order.Order {
	w.Helper()
	o, err := order.New(with(func(d *order.Draft) { d.Lines[0].Quantity = 7 }))
	if err != nil {
		w.Fatal(err)
	}
	return o
}

func (w *world) firstKey() order.Key { return order.PrepareKey("test", w.order.ID()) }
func (w *world) againKey(attempt int) order.Key {
	return order.PrepareAgainKey("test", w.order.ID(), attempt)
}

// isTrue checks what holds of every world at any time: at most one charge, of the order's
// total; no money without a bound intent; a paid record if and only if money moved, once
// it is settled; an event for each transition.
func (w *world) isTrue() {
	w.Helper()
	charges := w.bank.Charges(w.order.ID())
	if len(charges) > 1 {
		w.Fatalf("charged %d times: %v", len(charges), charges)
	}
	r, err := w.store.Load(w.Context(), w.order.ID())
	if err != nil {
		return
	}
	if len(charges) == 1 && charges[0] != r.Total {
		w.Errorf("charged %v, want %v", charges[0], r.Total)
	}
	paid := r.Status == order.Paid
	if r.Status != order.Open && paid != (len(charges) == 1) {
		w.Errorf("the record says %s, but the bank charged %v", r.Status, charges)
	}
	if r.Intent == "" && len(charges) > 0 && !w.lost {
		w.Error("money moved without a bound intent")
	}
	if len(r.Events) != r.Seq || (r.Seq == 0) != (r.Status == order.Open) {
		w.Errorf("%d events for seq %d of an order that is %s", len(r.Events), r.Seq, r.Status)
	}
}

// settledAs checks that the order has come to rest.
func (w *world) settledAs(got order.Result, want order.Status) {
	w.Helper()
	w.isTrue()
	if got.Verdict != order.Done || got.Status != want || w.record().Status != want || got.Err != nil {
		w.Errorf("got %+v and a record that is %s, want it done as %s", got, w.record().Status, want)
	}
}

// only does something around one kind of call.
func only(which ordertest.Call, around func(do func() error) error) ordertest.Interceptor {
	return func(c ordertest.Call, do func() error) error {
		if c == which {
			return around(do)
		}
		return do()
	}
}

// fails lets one kind of call fail with err before it happens.
func fails(which ordertest.Call, err error) ordertest.Interceptor {
	return only(which, func(func() error) error { return err })
}

// confirmsNothing is a provider whose Confirm returns the intent as it was.
type confirmsNothing struct{ order.Payments }

func (p confirmsNothing) Confirm(ctx context.Context, id order.IntentID, _ order.Key) (order.Intent, error) {
	return p.Read(ctx, id)
}

type processCase struct {
	name   string
	card   ordertest.Card // "" pays
	before func(w *world) // what happened before this delivery
	around func(w *world) ordertest.Interceptor
	want   order.Result // without Err, and RequestID only where it is told
	calls  string
	after  func(w *world) // what else must be true
}

func done(s order.Status, attempt int) order.Result {
	return order.Result{
		Verdict: order.Done, Reason: order.ReasonSettled, Status: s, Attempt: attempt, Intent: "pi_1", Takeover: attempt > 1,
	}
}

// claimed is the result of an attempt that held the order and did not settle it.
func claimed(attempt int, r order.Result) order.Result {
	r.Attempt, r.Status = attempt, order.Open
	return r
}

func always(a ordertest.Interceptor) func(*world) ordertest.Interceptor {
	return func(*world) ordertest.Interceptor { return a }
}

func TestProcess(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(settlingCases(), claimCases(), storeCases(), paymentCases(), keyCases(), lostCases(), wrongAnswerCases()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.card)
			if c.before != nil {
				c.before(w)
			}
			around := ordertest.Interceptor(asIs)
			if c.around != nil {
				around = c.around(w)
			}
			got := w.deliver(around)
			if (got.Err == nil) != (got.Verdict == order.Done) {
				t.Errorf("got verdict %s with error %v", got.Verdict, got.Err)
			}
			w.noted(got)
			got.Err = nil
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if calls := joined(w.calls); calls != c.calls {
				t.Errorf("got calls %q, want %q", calls, c.calls)
			}
			w.isTrue()
			if c.after != nil {
				c.after(w)
			}
		})
	}
}

func joined(calls []ordertest.Call) string {
	words := make([]string, len(calls))
	for i, c := range calls {
		words[i] = string(c)
	}
	return strings.Join(words, " ")
}

// noted checks that a claim that gave up said why, and let go.
func (w *world) noted(got order.Result) {
	w.Helper()
	if !slices.Contains(w.calls, ordertest.Release) || got.Reason == order.ReasonClaimLost {
		return
	}
	if r := w.record(); r.Status == order.Open && (r.LastError != string(got.Reason) || r.Owner != "") {
		w.Errorf("the record says %q and is held by %q, want %q and nobody", r.LastError, r.Owner, got.Reason)
	}
}

func TestEveryReasonIsReachedByACase(t *testing.T) {
	t.Parallel()
	seen := map[order.Reason]bool{order.ReasonInvalid: true} // the edge's: an invalid message is no order
	for _, c := range slices.Concat(settlingCases(), claimCases(), storeCases(), paymentCases(), keyCases(), lostCases(), wrongAnswerCases()) {
		seen[c.want.Reason] = true
	}
	for _, r := range order.Reasons() {
		if !seen[r] {
			t.Errorf("no case ends with %s", r)
		}
		delete(seen, r)
	}
	if len(seen) > 0 {
		t.Errorf("Reasons does not list %v", seen)
	}
}

func settlingCases() []processCase {
	const fresh = "begin prepare bind confirm finish"
	return []processCase{
		{name: "a fresh order is charged", want: done(order.Paid, 1), calls: fresh},
		{
			name:  "a declined order is settled",
			card:  ordertest.Declines,
			want:  done(order.Declined, 1),
			calls: fresh,
		},
		{
			name:  "a bank that takes days leaves it pending",
			card:  ordertest.TakesDays,
			want:  done(order.Pending, 1),
			calls: fresh,
		},
		{
			name: "an intent that needs authentication is not declined", card: ordertest.NeedsAuthentication,
			want: done(order.ActionRequired, 1), calls: fresh,
		},
		{
			name:   "a charge whose worker died is found, not made again",
			before: func(w *world) { w.dieAfter(ordertest.Confirm) },
			want:   done(order.Paid, 2), calls: "begin read finish",
		},
		{
			name: "a wanted customer is not told declined by the next attempt", card: ordertest.NeedsAuthentication,
			before: func(w *world) { w.dieAfter(ordertest.Confirm) },
			want:   done(order.ActionRequired, 2), calls: "begin read finish",
		},
		{
			name:   "a bound intent that waits is confirmed",
			before: func(w *world) { w.dieAfter(ordertest.Bind) },
			want:   done(order.Paid, 2), calls: "begin read confirm finish",
		},
		{
			name: "an intent that was canceled meanwhile is not charged",
			before: func(w *world) {
				w.dieAfter(ordertest.Bind)
				w.bank.Cancel("pi_1")
			},
			want: done(order.Canceled, 2), calls: "begin read finish",
		},
		{
			name:   "exactly enough time is enough",
			before: func(w *world) { w.lease = confirmTime },
			want:   done(order.Paid, 1), calls: fresh,
		},
	}
}

// dieAfter has a worker die just after such a call, and lets its lease end.
func (w *world) dieAfter(last ordertest.Call) {
	w.Helper()
	died := w.crash(only(last, func(do func() error) error {
		if err := do(); err != nil {
			w.Errorf("%s before the crash: %v", last, err)
		}
		panic(ordertest.Crash{Call: last})
	}))
	if !died {
		w.Fatalf("no worker died at %s", last)
	}
	w.now = w.now.Add(time.Hour)
}

func claimCases() []processCase {
	duplicate := order.Result{
		Verdict: order.Done,
		Reason:  order.ReasonDuplicate,
		Status:  order.Paid,
		Intent:  "pi_1",
	}
	return []processCase{
		{
			name:   "a duplicate costs one call",
			before: func(w *world) { w.deliver(asIs) },
			want:   duplicate, calls: "begin",
		},
		{
			name:   "a duplicate a year later is still one",
			before: func(w *world) { w.deliver(asIs); w.bank.ForgetKeys(); w.now = w.now.AddDate(1, 0, 0) },
			want:   duplicate, calls: "begin",
		},
		{
			name: "the same id with other content is parked",
			before: func(w *world) {
				mine := w.order
				w.order = w.twice()
				w.deliver(asIs)
				w.order = mine
			},
			want: order.Result{Verdict: order.Park, Reason: order.ReasonConflict}, calls: "begin",
			after: func(w *world) {
				if r := w.record(); r.Fingerprint != w.twice().Fingerprint() || r.Status != order.Paid ||
					r.LastError != "" {
					w.Errorf("got %+v, want the first order untouched", r)
				}
			},
		},
		{
			name:   "an order that somebody holds is delivered again when the lease ends",
			before: func(w *world) { w.claim() },
			want: order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonInProgress, Transient: true, NotBefore: noon().Add(time.Minute),
			},
			calls: "begin",
		},
		{
			name: "a newer release's record is left to it",
			before: func(w *world) {
				w.claimAndRelease()
				if err := w.store.SetFingerprint(w.Context(), w.order.ID(), "v999:0"); err != nil {
					w.Fatal(err)
				}
			},
			want: order.Result{
				Verdict:   order.Redeliver,
				Reason:    order.ReasonUnknownVersion,
				Transient: true,
			}, calls: "begin",
		},
		{
			name: "a record that no store wrote is left to a person", around: always(fails(ordertest.Begin, order.ErrCorrupt)),
			want: order.Result{Verdict: order.Redeliver, Reason: order.ReasonCorrupt, Transient: true}, calls: "begin",
		},
		{
			name:   "a worker that lost the order at bind stops",
			around: func(w *world) ordertest.Interceptor { return w.takenOverAt(ordertest.Bind) },
			want:   claimed(1, order.Result{Verdict: order.Redeliver, Reason: order.ReasonClaimLost, Transient: true}),
			calls:  "begin prepare bind",
		},
		{
			name:   "a worker that lost the order at finish says nothing",
			around: func(w *world) ordertest.Interceptor { return w.takenOverAt(ordertest.Finish) },
			want: claimed(
				1,
				order.Result{Verdict: order.Redeliver, Reason: order.ReasonClaimLost, Transient: true, Intent: "pi_1"},
			),
			calls: "begin prepare bind confirm finish",
		},
	}
}

// takenOverAt has another worker begin the order just before such a call.
func (w *world) takenOverAt(call ordertest.Call) ordertest.Interceptor {
	return only(call, func(do func() error) error {
		w.now = w.now.Add(time.Hour)
		w.claim()
		return do()
	})
}

func storeCases() []processCase {
	unclaimed := order.Result{Verdict: order.Redeliver, Reason: order.ReasonStore, Transient: true}
	prepared := claimed(1, unclaimed)
	confirmed := prepared
	confirmed.Intent = "pi_1"
	return []processCase{
		{
			name: "a store that is down at begin is nobody's fault", around: always(ordertest.LoseRequestOf(ordertest.Begin)),
			want: unclaimed, calls: "begin",
		},
		{
			name: "a begin whose answer is lost does nothing more", around: always(ordertest.LoseResponseOf(ordertest.Begin)),
			want: unclaimed, calls: "begin",
		},
		{
			name: "nothing is confirmed that was not bound", around: always(ordertest.LoseRequestOf(ordertest.Bind)),
			want: prepared, calls: "begin prepare bind release",
		},
		{
			name: "nothing is confirmed whose bind is uncertain", around: always(ordertest.LoseResponseOf(ordertest.Bind)),
			want: prepared, calls: "begin prepare bind release",
		},
		{
			name: "a charge that was not recorded is not done", around: always(ordertest.LoseRequestOf(ordertest.Finish)),
			want: confirmed, calls: "begin prepare bind confirm finish release",
		},
		{
			name: "a charge whose record is uncertain is not done", around: always(ordertest.LoseResponseOf(ordertest.Finish)),
			want: confirmed, calls: "begin prepare bind confirm finish release",
		},
		{
			name: "too little time confirms nothing", before: func(w *world) { w.lease = confirmTime - 1 },
			want: claimed(
				1,
				order.Result{Verdict: order.Redeliver, Reason: order.ReasonOutOfTime, Transient: true, Intent: "pi_1"},
			),
			calls: "begin prepare bind release",
		},
	}
}

func paymentCases() []processCase {
	patient := func(r order.Reason, id order.IntentID, request string) order.Result {
		return claimed(
			1,
			order.Result{Verdict: order.Redeliver, Reason: r, Transient: true, Intent: id, RequestID: request},
		)
	}
	fail := func(c ordertest.Call, m ordertest.Fault) func(*world) { return func(w *world) { w.bank.Fail(c, m) } }
	parked := func(r order.Reason) order.Result {
		return claimed(1, order.Result{Verdict: order.Park, Reason: r, Intent: "pi_1"})
	}
	const atPrepare, atConfirm = "begin prepare release", "begin prepare bind confirm release"
	return []processCase{
		{
			name: "a provider that has no time is asked later", before: fail(ordertest.Prepare, ordertest.ReturnsUnavailable),
			want: patient(order.ReasonUnavailable, "", "req_1"), calls: atPrepare,
		},
		{
			name: "a confirm that was turned away is asked later", before: fail(ordertest.Confirm, ordertest.ReturnsUnavailable),
			want: patient(order.ReasonUnavailable, "pi_1", "req_2"), calls: atConfirm,
		},
		{
			name: "a lost confirm is not known", before: fail(ordertest.Confirm, ordertest.LosesResponse),
			want: patient(order.ReasonUnknown, "pi_1", ""), calls: atConfirm,
		},
		{
			name: "bad credentials are our mistake, not the order's", before: fail(ordertest.Prepare, ordertest.ReturnsMisconfigured),
			want: patient(order.ReasonMisconfigured, "", "req_1"), calls: atPrepare,
		},
		{
			name: "an error that says nothing of money may be about money", around: always(ordertest.LoseRequestOf(ordertest.Confirm)),
			want: patient(order.ReasonUnknown, "pi_1", ""), calls: atConfirm,
		},
		{
			name: "a trouble that nobody listed is unknown", around: always(fails(ordertest.Confirm, &order.PaymentError{
				Kind: "new", Err: ordertest.ErrConnection,
			})),
			want: patient(order.ReasonUnknown, "pi_1", ""), calls: atConfirm,
		},
		{
			name: "a card that does not exist parks", card: ordertest.DoesNotExist,
			want: order.Result{
				Verdict: order.Park, Reason: order.ReasonRefused, Status: order.StatusRefused, Attempt: 1, RequestID: "req_1",
			},
			calls: "begin prepare finish",
		},
		{
			name:   "a confirm that stays without effect is delivered again",
			before: func(w *world) { w.payments = confirmsNothing{w.bank} },
			want: claimed(
				1,
				order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Intent: "pi_1"},
			),
			calls: atConfirm,
		},
		{
			name: "a refused confirm of an intent that waits parks", around: always(fails(ordertest.Confirm, refused())),
			want: order.Result{
				Verdict: order.Park, Reason: order.ReasonRefused, Status: order.StatusRefused, Attempt: 1, Intent: "pi_1",
			},
			calls: "begin prepare bind confirm read finish",
		},
		{
			name: "a refused confirm of an intent that was paid is paid", around: always(only(ordertest.Confirm, func(do func() error) error {
				return errors.Join(do(), refused())
			})),
			want: done(order.Paid, 1), calls: "begin prepare bind confirm read finish",
		},
		{
			name: "a refused confirm that cannot be looked into is not parked", around: always(fails(ordertest.Confirm, refused())),
			before: fail(ordertest.Read, ordertest.ReturnsUnavailable),
			want: patient(
				order.ReasonUnavailable,
				"pi_1",
				"req_2",
			), calls: "begin prepare bind confirm read release",
		},
		{
			name: "an intent of another deployment is not confirmed", before: func(w *world) { w.bank.Scope = "other" },
			want: parked(order.ReasonMismatch), calls: "begin prepare prepare release",
		},
		{
			name:   "an intent of another sum is not confirmed",
			before: func(w *world) { w.bind(w.prepare(w.twice(), w.firstKey())) },
			want:   second(parked(order.ReasonMismatch)), calls: "begin read read release",
		},
		{
			name:   "an intent of another order is not confirmed",
			before: func(w *world) { w.bind(w.prepare(ordertest.Order("ORD-2"), w.firstKey())) },
			want:   second(parked(order.ReasonMismatch)), calls: "begin read read release",
		},
		{
			name:   "a bound intent that the provider refuses to show is our mistake",
			before: func(w *world) { w.dieAfter(ordertest.Confirm) }, around: always(fails(ordertest.Read, refused())),
			want: second(patient(order.ReasonMisconfigured, "pi_1", "")), calls: "begin read release",
		},
		{
			name: "a bound intent that the provider does not know is our mistake", before: func(w *world) { w.bind("pi_gone") },
			want: second(patient(order.ReasonMisconfigured, "pi_gone", "req_1")), calls: "begin read release",
		},
	}
}

func refused() error { return &order.PaymentError{Kind: order.Refused, Err: errors.New("no")} }

// second is the result of an attempt that found an intent.
func second(r order.Result) order.Result {
	r.Attempt, r.Takeover = 2, true
	return r
}

func keyCases() []processCase {
	settled := order.Result{
		Verdict: order.Done,
		Reason:  order.ReasonSettled,
		Status:  order.Paid,
		Attempt: 2,
		Intent:  "pi_1",
	}
	reused := func(attempt int, request string) order.Result {
		return claimed(
			attempt,
			order.Result{Verdict: order.Park, Reason: order.ReasonKeyReused, RequestID: request},
		)
	}
	forgotten := func(w *world) { w.prepare(w.twice(), w.firstKey()) }
	return []processCase{
		{
			name:   "a burnt prepare key gives way to the attempt's own",
			before: func(w *world) { w.claimAndRelease(); w.burn(w.firstKey()) },
			want:   settled, calls: "begin prepare prepare bind confirm finish",
		},
		{
			name:   "two burnt prepare keys wait for the next attempt",
			before: func(w *world) { w.burn(w.firstKey()); w.burn(w.againKey(1)) },
			want: claimed(1, order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonReplayed, Transient: true, RequestID: "req_4",
			}),
			calls: "begin prepare prepare release",
		},
		{
			name: "an intent that the store does not know parks", before: forgotten,
			want: reused(1, "req_2"), calls: "begin prepare release",
		},
		{
			// Whatever brought the message again: a lost answer, a second copy, an operator.
			name: "an intent that the store does not know parks at every delivery", before: func(w *world) { forgotten(w); w.deliver(asIs) },
			want: reused(2, "req_3"), calls: "begin prepare release",
		},
		{
			name: "a reused key behind a burnt one parks too", before: func(w *world) {
				w.claimAndRelease()
				w.burn(w.firstKey())
				w.prepare(w.twice(), w.againKey(2))
			},
			want: reused(2, "req_4"), calls: "begin prepare prepare release",
		},
	}
}

func TestOnlyWhoReleasedTheOrderParksIt(t *testing.T) {
	t.Parallel()
	// A worker freezes in its first Prepare. Others see a burnt key, take another and
	// settle. Then its own request arrives, and what it hears is that the key was reused.
	frozen := func(w *world) ordertest.Interceptor {
		return only(ordertest.Prepare, func(func() error) error {
			w.settledAs(w.redeliver(asIs), order.Paid)
			return &order.PaymentError{Kind: order.KeyReused, Err: errors.New("too late")}
		})
	}
	for name, tt := range map[string]struct {
		release ordertest.Interceptor
		want    order.Reason
	}{
		"a release that is refused":         {asIs, order.ReasonClaimLost},
		"a release that never arrives":      {ordertest.LoseRequestOf(ordertest.Release), order.ReasonStore},
		"a release that is not known about": {ordertest.LoseResponseOf(ordertest.Release), order.ReasonStore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			prepare := frozen(w)
			got := w.deliver(func(c ordertest.Call, do func() error) error {
				if c == ordertest.Release {
					return tt.release(c, do)
				}
				return prepare(c, do)
			})
			if got.Verdict != order.Redeliver || got.Reason != tt.want || !got.Transient {
				t.Errorf(
					"got %s for %s, patient: %t, want a patient redelivery for %s",
					got.Verdict,
					got.Reason,
					got.Transient,
					tt.want,
				)
			}
			duplicate := w.redeliver(asIs)
			if duplicate.Verdict != order.Done || duplicate.Reason != order.ReasonDuplicate {
				t.Errorf("then got %s for %s, want it done as a duplicate", duplicate.Verdict, duplicate.Reason)
			}
			w.isTrue()
		})
	}
}

func TestReleaseThatFailsIsToldToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	w.bank.Fail(ordertest.Prepare, ordertest.ReturnsUnavailable)
	got := w.deliver(ordertest.LoseRequestOf(ordertest.Release))
	var payment *order.PaymentError
	if !errors.Is(got.Err, ordertest.ErrConnection) || !errors.As(got.Err, &payment) ||
		got.Reason != order.ReasonUnavailable {
		t.Errorf("got %s: %v, want both errors and the first one's reason", got.Reason, got.Err)
	}
	w.settledAs(w.redeliver(asIs), order.Paid)
}

func TestFiftyWorkersChargeOneOrderOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	var (
		results = make([]order.Result, 50)
		wg      sync.WaitGroup
	)
	for i := range results {
		wg.Go(func() {
			p := order.Processor{Claims: w.store, Payments: w.bank, Scope: "test", Now: noon, ConfirmTime: confirmTime}
			// Each one's clock is hours from the next one's, so that they take the order from each
			// other all the time.
			from := noon().Add(time.Duration(i*7%50) * time.Hour)
			results[i] = p.Process(t.Context(), w.order, w.sent, order.Lease{
				Owner: strconv.Itoa(i), From: from, Until: from.Add(order.MaxLease),
			})
		})
	}
	wg.Wait()
	if n := len(w.bank.Charges(w.order.ID())); n > 1 {
		t.Errorf("charged %d times", n)
	}
	for i, r := range results {
		if r.Verdict == order.Park {
			t.Errorf("worker %d parked: %v", i, r.Err)
		}
	}
	w.now = w.now.AddDate(1, 0, 0)
	w.settledAs(w.deliver(asIs), order.Paid)
}
