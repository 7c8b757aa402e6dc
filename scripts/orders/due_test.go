package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/shell"
)

func TestRefreshAllDue(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	for n := range 4 {
		process(t, d.store, d.payments, order.ID(fmt.Sprintf("ORD-%d", n)), "pm_usBankAccount_processing")
	}
	d.stripe.Machine(func(m *stripetest.Machine) {
		must(t, m.Settle(d.stripe.Now(), "pi_000001", true))
		must(t, m.Settle(d.stripe.Now(), "pi_000002", true))
	})
	run := func(change string, later time.Duration) (string, error) {
		var out strings.Builder
		sh := testShell(append(d.environ, change), "", &out)
		sh.JSON = true
		sh.Now = func() time.Time { return noon().Add(later) }
		err := refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh)
		return strings.TrimSpace(out.String()), err
	}
	for _, step := range []struct {
		claim, change string
		after         time.Duration
		want, err     string
	}{
		{"nothing is due", "", time.Minute, `{"results":{}}`, ""},
		{
			"another scope", "SCOPE=other", 2 * time.Hour,
			`{"results":{},"mismatched":["ORD-0","ORD-1","ORD-2","ORD-3"]}`, "4 orders disagree with Stripe",
		},
		{"those that waited are due again", "", 6 * time.Hour, `{"results":{"settled":2,"unchanged":2}}`, ""},
		{"the settled ones are done", "", 24 * time.Hour, `{"results":{"unchanged":2}}`, ""},
	} {
		got, err := run(step.change, step.after)
		if got != step.want || err != nil && err.Error() != step.err || err == nil && step.err != "" {
			t.Errorf("%s: got %s, %v, want %s, %s", step.claim, got, err, step.want, step.err)
		}
	}
}

// Twelve intents of another account are due first. The orders after them are settled, and
// each failed one is named with its error.
func TestRefreshAllDueGoesOnPastOrdersThatFail(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	const bad = 12
	for n := range bad {
		process(t, d.store, d.payments, order.ID(fmt.Sprintf("BAD-%02d", n)), "pm_usBankAccount_processing")
	}
	d.stripe.Fail(stripetest.Fault{Kind: stripetest.Forbidden, On: stripetest.Read, Times: bad})
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	sh.Now = func() time.Time { return noon().Add(2 * time.Hour) }
	err := refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh)
	if _, ok := errors.AsType[shell.LeftError](err); !ok || !strings.HasPrefix(err.Error(), "12 orders could not be looked at") {
		t.Errorf("got %v, want exit code 2", err)
	}
	if got := strings.Count(out.String(), "FAILED       BAD-"); got != bad || !strings.Contains(out.String(), ": misconfigured: ") {
		t.Errorf("named %d orders of %d with their errors:\n%s", got, bad, &out)
	}
	process(t, d.store, d.payments, "GOOD", "pm_usBankAccount_processing")
	d.stripe.Machine(func(m *stripetest.Machine) { must(t, m.Settle(d.stripe.Now(), "pi_000013", true)) })
	d.stripe.Fail(stripetest.Fault{Kind: stripetest.Forbidden, On: stripetest.Read, Times: bad})
	sh.Now, sh.JSON = func() time.Time { return noon().Add(3 * time.Hour) }, true
	out.Reset()
	err = refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh)
	var got dueOutcome
	must(t, json.Unmarshal([]byte(out.String()), &got))
	if len(got.Failed) != bad || len(got.Unavailable) > 0 || got.Results["settled"]+got.Results["unchanged"] != 1 || err == nil {
		t.Errorf("got %+v, %v, want %d failed looks and one more", got, err, bad)
	}
}

func TestRefreshAllDueStopsWhileStripeIsDown(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_usBankAccount_processing")
	d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	sh.Now = func() time.Time { return noon().Add(2 * time.Hour) }
	err := refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh)
	if _, ok := errors.AsType[shell.LeftError](err); !ok || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, want exit code 2 and that Stripe does not answer", err)
	}
	if !strings.HasPrefix(strings.SplitAfter(out.String(), "\n\n")[1], "FAILED       ORD-1: ") {
		t.Errorf("printed\n%s\nwant the order and its error", &out)
	}
}

// The row of a live order is left to a live key, a refund that waits is looked at, and an
// interrupted run says that orders are left.
func TestRefreshAllDueLooksAtRefundsAndLeavesOtherModes(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "LIVE", "pm_usBankAccount_processing")
	_, err := d.table.Client.UpdateItem(t.Context(), &sdk.UpdateItemInput{
		TableName: &d.table.Table, Key: dynamodb.Item{"orderId": dynamodb.Text("LIVE"), "sk": dynamodb.Text("order")},
		UpdateExpression:          aws.String("SET stripeMode = :mode"),
		ExpressionAttributeValues: dynamodb.Item{":mode": dynamodb.Text("live")},
	})
	must(t, err)
	process(t, d.store, d.payments, "REFUNDED", "pm_card_pendingRefund")
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	r, err := refund.New(refund.Draft{OrderID: "REFUNDED", RefundID: "R-1", Amount: 100, Reason: "duplicate"})
	must(t, err)
	p := refund.Processor{
		Claims: dynamodb.NewRefunds(d.store), Scope: scope, Now: time.Now,
		Provider: striperefund.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: d.stripe.URL, Now: time.Now}),
	}
	l := order.Lease{Owner: "refund", From: time.Now(), Until: time.Now().Add(time.Minute)}
	if got := p.Process(t.Context(), r, l); got.Verdict != order.Done {
		t.Fatalf("got %+v, want the refund made", got)
	}
	d.stripe.Machine(func(m *stripetest.Machine) {
		must(t, m.ChangeRefund(m.Refunds()[0].ID, stripetest.RefundSucceeded))
	})
	sh.Now, sh.JSON = func() time.Time { return time.Now().Add(25 * time.Hour) }, true
	interrupted, interrupt := context.WithCancel(t.Context())
	d.table.Proxy.Before(func(dynamodbtest.Call) { interrupt() })
	err = refresh{AllDue: true, Rate: 1000}.Run(interrupted, sh)
	if _, ok := errors.AsType[shell.LeftError](err); !ok || !strings.Contains(err.Error(), "interrupted: orders that") {
		t.Errorf("interrupted: got %v, want exit code 2 and that orders are left", err)
	}
	out.Reset()
	must(t, refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh))
	if got := strings.TrimSpace(out.String()); got != `{"results":{"foreign":1}}` {
		t.Errorf("got %s, want the live order left", got)
	}
	account, err := dynamodb.NewRefunds(d.store).Account(t.Context(), "REFUNDED")
	must(t, err)
	if account.Items[0].Status != refund.Succeeded {
		t.Errorf("got the refund %+v, want it succeeded", account.Items[0])
	}
}

func TestRefreshRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for _, r := range []refresh{{}, {ID: "ORD-1", AllDue: true}} {
		if err := r.Validate(); err == nil {
			t.Errorf("%+v: got no error, want either an order or all", r)
		}
	}
	var out strings.Builder
	if err := (refresh{AllDue: true}).Run(t.Context(), testShell(nil, "", &out)); !errors.Is(err, shell.ErrRate) {
		t.Errorf("got %v, want %v", err, shell.ErrRate)
	}
}

func TestRepublishSendsTheEventsOfARowAgain(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	bus, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	process(t, d.store, d.payments, "ORD-1", "pm_usBankAccount_processing")
	d.stripe.Machine(func(m *stripetest.Machine) { must(t, m.Settle(d.stripe.Now(), "pi_000001", true)) })
	environ := append(d.environ, "AWS_ENDPOINT_URL_EVENTBRIDGE="+bus.URL, "EVENT_BUS=orders")
	var out strings.Builder
	must(t, refresh{ID: "ORD-1"}.Run(t.Context(), testShell(environ, "", &out)))
	must(t, republish{ID: "ORD-1"}.Run(t.Context(), testShell(environ, "", &out)))
	var sent []string
	for _, e := range bus.Archive() {
		var detail struct {
			OrderID string
			Seq     int
		}
		must(t, json.Unmarshal(e.Detail, &detail))
		sent = append(sent, fmt.Sprint(e.DetailType, " ", detail.OrderID, " ", detail.Seq))
	}
	if diff := cmp.Diff(sent, []string{"Order Pending ORD-1 1", "Order Paid ORD-1 2"}); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	if !strings.Contains(out.String(), "events published to orders: 2\n") {
		t.Errorf("printed %q", &out)
	}
	bus.Fail("ThrottlingException", 10)
	err = republish{ID: "ORD-1"}.Run(t.Context(), testShell(environ, "", &out))
	if err == nil || !strings.Contains(err.Error(), `republish order "ORD-1": publish event 1 of order ORD-1`) {
		t.Errorf("got %v, want that nothing was published", err)
	}
}

// Somebody gave money back in Stripe's Dashboard.
func TestRefreshRecordsRefunds(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	d.stripe.Machine(func(m *stripetest.Machine) {
		_, err := m.RefundInDashboard(d.stripe.Now(), "pi_000001", 998)
		must(t, err)
	})
	for _, want := range []string{
		"changes of refunds recorded: 1\n\norder      ORD-1\nstatus     partially_refunded\n", "refunded   9.98 USD\nby others  9.98 USD\n",
	} {
		var out strings.Builder
		must(t, refresh{ID: "ORD-1"}.Run(t.Context(), testShell(d.environ, "", &out)))
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwant %q in it", &out, want)
		}
	}
}

// The events of a time and later are sent again, those of each order in order.
func TestRepublishSinceATime(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	bus, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	process(t, d.store, d.payments, "ORD-2", "pm_usBankAccount_processing")
	process(t, d.store, d.payments, "ORD-3", "pm_card_chargeDeclined")
	environ := append(d.environ, "AWS_ENDPOINT_URL_EVENTBRIDGE="+bus.URL, "EVENT_BUS=orders")
	var out strings.Builder
	sh := testShell(environ, "", &out)
	sh.Now = func() time.Time { return noon().Add(time.Hour) }
	d.stripe.Machine(func(m *stripetest.Machine) { must(t, m.Settle(d.stripe.Now(), "pi_000002", true)) })
	must(t, refresh{ID: "ORD-2"}.Run(t.Context(), sh))
	for since, want := range map[time.Duration]int{0: 4, time.Hour: 1, 2 * time.Hour: 0} {
		out.Reset()
		must(t, republish{Since: noon().Add(since), Rate: 1000}.Run(t.Context(), sh))
		if got := fmt.Sprintf("events published to orders: %d\n", want); !strings.HasSuffix(out.String(), "\n\n"+got) {
			t.Errorf("since %s: got %q, want it to end with %q", since, &out, got)
		}
	}
}
