package system_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestSystem runs the compiled functions. Only Stripe, SQS and Lambda are pretend. What a
// rule says is tested in the domain and in the adapters: here it is that the functions
// are wired to them.
func TestSystem(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	for claim, test := range map[string]func(*testing.T){
		"a fresh order makes 3 DynamoDB and 2 Stripe calls, its duplicate 1 and 0": w.countsCalls,
		"no output of the function holds a secret or personal value":               w.canaries,
		"a scan of the table agrees with the store":                                w.scanned,
		"two systems share an engine, and each drops its tables":                   w.shared,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

type world struct{ systemtest.Kit }

type running struct {
	*system.System
	t      *testing.T
	log    *system.Log
	posted []invariants.Message
}

func (w world) start(t *testing.T, o system.Options) *running {
	t.Helper()
	s, log := w.Start(t, o)
	return &running{System: s, t: t, log: log}
}

func (o *running) post(bodies ...string) {
	o.t.Helper()
	o.postDrafts(system.Drafts(bodies...)...)
}

// postDrafts is post for messages with attributes.
func (o *running) postDrafts(drafts ...sqstest.Draft) {
	o.t.Helper()
	posted, err := o.PostMessages(drafts)
	systemtest.Must(o.t, err)
	o.posted = append(o.posted, posted...)
}

// settle waits for an empty queue and checks every invariant.
func (o *running) settle() invariants.Books {
	o.t.Helper()
	o.drain()
	books, err := o.Collect(o.t.Context(), o.posted, o.log)
	systemtest.Must(o.t, err)
	for _, c := range books.Check() {
		for _, broken := range c.Broken {
			o.t.Errorf("%s (%s): %s", c.ID, c.Claim, broken)
		}
	}
	return books
}

func (o *running) drain() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 5*time.Minute)
	defer cancel()
	if err := o.Drained(ctx); err != nil {
		o.t.Fatalf("the queue is not empty: %v\n%s", err, o.log.Text())
	}
}

type outcome struct {
	Status          order.Status
	Charges, Events int
}

var paid = outcome{order.Paid, 1, 1} //nolint:gochecknoglobals // a constant

func (o *running) want(b invariants.Books, id order.ID, want outcome) {
	o.t.Helper()
	got := outcome{b.Orders[id].Status, len(b.Charges[id]), len(b.Orders[id].Events)}
	if got != want {
		o.t.Errorf("order %s: got %+v, want %+v", id, got, want)
	}
}

func (o *running) wantCalls(claim string, do func(), dynamo map[string]int, stripe int) {
	o.t.Helper()
	o.Proxy.Reset()
	before := o.Stripe.Arrived()
	do()
	if got := o.Stripe.Arrived() - before; got != stripe {
		o.t.Errorf("%s: got %d calls to Stripe, want %d", claim, got, stripe)
	}
	if diff := gocmp.Diff(dynamo, o.Proxy.Counts()); diff != "" {
		o.t.Errorf("%s: calls to DynamoDB (-want +got):\n%s", claim, diff)
	}
}

// wantShirts compares the stock of the shirts, of which an order has two.
func (o *running) wantShirts(b invariants.Books, available, reserved, sold int64) {
	o.t.Helper()
	want := order.Stock{SKU: shirt, Available: available, Reserved: reserved, Sold: sold}
	if got := b.Stock[shirt]; got != want {
		o.t.Errorf("got stock %+v, want %+v", got, want)
	}
}

const (
	shirt = "TSHIRT-M"
	day   = 24 * time.Hour

	works     = "pm_card_visa"
	declines  = "pm_card_chargeDeclined"
	needsUser = "pm_card_authenticationRequired"
	takesDays = "pm_usBankAccount_processing"
)

func body(id string) string { return bodyWith(id, works) }

func bodyWith(id, method string) string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"CUST-%s","currency":"usd",`+
		`"lines":[{"sku":%q,"quantity":2,"unitAmount":1999}],"payment":{"customer":"cus_Test","method":%q}}`, id, id, shirt, method)
}

const fullAmount = 3998

func refundBody(orderID, id string, amount int64) string {
	return fmt.Sprintf(`{"type":"refund","orderId":%q,"refundId":%q,"amount":%d,"reason":"duplicate"}`, orderID, id, amount)
}

func stocked(shirts int64, o system.Options) system.Options {
	o.Stock = map[string]int64{shirt: shirts}
	return o
}

func (w world) countsCalls(t *testing.T) {
	t.Helper()
	s := w.start(t, incidents.Unhurried(stocked(6, system.Options{})))
	first := map[string]int{"TransactWriteItems": 2, "UpdateItem": 1}
	refund := map[string]int{"GetItem": 1, "UpdateItem": 2, "TransactWriteItems": 1}
	for _, step := range []struct {
		claim, body string
		dynamo      map[string]int
		stripe      int
	}{
		{"a fresh order", body("fresh"), first, 2},
		{"its duplicate", body("fresh"), map[string]int{"TransactWriteItems": 1}, 0},
		{"an order that waits for its customer", bodyWith("asked", needsUser), first, 2},
		{"the last shirts", body("last"), first, 2},
		{"an order without stock", body("late"), map[string]int{"TransactWriteItems": 2, "UpdateItem": 1}, 0},
		{"a refund", refundBody("fresh", "R-1", 1000), refund, 2},
		{"the next refund", refundBody("fresh", "R-2", 1000), refund, 2},
		{"its duplicate", refundBody("fresh", "R-2", 1000), map[string]int{"GetItem": 1}, 0},
	} {
		s.wantCalls(step.claim, func() { s.post(step.body); s.drain() }, step.dynamo, step.stripe)
	}
	s.wantShirts(s.settle(), 0, 2, 4)
}

func (w world) canaries(t *testing.T) {
	t.Helper()
	s := w.start(t, system.Options{Env: map[string]string{
		"STRIPE_SECRET_KEY": "sk_test_canaryKey", "AWS_SECRET_ACCESS_KEY": "canaryAWS", "AWS_SESSION_TOKEN": "canaryToken",
	}})
	bodyOf := func(id, customer, method string) string {
		return fmt.Sprintf(`{"orderId":%q,"customerId":"canaryCustomer","currency":"usd",`+
			`"lines":[{"sku":"MUG","quantity":1,"unitAmount":900}],"payment":{"customer":%q,"method":%q}}`, id, customer, method)
	}
	s.post(
		bodyOf("paid", "cus_canaryPayer", "pm_canaryMethod"),
		bodyOf("declined", "cus_canaryPayer", declines),
		bodyOf("unknown-method", "cus_canaryPayer", "tok_canaryMethod"), // Stripe's error repeats it
		bodyOf("card-number", "canary Payer Name", "canary 4242424242424242"),
		`{"orderId":"wrong-type","customerId":{"name":"canaryCustomer"},"payment":"canaryMethod"}`,
		`{"orderId":"cut","customerId":"canaryCustomer`,
	)
	s.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unauthorized, OrderID: "paid"}) // its error repeats the key
	s.drain()
	outputs := map[string]string{"the log and the metrics": s.log.Text()}
	dead, err := s.Dead()
	if err != nil || len(dead) != 4 {
		t.Errorf("%d messages are parked, %v, want 4", len(dead), err)
	}
	for _, d := range dead {
		for name, a := range d.Attributes {
			outputs["attribute "+name+" of a parked message"] += a.Text + string(a.Binary)
		}
	}
	for where, text := range outputs {
		if i := strings.Index(text, "canary"); i >= 0 {
			t.Errorf("%s: ...%s...", where, text[max(0, i-80):min(len(text), i+80)])
		}
		if strings.Contains(text, "4242424242424242") || strings.Contains(text, "_secret_") {
			t.Errorf("%s holds a card number or a client secret", where)
		}
	}
	if !strings.Contains(s.log.Text(), `"order_id":"paid"`) {
		t.Error("the log has no line of order paid")
	}
}

func (w world) scanned(t *testing.T) {
	t.Helper()
	s := w.start(t, stocked(8, system.Options{}))
	s.post(body("paid"), bodyWith("declined", declines), bodyWith("bank", needsUser))
	s.settle()
	for scanned, err := range s.Orders(t.Context()) {
		systemtest.Must(t, err)
		loaded, err := s.Store.Load(t.Context(), scanned.OrderID)
		systemtest.Must(t, err)
		if diff := gocmp.Diff(scanned.Record, loaded, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
			t.Errorf("- scanned, + loaded:\n%s", diff)
		}
	}
}

func (w world) shared(t *testing.T) {
	t.Helper()
	engine, err := dynamodbtest.Start(t.Context(), w.Engine)
	systemtest.Must(t, err)
	t.Cleanup(func() { systemtest.Must(t, engine.Close()) })
	w.Engine = dynamodbtest.Location{Endpoint: engine.Endpoint}
	for _, s := range []*running{w.start(t, system.Options{}), w.start(t, system.Options{})} {
		s.post(body("shared"))
		s.want(s.settle(), "shared", paid)
		systemtest.Must(t, s.Close())
		for _, err := range s.Items(t.Context(), s.Options.Table) {
			if _, gone := errors.AsType[*types.ResourceNotFoundException](err); !gone {
				t.Errorf("table %q is left: %v", s.Options.Table, cmp.Or(err, errNotGone))
			}
		}
	}
}

var errNotGone = errors.New("it can be read")
