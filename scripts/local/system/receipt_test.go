package system_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// mailing is a system whose receipt function is killed at a point, and whose mailbox
// keeps its events back.
type mailing struct {
	*running

	at      atomic.Pointer[point] // nil: at none
	puts    atomic.Int64          // PutItem since the last arm
	crashed chan struct{}

	mu     sync.Mutex
	events []string // of SES, that were kept back
	lose   bool
}

// point is where the function dies: before or after a call. A call that it dies before is
// lost.
type point struct{ when, call string }

// receiptKit compiles the functions.
type receiptKit struct {
	world

	publish, receipt string
}

func newReceiptKit(t *testing.T) receiptKit {
	t.Helper()
	w := world{systemtest.New(t)}
	return receiptKit{w, w.Build(t, "functions/publish"), w.Build(t, "functions/receipt")}
}

// start starts a system that keeps the events of SES back until release.
func (k receiptKit) start(t *testing.T, env map[string]string) *mailing {
	t.Helper()
	m := &mailing{crashed: make(chan struct{}, 1), lose: true}
	o := generous(system.Options{
		Instances: 1, Publish: k.publish, Receipt: k.receipt, Env: env,
		BeforeStripe: func(c stripetest.Call) { m.stripe("before", c) },
		AfterStripe:  func(c stripetest.Call) { m.stripe("after", c) },
		BeforeMail:   func(int) { m.kill(point{"before", "send"}) },
		AfterMail:    func(int) { m.kill(point{"after", "send"}) },
		LoseMailEvent: func(event json.RawMessage) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.events = append(m.events, string(event))
			return m.lose
		},
		Observe: func(b sqstest.Batch) {
			if b.Err != nil {
				m.crashed <- struct{}{}
			}
		},
	})
	o.Env["SES_TIMEOUT"] = "3s"
	m.running = k.world.start(t, o)
	m.Proxy.Before(func(c dynamodbtest.Call) { m.dynamo("before", c) })
	m.Proxy.After(func(c dynamodbtest.Call) { m.dynamo("after", c) })
	return m
}

// dynamo kills at the calls of the receipt function. The order function uses neither
// GetItem nor PutItem.
func (m *mailing) dynamo(when string, c dynamodbtest.Call) {
	call := ""
	switch {
	case c.Operation == "GetItem":
		call = "load"
	case c.Operation == "PutItem" && (when == "before" && m.puts.Add(1) == 1 || when == "after" && m.puts.Load() == 1):
		call = "claim"
	case c.Operation == "PutItem":
		call = "record"
	}
	at := m.at.Load()
	if at == nil || *at != (point{when, call}) {
		return
	}
	if when == "before" {
		m.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Number: c.Number, Times: 1})
	}
	m.kill(*at)
}

func (m *mailing) stripe(when string, c stripetest.Call) {
	if c.Endpoint == stripetest.Read {
		m.kill(point{when, "read"})
	}
}

func (m *mailing) kill(at point) {
	if armed := m.at.Load(); armed != nil && *armed == at && m.at.CompareAndSwap(armed, nil) {
		m.Receipt.Kill(nil)
	}
}

// killAt charges an order and kills the function at a point of its receipt.
func (m *mailing) killAt(id string, at point) {
	m.t.Helper()
	m.puts.Store(0)
	if at == (point{"before", "send"}) {
		m.Mail.Fail(sestest.Fault{Kind: sestest.LoseBefore})
	}
	m.at.Store(&at)
	m.post(body(id))
	ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Minute)
	defer cancel()
	select {
	case <-m.crashed:
	case <-ctx.Done():
		m.t.Fatalf("%s: nothing was killed\n%s", id, m.log.Text())
	}
}

// pay posts an order and waits until its receipt is at rest.
func (m *mailing) pay(id string) {
	m.t.Helper()
	m.post(body(id))
	m.drain()
	m.rest()
}

// rest waits until the receipt queue is empty.
func (m *mailing) rest() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Minute)
	defer cancel()
	if err := m.ReceiptsDrained(ctx); err != nil {
		m.t.Fatalf("the receipt queue is not empty: %v\n%s", err, m.log.Text())
	}
}

// passReceipts lets time pass for receipts: as running.pass does for orders.
func (m *mailing) passReceipts(d time.Duration) {
	m.t.Helper()
	for item, err := range m.Items(m.t.Context(), m.ReceiptsTable) {
		must(m.t, err)
		moveBack(item, d)
		_, err := m.table().PutItem(m.t.Context(), &sdk.PutItemInput{TableName: &m.ReceiptsTable, Item: item})
		must(m.t, err)
	}
	m.Advance(d)
}

// release delivers the events that SES published, and those of later messages.
func (m *mailing) release() {
	m.mu.Lock()
	events := m.events
	m.events, m.lose = nil, false
	m.mu.Unlock()
	for _, e := range events {
		m.Notify(e)
	}
	m.rest()
}

// sent is what became of a receipt: its status, and the e-mails about it.
type sent struct {
	Status receipt.Status
	Mails  int
}

func (m *mailing) of(id string, k receipt.Key) (got sent) {
	m.t.Helper()
	i, err := m.Receipts.Load(m.t.Context(), order.ID(id), k)
	must(m.t, err)
	got.Status = i.Status
	for _, e := range m.Mail.Sent() {
		if strings.Contains(e.Text, "order "+id+" ") && (k == receipt.Paid) == strings.HasPrefix(e.Subject, "Receipt") {
			got.Mails++
		}
	}
	return got
}

func (m *mailing) want(id string, want sent) {
	m.t.Helper()
	if got := m.of(id, receipt.Paid); got != want {
		m.t.Errorf("receipt of %s: got %+v, want %+v\n%s", id, got, want, m.log.Text())
	}
}

// doubts returns the orders with a receipt that the operator's list shows.
func (m *mailing) doubts() (ids []string) {
	m.t.Helper()
	for i, err := range m.Receipts.Doubtful(m.t.Context()) {
		must(m.t, err)
		ids = append(ids, string(i.OrderID))
	}
	return ids
}

// TestReceipts runs the compiled functions from the order to the mailbox.
func TestReceipts(t *testing.T) {
	t.Parallel()
	k := newReceiptKit(t)
	for claim, test := range map[string]func(*testing.T){
		"one per paid order, however often its events come":                           k.sendsOnce,
		"one per refund, beside that of the payment":                                  k.sendsOfRefunds,
		"none of an order that is not paid":                                           k.sendsNothingUnpaid,
		"killed at any call, none is sent twice, and only a send leaves a doubt":      k.survivesKills,
		"at least once, a send whose worker was killed is repeated":                   k.repeatsAtLeastOnce,
		"a lost answer leaves a doubt, a refusal does not":                            k.meetsFaults,
		"a payer without an address costs one e-mail less and no retries":             k.knowsNoAddress,
		"SES's events turn a sent receipt into a delivered one, and no log shows who": k.followsDeliveries,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (k receiptKit) sendsOnce(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	m.pay("ORD-1")
	m.want("ORD-1", sent{receipt.Sent, 1})
	m.counts(map[string]int{"GetItem": 1, "PutItem": 2, "read": 1, "send": 1})

	m.Proxy.Reset()
	reads := m.Stripe.Count(stripetest.Read)
	for _, e := range m.Bus.Archive() {
		m.Notify(string(e.Delivered()))
		m.Notify(string(e.Delivered()))
	}
	m.rest()
	m.want("ORD-1", sent{receipt.Sent, 1})
	if got := m.Stripe.Count(stripetest.Read) - reads; got != 0 {
		t.Errorf("a duplicate made %d requests to Stripe, want none", got)
	}
	if diff := cmp.Diff(m.Proxy.Counts(), map[string]int{"GetItem": 2}); diff != "" {
		t.Errorf("calls of two duplicates (-got +want):\n%s", diff)
	}
	m.settle()
}

// counts compares the calls of the receipt function.
func (m *mailing) counts(want map[string]int) {
	m.t.Helper()
	counts := m.Proxy.Counts()
	got := map[string]int{
		"GetItem": counts["GetItem"], "PutItem": counts["PutItem"],
		"read": m.Stripe.Count(stripetest.Read), "send": m.Mail.Calls(),
	}
	if diff := cmp.Diff(got, want); diff != "" {
		m.t.Errorf("calls (-got +want):\n%s", diff)
	}
}

func (k receiptKit) sendsOfRefunds(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	m.pay("ORD-1")
	m.send(refundBody("ORD-1", "R-1", 1999))
	m.drain()
	m.rest()
	m.want("ORD-1", sent{receipt.Sent, 1})
	if got := m.of("ORD-1", receipt.OfRefund("R-1")); got != (sent{receipt.Sent, 1}) {
		t.Errorf("receipt of the refund: got %+v, want it sent once", got)
	}
	if text := m.Mail.Sent()[1].Text; !strings.Contains(text, "We have refunded 19.99 USD") {
		t.Errorf("got the text %q", text)
	}
}

func (k receiptKit) sendsNothingUnpaid(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	m.post(bodyWith("declined", "pm_card_chargeDeclined"))
	m.drain()
	m.rest()
	m.want("declined", sent{})
	for _, e := range m.Bus.Archive() { // as a rule without a pattern would
		m.Notify(string(e.Delivered()))
	}
	m.rest()
	m.want("declined", sent{})
	m.settle()
}

func (k receiptKit) survivesKills(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	want := map[point]sent{
		{"before", "load"}: {receipt.Sent, 1}, {"after", "load"}: {receipt.Sent, 1},
		{"before", "read"}: {receipt.Sent, 1}, {"after", "read"}: {receipt.Sent, 1},
		{"before", "claim"}: {receipt.Sent, 1}, {"after", "claim"}: {receipt.Doubtful, 0},
		{"before", "send"}: {receipt.Doubtful, 0}, {"after", "send"}: {receipt.Doubtful, 1},
		{"before", "record"}: {receipt.Doubtful, 1}, {"after", "record"}: {receipt.Sent, 1},
	}
	for at := range want {
		m.killAt(at.when+"-"+at.call, at)
	}
	m.passReceipts(2 * time.Minute)
	m.drain()
	m.rest()
	for at, want := range want {
		m.want(at.when+"-"+at.call, want)
	}
	if got := m.doubts(); len(got) != 4 {
		t.Errorf("listed as doubtful: %v, want 4", got)
	}
	m.settle()
	named := func(l string) bool {
		return strings.Contains(l, `"level":"WARN"`) && strings.Contains(l, `"reason":"receipt_doubtful"`)
	}
	if got := len(slices.DeleteFunc(strings.Split(m.log.Text(), "\n"), func(l string) bool { return !named(l) })); got != 4 {
		t.Errorf("%d log lines warn of a doubt, want 4", got)
	}

	m.release() // SES knows which of them it sent
	m.want("after-send", sent{receipt.Delivered, 1})
	m.want("before-record", sent{receipt.Delivered, 1})
	if got := m.doubts(); len(got) != 2 {
		t.Errorf("listed as doubtful: %v, want the two that were not sent", got)
	}
	m.settle()
}

func (k receiptKit) repeatsAtLeastOnce(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{"RECEIPTS": "at_least_once"})
	m.killAt("after-send", point{"after", "send"})
	m.killAt("before-send", point{"before", "send"})
	m.passReceipts(2 * time.Minute)
	m.drain()
	m.rest()
	m.want("after-send", sent{receipt.Sent, 2})
	m.want("before-send", sent{receipt.Sent, 1})
	m.settle()
}

func (k receiptKit) meetsFaults(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	throttled := sestest.Fault{Kind: sestest.Refuse, Status: 429, Code: "TooManyRequestsException"}
	for _, tt := range []struct {
		id     string
		faults []sestest.Fault
		want   sent
	}{
		{"lost-after", []sestest.Fault{{Kind: sestest.LoseAfter}}, sent{receipt.Doubtful, 1}},
		{"lost-before", []sestest.Fault{{Kind: sestest.LoseBefore}}, sent{receipt.Doubtful, 0}},
		{"broken", []sestest.Fault{{Kind: sestest.Refuse, Status: 500, Code: "InternalServiceErrorException"}}, sent{receipt.Doubtful, 0}},
		{"throttled", []sestest.Fault{throttled, throttled}, sent{receipt.Sent, 1}},
		{"rejected", []sestest.Fault{{Kind: sestest.Refuse, Status: 400, Code: "MessageRejected"}}, sent{receipt.Failed, 0}},
	} {
		m.Mail.Fail(tt.faults...)
		m.pay(tt.id)
		m.want(tt.id, tt.want)
	}
	dead, err := m.DeadReceipts()
	must(t, err)
	if len(dead) != 1 || dead[0].Attributes[sqs.AttrReason].Text != string(receipt.ReasonMailRefused) {
		t.Errorf("dead letters: got %+v, want the rejected one", dead)
	}
	m.settle()
}

func (k receiptKit) knowsNoAddress(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	m.post(strings.Replace(body("ORD-1"), "cus_Test", "cus_noaddress1", 1))
	m.drain()
	m.rest()
	m.want("ORD-1", sent{receipt.Failed, 0})
	m.counts(map[string]int{"GetItem": 1, "PutItem": 1, "read": 1, "send": 0})
	m.settle()
}

func (k receiptKit) followsDeliveries(t *testing.T) {
	t.Helper()
	m := k.start(t, map[string]string{})
	m.release() // none yet, and none is kept back from now on
	m.pay("ORD-1")
	m.post(strings.Replace(body("ORD-2"), "cus_Test", "cus_bounce1", 1))
	m.drain()
	m.rest()
	m.want("ORD-1", sent{receipt.Delivered, 1})
	m.want("ORD-2", sent{receipt.Bounced, 1})
	if log := m.log.Text(); strings.Contains(log, "customers.invalid") || strings.Contains(log, "cus_") {
		t.Errorf("the log shows an address:\n%s", log)
	}
	m.settle()
}
