// Package existing_test kills the function of the folder before and the one of the folder
// after at every call that they make.
package existing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/paymentintent"

	ordertable "orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	orderstripe "orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	after "orderonce/examples/existing/after"
	before "orderonce/examples/existing/before"
)

const keyForgotten = 25 * time.Hour // Stripe keeps an idempotency key for a day

// world is both functions between Stripe, the table of the shop and the one of the
// charges. Its clock is virtual, and a function makes its calls in its own goroutine.
type world struct {
	*testing.T
	before  before.Handler
	after   after.Handler
	client  *dynamodb.Client // of the test
	stripe  *stripetest.Machine
	now     time.Time
	ids     int
	shipped map[string]int // how often the warehouse shipped an order

	calls int                       // of the last delivery
	at    func(call int, done bool) // runs before and after each call of it
}

// function is one of the two.
type function func(context.Context, events.SQSEvent) error

// died is the panic value of a function that dies.
type died struct{}

func newWorld(t *testing.T) *world {
	t.Helper()
	table := dynamodbtest.Open(t)
	w := &world{
		T: t, client: table.Client, stripe: stripetest.New(stripetest.Rules{}),
		now: time.UnixMilli(1_767_225_600_000), shipped: map[string]int{},
	}
	shop, cfg := table.Table+"-shop", table.Config
	w.must(dynamodbtest.Create(t.Context(), w.client, dynamodbtest.Definition(shop, "orderId")))
	cfg.HTTPClient = &http.Client{Transport: w}
	w.before = before.Handler{
		Table: shop, Client: dynamodb.NewFromConfig(cfg),
		Stripe: paymentintent.Client{Key: "sk_test_pretend", B: &stripe.BackendImplementation{
			Type: stripe.APIBackend, URL: "http://stripe.test", HTTPClient: &http.Client{Transport: w},
			LeveledLogger: &stripe.LeveledLogger{},
		}},
	}
	options := orderstripe.Options{Key: "sk_test_pretend", Scope: "shop", BaseURL: "http://stripe.test", Transport: w}
	w.after = after.Handler{
		Table: shop, Client: w.before.Client, Stripe: w.before.Stripe,
		Charges:  after.NewCharges(cfg, table.Table, options, func() time.Time { return w.now }),
		NewOwner: func() string { w.ids++; return fmt.Sprint("owner ", w.ids) },
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// RoundTrip is a call to Stripe or to a table.
func (w *world) RoundTrip(r *http.Request) (response *http.Response, err error) {
	w.calls++
	call, at := w.calls, w.at
	if at != nil {
		at(call, false)
		defer func() { at(call, true) }()
	}
	if r.URL.Host == "stripe.test" {
		do := func(r stripetest.Request) stripetest.Response { return w.stripe.Do(w.now, r) }
		return stripetest.RoundTrip(r, do)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (w *world) order() before.Order {
	w.ids++
	return before.Order{
		ID: fmt.Sprint("ORD-", w.ids), CreatedAt: w.now, Customer: "cus_pretend", Card: "pm_card_visa",
		Amount: 1998, Currency: "usd",
	}
}

// deliver lets a function handle the order's message. It returns whether the message
// comes back, and the status in the order's row.
func (w *world) deliver(
	f function, o before.Order, at func(call int, done bool),
) (again bool, status string) {
	w.Helper()
	body, err := json.Marshal(o)
	w.must(err)
	w.calls, w.at = 0, at
	defer func() {
		w.at = nil
		if p := recover(); p == (died{}) {
			again = true
		} else if p != nil {
			panic(p)
		}
		status = w.ship(o)
	}()
	return f(w.Context(), events.SQSEvent{Records: []events.SQSMessage{{Body: string(body)}}}) != nil, ""
}

// ship is the warehouse: it ships an order whose row says that it is paid. It returns the
// status that the row has then.
func (w *world) ship(o before.Order) string {
	w.Helper()
	_, err := w.client.UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.before.Table, Key: ordertable.Item{"orderId": ordertable.Text(o.ID)},
		UpdateExpression: new("SET #s = :shipped"), ConditionExpression: new("#s = :paid"),
		ExpressionAttributeNames:            map[string]string{"#s": "status"},
		ExpressionAttributeValues:           ordertable.Item{":paid": ordertable.Text("PAID"), ":shipped": ordertable.Text("SHIPPED")},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if there, refused := ordertable.Refused(err); refused {
		return ordertable.TextOf(there, "status")
	}
	w.must(err)
	w.shipped[o.ID]++
	if w.charges(o) == 0 {
		w.Errorf("%s was shipped and not charged", o.ID)
	}
	return "SHIPPED"
}

func (w *world) charges(o before.Order) int { return len(w.stripe.Charges(o.ID)) }

// ending counts the histories of one kind, and those that ended badly.
type ending struct{ histories, charged, shipped int }

func (e ending) String() string {
	return fmt.Sprintf("%d of %d | %d of %d", e.charged, e.histories, e.shipped, e.histories)
}

// end delivers the message once more, and counts how the order ended.
func (w *world) end(e *ending, f function, o before.Order) {
	w.Helper()
	if again, status := w.deliver(f, o, nil); again || status != "SHIPPED" {
		w.Errorf("%s is %q, and its message comes back: %t", o.ID, status, again)
	}
	e.histories++
	if w.charges(o) > 1 {
		e.charged++
	}
	if w.shipped[o.ID] > 1 {
		e.shipped++
	}
}

// struck strikes f before and after each call. Its successor gets the message later.
func (w *world) struck(
	f, successor function, later time.Duration, strike func(o before.Order),
) (e ending) {
	w.Helper()
	for point := 0; ; point++ {
		o, reached := w.order(), false
		w.deliver(f, o, func(call int, done bool) {
			if call == 1+point/2 && done == (point%2 == 1) {
				reached = true
				strike(o)
			}
		})
		if !reached {
			return e
		}
		w.now = w.now.Add(later)
		w.end(&e, successor, o)
	}
}

func kill(before.Order) { panic(died{}) }

// outcomes are in docs/guides/existing.md.
const outcomes = `| what happens to the function | before: charged twice | shipped twice | after: charged twice | shipped twice |
|---|---|---|---|---|
| killed at a call; the message comes back an hour later | 0 of 4 | 1 of 4 | 0 of 12 | 0 of 12 |
| killed at a call; the message comes back a day later | 3 of 4 | 1 of 4 | 0 of 12 | 0 of 12 |
| frozen at a call for two days; another worker gets the message meanwhile | 4 of 4 | 4 of 4 | 0 of 12 | 0 of 12 |
| nothing; the message is sent again a month later | 1 of 1 | 1 of 1 | 0 of 1 | 0 of 1 |
`

func TestOnlyTheFunctionBeforeChargesTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	histories := []func(function) ending{
		func(f function) ending { return w.struck(f, f, time.Hour, kill) },
		func(f function) ending { return w.struck(f, f, keyForgotten, kill) },
		func(f function) ending {
			return w.struck(f, f, 0, func(o before.Order) {
				w.now = w.now.Add(keyForgotten)
				w.deliver(f, o, nil)
				w.now = w.now.Add(keyForgotten)
			})
		},
		func(f function) (e ending) {
			o := w.order()
			w.deliver(f, o, nil)
			w.now = w.now.Add(30 * 24 * time.Hour)
			w.end(&e, f, o)
			return e
		},
	}
	rows := strings.SplitAfter(strings.TrimSuffix(outcomes, "\n"), "\n")
	got := strings.Join(rows[:2], "")
	for i, history := range histories {
		name, _, _ := strings.Cut(rows[2+i], " |")
		got += fmt.Sprintf("%s | %s | %s |\n", name, history(w.before.Handle), history(w.after.Handle))
	}
	if diff := cmp.Diff(got, outcomes); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// Both versions run for a while. Without a cutover, the new one charges again what the
// old one has charged.
func TestAnOrderUnderWayIsChargedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, want := w.struck(w.before.Handle, w.after.Handle, time.Hour, kill), ending{4, 3, 0}
	if got != want {
		t.Errorf("without a cutover: got %+v, want %+v", got, want)
	}
	w.after.Cutover = w.now.Add(24 * time.Hour)
	for _, f := range [][]function{{w.before.Handle, w.after.Handle}, {w.after.Handle, w.before.Handle}} {
		if got := w.struck(f[0], f[1], time.Hour, kill); got.charged > 0 || got.histories != 4 {
			t.Errorf("got %+v, want 4 orders charged once", got)
		}
	}
}

func TestADeclineIsNeitherChargedNorRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, f := range []function{w.before.Handle, w.after.Handle} {
		o := w.order()
		o.Card = "pm_card_chargeDeclined"
		if again, status := w.deliver(f, o, nil); again || status != "FAILED" || w.charges(o) > 0 {
			t.Errorf("got %q and %d charges, it comes back: %t; want FAILED, 0, false", status, w.charges(o), again)
		}
	}
}

// The guide leaves out the imports.
func TestTheGuideShowsTheWholeDifference(t *testing.T) {
	t.Parallel()
	read := func(name, from string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), from)
		return rest
	}
	guide, got := read("../../docs/guides/existing.md", ""), read("before/handler.go", "\n)\n")
	if !strings.Contains(guide, outcomes) {
		t.Errorf("the guide lacks\n%s", outcomes)
	}
	for _, hunk := range regexp.MustCompile("(?s)```diff\n(.*?)```").FindAllStringSubmatch(guide, -1) {
		was := regexp.MustCompile(`(?m)^(\+.*\n| )|^-`).ReplaceAllString(hunk[1], "")
		is := regexp.MustCompile(`(?m)^(-.*\n| )|^\+`).ReplaceAllString(hunk[1], "")
		if strings.Count(got, was) != 1 {
			t.Errorf("examples/existing/before does not have once:\n%s", was)
		}
		got = strings.Replace(got, was, is, 1)
	}
	if diff := cmp.Diff(got, read("after/handler.go", "\n)\n")); diff != "" {
		t.Errorf("(-the guide +examples/existing/after):\n%s", diff)
	}
}
