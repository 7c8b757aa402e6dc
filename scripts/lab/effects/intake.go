package effects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
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
	// Usual replaces the product with code that sends each request to the queue under an
	// id of its own, as API Gateway's requestId is.
	Usual bool
}

// World returns the world.
func (i Intake) World() World {
	name := "two clients put one order"
	if i.Other {
		name = "two clients put different orders under one id"
	}
	return World{Name: name, play: func(s *stage) string {
		w := intakeWorld{stage: s, Intake: i, orders: new(ordertest.Memory), bank: &ordertest.Bank{Scope: scope}}
		w.book = &intaketest.Memory{Orders: w.orders}
		first := &client{name: "client A", order: newOrder(contested, 1)}
		second := &client{name: "client B", order: newOrder(contested, 1)}
		if i.Other {
			second.order = newOrder(contested, 2)
		}
		w.clients = []*client{first, second}
		s.play(w.put(first, 0), w.put(second, 0), w.put(first, time.Hour))
		if s.broken != "" {
			return s.broken
		}
		return w.atRest()
	}}
}

// contested is the id of the world's orders.
const contested order.ID = "ORD-1"

type intakeWorld struct {
	*stage
	Intake

	book    *intaketest.Memory
	orders  *ordertest.Memory
	bank    *ordertest.Bank
	clients []*client
	sent    []order.ID
}

func newOrder(id order.ID, quantity int64) order.Order {
	o, err := order.New(order.Draft{
		ID: string(id), CustomerID: "C", Currency: "usd",
		Lines:   []order.Line{{SKU: "A", Quantity: quantity, UnitAmount: 1000}},
		Payment: order.Payment{Customer: "cus_1", Method: "pm_card_visa"},
	})
	if err != nil {
		panic(err)
	}
	return o
}

// put is a client's request, repeated until it is answered.
func (w *intakeWorld) put(c *client, after time.Duration) *task {
	return &task{
		name: fmt.Sprintf("the request of %s for %s", c.name, c.order.Total()), due: epoch().Add(after),
		died: func(at time.Time) time.Time { return at.Add(time.Second) }, // 502, and the client repeats it
		run: func(a *actor) (time.Time, bool) {
			charged := c.charged
			view, err := w.desk(a).Put(a.ctx, c.order, "caller", "")
			switch {
			case errors.Is(err, order.ErrConflict):
				w.answered(c, "conflict")
			case err != nil: // 503
				return a.now.Add(time.Second), true
			default:
				w.answered(c, "accepted")
				if charged && view.Record.Status != order.Paid {
					w.broken = fmt.Sprintf("%s: the order was paid and is %s", c.name, view.Status())
				}
				c.charged = charged || view.Record.Status == order.Paid
			}
			return time.Time{}, false
		},
	}
}

// desk returns what takes a request.
func (w *intakeWorld) desk(a *actor) putter { //nolint:ireturn // the product or the usual code
	ports := intakePorts{a, w}
	if w.Usual {
		return usualDesk{ports}
	}
	return &intake.Intake{Book: ports, Queue: ports, Now: func() time.Time { return a.now }}
}

type putter interface {
	Put(ctx context.Context, o order.Order, c intake.Caller, t order.Trace) (intake.View, error)
}

// usualDesk sends each request under an id of its own.
type usualDesk struct{ intakePorts }

// Put sends the order. A worker's name is as good as a request id.
func (d usualDesk) Put(
	ctx context.Context, o order.Order, _ intake.Caller, t order.Trace,
) (intake.View, error) {
	id := order.ID(strings.ReplaceAll(d.name, " ", "-"))
	err := d.Send(ctx, newOrder(id, o.Lines()[0].Quantity), d.now, t)
	return intake.View{OrderID: id}, err
}

// answered records an answer. A repetition gets the same one.
func (w *intakeWorld) answered(c *client, answer string) {
	if c.answer != "" && c.answer != answer {
		w.broken = fmt.Sprintf("%s was told %s, then %s", c.name, c.answer, answer)
	}
	c.answer = answer
}

// message is one message of the order queue.
func (w *intakeWorld) message(o order.Order) *task {
	w.sent = append(w.sent, o.ID())
	sent := w.now
	return &task{
		name: fmt.Sprintf("message %d", len(w.sent)), due: w.now.Add(time.Second),
		died: func(at time.Time) time.Time { return at.Add(2 * function) },
		run: func(a *actor) (time.Time, bool) {
			p := order.Processor{
				Claims: w.orders, Payments: w.bank, Scope: scope, ConfirmTime: callTime,
				Now: func() time.Time { return a.now },
			}
			r := p.Process(a.ctx, o, sent, a.lease())
			return a.now.Add(function), r.Verdict == order.Redeliver
		},
	}
}

// atRest returns what is broken once every request is answered and the queue is empty.
func (w *intakeWorld) atRest() string {
	record, claimed := w.orders.Peek(contested)
	charges, accepted := 0, ""
	slices.Sort(w.sent)
	for _, id := range slices.Compact(w.sent) {
		charges += len(w.bank.Charges(id))
	}
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

// intakePorts are the ports of one request.
type intakePorts struct {
	*actor

	world *intakeWorld
}

var errNoResponse = errors.New("no response")

// Register implements intake.Book.
func (p intakePorts) Register(
	ctx context.Context, r intake.Registration,
) (stored intake.Registration, err error) {
	if p.do("register", false, func() { stored, err = p.world.book.Register(ctx, r) }) != none {
		return intake.Registration{}, errNoResponse
	}
	return stored, err
}

// MarkSent implements intake.Book.
func (p intakePorts) MarkSent(ctx context.Context, id order.ID) (err error) {
	if p.do("mark as sent", false, func() { err = p.world.book.MarkSent(ctx, id) }) != none {
		return errNoResponse
	}
	return err
}

// Find implements intake.Book.
func (p intakePorts) Find(ctx context.Context, id order.ID) (e intake.Entry, err error) {
	if p.do("find", true, func() { e, err = p.world.book.Find(ctx, id) }) != none {
		return intake.Entry{}, errNoResponse
	}
	return e, err
}

// Send implements intake.Queue.
func (p intakePorts) Send(_ context.Context, o order.Order, _ time.Time, _ order.Trace) error {
	if p.do("send", false, func() { p.add(p.world.message(o)) }) != none {
		return errNoResponse
	}
	return nil
}
