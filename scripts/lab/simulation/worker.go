package simulation

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Consumer is what runs in a world instead of the product, such as a baseline. Each of
// its calls to a table goes through Worker.Table and each to Stripe through
// Worker.RoundTrip, so that each is a step. It has no clock but Worker.Now.
type Consumer interface {
	// Consume handles one delivery. An error is a message that comes back.
	Consume(k *Worker, messageID, body string) error
	// Done reports whether the consumer's table says that the order needs no work any
	// more.
	Done(id order.ID) bool
}

// Worker is one delivery, or one operator: a coroutine that stands still before each of
// its calls until the world lets it go on.
type Worker struct {
	*World

	in       *invocation // of the deployed handler; nil: it does less
	name     string
	messages []sqstest.Message // none: an operator
	asks     order.ID          // an operator's question
	at       call              // the one it stands before
	fault    Fault             // of the call that it makes now
	armed    bool              // the fault has not happened yet
	calls    int               // so far, to the store and to Stripe
	begun    time.Time         // when it began
	stood    time.Time         // when it came to the call before which it stands, by its own clock
	knows    knowledge         // what the oracle holds it to
	seen     trace             // of all that it was told
	next     func() (call, bool)
	stop     func()
	wait     func(call) bool

	frozen    bool
	frozenAt  time.Time
	losesTime bool          // its clock stands still as long as it is frozen
	behind    time.Duration // how slow its clock is
	absurd    bool          // its clock is years off
	old       bool          // it is of the older release
	settled   bool          // the order was when this delivery began
	dead      bool
}

// gone unwinds a worker that is dead.
type gone struct{}

func (w *World) newWorker(m []sqstest.Message) *Worker {
	k := &Worker{World: w, name: nameOf(w.born), messages: m}
	k.begun = k.Now()
	w.born++
	if w.Batch > 0 && len(m) > 0 {
		k.liveInHandler()
		return k
	}
	k.next, k.stop = iter.Pull(func(wait func(call) bool) {
		defer func() {
			if p := recover(); p != nil && p != (gone{}) {
				panic(p)
			}
		}()
		k.wait = wait
		k.live()
	})
	return k
}

// nameOf is A to Z, then A1.
func nameOf(n int) string {
	name := string(rune('A' + n%26))
	if n >= 26 {
		name += strconv.Itoa(n / 26)
	}
	return name
}

// live is what the deployed handler does with one record: decode, process, answer.
func (k *Worker) live() {
	if len(k.messages) == 0 {
		k.refresh()
		return
	}
	m := k.messages[0]
	result := k.work(m)
	d := sqs.Delivery{Count: m.Receives, SentAt: m.Sent}
	action := sqs.Decide(result, d, k.Now(), 0.5, k.policy)
	for {
		what := call{
			name: reply, subject: string(action.Verdict), n: numberOf(m) + 1, detail: string(result.Reason),
		}
		err := k.call(what, func() (answer, error) {
			return k.answer(m, action, result.Reason), nil
		})
		if err == nil || action.Verdict != order.Park {
			return // a worker that cannot answer has nothing left to do
		}
		action = sqs.Action{Verdict: order.Redeliver, Delay: k.policy.FirstDelay}
	}
}

func (k *Worker) refresh() {
	_, err := order.Refresh(context.Background(), records{k}, payments{k}, scope, k.asks, k.Now())
	_, mismatch := errors.AsType[*order.MismatchError](err)
	if err != nil && !mismatch && !errors.Is(err, order.ErrNoIntent) {
		k.oracle.of(k.asks).touched = true // somebody has to ask again
	}
}

func (k *Worker) work(m sqstest.Message) order.Result {
	if k.other != nil {
		if err := k.other.Consume(k, m.ID, m.Body); err != nil {
			return order.Result{Verdict: order.Redeliver, Reason: "error", Err: err}
		}
		return order.Result{Verdict: order.Done, Reason: "no error"}
	}
	if poison := k.Messages[numberOf(m)].Poison; poison != "" {
		_, err := k.lab.decoder.Decode(poison)
		return order.Result{Verdict: order.Park, Reason: order.ReasonInvalid, Err: err}
	}
	born := k.Now()
	lease := order.Lease{Owner: "owner-" + k.name, From: born, Until: born.Add(functionTime)}
	return k.processor().Process(context.Background(), k.lab.order(m.Body), m.Sent, lease)
}

func (k *Worker) processor() *order.Processor {
	return &order.Processor{
		Claims: claims{k}, Payments: payments{k}, Scope: scope, Now: k.Now, ConfirmTime: confirmTime,
	}
}

// Now is the worker's own clock.
func (k *Worker) Now() time.Time { return k.now.Add(-k.behind) }

// oddity says what is unusual about a worker.
func (k *Worker) oddity() string {
	switch {
	case k.old:
		return "of the older release"
	case k.behind != 0:
		return "whose clock is " + k.behind.String() + " behind"
	}
	return ""
}

// answer does to the queue what the handler and Lambda do. The queue may refuse: it has
// delivered the message again since.
func (k *Worker) answer(m sqstest.Message, a sqs.Action, why order.Reason) answer {
	var err error
	said := answer{text: "ok"}
	switch a.Verdict {
	case order.Done:
		k.oracle.acknowledged(k, m)
		err = k.queue.Delete(k.now, k.ordersQueue, m.Receipt)
	case order.Park:
		k.parks(m, why)
		attributes := map[string]sqstest.Attribute{
			sqs.AttrReason: sqstest.Text(string(why)),
			number:         m.Attributes[number],
		}
		draft := sqstest.Draft{Body: m.Body, Attributes: attributes}
		if _, err = k.queue.Send(k.now, k.deadQueue, draft); err == nil {
			err = k.queue.Delete(k.now, k.ordersQueue, m.Receipt)
		}
	case order.Redeliver:
		if k.telling {
			said.text = "it comes back in " + a.Delay.String()
		}
		err = k.hide(m.Receipt, a.Delay)
	}
	if err != nil {
		said.text = err.Error()
	}
	return said
}

// parks notes that a message becomes a dead letter, in the oracle and in the order's row.
func (k *Worker) parks(m sqstest.Message, why order.Reason) {
	k.oracle.parked(k, m, why)
	if k.other == nil && k.Messages[numberOf(m)].Poison == "" {
		must(records{k}.Park(context.Background(), k.lab.order(m.Body), why, k.Now()))
	}
}

// call stands still, then makes a call with the fault that the world has chosen
// meanwhile.
func (k *Worker) call(c call, do func() (answer, error)) error {
	k.stood = k.Now()
	if k.dead || !k.wait(c) {
		k.die()
	}
	if c.to() != "queue" {
		k.calls++
	}
	k.oracle.asks(k, c)
	fault := k.fault
	if fault == Panics {
		panic("a bug")
	}
	said, err := k.faulty(c, do)
	k.oracle.hears(k, c, said, err)
	k.seen.text(string(c.name))
	k.seen.text(string(fault))
	k.seen.answer(said, err)
	if k.telling {
		k.tellCall(c, said, err)
	}
	if fault.kills() {
		k.die()
	}
	return err
}

func (k *Worker) tellCall(c call, said answer, err error) {
	text := said.String()
	if err != nil {
		text = brief(err)
	}
	if k.fault != None && !errors.Is(err, errDenied) {
		text = string(k.fault)
	}
	k.tell(k.name, c.to(), c.String(), text)
}

// faulty makes a call. Faults at Stripe happen there, see ask.
func (k *Worker) faulty(c call, do func() (answer, error)) (answer, error) {
	if c.toStripe() {
		return do()
	}
	if k.denied(c) {
		k.oracle.disturbed()
		return answer{}, errDenied
	}
	switch k.fault { //nolint:exhaustive // with the others it happens
	case NeverArrives, Throttled, Conflicts:
		return answer{}, ordertest.ErrConnection
	case ArrivesLate:
		k.later("what "+k.name+" sent arrives: ", c, func() { _, _ = do() })
		return answer{}, ordertest.ErrConnection
	case LosesAnswer:
		_, _ = do()
		return answer{}, ordertest.ErrConnection
	}
	return do()
}

// later leaves something on its way.
func (k *Worker) later(what string, c call, happen func()) {
	if k.telling {
		what += c.String()
	}
	k.late = append(
		k.late,
		late{what: what, acting: k.acting, deed: k.World.deed, state: k.seen, happen: happen},
	)
}

// deed is what changes the world in a step: a call, and what its worker knew when it made
// it.
type deed struct {
	by    *Worker // nil: no worker
	call  call
	at    time.Time // by the worker's clock
	knows knowledge
}

func (k *Worker) deed() deed { return deed{by: k, call: k.at, at: k.stood, knows: k.knows} }

// brief is the part of an error that a history has room for.
func brief(err error) string {
	if p, ok := errors.AsType[*order.PaymentError](err); ok {
		return string(p.Kind)
	}
	return err.Error()
}
