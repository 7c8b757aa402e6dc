package main

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/functions/internal/functiontest"
)

// shop is a table, a stock table and a Stripe, in which orders began to wait 30 hours
// ago, and the function that is wired to them.
type shop struct {
	*testing.T

	table  *dynamodbtest.Harness
	stock  string
	stripe *stripetest.Server
	began  time.Time // the time of orders that are made
	out    functiontest.Output
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, table: dynamodbtest.Open(t), began: time.Now().Add(-30 * time.Hour)}
	s.stock = s.table.OpenStock(t)
	server, err := stripetest.Serve(stripetest.Options{Now: func() time.Time { return s.began }})
	functiontest.Must(s, err)
	s.stripe = server
	t.Cleanup(func() { functiontest.Must(s, server.Close()) })
	for _, sku := range ordertest.Order("any").Quantities().SKUs() {
		_, err := s.store(s.stock).AddStock(t.Context(), sku, 1000)
		functiontest.Must(s, err)
	}
	return s
}

func (s *shop) store(stock string) *dynamodb.Store {
	return dynamodb.New(s.table.Config, s.table.Table).WithStock(stock)
}

func (s *shop) options() stripe.Options {
	now := func() time.Time { return s.began }
	return stripe.Options{Key: "sk_test_canary", Scope: "test", BaseURL: s.stripe.URL, Now: now}
}

// order processes an order; stock is "" or the stock table.
func (s *shop) order(id order.ID, method, stock string) {
	s.Helper()
	p := order.Processor{
		Store: s.store(stock), Payments: charge.New(s.options()), Scope: "test", ConfirmTime: time.Second, TracksStock: stock != "",
		Now: func() time.Time { return s.began },
	}
	l := order.Lease{Owner: string(id), From: s.began, Until: s.began.Add(time.Minute)}
	if got := p.Process(s.Context(), ordertest.OrderWith(id, method), s.began, l); got.Verdict != order.Done {
		s.Fatalf("order %s: got %+v, want it done", id, got)
	}
}

// run wires the function and invokes it once. It returns the error and the sums of the
// metrics by name and dimension.
func (s *shop) run(changes ...string) (map[string]float64, error) {
	s.Helper()
	credentials, err := s.table.Config.Credentials.Retrieve(s.Context())
	functiontest.Must(s, err)
	r, err := wire(s.Context(), append(functiontest.Environ(
		"", "AWS_REGION="+s.table.Config.Region, "AWS_ACCESS_KEY_ID="+credentials.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY="+credentials.SecretAccessKey, "AWS_SESSION_TOKEN="+credentials.SessionToken,
		"AWS_ENDPOINT_URL_DYNAMODB="+s.table.Proxy.URL, "ORDERS_TABLE="+s.table.Table, "STRIPE_API_BASE="+s.stripe.URL,
		"STRIPE_RATE=1000", "STOCK_TABLE="+s.stock,
	), changes...), &s.out)
	functiontest.Must(s, err)
	s.out = functiontest.Output{}
	_, err = r.handle(s.Context(), json.RawMessage(`{}`))
	if strings.Contains(s.out.String(), "canary") {
		s.Errorf("output contains a secret: %s", s.out.String())
	}
	return s.out.Metrics(), err
}

// logged returns the log lines with this message: level, order and error.
func (s *shop) logged(message string) (all []string) {
	for line := range strings.Lines(s.out.String()) {
		var l struct {
			Level, Message, Error string
			Order                 string `json:"order_id"`
		}
		functiontest.Must(s, json.Unmarshal([]byte(line), &l))
		if l.Message == message {
			all = append(all, strings.Join(strings.Fields(l.Level+" "+l.Order+" "+l.Error), " "))
		}
	}
	slices.Sort(all)
	return all
}

// wantStatuses compares the statuses of orders.
func (s *shop) wantStatuses(want map[order.ID]order.Status) {
	s.Helper()
	got := map[order.ID]order.Status{}
	for id := range want {
		r, err := s.store(s.stock).Load(s.Context(), id)
		functiontest.Must(s, err)
		got[id] = r.Status
	}
	if diff := cmp.Diff(got, want); diff != "" {
		s.Errorf("statuses (-got +want):\n%s", diff)
	}
}

// refund makes a refund that the bank leaves pending, and returns Stripe's name for it.
func (s *shop) refund(id order.ID) string {
	s.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(id), RefundID: "R-1", Amount: 100, Reason: "duplicate"})
	functiontest.Must(s, err)
	o := s.options()
	p := refund.Processor{
		Store: refundtable.New(s.store("")), Provider: striperefund.New(o), Scope: "test", Now: o.Now,
	}
	l := order.Lease{Owner: "refunds", From: s.began, Until: s.began.Add(time.Minute)}
	if got := p.Process(s.Context(), r, l); got.Verdict != order.Done {
		s.Fatalf("refund of %s: got %+v, want it done", id, got)
	}
	var name string
	s.stripe.Machine(func(m *stripetest.Machine) { name = m.Refunds()[0].ID })
	return name
}

// One run settles, frees and refreshes what it should, and leaves the rest.
func TestTheWiredFunctionReconcilesOrdersRefundsAndStock(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.order("paid", "pm_usBankAccount_processing", s.stock)
	s.order("pending", "pm_usBankAccount_processing", "")
	s.order("refunded", "pm_card_pendingRefund", "")
	s.order("declined", "pm_card_chargeDeclined", "")
	s.order("holds", "pm_card_authenticationRequired", s.stock)
	made := s.refund("refunded")
	s.stripe.Machine(func(m *stripetest.Machine) {
		functiontest.Must(s, m.Settle(s.began, "pi_000001", true))
		functiontest.Must(s, m.ChangeRefund(made, stripetest.RefundSucceeded))
	})
	got, err := s.run()
	functiontest.Must(s, err)
	overdue := 30*time.Hour - time.Hour // the pending orders were due an hour after their claim
	if late := got["Overdue"] - float64(overdue.Milliseconds()); late < 0 || late > 600_000 {
		t.Errorf("got the latest recheck %v ms after it was due, want %v", got["Overdue"], overdue)
	}
	if waited := got["OldestWaiting pending"] - float64((30 * time.Hour).Milliseconds()); waited < 0 || waited > 600_000 {
		t.Errorf("got the oldest pending order %v ms old, want 30 hours", got["OldestWaiting pending"])
	}
	delete(got, "Overdue")
	delete(got, "OldestWaiting pending")
	if diff := cmp.Diff(got, map[string]float64{"Reconciled settled": 1, "Reconciled unchanged": 2, "Reconciled freed": 1}); diff != "" {
		t.Errorf("metrics (-got +want):\n%s\n%s", diff, s.out.String())
	}
	s.wantStatuses(map[order.ID]order.Status{
		"paid": order.Paid, "pending": order.Pending, "refunded": order.PartiallyRefunded, "declined": order.Declined,
		"holds": order.Canceled,
	})
	account, err := refundtable.New(s.store("")).Load(t.Context(), "refunded")
	functiontest.Must(s, err)
	if i, _ := account.Item("R-1"); i.Status != refund.Succeeded {
		t.Errorf("got the refund %+v, want it succeeded", i)
	}
	if mug, err := s.store(s.stock).Stock(t.Context(), "MUG"); err != nil || mug.Reserved != 0 || mug.Sold == 0 {
		t.Errorf("got the stock %+v, %v, want none reserved and some sold", mug, err)
	}
	if lines := s.logged("reconciled"); !slices.Equal(lines, []string{"INFO"}) {
		t.Errorf("got the lines %q, want one at level INFO", lines)
	}
	if again, err := s.run(); err != nil || len(again) > 0 {
		t.Errorf("at once again: got %v, %v, want no order due", again, err)
	}
}

// A run that Stripe does not answer is an error of the function, so that its alarm is
// raised, also if only one order waits.
func TestTheWiredFunctionFailsWhileStripeIsDown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.order("pending", "pm_usBankAccount_processing", "")
	s.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
	got, err := s.run()
	if err == nil || got["Reconciled unavailable"] != 1 || !strings.Contains(err.Error(), "does not answer, order pending: ") {
		t.Errorf("got %v, %v, want an error that names the order", got, err)
	}
	if lines := s.logged("reconciled"); len(lines) != 1 || !strings.HasPrefix(lines[0], "ERROR 1 orders: ") {
		t.Errorf("got the lines %q, want the error", lines)
	}
}

// The calls of freed stock and of refunds wait for their turn as well.
func TestTheWiredFunctionKeepsTheRate(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.order("holds", "pm_card_authenticationRequired", s.stock)
	s.order("refunded", "pm_card_pendingRefund", "")
	s.refund("refunded")
	began := time.Now()
	if got, err := s.run("STRIPE_RATE=20"); err != nil || got["Reconciled freed"] != 1 || got["Reconciled unchanged"] != 1 {
		t.Fatalf("got %v, %v, want both orders looked at", got, err)
	}
	const calls = 6 // of the one order four, a cancel among them, and of the other a recheck and its refunds
	if took := time.Since(began); took < calls*time.Second/20 {
		t.Errorf("took %v, want %d calls at 20 a second", took, calls)
	}
}

// STRIPE_RATE is the number of calls in a second, whoever waits for them.
func TestTheRateOfCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, allow := time.Now(), perSecond(4)
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if err := allow(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		if took := time.Since(began); took != 2500*time.Millisecond {
			t.Errorf("got 10 calls in %v, want 2.5s", took)
		}
	})
}
