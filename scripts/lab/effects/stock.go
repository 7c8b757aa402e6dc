package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Stock is a world with two orders for the last piece of an article. The message of the
// first order arrives twice, and after an hour the schedule looks at it.
type Stock struct {
	Card ordertest.Card // of the first order; the second one pays
	// Cancels means that an operator cancels the first order, Pays that its customer pays
	// its intent at the provider.
	Cancels, Pays bool
}

// World returns the world.
func (x Stock) World() World {
	name := fmt.Sprintf("the last piece and a card that %s", x.Card)
	if x.Cancels {
		name += ", and an operator cancels"
	}
	if x.Pays {
		name += ", and the customer pays"
	}
	return World{Name: name, Less: 1, play: func(s *stage) string {
		w := stockWorld{
			stage: s, Stock: x, store: ordertest.NewMemoryWithStock(), bank: &ordertest.Bank{Scope: scope},
		}
		if _, err := w.store.AddStock(s.ctx, article, 1); err != nil {
			return err.Error()
		}
		first, second := w.order("ORD-1", x.Card), w.order("ORD-2", ordertest.Pays)
		tasks := []*task{w.message(first, 0), w.message(second, time.Second), w.message(first, 2*time.Second)}
		s.play(append(tasks, w.others(first.ID())...)...)
		if s.broken != "" {
			return s.broken
		}
		return w.atRest()
	}}
}

// article is what every order of the world has one piece of.
const article = "A"

type stockWorld struct {
	*stage
	Stock

	store  *ordertest.Memory
	bank   *ordertest.Bank
	orders []order.Order
}

func (w *stockWorld) order(id order.ID, card ordertest.Card) order.Order {
	o, err := order.New(order.Draft{
		ID: string(id), CustomerID: "C", Currency: "usd",
		Lines:   []order.Line{{SKU: article, Quantity: 1, UnitAmount: 1000}},
		Payment: order.Payment{Customer: "cus_1", Method: ordertest.PaymentMethod(card)},
	})
	if err != nil {
		panic(err) // a bug in this package
	}
	w.orders = append(w.orders, o)
	return o
}

// message is a message of the order queue. As in functions/order, its worker frees the
// goods of an order that was declined.
func (w *stockWorld) message(o order.Order, after time.Duration) *task {
	sent := epoch().Add(after)
	return &task{
		name: "the message of " + string(o.ID()), due: sent,
		died: func(at time.Time) time.Time { return at.Add(visible) },
		run: func(a *actor) (time.Time, bool) {
			ports := w.ports(a)
			p := order.Processor{
				Claims: ports, Payments: ports, Scope: scope, Now: func() time.Time { return a.now },
				ConfirmTime: callTime,
			}
			r := p.Process(a.ctx, o, sent, a.lease())
			var err error
			if r.Verdict == order.Done && r.Status == order.Declined {
				err = ports.free(o.ID())
			}
			return a.now.Add(function), r.Verdict == order.Redeliver || err != nil
		},
	}
}

// others returns the tasks of the schedule, the operator and the customer.
func (w *stockWorld) others(id order.ID) []*task {
	does := func(name string, after time.Duration, run func(a *actor) error) *task {
		return &task{
			name: name, due: epoch().Add(after), died: func(at time.Time) time.Time { return at.Add(time.Hour) },
			run: func(a *actor) (time.Time, bool) { return a.now.Add(time.Hour), run(a) != nil },
		}
	}
	look := func(a *actor) error { return w.ports(a).free(id) }
	tasks := []*task{does("the look at "+string(id), time.Hour, look)}
	if w.Cancels {
		tasks = append(tasks, does("the cancel of "+string(id), time.Minute, func(a *actor) error {
			_, err := w.ports(a).cancellation().Cancel(a.ctx, id, a.now)
			return err
		}))
	}
	if w.Pays {
		tasks = append(tasks, does("the customer's payment", time.Minute, func(a *actor) error {
			if r, _ := w.store.Peek(id); r.Intent != "" {
				a.do("pay at the provider", false, func() { w.payAtProvider(r.Intent) })
			}
			return nil
		}), does("the webhook", 2*time.Hour, func(a *actor) error {
			ports := w.ports(a)
			_, err := order.Refresh(a.ctx, ports, ports, scope, id, a.now)
			if errors.Is(err, order.ErrNoIntent) { // Stripe has nothing to report
				return nil
			}
			return err
		}))
	}
	return tasks
}

// payAtProvider makes an intent succeed that still can.
func (w *stockWorld) payAtProvider(id order.IntentID) {
	if i, err := w.bank.Read(w.ctx, id); err == nil && i.State == order.NeedsMethod {
		w.bank.CustomerPays(id)
	}
}

// balance returns what is wrong with the stock at this moment: the goods that rows hold
// are reserved, and those of paid orders are sold.
func (w *stockWorld) balance() string {
	s, want := w.store.PeekStock(article), order.Stock{SKU: article, Available: 1}
	for _, o := range w.orders {
		r, _ := w.store.Peek(o.ID())
		want.Reserved += r.Stock[article]
		if r.Status == order.Paid {
			want.Sold++
		}
	}
	if want.Available -= want.Reserved + want.Sold; s != want || s.Available < 0 {
		return fmt.Sprintf("the stock is %+v, the rows say %+v", s, want)
	}
	return ""
}

// atRest returns what is broken once every message has ended.
func (w *stockWorld) atRest() string {
	for _, o := range w.orders {
		r, _ := w.store.Peek(o.ID())
		charges := len(w.bank.Charges(o.ID()))
		switch {
		case charges > 1:
			return fmt.Sprintf("%d charges of %s", charges, o.ID())
		case (charges == 1) != (r.Status == order.Paid):
			return fmt.Sprintf("%s is %s with %d charges", o.ID(), r.Status, charges)
		case r.Status == order.OutOfStock && r.Intent != "":
			return fmt.Sprintf("%s is out of stock and has an intent", o.ID())
		case len(r.Stock) > 0:
			return fmt.Sprintf("%s is %s and holds %v for ever", o.ID(), r.Status, r.Stock)
		}
	}
	return w.balance()
}

// stockPorts are the ports of one actor.
type stockPorts struct {
	ordertest.Intercepted

	actor *actor
	world *stockWorld
}

func (w *stockWorld) ports(a *actor) stockPorts {
	p := stockPorts{actor: a, world: w}
	p.Intercepted = ordertest.Intercepted{Claims: w.store, Payments: w.bank, Intercept: p.call}
	return p
}

// call makes a call when the stage lets it, and checks the stock after it.
func (p stockPorts) call(c ordertest.Call, do func() error) (err error) {
	f := p.actor.do(string(c), c == ordertest.Read || c == "load", func() {
		if err = do(); p.world.broken == "" {
			p.world.broken = p.world.balance()
		}
	})
	if f != none {
		return ordertest.ErrConnection
	}
	return err
}

// free cancels the order if it holds goods that its customer does not pay.
func (p stockPorts) free(id order.ID) error {
	r, err := p.Load(p.actor.ctx, id)
	if err != nil {
		return err
	}
	_, err = p.cancellation().FreeGoods(p.actor.ctx, r, 0, p.actor.now)
	return err
}

func (p stockPorts) cancellation() *order.Cancellation {
	return &order.Cancellation{Records: p, Payments: p, Canceler: p, Scope: scope}
}

// Load implements order.Records.
func (p stockPorts) Load(ctx context.Context, id order.ID) (r order.Record, err error) {
	err = p.call("load", func() (err error) { r, err = p.world.store.Load(ctx, id); return err })
	return r, err
}

// Settle implements order.Records.
func (p stockPorts) Settle(ctx context.Context, r order.Record, o order.Outcome, at time.Time) error {
	return p.call("settle", func() error { return p.world.store.Settle(ctx, r, o, at) })
}

// Recreate implements order.Records. No actor calls it.
func (p stockPorts) Recreate(ctx context.Context, r order.Record, at time.Time) error {
	return p.world.store.Recreate(ctx, r, at)
}

// Park implements order.Records. No actor calls it.
func (p stockPorts) Park(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
	return p.world.store.Park(ctx, o, why, at)
}

// CancelIntent implements order.Canceler.
func (p stockPorts) CancelIntent(
	ctx context.Context, id order.IntentID, k order.Key,
) (i order.Intent, err error) {
	err = p.call(ordertest.Cancel, func() (err error) {
		i, err = p.world.bank.CancelIntent(ctx, id, k)
		return err
	})
	return i, err
}
