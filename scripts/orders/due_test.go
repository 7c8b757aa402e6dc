package main

import (
	"encoding/json"
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
