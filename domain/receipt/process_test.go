package receipt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

const trace order.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func paid() receipt.Request {
	return receipt.Request{
		OrderID: "ORD-1", Key: receipt.Paid, Total: order.Money{Amount: 3998, Currency: "usd"}, Intent: "pi_1", At: noon(),
		Trace: trace,
	}
}

// world is one receipt. Time passes only when a test sets it.
type world struct {
	*testing.T
	*receipt.Processor

	store   *receipttest.Memory
	mailbox *receipttest.Mailbox
	payers  *receipttest.Payers
	now     time.Time
	workers int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, store: new(receipttest.Memory), mailbox: new(receipttest.Mailbox), payers: new(receipttest.Payers), now: noon(),
	}
	renderer, err := receipt.NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	w.Processor = &receipt.Processor{
		Store: w.store, Payers: w.payers, Mailer: w.mailbox, Render: renderer.Render,
		Now: func() time.Time { return w.now }, SendTime: 5 * time.Second,
	}
	return w
}

// failSaves makes each Save fail, or only those that change a receipt in a status.
func (w *world) failSaves(err error, of receipt.Status) {
	w.store.Fault = func(before, _ receipt.Item) (bool, error) {
		if of != "" && before.Status != of {
			return false, nil
		}
		return false, err
	}
}

// during is called once, when the next request has had its effect.
func (w *world) during(f func()) {
	w.mailbox.During = func(receipt.Mail) {
		w.mailbox.During = nil
		f()
	}
}

func (w *world) item() receipt.Item {
	w.Helper()
	i, err := w.store.Load(w.Context(), "ORD-1", receipt.Paid)
	if err == nil && i.Revision > 0 {
		err = i.Validate()
	}
	if err != nil {
		w.Fatal(err)
	}
	return i
}

// want compares a result and what it leaves with a text: verdict and reason, status and
// failure of the receipt, and the number of e-mails.
func (w *world) want(r receipt.Result, want string) {
	w.Helper()
	i := w.item()
	got := fmt.Sprintf("%s %s: %s %s %d", r.Verdict, r.Reason, i.Status, i.Failure, len(w.mailbox.Sent()))
	if got = strings.Join(strings.Fields(got), " "); got != want {
		w.Errorf("got %q, want %q, error: %v", got, want, r.Err)
	}
	if again := r.Verdict == order.Redeliver; r.Transient != again { // or it would be parked after 20 deliveries
		w.Errorf("transient = %t, want %t: %+v", r.Transient, again, r)
	}
}

// deliver delivers the event to a new worker, which has 30 seconds.
func (w *world) deliver() receipt.Result { return w.deliverFor(30 * time.Second) }

func (w *world) deliverFor(left time.Duration) receipt.Result {
	w.Helper()
	w.workers++
	before, l := w.item(), order.Lease{Owner: fmt.Sprintf("worker-%d", w.workers), From: w.now, Until: w.now.Add(left)}
	r := w.Process(w.Context(), paid(), l)
	of := order.Result{Attempt: before.Attempt + 1, Takeover: before.Status == receipt.Sending, Intent: "pi_1", Trace: trace}
	got := order.Result{Attempt: r.Attempt, Takeover: r.Takeover, Intent: r.Intent, Trace: r.Trace}
	if diff := cmp.Diff(got, of); r.Attempt != 0 && diff != "" {
		w.Errorf("result of an attempt (-got +want):\n%s", diff)
	}
	if i := w.item(); r.Receipt != "" && r.Receipt != i.Status || r.Reason == order.ReasonInProgress && !r.NotBefore.Equal(i.Until) {
		w.Errorf("got %+v and %+v, want it to name what it wrote, or the end of the lease", r, i)
	}
	last := 0
	for _, m := range w.mailbox.Sent() {
		if m.OrderID != "ORD-1" || m.Key != receipt.Paid || m.Attempt <= last || m.Attempt > w.item().Attempt {
			w.Errorf("e-mail of order %q, receipt %q, attempt %d after %d, want those of its claim", m.OrderID, m.Key, m.Attempt, last)
		}
		last = m.Attempt
	}
	return r
}

// report delivers an event of the e-mail service about its first message.
func (w *world) report(s receipt.Status) receipt.Result {
	return w.Follow(w.Context(), "ORD-1", receipt.Paid, receipt.Report{Message: "message-1", Status: s, Attempt: 1})
}

// step is a change of the world, and then a delivery or a report with its outcome.
type step struct {
	before func(*world)
	report receipt.Status // "" is a delivery
	want   string
}

func pass(d time.Duration) func(*world) { return func(w *world) { w.now = w.now.Add(d) } }

func fate(f receipttest.Fate) func(*world) { return func(w *world) { w.mailbox.Plan(f) } }

func payer(err error) func(*world) { return func(w *world) { w.payers.Err = err } }

func save(err error) func(*world) { return func(w *world) { w.failSaves(err, "") } }

func person(decides func(receipt.Item, time.Time) (receipt.Item, error)) func(*world) {
	return func(w *world) {
		after, err := decides(w.item(), w.now)
		if err == nil {
			_, err = w.store.Save(w.Context(), w.item(), after)
		}
		if err != nil {
			w.Error(err)
		}
	}
}

func heal(w *world) { w.payers.Err, w.store.Fault = nil, nil }

var (
	errDied = errors.New("died")
	errDown = &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("503")}
)

// die makes the next worker die when its request was sent.
func die(w *world) { w.failSaves(errDied, receipt.Sending) }

// revive heals the store after the lease of the dead worker.
func revive(w *world) {
	heal(w)
	w.now = w.now.Add(31 * time.Second)
}

func TestProcess(t *testing.T) {
	const (
		sent      = "done settled: sent 1"
		duplicate = "done duplicate: sent 1"
		doubt     = "done receipt_doubtful: doubtful no_response 1"
		again     = "done duplicate: doubtful no_response 1"
		lost      = "redeliver store_unavailable: sending 1"
		throttled = "redeliver mail_unavailable: failed TooManyRequestsException 0"
	)
	for claim, tt := range map[string]struct {
		atLeastOnce bool
		steps       []step
	}{
		"a receipt is sent once": {false, []step{{nil, "", sent}, {nil, "", duplicate}}},
		"a lost answer is not sent again": {false, []step{
			{fate(receipttest.SendsThenLoses), "", doubt}, {pass(24 * time.Hour), "", again}, {pass(24 * time.Hour), "", again},
		}},
		"a lost request is not sent again": {false, []step{
			{fate(receipttest.LosesTheRequest), "", "done receipt_doubtful: doubtful no_response 0"},
			{pass(24 * time.Hour), "", "done duplicate: doubtful no_response 0"},
		}},
		"a worker that dies leaves one doubt": {false, []step{
			{die, "", lost},
			{heal, "", "redeliver in_progress: sending 1"},
			{revive, "", "done receipt_doubtful: doubtful claim_abandoned 1"},
			{nil, "", "done duplicate: doubtful claim_abandoned 1"},
		}},
		"at least once, a doubt is sent again": {true, []step{
			{die, "", lost},
			{heal, "", "redeliver in_progress: sending 1"},
			{func(w *world) { revive(w); w.mailbox.Plan(receipttest.SendsThenLoses) }, "", "redeliver receipt_doubtful: doubtful no_response 2"},
			{nil, "", "done settled: sent 3"},
		}},
		"a service that is down": {false, []step{{fate(receipttest.IsThrottled), "", throttled}, {nil, "", sent}}},
		"an account that is stopped": {false, []step{
			{fate(receipttest.IsMisconfigured), "", "redeliver mail_misconfigured: failed SendingPausedException 0"},
			{nil, "", sent},
		}},
		"a message that is refused": {false, []step{
			{fate(receipttest.Refuses), "", "park mail_refused: failed MessageRejected 0"},
			{nil, "", sent},
		}},

		// Nothing that fails before the claim leaves a trace of a send.
		"a payment provider that is down": {false, []step{{payer(errDown), "", "redeliver provider_unavailable: 0"}, {heal, "", sent}}},
		"a claim that is not written":     {false, []step{{save(errDied), "", "redeliver store_unavailable: 0"}, {heal, "", sent}}},
		"a claim of another worker":       {false, []step{{save(order.ErrStale), "", "redeliver claim_lost: 0"}, {heal, "", sent}}},
		"a missing address is recorded once": {false, []step{
			{payer(receipt.ErrNoAddress), "", "done no_address: failed no_address 0"},
			{save(errDied), "", "done no_address: failed no_address 0"}, // no write
			{heal, "", sent},
		}},
		"a template that fails": {false, []step{{func(w *world) {
			w.Render = func(receipt.Request, receipt.Payer) (receipt.Mail, error) { return receipt.Mail{}, errDied }
		}, "", "park receipt_not_rendered: 0"}}},

		// An earlier attempt may have sent it, so it has not failed.
		"an address that is gone does not end a doubt": {true, []step{
			{fate(receipttest.SendsThenLoses), "", "redeliver receipt_doubtful: doubtful no_response 1"},
			{payer(receipt.ErrNoAddress), "", "done no_address: doubtful no_address 1"},
			{nil, "", "done no_address: doubtful no_address 1"},
			{nil, receipt.Sent, sent},
		}},
		"an address that is gone does not end the doubt of a dead worker": {true, []step{
			{die, "", lost},
			{func(w *world) { revive(w); w.payers.Err = receipt.ErrNoAddress }, "", "done no_address: doubtful no_address 1"},
			{nil, receipt.Sent, sent},
		}},

		// The process was frozen between the claim and the request. A person may soon
		// decide that nothing was sent, and must be right.
		"nothing is sent after the lease": {false, []step{{func(w *world) {
			w.store.Fault = func(_, after receipt.Item) (bool, error) {
				if after.Status == receipt.Sending {
					w.now = w.now.Add(time.Hour)
				}
				return false, nil
			}
		}, "", "redeliver out_of_time: failed out_of_time 0"}, {heal, "", sent}}},
		// The process was frozen before it looked. By its lease, the claim of another
		// worker would end too far in the future to be true.
		"a frozen worker does not doubt a claim that is running": {false, []step{{func(w *world) {
			w.during(func() {
				l := order.Lease{Owner: "frozen", From: w.now.Add(-time.Hour), Until: w.now.Add(-59 * time.Minute)}
				w.want(w.Process(w.Context(), paid(), l), "redeliver in_progress: sending 1")
			})
		}, "", sent}}},
		// The worker is slower than its lease. What it knows corrects the doubt.
		"a late answer resolves the doubt that another worker recorded": {false, []step{{func(w *world) {
			w.during(func() {
				w.now = w.now.Add(time.Minute)
				w.want(w.deliver(), "done receipt_doubtful: doubtful claim_abandoned 1")
			})
		}, "", sent}}},
		"a report before the answer is kept": {false, []step{{func(w *world) {
			w.during(func() { w.want(w.report(receipt.Delivered), "done settled: delivered 1") })
		}, "", "done settled: delivered 1"}}},
		"a report resolves a doubt": {false, []step{
			{fate(receipttest.SendsThenLoses), "", doubt},
			{nil, receipt.Bounced, "done settled: bounced 1"},
			{nil, receipt.Bounced, "done duplicate: bounced 1"},
			{nil, "", "done duplicate: bounced 1"},
		}},

		// The provider stops the first e-mail, so the event of the order sends another
		// one. Then the report that stopped the first arrives again.
		"a repeated report while the second is sent": {false, []step{
			{nil, "", sent},
			{nil, receipt.Failed, "done settled: failed 1"},
			{func(w *world) { w.during(func() { w.report(receipt.Failed) }) }, "", "done settled: sent 2"},
			{nil, receipt.Failed, "done duplicate: sent 2"},
			{nil, "", "done duplicate: sent 2"},
		}},
		"a repeated report while nobody knows of the second": {false, []step{
			{nil, "", sent},
			{nil, receipt.Failed, "done settled: failed 1"},
			{fate(receipttest.SendsThenLoses), "", "done receipt_doubtful: doubtful no_response 2"},
			{nil, receipt.Failed, "done duplicate: doubtful no_response 2"},
			{nil, "", "done duplicate: doubtful no_response 2"},
		}},
		"the provider's word replaces a person's": {false, []step{
			{fate(receipttest.SendsThenLoses), "", doubt},
			{person(isSent), "", "done duplicate: sent resolved_by_operator 1"},
			{nil, receipt.Sent, "done settled: sent 1"},
		}},
		"no report of before keeps a person from sending it again": {false, []step{
			{nil, "", sent},
			{person(receipt.Again), receipt.Delivered, "done duplicate: failed resolved_by_operator 1"},
			{nil, "", "done settled: sent 2"},
		}},
		"a report about a lost receipt": {false, []step{{nil, receipt.Sent, "park receipt_lost: 0"}}},
		"a report about a receipt that changes with every look": {false, []step{
			{nil, "", sent},
			{save(order.ErrStale), receipt.Delivered, "redeliver claim_lost: sent 1"},
			{heal, receipt.Delivered, "done settled: delivered 1"},
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			w.AtLeastOnce = tt.atLeastOnce
			for _, s := range tt.steps {
				if s.before != nil {
					s.before(w)
				}
				if s.report != "" {
					w.want(w.report(s.report), s.want)
				} else {
					w.want(w.deliver(), s.want)
				}
			}
		})
	}
}

func TestNothingIsClaimedWithoutTimeToRecordIt(t *testing.T) {
	w := newWorld(t)
	w.want(w.deliverFor(5*time.Second-1), "redeliver out_of_time: 0")
	w.want(w.deliverFor(5*time.Second), "done settled: sent 1")
	want := receipt.Item{
		OrderID: "ORD-1", Key: receipt.Paid, Status: receipt.Sent, Attempt: 1, Message: "message-1", Revision: 2,
		CreatedAt: noon(), UpdatedAt: noon(),
	}
	if diff := cmp.Diff(w.item(), want); diff != "" {
		t.Errorf("item (-got +want):\n%s", diff)
	}
	if w.deliver(); w.payers.Calls() != 2 {
		t.Errorf("%d look-ups, want 2: a duplicate needs none", w.payers.Calls())
	}
}

// The report that came before the answer was counted; the answer wrote nothing.
func TestAnAnswerThatWritesNothingIsNotCounted(t *testing.T) {
	w := newWorld(t)
	w.during(func() { w.report(receipt.Delivered) })
	if r := w.deliver(); r.Receipt != "" {
		t.Errorf("counted as %s, want nothing", r.Receipt)
	}
}

// A person must learn why the e-mail was not sent, and why that is not recorded.
func TestAResultThatIsNotRecordedKeepsItsCause(t *testing.T) {
	for f, sent := range map[receipttest.Fate]int{
		receipttest.IsThrottled: 0, receipttest.SendsThenLoses: 1, receipttest.Accepts: 1,
	} {
		w := newWorld(t)
		w.mailbox.Plan(f)
		die(w)
		r := w.deliver()
		w.want(r, fmt.Sprint("redeliver store_unavailable: sending ", sent))
		_, refused := errors.AsType[*receipt.SendError](r.Err)
		recorded := strings.Contains(r.Err.Error(), "e-mail message-1 was sent and is not recorded")
		if !errors.Is(r.Err, errDied) || refused == recorded || recorded != (f == receipttest.Accepts) {
			t.Errorf("%s: got error %v, want both causes", f, r.Err)
		}
	}
}

func isSent(i receipt.Item, at time.Time) (receipt.Item, error) { return receipt.Resolve(i, true, at) }

func isNotSent(i receipt.Item, at time.Time) (receipt.Item, error) {
	return receipt.Resolve(i, false, at)
}

func TestAPersonDecides(t *testing.T) {
	const person = receipt.ResolvedByOperator
	for claim, tt := range map[string]struct {
		status  receipt.Status
		failure string
		decide  func(receipt.Item, time.Time) (receipt.Item, error)
		want    receipt.Status // "": refused
	}{
		"a doubt was sent":                {receipt.Doubtful, "no_response", isSent, receipt.Sent},
		"a doubt was not sent":            {receipt.Doubtful, "no_response", isNotSent, receipt.Failed},
		"it was not sent after all":       {receipt.Sent, person, isNotSent, receipt.Failed},
		"it was sent after all":           {receipt.Failed, person, isSent, receipt.Sent},
		"the provider says sent":          {receipt.Sent, "", isNotSent, ""},
		"the provider says delivered":     {receipt.Delivered, "", isNotSent, ""},
		"the provider refused it":         {receipt.Failed, "MessageRejected", isSent, ""},
		"again, though it was sent":       {receipt.Sent, person, receipt.Again, receipt.Failed},
		"again, though it was delivered":  {receipt.Delivered, "", receipt.Again, receipt.Failed},
		"again, to another address":       {receipt.Bounced, "General", receipt.Again, receipt.Failed},
		"again, while it is being sent":   {receipt.Sending, "", receipt.Again, ""},
		"again, though nobody knows":      {receipt.Doubtful, "no_response", receipt.Again, ""},
		"again, though there is none yet": {"", "", receipt.Again, ""},
	} {
		before := receipt.Item{OrderID: "ORD-1", Key: receipt.Paid, Status: tt.status, Failure: tt.failure, Revision: 2}
		after, err := tt.decide(before, noon())
		if tt.want == "" {
			if err == nil || after != before {
				t.Errorf("%s: got %+v, %v, want an error", claim, after, err)
			}
			continue
		}
		if err != nil || after.Status != tt.want || after.Failure != person || after.Revision != 3 {
			t.Errorf("%s: got %+v, %v, want it %s", claim, after, err, tt.want)
		}
		if twice, err := tt.decide(after, noon()); err != nil || twice != after {
			t.Errorf("%s, twice: got %+v, %v, want no change", claim, twice, err)
		}
	}
}
