package effects

import (
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
	"orderonce/scripts/lab/stage"
)

// Stock is a world with two orders for the last unit of a SKU. The message of the
// first order arrives twice, and after an hour the schedule looks at it.
type Stock struct {
	Card ordertest.Card // of the first order; the second one pays
	// Cancels means that an operator cancels the first order, Pays that its customer pays
	// its intent at the provider.
	Cancels, Pays bool
}

// World returns the world.
func (x Stock) World() World {
	name := fmt.Sprintf("the last unit and a card that %s", x.Card)
	if x.Cancels {
		name += ", and an operator cancels"
	}
	if x.Pays {
		name += ", and the customer pays"
	}
	return World{Less: 1, Scenario: stage.Scenario{Name: name, Play: func(s *stage.Stage) {
		w := stockWorld{
			Stage: s, Stock: x, store: ordertest.NewMemoryWithStock(), bank: &ordertest.Bank{Scope: scope},
			orders: []order.Order{newOrder(theOrder, 1, x.Card), newOrder("ORD-2", 1, ordertest.Pays)},
		}
		if _, err := w.store.AddStock(s.Context, sku, 1); err != nil {
			panic(err) // a bug in this package
		}
		first := w.orders[0]
		tasks := []*task{w.message(first, 0), w.message(w.orders[1], time.Second), w.message(first, 2*time.Second)}
		play(s, "I22", w.atRest, append(tasks, w.others(theOrder)...)...)
	}}}
}

// SKU is what every order has one unit of.
const sku = "A"

type stockWorld struct {
	*stage.Stage
	Stock

	store  *ordertest.Memory
	bank   *ordertest.Bank
	orders []order.Order
}

// message is a message of the order queue. As in functions/order, its worker frees the
// stock of an order that was declined.
func (w *stockWorld) message(o order.Order, after time.Duration) *task {
	return newTask("the message of "+string(o.ID()), after, visible, func(a *stage.Actor) (time.Duration, bool) {
		ports := w.ports(a)
		p := order.Processor{
			Store: ports, Payments: ports, Scope: scope, Now: a.Clock, ConfirmTime: callTime, TracksStock: true,
		}
		r := p.Process(a.Context, o, stage.Epoch().Add(after), lease(a))
		var err error
		if r.Verdict == order.Done && r.Status == order.Declined {
			err = ports.free(o.ID())
		}
		return function, r.Verdict == order.Redeliver || err != nil
	})
}

// others returns the tasks of the schedule, the operator and the customer.
func (w *stockWorld) others(id order.ID) []*task {
	does := func(name string, after time.Duration, run func(a *stage.Actor) error) *task {
		return newTask(name, after, time.Hour, func(a *stage.Actor) (time.Duration, bool) {
			return time.Hour, run(a) != nil
		})
	}
	look := func(a *stage.Actor) error { return w.ports(a).free(id) }
	tasks := []*task{does("the look at "+string(id), time.Hour, look)}
	if w.Cancels {
		tasks = append(tasks, does("the cancel of "+string(id), time.Minute, func(a *stage.Actor) error {
			_, err := w.ports(a).cancellation().Cancel(a.Context, id, a.Now)
			return err
		}))
	}
	if w.Pays {
		tasks = append(tasks, does("the customer's payment", time.Minute, func(a *stage.Actor) error {
			if r, _ := w.store.Peek(id); r.Intent != "" {
				a.Do(write("pay at the provider"), func() { w.payAtProvider(r.Intent) })
			}
			return nil
		}), does("the webhook", 2*time.Hour, func(a *stage.Actor) error {
			ports := w.ports(a)
			_, err := settle.Refresh(a.Context, ports, ports, scope, id, a.Now)
			if errors.Is(err, order.ErrNoIntent) { // Stripe has nothing to report
				return nil
			}
			return err
		}))
	}
	return tasks
}

func (w *stockWorld) payAtProvider(id order.IntentID) {
	if i, err := w.bank.Read(w.Context, id); err == nil && i.State == order.NeedsMethod {
		w.bank.CustomerPays(id)
	}
}

// balance returns what is wrong with the stock at this moment: the units that rows hold
// are reserved, and those of paid orders are sold.
func (w *stockWorld) balance() string {
	s, want := w.store.PeekStock(sku), order.Stock{SKU: sku, Available: 1}
	for _, o := range w.orders {
		r, _ := w.store.Peek(o.ID())
		want.Reserved += r.Stock[sku]
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

type stockPorts struct {
	ordertest.Intercepted

	actor *stage.Actor
	world *stockWorld
}

func (w *stockWorld) ports(a *stage.Actor) stockPorts {
	p := stockPorts{actor: a, world: w}
	p.Intercepted = ordertest.Intercepted{Store: w.store, Payments: w.bank, Canceler: w.bank, Intercept: p.call}
	return p
}

// call makes a call, and checks the stock after it.
func (p stockPorts) call(c ordertest.Call, do func() error) error {
	name := write(string(c))
	if c == ordertest.Read || c == ordertest.Load {
		name = read(string(c))
	}
	err := answered(p.actor, name, func() error {
		err := do()
		if why := p.world.balance(); why != "" {
			p.world.Violated("I22", string(theOrder), "%s", why)
		}
		return err
	})
	if errors.Is(err, errNoResponse) {
		return ordertest.ErrConnection
	}
	return err
}

// free cancels the order if it holds stock that its customer does not pay.
func (p stockPorts) free(id order.ID) error {
	r, err := p.Load(p.actor.Context, id)
	if err != nil {
		return err
	}
	_, err = p.cancellation().CancelDeclined(p.actor.Context, r, 0, p.actor.Now)
	return err
}

func (p stockPorts) cancellation() *order.Cancellation {
	return &order.Cancellation{Store: p, Payments: p, Canceler: p, Scope: scope}
}
