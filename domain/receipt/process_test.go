package receipt_test

import (
	"context"
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

// world is one receipt. Time passes only when a test sets it.
type world struct {
	*testing.T

	store   *receipttest.Memory
	mailbox *receipttest.Mailbox
	payers  *receipttest.Payers
	again   bool // at least once
	now     time.Time
	workers int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{
		T: t, store: new(receipttest.Memory), mailbox: new(receipttest.Mailbox), payers: new(receipttest.Payers), now: noon(),
	}
}

func (w *world) processor() *receipt.Processor {
	renderer, err := receipt.NewRenderer()
	if err != nil {
		w.Fatal(err)
	}
	return &receipt.Processor{
		Store: w.store, Payers: w.payers, Mailer: w.mailbox, Render: renderer.Render,
		Now: func() time.Time { return w.now }, SendTime: 5 * time.Second, AtLeastOnce: w.again,
	}
}

func paid() receipt.Request {
	return receipt.Request{
		OrderID: "ORD-1", Key: receipt.Paid, Total: order.Money{Amount: 3998, Currency: "usd"}, Intent: "pi_1", At: noon(),
	}
}

// deliver delivers the event to a new worker, which has 30 seconds.
func (w *world) deliver() receipt.Result {
	w.workers++
	return w.processor().Process(w.Context(), paid(), order.Lease{
		Owner: fmt.Sprintf("worker-%d", w.workers), From: w.now, Until: w.now.Add(30 * time.Second),
	})
}

// die delivers the event to a worker that dies when its request was sent.
func (w *world) die() {
	w.Helper()
	died := errors.New("died")
	w.store.Fault = func(before, _ receipt.Item) (bool, error) {
		if before.Status == receipt.Sending {
			return false, died
		}
		return false, nil
	}
	if r := w.deliver(); !errors.Is(r.Err, died) {
		w.Fatalf("got %+v, want the worker dead", r)
	}
	w.store.Fault = nil
}

// report delivers an event of the e-mail service about its first message.
func (w *world) report(s receipt.Status) receipt.Result {
	return w.processor().Follow(w.Context(), "ORD-1", receipt.Paid, receipt.Report{Message: "message-1", Status: s, Attempt: 1})
}

// outcome is what a delivery and the world look like afterwards.
type outcome struct {
	Verdict order.Verdict
	Reason  order.Reason
	Status  receipt.Status // of the receipt
	Sent    int            // e-mails
}

func (w *world) outcome(r receipt.Result) outcome {
	w.Helper()
	return outcome{r.Verdict, r.Reason, w.item().Status, len(w.mailbox.Sent())}
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

func (w *world) want(r receipt.Result, want outcome) {
	w.Helper()
	if want := r.Verdict == order.Redeliver; r.Transient != want { // or it would be parked after 20 deliveries
		w.Errorf("transient = %t, want %t: %+v", r.Transient, want, r)
	}
	if diff := cmp.Diff(w.outcome(r), want); diff != "" {
		w.Errorf("(-got +want):\n%s\nerror: %v", diff, r.Err)
	}
}

func TestAReceiptIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
	w.want(w.deliver(), outcome{order.Done, order.ReasonDuplicate, receipt.Sent, 1})
	if w.payers.Calls() != 1 {
		t.Errorf("%d look-ups, want 1: a duplicate needs none", w.payers.Calls())
	}
	want := receipt.Item{
		OrderID: "ORD-1", Key: receipt.Paid, Status: receipt.Sent, Attempt: 1, Message: "message-1", Revision: 2,
		CreatedAt: noon(), UpdatedAt: noon(),
	}
	if diff := cmp.Diff(w.item(), want); diff != "" {
		t.Errorf("item (-got +want):\n%s", diff)
	}
}

func TestADoubtIsNeverSentAgainByItself(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		fate receipttest.Fate
		sent int
	}{
		"the answer was lost":  {receipttest.SendsThenLoses, 1},
		"the request was lost": {receipttest.LosesTheRequest, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mailbox.Plan(tt.fate)
			w.want(w.deliver(), outcome{order.Done, receipt.ReasonDoubtful, receipt.Doubtful, tt.sent})
			for range 3 {
				w.now = w.now.Add(24 * time.Hour)
				w.want(w.deliver(), outcome{order.Done, order.ReasonDuplicate, receipt.Doubtful, tt.sent})
			}
		})
	}
}

func TestAWorkerThatDiesLeavesOneDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.die()
	r := w.deliver()
	w.want(r, outcome{order.Redeliver, order.ReasonInProgress, receipt.Sending, 1})
	if until := noon().Add(30 * time.Second); !r.NotBefore.Equal(until) {
		t.Errorf("redelivered not before %v, want the end of the lease, %v", r.NotBefore, until)
	}
	w.now = w.now.Add(31 * time.Second)
	r = w.deliver()
	w.want(r, outcome{order.Done, receipt.ReasonDoubtful, receipt.Doubtful, 1})
	if r.Receipt != receipt.Doubtful || r.Err == nil {
		t.Errorf("got %+v, want a doubt to count and its cause", r)
	}
	w.want(w.deliver(), outcome{order.Done, order.ReasonDuplicate, receipt.Doubtful, 1})
}

func TestAtLeastOnceSendsADoubtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.again = true
	w.die()
	w.want(w.deliver(), outcome{order.Redeliver, order.ReasonInProgress, receipt.Sending, 1})
	w.now = w.now.Add(31 * time.Second)
	w.mailbox.Plan(receipttest.SendsThenLoses)
	w.want(w.deliver(), outcome{order.Redeliver, receipt.ReasonDoubtful, receipt.Doubtful, 2})
	w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 3})
	if i := w.item(); i.Attempt != 3 {
		t.Errorf("%d attempts, want 3", i.Attempt)
	}
}

func TestAResultNamesItsAttempt(t *testing.T) {
	t.Parallel()
	const trace = order.Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	w := newWorld(t)
	w.again = true
	request := paid()
	request.Trace = trace
	deliver := func() order.Result {
		l := order.Lease{Owner: "owner", From: w.now, Until: w.now.Add(time.Minute)}
		r := w.processor().Process(t.Context(), request, l)
		r.Err = nil
		return r.Result
	}
	w.mailbox.Plan(receipttest.IsThrottled)
	want := order.Result{
		Verdict: order.Redeliver, Reason: receipt.ReasonMailUnavailable, Transient: true, Attempt: 1, Intent: "pi_1", Trace: trace,
	}
	if diff := cmp.Diff(deliver(), want); diff != "" {
		t.Errorf("first result (-got +want):\n%s", diff)
	}
	w.die()
	w.now = w.now.Add(time.Hour)
	want = order.Result{
		Verdict: order.Done, Reason: order.ReasonSettled, Attempt: 3, Takeover: true, Intent: "pi_1", Trace: trace,
	}
	if diff := cmp.Diff(deliver(), want); diff != "" {
		t.Errorf("result after a takeover (-got +want):\n%s", diff)
	}
	for i, m := range w.mailbox.Sent() {
		if m.OrderID != "ORD-1" || m.Key != receipt.Paid || m.Attempt != i+2 {
			t.Errorf("e-mail of order %q, receipt %q, attempt %d, want those of its claim", m.OrderID, m.Key, m.Attempt)
		}
	}
}

// A person must learn why the e-mail was not sent, and why that is not recorded.
func TestAResultThatIsNotRecordedKeepsItsCause(t *testing.T) {
	t.Parallel()
	for fate, want := range map[receipttest.Fate]outcome{
		receipttest.IsThrottled:    {order.Redeliver, order.ReasonStore, receipt.Sending, 0},
		receipttest.SendsThenLoses: {order.Redeliver, order.ReasonStore, receipt.Sending, 1},
		receipttest.Accepts:        {order.Redeliver, order.ReasonStore, receipt.Sending, 1},
	} {
		w := newWorld(t)
		w.mailbox.Plan(fate)
		down := errors.New("the table is down")
		w.store.Fault = func(before, _ receipt.Item) (bool, error) {
			if before.Status == receipt.Sending {
				return false, down
			}
			return false, nil
		}
		r := w.deliver()
		w.want(r, want)
		var refused *receipt.SendError
		if !errors.Is(r.Err, down) || fate != receipttest.Accepts && !errors.As(r.Err, &refused) {
			t.Errorf("%s: got error %v, want both causes", fate, r.Err)
		}
		if fate == receipttest.Accepts && !strings.Contains(r.Err.Error(), "e-mail message-1 was sent and is not recorded") {
			t.Errorf("got error %v, want the e-mail that was sent", r.Err)
		}
	}
}

func TestAReceiptThatCannotBeRenderedIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.processor()
	p.Render = func(receipt.Request, receipt.Payer) (receipt.Mail, error) {
		return receipt.Mail{}, errors.New("bad template")
	}
	r := p.Process(t.Context(), paid(), order.Lease{Owner: "owner", From: w.now, Until: w.now.Add(time.Minute)})
	w.want(r, outcome{order.Park, receipt.ReasonRender, "", 0})
}

// An earlier attempt may have sent it, so it has not failed.
func TestAnAddressThatIsGoneDoesNotEndADoubt(t *testing.T) {
	t.Parallel()
	for claim, doubt := range map[string]func(*world){
		"no answer":     func(w *world) { w.mailbox.Plan(receipttest.SendsThenLoses); w.deliver() },
		"a dead worker": (*world).die,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.again = true
			doubt(w)
			w.now = w.now.Add(31 * time.Second)
			w.payers.Err = receipt.ErrNoAddress
			for range 2 {
				w.want(w.deliver(), outcome{order.Done, receipt.ReasonNoAddress, receipt.Doubtful, 1})
			}
			w.want(w.report(receipt.Sent), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
		})
	}
}

func TestADefiniteRefusalIsSentAgain(t *testing.T) {
	t.Parallel()
	for fate, tt := range map[receipttest.Fate]outcome{
		receipttest.IsThrottled:     {order.Redeliver, receipt.ReasonMailUnavailable, receipt.Failed, 0},
		receipttest.IsMisconfigured: {order.Redeliver, receipt.ReasonMailMisconfigured, receipt.Failed, 0},
		receipttest.Refuses:         {order.Park, receipt.ReasonMailRefused, receipt.Failed, 0},
	} {
		t.Run(string(fate), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mailbox.Plan(fate)
			w.want(w.deliver(), tt)
			codes := map[receipttest.Fate]string{
				receipttest.IsThrottled: "TooManyRequestsException", receipttest.IsMisconfigured: "SendingPausedException",
				receipttest.Refuses: "MessageRejected",
			}
			if got := w.item().Failure; got != codes[fate] {
				t.Errorf("failure = %q, want %q", got, codes[fate])
			}
			w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
			if got := w.item().Failure; got != "" {
				t.Errorf("failure of a receipt that was sent = %q, want none", got)
			}
		})
	}
}

// Nothing that fails before the claim leaves a trace of a send.
func TestWhatFailsBeforeTheClaimLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		fail func(*world)
		want outcome
	}{
		"the payment provider is down": {
			func(w *world) {
				w.payers.Err = &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("503")}
			},
			outcome{order.Redeliver, order.ReasonUnavailable, "", 0},
		},
		"the claim is not written": {
			func(w *world) {
				w.store.Fault = func(_, _ receipt.Item) (bool, error) { return false, errors.New("throttled") }
			},
			outcome{order.Redeliver, order.ReasonStore, "", 0},
		},
		"another worker claims at the same moment": {
			func(w *world) {
				w.store.Fault = func(_, _ receipt.Item) (bool, error) { return false, order.ErrStale }
			},
			outcome{order.Redeliver, order.ReasonClaimLost, "", 0},
		},
		"the payer has no address": {
			func(w *world) { w.payers.Err = receipt.ErrNoAddress },
			outcome{order.Done, receipt.ReasonNoAddress, receipt.Failed, 0},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.fail(w)
			w.want(w.deliver(), tt.want)
			if w.mailbox.Calls() != 0 {
				t.Errorf("%d requests to the e-mail service, want none", w.mailbox.Calls())
			}
			w.payers.Err, w.store.Fault = nil, nil
			w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
		})
	}
}

func TestAMissingAddressIsRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.payers.Err = receipt.ErrNoAddress
	for range 3 {
		w.want(w.deliver(), outcome{order.Done, receipt.ReasonNoAddress, receipt.Failed, 0})
	}
	if i := w.item(); i.Revision != 1 || i.Failure != "no_address" {
		t.Errorf("got %+v, want one write", i)
	}
}

func TestNothingIsClaimedWithoutTimeToRecordIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.processor().Process(t.Context(), paid(), order.Lease{Owner: "late", From: w.now, Until: w.now.Add(5*time.Second - 1)})
	w.want(r, outcome{order.Redeliver, order.ReasonOutOfTime, "", 0})
}

// The process was frozen between the claim and the request. A person may soon decide that
// nothing was sent, and must be right.
func TestNothingIsSentAfterTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Fault = func(_, after receipt.Item) (bool, error) {
		if after.Status == receipt.Sending {
			w.now = w.now.Add(time.Hour)
		}
		return false, nil
	}
	w.want(w.deliver(), outcome{order.Redeliver, order.ReasonOutOfTime, receipt.Failed, 0})
	if w.mailbox.Calls() != 0 {
		t.Errorf("%d requests to the e-mail service, want none", w.mailbox.Calls())
	}
	w.store.Fault = nil
	w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
}

// The process was frozen before it looked. By its lease, the claim of another worker
// would end too far in the future to be true.
func TestAFrozenWorkerDoesNotDoubtAClaimThatIsRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mailbox.During = func(receipt.Mail) {
		w.mailbox.During = nil
		r := w.processor().Process(t.Context(), paid(), order.Lease{
			Owner: "frozen", From: w.now.Add(-time.Hour), Until: w.now.Add(-59 * time.Minute),
		})
		w.want(r, outcome{order.Redeliver, order.ReasonInProgress, receipt.Sending, 1})
	}
	w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
}

// The worker is slower than its lease. What it knows corrects the doubt.
func TestALateAnswerResolvesTheDoubtThatAnotherWorkerRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mailbox.During = func(receipt.Mail) {
		w.mailbox.During = nil
		w.now = w.now.Add(time.Minute)
		w.want(w.deliver(), outcome{order.Done, receipt.ReasonDoubtful, receipt.Doubtful, 1})
	}
	w.want(w.deliver(), outcome{order.Done, order.ReasonSettled, receipt.Sent, 1})
}

// The e-mail service's event is faster than its answer.
func TestAReportBeforeTheAnswerIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mailbox.During = func(receipt.Mail) {
		w.want(w.report(receipt.Delivered), outcome{order.Done, order.ReasonSettled, receipt.Delivered, 1})
	}
	r := w.deliver()
	w.want(r, outcome{order.Done, order.ReasonSettled, receipt.Delivered, 1})
	if r.Receipt != "" {
		t.Errorf("counted as %s, want nothing: the report was counted, and the answer wrote nothing", r.Receipt)
	}
}

func TestAReportResolvesADoubt(t *testing.T) {
	t.Parallel()
	for _, s := range []receipt.Status{receipt.Sent, receipt.Delivered, receipt.Bounced} {
		w := newWorld(t)
		w.mailbox.Plan(receipttest.SendsThenLoses)
		w.deliver()
		w.want(w.report(s), outcome{order.Done, order.ReasonSettled, s, 1})
		w.want(w.report(s), outcome{order.Done, order.ReasonDuplicate, s, 1})
		w.want(w.deliver(), outcome{order.Done, order.ReasonDuplicate, s, 1})
	}
}

// The provider stops the first e-mail, so the event of the order sends another one. Then
// the report that stopped the first arrives again: while the second is being sent, and
// while nobody knows whether it was.
func TestARepeatedReportThatAnEarlierEmailWasStoppedSendsNoThird(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		fate   receipttest.Fate
		during bool // the report is repeated before the answer, not after it
		want   outcome
	}{
		"while it is sent":              {receipttest.Accepts, true, outcome{order.Done, order.ReasonDuplicate, receipt.Sent, 2}},
		"while it is sent without news": {receipttest.SendsThenLoses, true, outcome{order.Done, order.ReasonDuplicate, receipt.Doubtful, 2}},
		"while it is doubtful":          {receipttest.SendsThenLoses, false, outcome{order.Done, order.ReasonDuplicate, receipt.Doubtful, 2}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deliver()
			w.want(w.report(receipt.Failed), outcome{order.Done, order.ReasonSettled, receipt.Failed, 1})
			w.mailbox.Plan(tt.fate)
			if tt.during {
				w.mailbox.During = func(receipt.Mail) { w.report(receipt.Failed) }
			}
			w.deliver()
			w.report(receipt.Failed)
			w.want(w.deliver(), tt.want)
		})
	}
}

func TestAReportAboutALostReceiptIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(w.report(receipt.Sent), outcome{order.Park, receipt.ReasonLost, "", 0})
}

// A receipt that changes with every look is redelivered.
func TestAReportGivesUpAfterThreeTries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver()
	tries := 0
	w.store.Fault = func(_, _ receipt.Item) (bool, error) { tries++; return false, order.ErrStale }
	w.want(w.report(receipt.Delivered), outcome{order.Redeliver, order.ReasonClaimLost, receipt.Sent, 1})
	if tries != 3 {
		t.Errorf("%d tries, want 3", tries)
	}
}

// unreadable is a store that cannot be read again.
type unreadable struct {
	*receipttest.Memory

	reads int
}

var errRead = errors.New("read throttled")

func (u *unreadable) Load(ctx context.Context, id order.ID, k receipt.Key) (receipt.Item, error) {
	if u.reads++; u.reads > 1 {
		return receipt.Item{}, errRead
	}
	return u.Memory.Load(ctx, id, k)
}

func TestAReportThatCannotBeComparedIsRedelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver()
	w.store.Fault = func(_, _ receipt.Item) (bool, error) { return false, order.ErrStale }
	p := w.processor()
	p.Store = &unreadable{Memory: w.store}
	r := p.Follow(t.Context(), "ORD-1", receipt.Paid, receipt.Report{Message: "message-1", Status: receipt.Delivered, Attempt: 1})
	w.want(r, outcome{order.Redeliver, order.ReasonStore, receipt.Sent, 1})
	if !errors.Is(r.Err, errRead) {
		t.Errorf("got error %v, want %v", r.Err, errRead)
	}
}

func TestAPersonResolvesADoubt(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		decision receipt.Decision
		status   receipt.Status
		next     outcome // of another delivery
	}{
		"as sent":     {receipt.WasSent, receipt.Sent, outcome{order.Done, order.ReasonDuplicate, receipt.Sent, 1}},
		"as not sent": {receipt.NotSent, receipt.Failed, outcome{order.Done, order.ReasonSettled, receipt.Sent, 2}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mailbox.Plan(receipttest.SendsThenLoses)
			w.deliver()
			resolver := receipt.Resolver{Store: w.store, Now: w.processor().Now}
			got, err := resolver.Resolve(t.Context(), w.item(), tt.decision)
			if err != nil || got.Status != tt.status || got != w.item() || got.Failure != receipt.ResolvedByOperator {
				t.Errorf("got %+v, %v, want %s", got, err, tt.status)
			}
			var none *receipt.NotDoubtfulError
			if _, err := resolver.Resolve(t.Context(), w.item(), tt.decision); !errors.As(err, &none) {
				t.Errorf("a second time: got %v, want a NotDoubtfulError", err)
			}
			w.want(w.deliver(), tt.next)
		})
	}
}

// Two people look at one doubt. By the time that the second answers, the e-mail was sent
// again, and that is in doubt, too.
func TestADecisionIsAboutTheDoubtThatThePersonSaw(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resolver := receipt.Resolver{Store: w.store, Now: w.processor().Now}
	w.mailbox.Plan(receipttest.LosesTheRequest, receipttest.SendsThenLoses)
	w.deliver()
	seen := w.item()
	if _, err := resolver.Resolve(t.Context(), seen, receipt.NotSent); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if _, err := resolver.Resolve(t.Context(), seen, receipt.NotSent); !errors.Is(err, order.ErrStale) {
		t.Errorf("got %v, want ErrStale", err)
	}
	w.want(w.deliver(), outcome{order.Done, order.ReasonDuplicate, receipt.Doubtful, 1})
}
