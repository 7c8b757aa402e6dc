package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
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
		sh.json = true
		sh.now = func() time.Time { return noon().Add(later) }
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
	sh.now = func() time.Time { return noon().Add(2 * time.Hour) }
	err := refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh)
	if e, ok := errors.AsType[exit](err); !ok || e.code != 2 || !strings.HasPrefix(err.Error(), "12 orders could not be looked at") {
		t.Errorf("got %v, want exit code 2", err)
	}
	if got := strings.Count(out.String(), "FAILED       BAD-"); got != bad || !strings.Contains(out.String(), ": misconfigured: ") {
		t.Errorf("named %d orders of %d with their errors:\n%s", got, bad, &out)
	}
	process(t, d.store, d.payments, "GOOD", "pm_usBankAccount_processing")
	d.stripe.Machine(func(m *stripetest.Machine) { must(t, m.Settle(d.stripe.Now(), "pi_000013", true)) })
	d.stripe.Fail(stripetest.Fault{Kind: stripetest.Forbidden, On: stripetest.Read, Times: bad})
	sh.now, sh.json = func() time.Time { return noon().Add(3 * time.Hour) }, true
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
	sh.now = func() time.Time { return noon().Add(2 * time.Hour) }
	err := refresh{AllDue: true, Rate: 1000}.Run(t.Context(), sh)
	if e, ok := errors.AsType[exit](err); !ok || e.code != 2 || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v, want exit code 2 and that Stripe does not answer", err)
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
	sh.now = func() time.Time { return noon().Add(time.Hour) }
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
