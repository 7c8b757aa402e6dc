package baselines_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/baselines"
)

const orderID = "ORD-1"

// visibility is how long a message stays away that was not acknowledged.
const visibility = 6 * time.Minute

// world is a table, a Stripe and a clock for one design. Each call to the outside is a step with a number.
type world struct {
	testing.TB
	baselines.Design

	table         *baselines.Map
	store         baselines.Table // the table, unless a test has put another one there
	stripe        *stripetest.Machine
	client        *baselines.Stripe
	now           time.Time
	steps         int
	before, after func(step int) // called around each step, unless nil
	acked         map[string]bool
	warnings      []string
	keys          int
}

func newWorld(tb testing.TB, d baselines.Design) *world {
	tb.Helper()
	w := &world{
		TB: tb, Design: d, table: &baselines.Map{}, stripe: stripetest.New(stripetest.Rules{ListLag: d.ListLag}),
		now: time.Unix(1_767_225_600, 0).UTC(), acked: map[string]bool{},
	}
	w.client = baselines.NewStripe(baselines.StripeOptions{
		Key: "sk_test_pretend", BaseURL: "http://stripe.test", Transport: wire{w},
		NewKey: func() string { w.keys++; return fmt.Sprintf("drawn-%d", w.keys) },
	})
	w.store = w.table
	return w
}

// named is the world of one design.
func named(tb testing.TB, name string) *world {
	tb.Helper()
	for _, d := range baselines.All() {
		if d.Name == name {
			return newWorld(tb, d)
		}
	}
	tb.Fatalf("no design %q", name)
	return nil
}

func message(id string, quantity int, method string) baselines.Message {
	return baselines.Message{ID: id, Body: fmt.Sprintf(
		`{"orderId":%q,"customerId":"CUST987","currency":"usd","lines":[{"sku":"MUG","quantity":%d,"unitAmount":1999}],`+
			`"payment":{"customer":"cus_pretend","method":%q}}`, orderID, quantity, method)}
}

func pays(id string) baselines.Message { return message(id, 1, "pm_card_visa") }

// purchase is another order of the same customer.
func purchase() stripetest.Request {
	return stripetest.Request{
		Method: http.MethodPost, Path: "/v1/payment_intents", APIKey: "sk_test_pretend",
		Form: url.Values{"amount": {"500"}, "currency": {"usd"}, "customer": {"cus_pretend"}},
	}
}

type dead struct{}

// deliver gives the design a message, and forgets the message if the design says so. A worker may die.
func (w *world) deliver(m baselines.Message) (err error) {
	defer func() {
		if p := recover(); p != nil && p != (dead{}) {
			panic(p)
		} else if p != nil {
			err = errors.New("the worker died")
		}
	}()
	err = w.Handle(w.Context(), baselines.Env{
		Table: table{w}, Stripe: w.client, Now: func() time.Time { return w.now }, Deadline: w.now.Add(time.Minute),
		Warn: func(text string) { w.warnings = append(w.warnings, text) },
	}, m)
	w.acked[m.ID] = w.acked[m.ID] || err == nil
	return err
}

// settle delivers the message until it is acknowledged or was received five times.
func (w *world) settle(m baselines.Message) error {
	err := w.deliver(m)
	for range 4 {
		if w.acked[m.ID] {
			return nil
		}
		w.now = w.now.Add(visibility)
		err = w.deliver(m)
	}
	return err
}

// once runs f before the numbered step and at no other, nor at any step within f.
func (w *world) once(step int, f func()) func(int) {
	return func(n int) {
		if n == step {
			w.before, w.after = nil, nil
			f()
		}
	}
}

func (w *world) charges() int { return len(w.stripe.Charges(orderID)) }

func (w *world) wantCharges(want int) {
	w.Helper()
	if got := w.charges(); got != want {
		w.Errorf("%s: got %d charges, want %d", w.Design.Name, got, want)
	}
}

func (w *world) status() baselines.Status {
	w.Helper()
	s, err := baselines.StatusOf(w.Context(), w.store, orderID)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *world) step(do func()) {
	n := w.steps
	w.steps++
	if w.before != nil {
		w.before(n)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	do()
	if w.after != nil {
		w.after(n)
	}
}

// table is the world's table as a design reaches it.
type table struct{ *world }

func (t table) Get(ctx context.Context, id string) (item baselines.Item, err error) {
	t.step(func() { item, err = t.store.Get(ctx, id) })
	return item, err
}

func (t table) Put(ctx context.Context, i baselines.Item) (err error) {
	t.step(func() { err = t.store.Put(ctx, i) })
	return err
}

func (t table) PutIf(ctx context.Context, i baselines.Item, c baselines.Condition) (err error) {
	t.step(func() { err = t.store.PutIf(ctx, i, c) })
	return err
}

func (t table) Delete(ctx context.Context, id string) (err error) {
	t.step(func() { err = t.store.Delete(ctx, id) })
	return err
}

// wire is the world's Stripe as a design reaches it, without a socket.
type wire struct{ *world }

var errConnection = errors.New("connection lost")

func (w wire) RoundTrip(r *http.Request) (out *http.Response, err error) {
	w.step(func() { out, err = w.roundTrip(r) }) //nolint:bodyclose // the caller closes it, as of any RoundTripper
	return out, err
}

func (w wire) roundTrip(r *http.Request) (*http.Response, error) {
	form := r.URL.Query()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if form, err = url.ParseQuery(string(body)); err != nil {
			return nil, err
		}
	}
	a := w.stripe.Do(w.now, stripetest.Request{
		Method: r.Method, Path: r.URL.Path, APIKey: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		Key: r.Header.Get("Idempotency-Key"), Form: form,
	})
	if a.Lost {
		return nil, errConnection
	}
	header := http.Header{"Content-Type": {"application/json"}, "Stripe-Should-Retry": {a.ShouldRetry}}
	return &http.Response{StatusCode: a.Status, Header: header, Body: io.NopCloser(bytes.NewReader(a.Body())), Request: r}, nil
}
