package prove

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// reply is a worker's last call: what becomes of the message.
const reply ordertest.Call = "reply"

// call is what a worker is about to do.
type call struct {
	name ordertest.Call
	what string
}

// worker is one delivery: a coroutine that stands still before each of its calls until the world lets it go on.
type worker struct {
	*World

	name    string
	message sqstest.Message
	at      call  // the one it stands before
	fault   Fault // of the call that it makes now
	next    func() (call, bool)
	stop    func()
	park    func(call) bool

	frozen    bool
	frozenAt  time.Time
	losesTime bool          // its clock stands still as long as it is frozen
	behind    time.Duration // how slow its clock is
}

// gone unwinds a worker that is dead.
type gone struct{}

func (w *World) newWorker(m sqstest.Message) *worker {
	k := &worker{World: w, name: fmt.Sprintf("%c", 'A'+w.born), message: m}
	w.born++
	k.next, k.stop = iter.Pull(func(park func(call) bool) {
		defer func() {
			if p := recover(); p != nil && p != (gone{}) {
				panic(p)
			}
		}()
		k.park = park
		k.live()
	})
	return k
}

// live is what the deployed handler does with one record: decode, process, answer.
func (k *worker) live() {
	o, err := k.decoder.Decode(k.message.Body)
	must(err)
	p := order.Processor{Claims: claims{k}, Payments: payments{k}, Scope: scope, Now: k.clock, ConfirmTime: confirmTime}
	born := k.clock()
	result := p.Process(context.Background(), o, order.Lease{Owner: "owner-" + k.name, From: born, Until: born.Add(functionTime)})
	d := sqs.Delivery{Count: k.message.Receives, SentAt: k.message.Sent}
	action := sqs.Answer(result, d, k.clock(), 0.5, sqs.DefaultPolicy())
	_ = k.call(reply, fmt.Sprintf("%s %s (%s)", action.Verdict, k.numbered(k.message), result.Reason), func() (string, error) {
		return k.answer(action, result.Reason), nil
	}) // a worker that cannot answer has nothing left to do
}

// clock is the worker's own.
func (k *worker) clock() time.Time { return k.now.Add(-k.behind) }

// answer does to the queue what the handler and Lambda do. The queue may refuse: it has delivered the message again since.
func (k *worker) answer(a sqs.Action, why order.Reason) string {
	var err error
	ok, number := "ok", k.numbers[k.message.ID]
	switch a.Verdict {
	case order.Done:
		k.oracle.acknowledged(k.World, number)
		err = k.queue.Delete(k.now, orders, k.message.Receipt)
	case order.Park:
		k.oracle.parked(k.World, number, why)
		if _, err = k.queue.Send(k.now, dead, sqstest.Draft{
			Body: k.message.Body, Attributes: map[string]sqstest.Attribute{sqs.AttrReason: sqstest.Text(string(why))},
		}); err == nil {
			err = k.queue.Delete(k.now, orders, k.message.Receipt)
		}
	case order.Redeliver:
		ok = "it comes back in " + a.Delay.String()
		err = k.queue.ChangeVisibility(k.now, orders, k.message.Receipt, a.Delay)
	}
	if err != nil {
		return err.Error()
	}
	return ok
}

// call stands still, then makes a call with the fault that the world has chosen meanwhile.
func (k *worker) call(name ordertest.Call, what string, do func() (string, error)) error {
	if !k.park(call{name, what}) {
		panic(gone{})
	}
	answer, err := k.faulty(name, do)
	if err != nil {
		answer = brief(err)
	}
	if k.fault != None {
		answer = string(k.fault)
	}
	k.tell(k.name, what, answer)
	if k.fault == Dies {
		panic(gone{})
	}
	return err
}

func (k *worker) faulty(name ordertest.Call, do func() (string, error)) (string, error) {
	if fault, at := k.stripeFault(name); at {
		k.stripe.Fail(fault)
		defer k.stripe.Heal() // a replayed answer may have left it armed
		return do()
	}
	if k.fault == NeverArrives {
		return "", ordertest.ErrConnection
	}
	answer, err := do()
	if k.fault == LosesAnswer {
		err = ordertest.ErrConnection
	}
	return answer, err
}

// brief is the part of an error that a history has room for.
func brief(err error) string {
	if p, ok := errors.AsType[*order.PaymentError](err); ok {
		return string(p.Trouble)
	}
	return err.Error()
}
