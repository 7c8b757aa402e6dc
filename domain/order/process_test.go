package order_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// confirmTime is Processor.ConfirmTime in these tests.
const confirmTime = 10 * time.Second

// world is one order with its store, provider and clock. Time passes only when a test
// sets it.
type world struct {
	*testing.T

	order    order.Order
	store    *ordertest.Memory
	bank     *ordertest.Bank
	payments order.Payments // the bank, or a double in front of it
	sent     time.Time      // when the order's message was first sent
	now      time.Time
	lease    time.Duration
	attempts int
	lost     bool             // the record was deleted: a charge without a bound intent is possible
	calls    []ordertest.Call // of the last delivery

	change func(ordertest.Call, *order.Intent) // see ordertest.Intercepted

	forgetsKeys bool // the bank forgets its keys after each delivery by redeliver and crash
}

func newWorld(t *testing.T, c ordertest.Card) *world {
	t.Helper()
	d := with(func(d *order.Draft) { d.Payment.Method = ordertest.PaymentMethod(c) })
	bank := &ordertest.Bank{Scope: "test"}
	return &world{
		T: t, order: newOrder(t, d), store: new(ordertest.Memory), bank: bank, payments: bank, sent: noon(), now: noon(),
		lease: time.Minute,
	}
}

func noFault(_ ordertest.Call, do func() error) error { return do() }

// deliver processes the order once under a new lease, with each call to a port
// intercepted.
func (w *world) deliver(fault ordertest.Interceptor) order.Result {
	w.calls = nil
	w.attempts++
	ports := ordertest.Intercepted{
		Store:    w.store,
		Payments: w.payments,
		Change:   w.change,
		Intercept: func(c ordertest.Call, do func() error) error {
			w.calls = append(w.calls, c)
			return fault(c, do)
		},
	}
	p := order.Processor{
		Store: ports, Payments: ports, Scope: "test", ConfirmTime: confirmTime, TracksStock: w.store.TracksStock(),
		Now: func() time.Time { return w.now },
	}
	l := order.Lease{Owner: "worker " + strconv.Itoa(w.attempts), From: w.now, Until: w.now.Add(w.lease)}
	return p.Process(w.Context(), w.order, w.sent, l)
}

// redeliver delivers the order after every earlier lease has expired.
func (w *world) redeliver(fault ordertest.Interceptor) order.Result {
	w.now = w.now.Add(time.Hour)
	defer w.forgetKeys()
	return w.deliver(fault)
}

func (w *world) forgetKeys() {
	if w.forgetsKeys {
		w.bank.ForgetKeys()
	}
}

// crash redelivers the order to a worker that may crash, and reports whether it did.
func (w *world) crash(fault ordertest.Interceptor) (crashed bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, crashed = r.(ordertest.Crash); !crashed {
				panic(r)
			}
		}
	}()
	w.redeliver(fault)
	return false
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) record() order.Record {
	w.Helper()
	r, err := w.store.Load(w.Context(), w.order.ID())
	w.must(err)
	return r
}

// claim claims the order as an earlier attempt does.
func (w *world) claim() order.Claim {
	w.Helper()
	return w.begin("earlier", w.now)
}

// claimAndRelease creates a record as an earlier attempt that gave up does.
func (w *world) claimAndRelease() {
	w.Helper()
	w.must(w.claim().Release(w.Context(), w.store, order.ReasonUnknown, w.now))
}

// bind binds the intent as an earlier attempt that gave up does.
func (w *world) bind(id order.IntentID) {
	w.Helper()
	c := w.claim()
	w.must(c.Bind(w.Context(), w.store, order.Intent{ID: id}, w.now))
	w.must(c.Release(w.Context(), w.store, order.ReasonUnknown, w.now))
}

// prepare creates an intent at the bank without the processor.
func (w *world) prepare(o order.Order, k order.Key) order.IntentID {
	w.Helper()
	i, err := w.bank.Prepare(w.Context(), o, k)
	w.must(err)
	return i.ID
}

// storeFailure makes the bank store a failure under a key.
func (w *world) storeFailure(k order.Key) {
	w.bank.Fail(ordertest.Prepare, ordertest.StoresFailure)
	if _, err := w.bank.Prepare(w.Context(), w.order, k); err == nil {
		w.Fatal("got no error, want a failure stored under the key")
	}
}

// differentContent returns an order with the same id and another quantity.
func (w *world) differentContent() order.Order {
	w.Helper()
	return newOrder(w.T, with(func(d *order.Draft) { d.Lines[0].Quantity = 7 }))
}

func (w *world) prepareKey() order.Key { return order.PrepareKey("test", w.order.ID()) }
func (w *world) prepareAgainKey(attempt int) order.Key {
	return order.PrepareAgainKey("test", w.order.ID(), attempt)
}

// violations lists the invariants that do not hold: at most one charge, of the order's
// total; no charge without a bound intent; a settled record is paid if and only if there
// is a charge; one event for each transition.
func (w *world) violations() string {
	var all []string
	report := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	charges := w.bank.Charges(w.order.ID())
	if len(charges) > 1 {
		report("charged %d times: %v", len(charges), charges)
	}
	r, err := w.store.Load(w.Context(), w.order.ID())
	if err != nil {
		return strings.Join(all, "; ")
	}
	if len(charges) == 1 && charges[0] != r.Total {
		report("charged %v, want %v", charges[0], r.Total)
	}
	if r.Status != order.Open && (r.Status == order.Paid) != (len(charges) == 1) {
		report("ledger mismatch: the record is %s, the charges are %v", r.Status, charges)
	}
	if r.Intent == "" && len(charges) > 0 && !w.lost {
		report("charged without a bound intent")
	}
	if len(r.Events) != r.Seq || (r.Seq == 0) != (r.Status == order.Open) {
		report("%d events for seq %d and status %s", len(r.Events), r.Seq, r.Status)
	}
	return strings.Join(all, "; ")
}

// final is the state of an order after its last delivery.
type final struct {
	Verdict    order.Verdict
	Status     order.Status // of the result
	Err        error
	Record     order.Status // "" if there is no record
	Violations string
}

// settled is the final state of an order that was settled as s.
func settled(s order.Status) final { return final{Verdict: order.Done, Status: s, Record: s} }

func (w *world) final(last order.Result) final {
	r, _ := w.store.Load(w.Context(), w.order.ID())
	return final{last.Verdict, last.Status, last.Err, r.Status, w.violations()}
}

// intercept replaces one kind of call by f.
func intercept(which ordertest.Call, f func(do func() error) error) ordertest.Interceptor {
	return func(c ordertest.Call, do func() error) error {
		if c == which {
			return f(do)
		}
		return do()
	}
}

// failCall makes one kind of call return err without an effect.
func failCall(which ordertest.Call, err error) ordertest.Interceptor {
	return intercept(which, func(func() error) error { return err })
}

// processCase is one delivery of an order.
type processCase struct {
	card   ordertest.Card // "" pays
	before func(w *world) // runs before this delivery
	fault  func(w *world) ordertest.Interceptor
	want   string // see outcome
	calls  string
	after  func(w *world) // checks more
}

// outcome describes a result: verdict and reason, whether it counts toward parking and
// until when the message waits; the status, the attempt, the intent and the request.
func outcome(r order.Result) string {
	text := fmt.Sprint(r.Verdict, " ", r.Reason)
	for _, word := range []struct {
		is   bool
		text string
	}{
		{r.Transient, "transient"},
		{!r.NotBefore.IsZero(), "until " + r.NotBefore.Format(time.TimeOnly)},
		{r.Status != "", string(r.Status)},
		{r.Attempt > 0, fmt.Sprint("attempt ", r.Attempt)},
		{r.Takeover, "takeover"},
		{r.Intent != "", string(r.Intent)},
		{r.RequestID != "", r.RequestID},
	} {
		if word.is {
			text += " " + word.text
		}
	}
	return text
}

const (
	paid        = "done settled paid attempt 1 pi_1"
	takenOver   = "done settled paid attempt 2 takeover pi_1"
	paidLate    = "done settled paid attempt 2 pi_1" // by an attempt that found no bound intent
	unavailable = "redeliver store_unavailable transient"
)

func always(a ordertest.Interceptor) func(*world) ordertest.Interceptor {
	return func(*world) ordertest.Interceptor { return a }
}

func TestProcess(t *testing.T) {
	for name, c := range processCases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.card)
			if c.before != nil {
				c.before(w)
			}
			fault := ordertest.Interceptor(noFault)
			if c.fault != nil {
				fault = c.fault(w)
			}
			got := w.deliver(fault)
			if (got.Err == nil) != (got.Verdict == order.Done) {
				t.Errorf("got error %v with verdict %s, want an error unless done", got.Err, got.Verdict)
			}
			if got := outcome(got); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if calls := strings.Trim(fmt.Sprint(w.calls), "[]"); calls != c.calls {
				t.Errorf("got calls %q, want %q", calls, c.calls)
			}
			if slices.Contains(w.calls, ordertest.Release) && got.Reason != order.ReasonClaimLost {
				r := w.record()
				if r.Status == order.Open && (r.LastError != string(got.Reason) || r.Owner != "") {
					t.Errorf("got a record released by %q for %q, want no owner and %q", r.Owner, r.LastError, got.Reason)
				}
			}
			if v := w.violations(); v != "" {
				t.Error(v)
			}
			if c.after != nil {
				c.after(w)
			}
		})
	}
}

// processCases returns the cases by their claims.
func processCases() map[string]processCase {
	all := map[string]processCase{}
	for _, some := range []map[string]processCase{
		settlingCases(), claimCases(), storeCases(), paymentCases(), keyCases(), lostCases(), wrongAnswerCases(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func TestEveryReasonHasACase(t *testing.T) {
	seen := map[order.Reason]bool{order.ReasonInvalid: true} // of messages that are not orders
	for _, c := range processCases() {
		seen[order.Reason(strings.Fields(c.want)[1])] = true
	}
	for _, r := range order.Reasons() {
		if !seen[r] {
			t.Errorf("no case has the reason %s", r)
		}
		delete(seen, r)
	}
	if len(seen) > 0 {
		t.Errorf("Reasons does not list %v", seen)
	}
}

func settlingCases() map[string]processCase {
	const fresh = "begin prepare bind confirm finish"
	return map[string]processCase{
		"a new order is charged":               {want: paid, calls: fresh},
		"a declined order is settled":          {card: ordertest.Declines, want: "done settled declined attempt 1 pi_1", calls: fresh},
		"a payment that takes days is pending": {card: ordertest.TakesDays, want: "done settled pending attempt 1 pi_1", calls: fresh},
		"an intent that needs authentication is not declined": {
			card: ordertest.NeedsAuthentication, want: "done settled action_required attempt 1 pi_1", calls: fresh,
		},
		"a charge by a crashed worker is found and not repeated": {
			before: crashAfter(ordertest.Confirm), want: takenOver, calls: "begin begin read finish",
		},
		"the next attempt does not settle an authentication as declined": {
			card: ordertest.NeedsAuthentication, before: crashAfter(ordertest.Confirm),
			want: "done settled action_required attempt 2 takeover pi_1", calls: "begin begin read finish",
		},
		"a bound intent that waits is confirmed": {
			before: crashAfter(ordertest.Bind), want: takenOver, calls: "begin begin read confirm finish",
		},
		"an intent that was canceled after it was bound cancels the order": {
			before: func(w *world) { w.crashAfter(ordertest.Bind); w.bank.Cancel("pi_1") },
			want:   "done settled canceled attempt 2 takeover pi_1", calls: "begin begin read finish",
		},
		"exactly the confirm time is enough": {
			before: func(w *world) { w.lease = confirmTime }, want: paid, calls: fresh,
		},
	}
}

// crashAfter is the setup of a case in which an earlier worker crashed after this call.
func crashAfter(last ordertest.Call) func(*world) {
	return func(w *world) { w.crashAfter(last) }
}

// crashAfter delivers the order to a worker that crashes just after this call, and lets
// its lease expire.
func (w *world) crashAfter(last ordertest.Call) {
	w.Helper()
	crashed := w.crash(intercept(last, func(do func() error) error {
		if err := do(); err != nil {
			w.Errorf("%s before the crash: %v", last, err)
		}
		panic(ordertest.Crash{Call: last})
	}))
	if !crashed {
		w.Fatalf("got no crash at %s, want one", last)
	}
	w.now = w.now.Add(time.Hour)
}

func claimCases() map[string]processCase {
	const duplicate = "done duplicate paid pi_1"
	return map[string]processCase{
		"a duplicate costs one call": {
			before: func(w *world) { w.deliver(noFault) }, want: duplicate, calls: "begin",
		},
		"a duplicate a year later is still one": {
			before: func(w *world) { w.deliver(noFault); w.bank.ForgetKeys(); w.now = w.now.AddDate(1, 0, 0) },
			want:   duplicate, calls: "begin",
		},
		"the same id with different content is parked": {
			before: func(w *world) {
				original := w.order
				w.order = w.differentContent()
				w.deliver(noFault)
				w.order = original
			},
			want: "park conflict", calls: "begin",
			after: func(w *world) {
				if r := w.record(); r.Fingerprint != w.differentContent().Fingerprint() || r.Status != order.Paid ||
					r.LastError != "" {
					w.Errorf("got record %+v, want the first order unchanged", r)
				}
			},
		},
		"an order under a running lease is redelivered when the lease ends": {
			before: func(w *world) { w.claim() },
			want:   "redeliver in_progress transient until 12:01:00", calls: "begin",
		},
		"a record of a newer release is redelivered": {
			before: func(w *world) {
				w.claimAndRelease()
				w.store.Edit(w.order.ID(), func(r *order.Record) { r.Fingerprint = "v999:0" })
			},
			want: "redeliver unknown_version transient", calls: "begin",
		},
		"a corrupt record is redelivered": {
			fault: always(failCall(ordertest.Begin, order.ErrCorrupt)),
			want:  "redeliver corrupt_record transient", calls: "begin",
		},
		"a worker whose claim is lost at bind stops": {
			fault: func(w *world) ordertest.Interceptor { return w.takeOverBefore(ordertest.Bind) },
			want:  "redeliver claim_lost transient open attempt 1", calls: "begin prepare bind",
		},
		"a worker whose claim is lost at finish does not acknowledge": {
			fault: func(w *world) ordertest.Interceptor { return w.takeOverBefore(ordertest.Finish) },
			want:  "redeliver claim_lost transient open attempt 1 pi_1", calls: "begin prepare bind confirm finish",
		},
	}
}

// takeOverBefore lets another worker claim the order just before this call.
func (w *world) takeOverBefore(call ordertest.Call) ordertest.Interceptor {
	return intercept(call, func(do func() error) error {
		w.now = w.now.Add(time.Hour)
		w.claim()
		return do()
	})
}

func storeCases() map[string]processCase {
	const prepared = unavailable + " open attempt 1"
	const confirmed = prepared + " pi_1"
	return map[string]processCase{
		"an unavailable store at begin is transient": {
			fault: always(ordertest.LoseRequestOf(ordertest.Begin)), want: unavailable, calls: "begin",
		},
		"an order of a SKU that the store does not know waits for it": {
			before: func(w *world) { w.store = ordertest.NewMemoryWithStock() },
			want:   "redeliver unknown_sku open attempt 1", calls: "begin begin release",
		},
		"a begin whose response is lost ends the attempt": {
			fault: always(ordertest.LoseResponseOf(ordertest.Begin)), want: unavailable, calls: "begin",
		},
		"an intent that was not bound is not confirmed": {
			fault: always(ordertest.LoseRequestOf(ordertest.Bind)), want: prepared, calls: "begin prepare bind release",
		},
		"an intent whose bind is uncertain is not confirmed": {
			fault: always(ordertest.LoseResponseOf(ordertest.Bind)),
			want:  prepared, calls: "begin prepare bind release release",
		},
		"a charge that was not recorded is redelivered": {
			fault: always(ordertest.LoseRequestOf(ordertest.Finish)),
			want:  confirmed, calls: "begin prepare bind confirm finish release",
		},
		"a charge whose record is uncertain is redelivered": {
			fault: always(ordertest.LoseResponseOf(ordertest.Finish)),
			want:  confirmed, calls: "begin prepare bind confirm finish release",
		},
		"with too little time left nothing is confirmed": {
			before: func(w *world) { w.lease = confirmTime - 1 },
			want:   "redeliver out_of_time transient open attempt 1 pi_1", calls: "begin prepare bind release",
		},
	}
}

func paymentCases() map[string]processCase {
	fail := func(c ordertest.Call, f ordertest.Fault) func(*world) {
		return func(w *world) { w.bank.Fail(c, f) }
	}
	confirmsAndRefuses := always(intercept(ordertest.Confirm, func(do func() error) error {
		return errors.Join(do(), refused())
	}))
	const atPrepare, atConfirm = "begin prepare release", "begin prepare bind confirm release"
	return map[string]processCase{
		"an unavailable provider at prepare is transient": {
			before: fail(ordertest.Prepare, ordertest.ReturnsUnavailable),
			want:   "redeliver provider_unavailable transient open attempt 1 req_1", calls: atPrepare,
		},
		"an unavailable provider at confirm is transient": {
			before: fail(ordertest.Confirm, ordertest.ReturnsUnavailable),
			want:   "redeliver provider_unavailable transient open attempt 1 pi_1 req_2", calls: atConfirm,
		},
		"a confirm whose response is lost is unknown": {
			before: fail(ordertest.Confirm, ordertest.LosesResponse),
			want:   "redeliver provider_unknown transient open attempt 1 pi_1", calls: atConfirm,
		},
		"wrong credentials are misconfigured": {
			before: fail(ordertest.Prepare, ordertest.ReturnsMisconfigured),
			want:   "redeliver misconfigured transient open attempt 1 req_1", calls: atPrepare,
		},
		"an untyped error of confirm is unknown": {
			fault: always(ordertest.LoseRequestOf(ordertest.Confirm)),
			want:  "redeliver provider_unknown transient open attempt 1 pi_1", calls: atConfirm,
		},
		"an unlisted error kind is unknown": {
			fault: always(failCall(ordertest.Confirm, &order.PaymentError{Kind: "new", Err: ordertest.ErrConnection})),
			want:  "redeliver provider_unknown transient open attempt 1 pi_1", calls: atConfirm,
		},
		"an unknown card is refused and parked": {
			card: ordertest.DoesNotExist,
			want: "park refused refused attempt 1 req_1", calls: "begin prepare finish", after: refusedFor("unexplained"),
		},
		"a refusal that is not recorded is redelivered": {
			card: ordertest.DoesNotExist, fault: always(ordertest.LoseRequestOf(ordertest.Finish)),
			want: "redeliver store_unavailable transient open attempt 1 req_1", calls: "begin prepare finish",
		},
		"an order that was refused at prepare is charged after a redrive": {
			before: func(w *world) { w.deliver(failCall(ordertest.Prepare, refused())) },
			want:   paidLate, calls: "begin begin prepare bind confirm finish", after: reopened,
		},
		"an order that was refused at confirm is charged after a redrive": {
			before: func(w *world) { w.deliver(failCall(ordertest.Confirm, refused())) },
			want:   takenOver, calls: "begin begin read confirm finish", after: reopened,
		},
		"a confirm without effect is redelivered": {
			before: func(w *world) { w.change = w.waiting }, fault: always(failCall(ordertest.Confirm, nil)),
			want:  "redeliver unconfirmed open attempt 1 pi_1",
			calls: atConfirm,
		},
		"a refused confirm of an unconfirmed intent is parked": {
			fault: always(failCall(ordertest.Confirm, refused())),
			want:  "park refused refused attempt 1 pi_1",
			calls: "begin prepare bind confirm read finish", after: refusedFor("resource_missing"),
		},
		"a refused confirm of an intent that was paid is paid": {
			fault: confirmsAndRefuses, want: paid, calls: "begin prepare bind confirm read finish",
		},
		"a refused confirm of an intent that was declined is declined": {
			card: ordertest.Declines, fault: confirmsAndRefuses,
			want: "done settled declined attempt 1 pi_1", calls: "begin prepare bind confirm read finish",
		},
		"a refused confirm whose intent cannot be read is redelivered": {
			fault:  always(failCall(ordertest.Confirm, refused())),
			before: fail(ordertest.Read, ordertest.ReturnsUnavailable),
			want:   "redeliver provider_unavailable transient open attempt 1 pi_1 req_2", calls: "begin prepare bind confirm read release",
		},
		"an intent of another scope is not confirmed": {
			before: func(w *world) { w.bank.Scope = "other" },
			want:   "park mismatch open attempt 1 pi_1", calls: "begin prepare prepare release",
		},
		"an intent with another amount is not confirmed": {
			before: func(w *world) { w.bind(w.prepare(w.differentContent(), w.prepareKey())) },
			want:   "park mismatch open attempt 2 takeover pi_1", calls: "begin begin read read release",
		},
		"an intent of another order is not confirmed": {
			before: func(w *world) { w.bind(w.prepare(ordertest.Order("ORD-2"), w.prepareKey())) },
			want:   "park mismatch open attempt 2 takeover pi_1", calls: "begin begin read read release",
		},
		"a bound intent that the provider refuses to read is misconfigured": {
			before: crashAfter(ordertest.Confirm),
			fault: always(failCall(ordertest.Read, &order.PaymentError{
				Kind: order.KindRefused, RequestID: "req_9", Err: errors.New("no"),
			})),
			want: "redeliver misconfigured transient open attempt 2 takeover pi_1 req_9", calls: "begin begin read release",
		},
		"a bound intent that the provider does not know is misconfigured": {
			before: func(w *world) { w.bind("pi_gone") },
			want:   "redeliver misconfigured transient open attempt 2 takeover pi_gone req_1", calls: "begin begin read release",
		},
	}
}

// waiting replaces the intent of a Confirm that was not made by the one at the bank.
func (w *world) waiting(c ordertest.Call, i *order.Intent) {
	if c == ordertest.Confirm {
		*i, _ = w.bank.Read(w.Context(), "pi_1")
	}
}

func refused() error {
	return &order.PaymentError{Kind: order.KindRefused, Code: "resource_missing", Err: errors.New("no")}
}

// refusedFor checks that the record is refused, for this failure.
func refusedFor(failure string) func(*world) {
	return func(w *world) {
		if r := w.record(); r.Status != order.Refused || r.Failure != failure || r.Owner != "" || !r.DueAt.IsZero() {
			w.Errorf("got record %+v, want it refused for %s, without an owner and a recheck", r, failure)
		}
	}
}

// reopened checks the events of an order that was refused, redriven and paid.
func reopened(w *world) {
	var all []order.Status
	for _, e := range w.record().Events {
		all = append(all, e.From, e.To)
	}
	want := []order.Status{order.Open, order.Refused, order.Refused, order.Open, order.Open, order.Paid}
	if diff := cmp.Diff(want, all); diff != "" || len(w.bank.Charges(w.order.ID())) != 1 {
		w.Errorf("charges %v, events (-want +got):\n%s", w.bank.Charges(w.order.ID()), diff)
	}
}

func keyCases() map[string]processCase {
	forgotten := func(w *world) { w.prepare(w.differentContent(), w.prepareKey()) }
	return map[string]processCase{
		"a spent prepare key is replaced by the attempt's own key": {
			before: func(w *world) { w.claimAndRelease(); w.storeFailure(w.prepareKey()) },
			want:   paidLate, calls: "begin begin prepare prepare bind confirm finish",
		},
		"two spent prepare keys are retried by the next attempt": {
			before: func(w *world) { w.storeFailure(w.prepareKey()); w.storeFailure(w.prepareAgainKey(1)) },
			want:   "redeliver provider_replayed_failure transient open attempt 1 req_4", calls: "begin prepare prepare release",
		},
		"a reused prepare key is parked": {
			before: forgotten, want: "park key_reused open attempt 1 req_2", calls: "begin prepare release",
		},
		"a reused prepare key is parked at every delivery": {
			before: func(w *world) { forgotten(w); w.deliver(noFault) },
			want:   "park key_reused open attempt 2 req_3", calls: "begin begin prepare release",
		},
		"a reused key after a spent one is parked": {
			before: func(w *world) {
				w.claimAndRelease()
				w.storeFailure(w.prepareKey())
				w.prepare(w.differentContent(), w.prepareAgainKey(2))
			},
			want: "park key_reused open attempt 2 req_4", calls: "begin begin prepare prepare release",
		},
	}
}

func TestAnOrderIsParkedOnlyIfItWasReleased(t *testing.T) {
	// A worker freezes in its first Prepare, and another one settles the order under
	// another key. Then the first request fails with KeyReused.
	frozen := func(w *world) ordertest.Interceptor {
		return intercept(ordertest.Prepare, func(func() error) error {
			if got, want := w.final(w.redeliver(noFault)), settled(order.Paid); got != want {
				w.Errorf("the other worker: got %+v, want %+v", got, want)
			}
			return &order.PaymentError{Kind: order.KindKeyReused, Err: errors.New("too late")}
		})
	}
	for name, tt := range map[string]struct {
		release ordertest.Interceptor
		want    order.Reason
	}{
		"the claim is lost":    {noFault, order.ReasonClaimLost},
		"the request is lost":  {ordertest.LoseRequestOf(ordertest.Release), order.ReasonStore},
		"the response is lost": {ordertest.LoseResponseOf(ordertest.Release), order.ReasonStore},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ordertest.Pays)
			prepare := frozen(w)
			got := w.deliver(func(c ordertest.Call, do func() error) error {
				if c == ordertest.Release {
					return tt.release(c, do)
				}
				return prepare(c, do)
			})
			if got.Verdict != order.Redeliver || got.Reason != tt.want || !got.Transient {
				t.Errorf("got %+v, want a transient redelivery for %s", got, tt.want)
			}
			duplicate := w.redeliver(noFault)
			if duplicate.Reason != order.ReasonDuplicate || w.final(duplicate) != settled(order.Paid) {
				t.Errorf("after the redelivery: got %+v, want a duplicate of a paid order", duplicate)
			}
		})
	}
}
