package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
	"orderonce/scripts/lab/stage"
)

// Receipts is a world with the event of one paid order, which arrives twice.
type Receipts struct {
	AtLeastOnce bool
	Reports     bool // the e-mail service reports what it accepted
	// Stops makes the service stop the first e-mail that it accepted, and report that
	// twice: before and after the event of the order comes again.
	Stops bool
	// Person makes an operator look for a doubt after 20 minutes, and again. The operator
	// looks into the mailbox, so the decision is right when it is made, and publishes the
	// event again if nothing was sent.
	Person bool
}

// World returns the world.
func (r Receipts) World() World {
	name, less := "receipts, at most once", 0
	if r.AtLeastOnce {
		name = "receipts, at least once"
	}
	for _, x := range []struct {
		is   bool
		name string
	}{{r.Reports, "with reports"}, {r.Stops, "the first e-mail stopped"}, {r.Person, "an operator decides"}} {
		if x.is {
			name += ", " + x.name
		}
	}
	if r.Stops || r.Person && r.Reports {
		less = 1 // these worlds are large
	}
	return World{Less: less, Scenario: stage.Scenario{Name: name, Play: func(s *stage.Stage) {
		w := receiptWorld{Stage: s, Receipts: r, store: new(receipttest.Memory)}
		var tasks []*task
		if r.Person {
			tasks = append(tasks, w.look(20*time.Minute), w.look(40*time.Minute))
		}
		if r.Stops {
			tasks = append(tasks, w.event(1, 0), w.event(2, time.Hour), w.event(3, 3*time.Hour))
		} else {
			tasks = append(tasks, w.event(1, 0), w.event(2, time.Second))
		}
		play(s, "I23", w.atRest, tasks...)
	}}}
}

type receiptWorld struct {
	*stage.Stage
	Receipts

	store *receipttest.Memory
	mails int // that the e-mail service accepted and did not stop
	sent  int // that it accepted
}

func (w *receiptWorld) event(n int, after time.Duration) *task {
	return newTask(fmt.Sprintf("event %d", n), after, visible, func(a *stage.Actor) (time.Duration, bool) {
		ports := receiptPorts{a, w}
		result := w.processor(ports).Process(a.Context, receipt.Request{
			OrderID: theOrder, Key: receipt.Paid, Total: order.Money{Amount: 1000, Currency: "usd"},
			Intent: "pi_1", At: a.Now,
		}, lease(a))
		wait := function
		if later := result.NotBefore.Sub(a.Now); later > wait {
			wait = later + time.Second
		}
		return wait, result.Verdict == order.Redeliver
	})
}

func (w *receiptWorld) report(after time.Duration, r receipt.Report) *task {
	name := "the report that it was " + string(r.Status)
	after += w.Now.Sub(stage.Epoch())
	return newTask(name, after, visible, func(a *stage.Actor) (time.Duration, bool) {
		result := w.processor(receiptPorts{a, w}).Follow(a.Context, theOrder, receipt.Paid, r)
		return function, result.Verdict == order.Redeliver
	})
}

// look is an operator who resolves a doubt.
func (w *receiptWorld) look(after time.Duration) *task {
	return newTask("the operator's look", after, visible, func(a *stage.Actor) (time.Duration, bool) {
		ports := receiptPorts{a, w}
		i, err := ports.Load(a.Context, theOrder, receipt.Paid)
		if err == nil && i.Status == receipt.Doubtful {
			var after receipt.Item
			if after, err = receipt.Resolve(i, w.mails > 0, a.Clock()); err == nil {
				i, err = ports.Save(a.Context, i, after)
			}
		}
		if err == nil && i.Status == receipt.Failed {
			w.event(3, a.Now.Sub(stage.Epoch())).add(w.Stage)
		}
		return visible, err != nil
	})
}

func (w *receiptWorld) processor(p receiptPorts) *receipt.Processor {
	return &receipt.Processor{
		Store: p, Payers: p, Mailer: p, SendTime: callTime, AtLeastOnce: w.AtLeastOnce,
		Now: p.Clock,
		Render: func(receipt.Request, receipt.Payer) (receipt.Mail, error) {
			return receipt.Mail{OrderID: theOrder, Key: receipt.Paid}, nil
		},
	}
}

// accept has the effect of a request.
func (w *receiptWorld) accept(m receipt.Mail) receipt.MessageID {
	w.sent++
	id := receipt.MessageID(fmt.Sprintf("mail-%d", w.sent))
	reports := func(s receipt.Status, after time.Duration) {
		w.report(after, receipt.Report{Message: id, Status: s, Attempt: m.Attempt}).add(w.Stage)
	}
	if w.Stops && w.sent == 1 {
		reports(receipt.Sent, time.Second)
		reports(receipt.Failed, time.Second)
		reports(receipt.Failed, 2*time.Hour)
		return id
	}
	w.mails++
	if w.Reports {
		reports(receipt.Sent, time.Second)
		reports(receipt.Delivered, time.Second)
	}
	return id
}

// atRest returns what is broken once every message is acknowledged.
func (w *receiptWorld) atRest() string {
	i, err := w.store.Load(w.Context, theOrder, receipt.Paid)
	known := i.Status == receipt.Sent || i.Status == receipt.Delivered
	switch {
	case err != nil:
		return err.Error()
	case w.mails > 1 && !w.AtLeastOnce:
		return fmt.Sprintf("%d e-mails", w.mails)
	case w.mails == 0 && w.AtLeastOnce:
		return "no e-mail"
	case w.Stops && i.Status == receipt.Failed && w.mails == 0: // the events came before its report
	case w.mails == 0 && i.Status != receipt.Doubtful:
		return fmt.Sprintf("no e-mail, and the receipt is %q", i.Status)
	case w.mails > 0 && !known && i.Status != receipt.Doubtful:
		return fmt.Sprintf("an e-mail was sent, and the receipt is %q", i.Status)
	case w.mails > 0 && !known && (w.Reports || w.AtLeastOnce):
		return fmt.Sprintf("the service reported the e-mail, and the receipt is %q", i.Status)
	}
	return ""
}

type receiptPorts struct {
	*stage.Actor

	world *receiptWorld
}

// Load implements receipt.Store.
func (p receiptPorts) Load(ctx context.Context, id order.ID, k receipt.Key) (receipt.Item, error) {
	return ask(p.Actor, read("load"), func() (receipt.Item, error) { return p.world.store.Load(ctx, id, k) })
}

// Save implements receipt.Store.
func (p receiptPorts) Save(ctx context.Context, before, after receipt.Item) (receipt.Item, error) {
	return ask(p.Actor, write("save "+string(after.Status)), func() (receipt.Item, error) {
		return p.world.store.Save(ctx, before, after)
	})
}

// Payer implements receipt.Payers.
func (p receiptPorts) Payer(context.Context, order.IntentID) (receipt.Payer, error) {
	if err := answered(p.Actor, read("look up the payer"), func() error { return nil }); err != nil {
		return receipt.Payer{}, &order.PaymentError{Kind: order.KindUnavailable, Err: err}
	}
	return receipt.Payer{}, nil
}

var errQuota = errors.New("sending quota exceeded")

// Send implements receipt.Mailer.
func (p receiptPorts) Send(_ context.Context, m receipt.Mail) (id receipt.MessageID, err error) {
	f := p.Do(write("send"), func() {
		if p.world.Person && p.Now.After(p.Began.Add(function)) {
			p.Die() // Lambda ended the function long before an operator looked
		}
		id = p.world.accept(m)
	})
	switch f { //nolint:exhaustive // after the others there is no actor
	case stage.None:
		return id, nil
	case refused:
		return "", &receipt.SendError{Kind: order.KindUnavailable, Code: "TooManyRequestsException", Err: errQuota}
	}
	return "", &receipt.SendError{Kind: order.KindUnknown, Err: errNoResponse}
}
