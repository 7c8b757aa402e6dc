// Package effects has scenarios of the jobs around an order: clients that put orders by
// HTTP, receipts, and the last unit of a SKU. It runs the real intake.Intake,
// order.Processor and receipt.Processor over the stores of their contract suites.
//
// The default schedule runs one task after the other without a fault. A deviation is a
// fault of one call, a call of another actor, or the start of a task beside a running
// one.
package effects

import (
	"context"
	"errors"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/stage"
)

const (
	scope    = order.Scope("lab")
	callTime = 100 * time.Millisecond // of each call
	function = time.Minute            // the timeout of a function, and the length of a lease
	visible  = 2 * function           // after a delivery that ended without a response
	mostRuns = 40                     // deliveries of one task, until it must have ended
)

var errNoResponse = errors.New("no response")

// World is one job with what happens around it.
type World struct {
	stage.Scenario

	Less int // how many deviations fewer the search of a large world has
}

// Search runs every schedule of the world with at most this many deviations, or Less, up
// to the first that breaks something.
func (w World) Search(ctx context.Context, most int) stage.Report {
	return w.Scenario.Search(ctx, most-w.Less)
}

// Worlds returns the worlds in which the product must break nothing.
func Worlds() []World {
	return []World{
		Intake{}.World(), Intake{Other: true}.World(),
		Receipts{}.World(), Receipts{Reports: true}.World(), Receipts{AtLeastOnce: true}.World(),
		Receipts{Stops: true}.World(),
		Receipts{Person: true}.World(), Receipts{Person: true, Reports: true}.World(),
		Stock{Card: ordertest.Pays}.World(), Stock{Card: ordertest.Declines}.World(),
		Stock{Card: ordertest.NeedsAuthentication, Cancels: true}.World(),
		Stock{Card: ordertest.Declines, Pays: true}.World(),
	}
}

// play runs tasks until none is left, and then checks what must hold at rest.
func play(s *stage.Stage, i stage.Invariant, atRest func() string, tasks ...*task) {
	s.CallTime = callTime
	s.Deviations = func(all []stage.Option) []stage.Option { return deviations(s, all) }
	for _, t := range tasks {
		t.add(s)
	}
	s.Run(func() {})
	if s.Broken != nil {
		return
	}
	if why := atRest(); why != "" {
		s.Violated(i, string(theOrder), "%s", why)
	}
}

// theOrder is the order that a world is about.
const theOrder order.ID = "ORD-1"

// deviations appends the faults of the next call, the starts of waiting tasks and the
// calls of other actors.
func deviations(s *stage.Stage, all []stage.Option) []stage.Option {
	first := all[0].Event
	if a := s.Current; a != nil {
		for _, f := range a.Next.Faults {
			all = append(all, stage.Option{Actor: a, Fault: f})
		}
	}
	for _, e := range s.Events {
		if e != first {
			all = append(all, stage.Option{Event: e})
		}
	}
	for _, a := range s.Others() {
		all = append(all, stage.Option{Actor: a})
	}
	return all
}

// task is work for an actor, such as the delivery of a message.
type task struct {
	name  string
	due   time.Time
	again time.Duration // until it is due again after its actor died
	runs  int
	// run does the work. It returns how long after its end the task is due again, or
	// false if it has ended.
	run func(a *stage.Actor) (wait time.Duration, repeat bool)
}

// newTask returns a task that is due at a time after the world began.
func newTask(
	name string, after, again time.Duration, run func(a *stage.Actor) (time.Duration, bool),
) *task {
	return &task{name: name, due: stage.Epoch().Add(after), again: again, run: run}
}

// add makes a task wait for its next run.
func (t *task) add(s *stage.Stage) {
	if t.runs == mostRuns {
		s.Violated("I11", string(theOrder), "%s has not ended after %d deliveries", t.name, t.runs)
		return
	}
	s.At(t.due, nil, func() {
		t.runs++
		s.Start("worker", t.name, func(a *stage.Actor) {
			wait, repeat := t.again, true // if it dies
			defer func() {
				if t.due = a.Now.Add(wait); repeat && !a.Dead() {
					t.add(s)
				}
			}()
			wait, repeat = t.run(a)
		})
	})
}

const refused stage.Fault = "certainly not done"

func write(name string) stage.Call {
	return stage.Call{Name: name, Faults: []stage.Fault{
		stage.Lost, stage.Unanswered, stage.DiesBefore, stage.DiesAfter, refused,
	}}
}

func read(name string) stage.Call {
	return stage.Call{Name: name, Faults: []stage.Fault{stage.Lost, stage.DiesBefore}}
}

// ask makes a call and returns its result, or an error if its caller gets no answer.
//
//nolint:ireturn // T is a struct at every call
func ask[T any](a *stage.Actor, c stage.Call, do func() (T, error)) (got T, err error) {
	var none T
	if a.Do(c, func() { got, err = do() }) != stage.None {
		return none, errNoResponse
	}
	return got, err
}

// answered is ask for a call without a result.
func answered(a *stage.Actor, c stage.Call, do func() error) error {
	_, err := ask(a, c, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func lease(a *stage.Actor) order.Lease {
	return order.Lease{Owner: a.Name, From: a.Now, Until: a.Began.Add(function)}
}

func newOrder(id order.ID, quantity int64, card ordertest.Card) order.Order {
	o, err := order.New(order.Draft{
		ID: string(id), CustomerID: "C", Currency: "usd",
		Lines:   []order.Line{{SKU: sku, Quantity: quantity, UnitAmount: 1000}},
		Payment: order.Payment{Customer: "cus_1", Method: ordertest.PaymentMethod(card)},
	})
	if err != nil {
		panic(err) // a bug in this package
	}
	return o
}
