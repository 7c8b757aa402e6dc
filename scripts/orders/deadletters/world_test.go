package deadletters_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/domain/settle"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/deadletters"
)

const (
	scope = order.Scope("test")
	id    = order.ID("ORD-1")
	day   = 24 * time.Hour
)

// start is when every message is first sent.
func start() time.Time { return time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC) }

// world has one store, one bank and the function that processes messages.
type world struct {
	*testing.T

	store   *ordertest.Memory
	claims  *refundtest.Memory
	bank    *ordertest.Bank
	refunds *refundtest.Bank
	now     time.Time
	workers int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, store: new(ordertest.Memory), bank: &ordertest.Bank{Scope: scope}, now: start()}
	w.claims = refundtest.NewMemory(w.store)
	w.refunds = &refundtest.Bank{Intents: w.bank, Now: func() time.Time { return w.now }, KeyLife: day}
	return w
}

func (w *world) sources() deadletters.Sources {
	return deadletters.Sources{Orders: w.store, Accounts: w.claims, Payments: w.bank, Refunds: w.refunds, Scope: scope}
}

func (w *world) clock() time.Time { return w.now }

// deliver processes a job as the function does.
func (w *world) deliver(job jobs.Job) order.Result {
	w.workers++
	lease := order.Lease{Owner: fmt.Sprint("worker ", w.workers), From: w.now, Until: w.now.Add(time.Minute)}
	if job.IsRefund() {
		p := refund.Processor{Store: w.claims, Provider: w.refunds, Scope: scope, Now: w.clock, CreateTime: time.Second}
		return p.Process(w.Context(), job.Refund, lease)
	}
	p := order.Processor{Store: w.store, Payments: w.bank, Scope: scope, Now: w.clock, ConfirmTime: time.Second}
	return p.Process(w.Context(), job.Order, start(), lease)
}

func (w *world) charge(card ordertest.Card) {
	w.deliver(orderWith(card))
}

// chargeFailing processes the order with a card that pays, and with a fault.
func (w *world) chargeFailing(c ordertest.Call, f ordertest.Fault) {
	w.bank.Fail(c, f)
	w.charge(ordertest.Pays)
}

// refundFailing makes refund R-1 of 10.00 USD with a fault.
func (w *world) refundFailing(f ordertest.Fault) {
	w.refunds.Fail(refundtest.Create, f)
	w.deliver(refundOf(w.T, "R-1", 1000))
}

func (w *world) record() order.Record {
	r, _ := w.store.Peek(id)
	return r
}

func (w *world) cancel() {
	c := order.Cancellation{Store: w.store, Payments: w.bank, Canceler: w.bank, Scope: scope}
	_, err := c.Cancel(w.Context(), id, w.now)
	must(w.T, err)
}

// customerPays pays the order another way, unless it is closed, and settles the row.
func (w *world) customerPays() {
	if i, err := w.bank.Read(w.Context(), w.record().Intent); err == nil && i.State != order.IntentCanceled {
		w.bank.CustomerPays(i.ID)
		w.refresh()
	}
}

func (w *world) refresh() {
	_, err := settle.Refresh(w.Context(), w.store, w.bank, scope, id, w.now)
	must(w.T, err)
}

func (w *world) restore() {
	found, err := w.bank.Find(w.Context(), id)
	must(w.T, err)
	_, err = settle.Restore(w.Context(), w.store, w.bank, scope, id, found[0].ID, w.now)
	must(w.T, err)
}

func (w *world) decide(m deadletters.Message) deadletters.Verdict {
	return w.sources().Letter(w.Context(), m).Verdict
}

// made returns how many refunds of an id count.
func (w *world) made(of refund.ID) (n int) {
	for _, r := range w.refunds.Refunds() {
		if r.For == of && r.Status.Counts() {
			n++
		}
	}
	return n
}

func orderWith(card ordertest.Card) jobs.Job {
	return jobs.Job{Order: ordertest.OrderWith(id, ordertest.PaymentMethod(card))}
}

func refundOf(t *testing.T, of string, amount int64) jobs.Job {
	t.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(id), RefundID: of, Amount: amount, Reason: "duplicate"})
	must(t, err)
	return jobs.Job{Refund: r}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// silent is a store of orders that does not answer.
type silent struct{ order.Store }

func (silent) Load(context.Context, order.ID) (order.Record, error) {
	return order.Record{}, context.DeadlineExceeded
}
