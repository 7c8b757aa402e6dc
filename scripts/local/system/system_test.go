package system_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestSystem runs the compiled function. Only Stripe, SQS and Lambda are pretend.
func TestSystem(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	for claim, test := range map[string]func(*testing.T){
		"a fresh order makes 3 DynamoDB and 2 Stripe calls, its duplicate 1 and 0":             w.countsCalls,
		"killed before and after every call, then redelivered: one charge, one row, one event": w.killedAtEveryCall,
		"a redelivery after days does not charge again":                                        w.redeliveredAfterDays,
		"a stored and replayed 500 settles at the next delivery":                               w.storedServerErrors,
		"a crash after authentication_required leads to action_required":                       w.authenticationRequired,
		"1,000 orders delivered twice to 8 instances are charged 1,000 times":                  w.thousandTwice,
		"no output of the function holds a secret or personal value":                           w.canaries,
		"an invalid message is parked at its first delivery and its neighbors settle":          w.poison,
		"over FIFO queues an order settles once and different content is parked":               w.fifo,
		"a scan of the table agrees with the store":                                            w.scanned,
		"dead letters settle after a redrive, with skipped clocks":                             w.skipped,
		"two systems share an engine, and each drops its table":                                w.shared,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// world starts the systems of a test.
type world struct{ systemtest.Kit }

// running is a system with its log and the messages that were posted.
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

// post sends bodies and records them.
func (o *running) post(bodies ...string) {
	o.t.Helper()
	drafts := make([]sqstest.Draft, len(bodies))
	for i, body := range bodies {
		drafts[i].Body = body
	}
	o.postDrafts(drafts...)
}

// postDrafts is post for messages with attributes, or for a FIFO queue.
func (o *running) postDrafts(drafts ...sqstest.Draft) (ids []string) {
	o.t.Helper()
	ids, err := o.Post(drafts)
	must(o.t, err)
	decoder := jobs.NewDecoder()
	for i, d := range drafts {
		o.posted = append(o.posted, invariants.NewMessage(decoder, d.Body, ids[i]))
	}
	return ids
}

// settle waits for an empty queue and checks every invariant.
func (o *running) settle() invariants.Books {
	o.t.Helper()
	o.drain()
	books, err := o.Collect(o.t.Context(), o.posted, o.log)
	must(o.t, err)
	for _, c := range books.Audit() {
		for _, broken := range c.Broken {
			o.t.Errorf("%s (%s): %s", c.ID, c.Claim, broken)
		}
	}
	if o.t.Failed() {
		o.t.Log(books.Log)
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

// skipUntilEmpty moves the clocks whenever the system only waits.
func (o *running) skipUntilEmpty() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 5*time.Minute)
	defer cancel()
	ctx, cancel = o.Function.UntilExit(ctx)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	// A message that was received and whose invocation has not begun is not Busy yet: a skip
	// would deliver it again, and use up its receives.
	const idle = 100 // milliseconds
	for quiet := 0; o.Waiting() > 0; quiet++ {
		if o.Busy() {
			quiet = 0
		}
		if quiet >= idle {
			o.Skip()
			quiet = 0
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			o.t.Fatalf("%v: the queue is not empty: %+v\n%s", context.Cause(ctx), o.Counts(), o.log.Text())
		}
	}
}

// outcome is what the books hold of an order: its status, charges and event rows.
type outcome struct {
	Status          order.Status
	Charges, Events int
}

// settlesOnce checks that an order is paid with one charge and one event.
func (o *running) settlesOnce(b invariants.Books, id order.ID) {
	o.t.Helper()
	if got, want := outcomeOf(b, id), (outcome{order.Paid, 1, 1}); got != want {
		o.t.Errorf("order %s: got %+v, want %+v", id, got, want)
	}
}

func outcomeOf(b invariants.Books, id order.ID) outcome {
	return outcome{b.Orders[id].Status, len(b.Charges[id]), len(b.Orders[id].Events)}
}

func body(id string) string { return bodyWith(id, "pm_card_visa") }

func bodyWith(id, method string) string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"CUST-%s","currency":"usd",`+
		`"lines":[{"sku":"TSHIRT-M","quantity":2,"unitAmount":1999}],"payment":{"customer":"cus_Test","method":%q}}`, id, id, method)
}

// generous sets long timeouts, for a test that counts calls or deliveries: on a busy
// machine, a call that timed out would be repeated.
func generous(o system.Options) system.Options {
	o.FunctionTimeout, o.Visibility = 30*time.Second, 40*time.Second
	env := map[string]string{"STRIPE_TIMEOUT": "20s", "ORDER_BUDGET": "24s"}
	maps.Copy(env, o.Env)
	o.Env = env
	return o
}

func (w world) countsCalls(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{}))
	s.post(body("fresh"))
	s.settlesOnce(s.settle(), "fresh")
	if dynamo, stripe := s.Proxy.Total(), len(s.Stripe.Calls()); dynamo != 3 || stripe != 2 {
		t.Errorf("a fresh order: %d DynamoDB calls (%v) and %d Stripe calls, want 3 and 2",
			dynamo, s.Proxy.Counts(), stripe)
	}
	s.Proxy.Reset()
	s.post(body("fresh"))
	s.settlesOnce(s.settle(), "fresh")
	if dynamo, stripe := s.Proxy.Total(), len(s.Stripe.Calls()); dynamo != 1 || stripe != 2 {
		t.Errorf("a duplicate: %d DynamoDB and %d Stripe calls, want 1 and 0", dynamo, stripe-2)
	}
}

// trap kills the function once, when it is sprung.
type trap struct {
	system atomic.Pointer[system.System]
	sprung atomic.Bool
}

func (k *trap) spring() {
	if s := k.system.Load(); s != nil && k.sprung.CompareAndSwap(false, true) {
		s.Function.Kill(nil)
	}
}

// startTrapped starts a system whose function is killed after Stripe has confirmed an
// intent.
func (w world) startTrapped(t *testing.T, o system.Options) (*running, *trap) {
	t.Helper()
	k := &trap{}
	o.AfterStripe = func(c stripetest.Call) {
		if c.Endpoint == stripetest.Confirm {
			k.spring()
		}
	}
	s := w.start(t, quick(o))
	k.system.Store(s.System)
	return s, k
}

// quick lets an order recover from a crash within two seconds. SQS counts visibility in
// whole seconds.
func quick(o system.Options) system.Options {
	o.FunctionTimeout, o.Visibility, o.Instances = 1500*time.Millisecond, 2*time.Second, 1
	return o
}

func (w world) killedAtEveryCall(t *testing.T) {
	t.Helper()
	// The calls of a fresh order: DynamoDB calls by number, Stripe calls by endpoint.
	for name, at := range map[string]struct {
		dynamo int
		stripe stripetest.Endpoint
	}{
		"begin": {dynamo: 1}, "prepare": {stripe: stripetest.Create}, "bind": {dynamo: 2},
		"confirm": {stripe: stripetest.Confirm}, "finish": {dynamo: 3},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+name, func(t *testing.T) {
				t.Parallel()
				k := &trap{}
				dynamo := func(c dynamodbtest.Call) {
					if at.dynamo != 0 && c.Number == at.dynamo {
						k.spring()
					}
				}
				stripe := func(c stripetest.Call) {
					if c.Endpoint == at.stripe {
						k.spring()
					}
				}
				o := quick(system.Options{})
				if when == "before" {
					o.BeforeStripe = stripe
				} else {
					o.AfterStripe = stripe
				}
				s := w.start(t, o)
				k.system.Store(s.System)
				if when == "before" {
					s.Proxy.Before(dynamo)
				} else {
					s.Proxy.After(dynamo)
				}
				s.post(body("killed"))
				s.settlesOnce(s.settle(), "killed")
				if !k.sprung.Load() {
					t.Error("nothing was killed")
				}
			})
		}
	}
}

func (w world) redeliveredAfterDays(t *testing.T) {
	t.Helper()
	for name, keyLife := range map[string]time.Duration{"keys live 24 h": 0, "keys do not live at all": -1} {
		for _, gap := range []time.Duration{25 * time.Hour, 5 * 24 * time.Hour, 20 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%v later, %s", gap, name), func(t *testing.T) {
				t.Parallel()
				s, k := w.startTrapped(t, system.Options{Rules: stripetest.Rules{KeyLife: keyLife}, MaxReceives: 1})
				s.post(body("late"))
				s.drain() // after one receive the message is in the dead-letter queue

				// A standard queue keeps a dead letter for 14 days from its first
				// enqueueing, and a redrive starts again: 20 days are two redrives, and
				// the first one's delivery is killed as well.
				for left := gap; left > 0; left -= 10 * 24 * time.Hour {
					s.Advance(min(left, 10*24*time.Hour))
					k.sprung.Store(left <= 10*24*time.Hour)
					s.Proxy.Before(func(dynamodbtest.Call) { k.spring() })
					redrive(t, s)
					s.drain()
				}
				s.settlesOnce(s.settle(), "late")
				if n := s.Stripe.Count(stripetest.Read); n == 0 {
					t.Error("the late delivery did not read the intent")
				}
			})
		}
	}
}

// redrive moves the dead letter back, with a new id and a receive count of 0.
func redrive(t *testing.T, s *running) {
	t.Helper()
	moved, err := s.Redrive()
	if err != nil || moved != 1 {
		t.Fatalf("redrove %d messages, %v, want 1", moved, err)
	}
}

func (w world) storedServerErrors(t *testing.T) {
	t.Helper()
	for _, on := range []stripetest.Endpoint{stripetest.Create, stripetest.Confirm} {
		for _, kind := range []stripetest.FaultKind{stripetest.ServerErrorBeforeEffect, stripetest.ServerErrorAfterEffect} {
			t.Run(fmt.Sprintf("%s at %s", kind, on), func(t *testing.T) {
				t.Parallel()
				s := w.start(t, generous(system.Options{}))
				s.Stripe.Fail(stripetest.Fault{Kind: kind, On: on})
				s.post(body("stored"))
				b := s.settle()
				s.settlesOnce(b, "stored")
				if got := b.Orders["stored"].Attempt; got != 2 {
					t.Errorf("it took %d attempts, want 2", got)
				}
			})
		}
	}
}

func (w world) authenticationRequired(t *testing.T) {
	t.Helper()
	s, _ := w.startTrapped(t, system.Options{})
	s.post(bodyWith("bank", "pm_card_authenticationRequired"))
	if got, want := outcomeOf(s.settle(), "bank"), (outcome{order.ActionRequired, 0, 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func (w world) thousandTwice(t *testing.T) {
	t.Helper()
	const orders = 1000
	s := w.start(t, system.Options{
		Instances: 8, FunctionTimeout: 10 * time.Second, Visibility: 12 * time.Second, Duplicate: everyTenth(),
	})
	bodies := make([]string, 0, 2*orders)
	for range 2 {
		for i := range orders {
			bodies = append(bodies, body(fmt.Sprintf("order-%04d", i)))
		}
	}
	began := time.Now()
	s.post(bodies...)
	b := s.settle()
	t.Logf("%d messages of %d orders on 8 instances: %.1f s", len(bodies), orders, time.Since(began).Seconds())
	charges, paid := 0, 0
	for id, r := range b.Orders {
		charges += len(b.Charges[id])
		if r.Status == order.Paid {
			paid++
		}
	}
	if charges != orders || paid != orders || s.Waiting() != 0 {
		t.Errorf("%d charges, %d paid rows, %d messages left, want %d, %[4]d and 0", charges, paid, s.Waiting(), orders)
	}
}

// everyTenth also delivers every tenth message to a second instance at the same time.
func everyTenth() func(sqstest.Message) sqstest.Twice {
	var n atomic.Int64
	return func(sqstest.Message) sqstest.Twice {
		if n.Add(1)%10 == 0 {
			return sqstest.AtOnceBeside
		}
		return sqstest.Once
	}
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
		bodyOf("declined", "cus_canaryPayer", "pm_card_chargeDeclined"),
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

func (w world) poison(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{Instances: 1}))
	good := body("good")
	s.post(good,
		" ", "{", good+good, strings.Replace(good, `"currency"`, `"currency":"eur","CURRENCY"`, 1),
		strings.Replace(body("negative"), "1999", "-1999", 1),
		strings.Replace(body("discount"), `"currency"`, `"discount":500,"currency"`, 1),
		body("neighbor"))
	b := s.settle()
	s.settlesOnce(b, "good")
	s.settlesOnce(b, "neighbor")
	if len(b.Parked) != 6 || len(b.Orders) != 2 {
		t.Errorf("%d parked and %d rows, want 6 and 2", len(b.Parked), len(b.Orders))
	}
	for id, m := range b.Parked {
		reason, detail := m.Reason, m.Detail
		if reason != order.ReasonInvalid || detail == "" {
			t.Errorf("message %s is parked for %q: %q, want %q and a detail", id, reason, detail, order.ReasonInvalid)
		}
	}
	for _, l := range s.log.Lines() {
		if l.Delivery != 1 {
			t.Errorf("message %s was delivered %d times, want once", l.MessageID, l.Delivery)
		}
	}
	if n := len(s.Stripe.Calls()); n != 4 {
		t.Errorf("%d Stripe calls, want the neighbors' 4", n)
	}
}

func (w world) fifo(t *testing.T) {
	t.Helper()
	s := w.start(t, system.Options{FIFO: true})
	other := strings.Replace(body("grouped"), "1999", "2999", 1)
	ids := s.postDrafts(
		sqstest.Draft{Body: body("grouped"), Group: "grouped", DeduplicationID: "1"},
		sqstest.Draft{Body: body("grouped"), Group: "grouped", DeduplicationID: "2"},
		sqstest.Draft{Body: other, Group: "grouped", DeduplicationID: "3"},
	)
	b := s.settle()
	s.settlesOnce(b, "grouped")
	if reason := b.Parked[ids[2]].Reason; reason != order.ReasonConflict {
		t.Errorf("reason of the different content = %q, want %q", reason, order.ReasonConflict)
	}
}

func (w world) scanned(t *testing.T) {
	t.Helper()
	s := w.start(t, system.Options{})
	s.post(
		body("paid"), bodyWith("declined", "pm_card_chargeDeclined"),
		bodyWith("bank", "pm_card_authenticationRequired"),
	)
	s.settle()
	for scanned, err := range s.Orders(t.Context()) {
		must(t, err)
		loaded, err := s.Store.Load(t.Context(), scanned.OrderID)
		must(t, err)
		if diff := cmp.Diff(scanned.Record, loaded, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
			t.Errorf("- scanned, + loaded:\n%s", diff)
		}
	}
}

func (w world) skipped(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{MaxReceives: 2, Env: map[string]string{"FIRST_DELAY": "15m"}}))
	s.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
	s.post(body("waits"))
	s.skipUntilEmpty()
	s.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
	for range 3 {
		s.Skip() // nothing to skip: a dead letter does not count
	}
	redrive(t, s)
	s.settlesOnce(s.settle(), "waits")
}

func (w world) shared(t *testing.T) {
	t.Helper()
	engine, err := dynamodbtest.Start(t.Context(), w.Engine)
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	w.Engine = dynamodbtest.Location{Endpoint: engine.Endpoint}
	for _, s := range []*running{w.start(t, system.Options{}), w.start(t, system.Options{})} {
		s.post(body("shared"))
		s.settlesOnce(s.settle(), "shared")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, err := range s.Items(t.Context(), s.Options.Table) {
			if _, gone := errors.AsType[*types.ResourceNotFoundException](err); !gone {
				t.Errorf("table %q is left: %v", s.Options.Table, err)
			}
		}
	}
}

// waitForReason waits until a log line gives the reason.
func (o *running) waitForReason(r order.Reason) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(o.log.Text(), `"reason":"`+string(r)+`"`) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			o.t.Fatalf("no log line with reason %s:\n%s", r, o.log.Text())
		}
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
