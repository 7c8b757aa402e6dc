package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/stage"
)

// client puts one order, until it gets an answer that is not "try again".
type client struct {
	name    string
	order   order.Order
	answer  string // "", "accepted" or "conflict"
	charged bool   // an answer showed the order as paid
}

// Intake is a world with an order id under which two clients put orders, one of them
// twice.
type Intake struct {
	Other bool // the second client puts another content
}

// World returns the world.
func (i Intake) World() World {
	name := "two clients put one order"
	if i.Other {
		name = "two clients put different orders under one id"
	}
	return World{Scenario: stage.Scenario{Name: name, Play: func(s *stage.Stage) {
		w := intakeWorld{Stage: s, Intake: i, orders: new(ordertest.Memory), bank: &ordertest.Bank{Scope: scope}}
		w.book = &intaketest.Memory{Orders: w.orders}
		first := &client{name: "client A", order: newOrder(theOrder, 1, ordertest.Pays)}
		second := &client{name: "client B", order: newOrder(theOrder, 1, ordertest.Pays)}
		if i.Other {
			second.order = newOrder(theOrder, 2, ordertest.Pays)
		}
		w.clients = []*client{first, second}
		play(s, "I24", w.atRest, w.put(first, 0), w.put(second, 0), w.put(first, time.Hour))
	}}}
}

type intakeWorld struct {
	*stage.Stage
	Intake

	book    *intaketest.Memory
	orders  *ordertest.Memory
	bank    *ordertest.Bank
	clients []*client
	sent    int // messages
}

// put is a client's request, repeated until it is answered.
func (w *intakeWorld) put(c *client, after time.Duration) *task {
	name := fmt.Sprintf("the request of %s for %s", c.name, c.order.Total())
	return newTask(name, after, time.Second, // 502, and the client repeats it
		func(a *stage.Actor) (time.Duration, bool) {
			charged := c.charged
			ports := intakePorts{a, w}
			product := intake.Intake{Book: ports, Queue: ports, Now: a.Clock}
			view, err := product.Put(a.Context, c.order, "caller", "")
			switch {
			case errors.Is(err, order.ErrConflict):
				w.told(c, "conflict")
			case err != nil: // 503
				return time.Second, true
			default:
				w.told(c, "accepted")
				if charged && view.Record.Status != order.Paid {
					w.Violated("I24", string(theOrder), "%s: the order was paid and is %s", c.name, view.Status())
				}
				c.charged = charged || view.Record.Status == order.Paid
			}
			return 0, false
		})
}

// told records an answer. A repetition gets the same one.
func (w *intakeWorld) told(c *client, answer string) {
	if c.answer != "" && c.answer != answer {
		w.Violated("I24", string(theOrder), "%s was told %s, then %s", c.name, c.answer, answer)
	}
	c.answer = answer
}

func (w *intakeWorld) message(o order.Order) *task {
	w.sent++
	sent := w.Now
	after := sent.Sub(stage.Epoch()) + time.Second
	name := fmt.Sprintf("message %d", w.sent)
	return newTask(name, after, visible, func(a *stage.Actor) (time.Duration, bool) {
		p := order.Processor{
			Store: w.orders, Payments: w.bank, Scope: scope, ConfirmTime: callTime, Now: a.Clock,
		}
		r := p.Process(a.Context, o, sent, lease(a))
		return function, r.Verdict == order.Redeliver
	})
}

// atRest returns what is broken once every request is answered and the queue is empty.
func (w *intakeWorld) atRest() string {
	record, claimed := w.orders.Peek(theOrder)
	charges, accepted := len(w.bank.Charges(theOrder)), ""
	for _, c := range w.clients {
		total := c.order.Total().String()
		switch {
		case c.answer == "":
			return c.name + " never got an answer"
		case c.answer == "accepted" && accepted != "" && accepted != total:
			return fmt.Sprintf("two contents were accepted: %s and %s", accepted, total)
		case c.answer == "accepted":
			accepted = total
		case claimed && record.Fingerprint == c.order.Fingerprint():
			return fmt.Sprintf("%s was told of a conflict, and its content was charged", c.name)
		}
	}
	switch {
	case accepted == "":
		return "no client was accepted"
	case charges != 1:
		return fmt.Sprintf("%d charges", charges)
	case !claimed || record.Status != order.Paid || record.Total.String() != accepted:
		return fmt.Sprintf("accepted %s, and the order is %s of %s", accepted, record.Status, record.Total)
	}
	return ""
}

type intakePorts struct {
	*stage.Actor

	world *intakeWorld
}

// Register implements intake.Book.
func (p intakePorts) Register(ctx context.Context, r intake.Registration) (intake.Registration, error) {
	return ask(p.Actor, write("register"), func() (intake.Registration, error) {
		return p.world.book.Register(ctx, r)
	})
}

// MarkSent implements intake.Book.
func (p intakePorts) MarkSent(ctx context.Context, id order.ID) error {
	return answered(p.Actor, write("mark as sent"), func() error { return p.world.book.MarkSent(ctx, id) })
}

// Find implements intake.Book.
func (p intakePorts) Find(ctx context.Context, id order.ID) (intake.Entry, error) {
	return ask(p.Actor, read("find"), func() (intake.Entry, error) { return p.world.book.Find(ctx, id) })
}

// Send implements intake.Queue.
func (p intakePorts) Send(_ context.Context, o order.Order, _ time.Time, _ order.Trace) error {
	return answered(p.Actor, write("send"), func() error { p.world.message(o).add(p.Stage); return nil })
}
