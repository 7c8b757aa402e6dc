package baselines_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/baselines"
)

const orderID = "ORD-1"

const visibility = 6 * time.Minute

// harness runs one baseline with a table, a Stripe and a clock. Each call to the table or
// to Stripe is a numbered step.
type harness struct {
	testing.TB
	baselines.Baseline

	table         baselines.Map
	store         baselines.Table // the table, unless a test replaces it
	stripe        *stripetest.Machine
	client        *baselines.Stripe
	now           time.Time
	steps         int
	before, after func(step int)  // called before and after each step, unless nil
	deleted       map[string]bool // messages, by id
	invisible     time.Time       // until then a FIFO queue delivers no other message of the order
	keys          int
}

func newHarness(tb testing.TB, b baselines.Baseline) *harness {
	tb.Helper()
	h := &harness{
		TB: tb, Baseline: b, table: baselines.Map{}, stripe: stripetest.New(stripetest.Rules{}),
		now: time.Unix(1_767_225_600, 0).UTC(), deleted: map[string]bool{},
	}
	h.client = baselines.NewStripe(baselines.StripeOptions{
		Key: "sk_test_pretend", BaseURL: "http://stripe.test", Transport: h,
		NewKey: func() string { h.keys++; return fmt.Sprintf("random-%d", h.keys) },
	})
	h.store = h.table
	return h
}

func harnessOf(tb testing.TB, name string) *harness {
	tb.Helper()
	for _, b := range baselines.All() {
		if b.Name == name {
			return newHarness(tb, b)
		}
	}
	tb.Fatalf("no baseline %q", name)
	return nil
}

func message(id string, quantity int, method string) baselines.Message {
	return baselines.Message{ID: id, Body: fmt.Sprintf(`{"orderId":%q,"customerId":"CUST987","currency":"usd",`+
		`"lines":[{"sku":"MUG","quantity":%d,"unitAmount":1999}],"payment":{"customer":"cus_pretend","method":%q}}`,
		orderID, quantity, method)}
}

func paidBy(id string) baselines.Message { return message(id, 1, "pm_card_visa") }

type crash struct{}

// deliver calls the handler once. It returns an error if the worker crashes.
func (h *harness) deliver(m baselines.Message) (err error) {
	defer func() {
		if p := recover(); p != nil && p != (crash{}) {
			panic(p)
		} else if p != nil {
			err = errors.New("worker crashed")
		}
	}()
	if h.FIFO && (h.deleted[m.ID] || h.now.Before(h.invisible)) {
		return errors.New("not delivered by a FIFO queue")
	}
	h.invisible = h.now.Add(visibility)
	err = h.Handle(h.Context(), baselines.Env{
		Table: h, Stripe: h.client,
		Now: func() time.Time { return h.now }, Deadline: h.now.Add(time.Minute),
	}, m)
	h.deleted[m.ID], h.invisible = h.deleted[m.ID] || err == nil, time.Time{}
	return err
}

// deliverUntilDeleted delivers the message up to five times.
func (h *harness) deliverUntilDeleted(m baselines.Message) error {
	err := h.deliver(m)
	for range 4 {
		if h.deleted[m.ID] {
			return nil
		}
		h.now = h.now.Add(visibility)
		err = h.deliver(m)
	}
	return err
}

// atStep runs f at the numbered step only, and at no step within f.
func (h *harness) atStep(step int, f func()) func(int) {
	return func(n int) {
		if n == step {
			h.before, h.after = nil, nil
			f()
		}
	}
}

func (h *harness) charges() int { return len(h.stripe.Charges(orderID)) }

func (h *harness) status() baselines.Status {
	h.Helper()
	row, err := h.store.Get(h.Context(), "order#"+orderID)
	if err != nil {
		h.Fatal(err)
	}
	return row.Status
}

func (h *harness) step(do func() error) error {
	n := h.steps
	h.steps++
	if h.before != nil {
		h.before(n)
	}
	h.now = h.now.Add(100 * time.Millisecond)
	err := do()
	if h.after != nil {
		h.after(n)
	}
	return err
}

// RoundTrip makes each request to Stripe a step, without a socket.
func (h *harness) RoundTrip(r *http.Request) (out *http.Response, err error) {
	err = h.step(func() error {
		do := func(r stripetest.Request) stripetest.Response { return h.stripe.Do(h.now, r) }
		out, err = stripetest.RoundTrip(r, do) //nolint:bodyclose // closed by the caller
		return err
	})
	return out, err
}

// The harness is the table of its baseline. Each call is a step.
var _ baselines.Table = (*harness)(nil)

func (h *harness) Get(ctx context.Context, id string) (got baselines.Item, err error) {
	err = h.step(func() error {
		got, err = h.store.Get(ctx, id)
		return err
	})
	return got, err
}

func (h *harness) Put(ctx context.Context, i baselines.Item, c baselines.Condition) (got baselines.Item, err error) {
	err = h.step(func() error {
		got, err = h.store.Put(ctx, i, c)
		return err
	})
	return got, err
}

func (h *harness) Delete(ctx context.Context, id string) error {
	return h.step(func() error { return h.store.Delete(ctx, id) })
}
