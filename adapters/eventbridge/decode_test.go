package eventbridge_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/eventbridge"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// delivered publishes an event and returns it as a queue gets it.
func delivered(t *testing.T, e outbox.Event) string {
	t.Helper()
	s := serve(t, nil)
	bus := eventbridge.New(config(s.URL, http.DefaultClient), busName, "test")
	if _, err := bus.Put(t.Context(), []outbox.Event{e}); err != nil {
		t.Fatal(err)
	}
	return string(s.Archive()[0].Delivered())
}

func paid() outbox.Event {
	return outbox.Event{
		OrderID: "ORD-1", Total: order.Money{Amount: 3998, Currency: "usd"},
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Event: order.Event{
			Seq: 2, From: order.Pending, To: order.Paid, Intent: "pi_1", At: time.Date(2026, 5, 1, 12, 0, 0, 2e7, time.UTC),
		},
	}
}

func TestAnEventIsDecodedAsItWasPublished(t *testing.T) {
	t.Parallel()
	for change, edit := range map[string]func(*order.Event){
		"order.paid":             func(*order.Event) {},
		"order.declined":         func(e *order.Event) { e.To, e.Failure = order.Declined, "insufficient_funds" },
		"order.disputed":         func(e *order.Event) { e.Dispute = order.Dispute{ID: "du_1", Status: order.DisputeOpen} },
		"order.dispute_lost":     func(e *order.Event) { e.Dispute = order.Dispute{ID: "du_1", Status: "lost"} },
		"refund.succeeded":       func(e *order.Event) { e.Refund = order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 1999} },
		"order.refunded_outside": func(e *order.Event) { e.Refund = order.RefundEvent{Status: order.RefundedOutside, Amount: 1} },
	} {
		want := paid()
		edit(&want.Event)
		if got := want.Event.Type(); got != change {
			t.Fatalf("type %s, want %s", got, change)
		}
		body := delivered(t, want)
		got, err := eventbridge.Decode(body, "test")
		if diff := cmp.Diff(got, want); err != nil || diff != "" {
			t.Errorf("%s: %v (-got +want):\n%s", change, err, diff)
		}
		if got := eventbridge.Source(body); got != "orderonce.test" {
			t.Errorf("source %q", got)
		}
	}
}

func TestTheTimeOfAnEventIsInUTC(t *testing.T) {
	t.Parallel()
	body := strings.Replace(delivered(t, paid()), "12:00:00.020Z", "14:00:00.020+02:00", 1)
	got, err := eventbridge.Decode(body, "test")
	if at := got.Event.At; err != nil || !at.Equal(paid().Event.At) || at.Location() != time.UTC {
		t.Errorf("at %v, %v, want %v", at, err, paid().Event.At)
	}
}

func TestAnInvalidEventIsRefusedWithoutItsValues(t *testing.T) {
	t.Parallel()
	valid := delivered(t, paid())
	for claim, body := range map[string]string{
		"another scope":      strings.Replace(valid, "orderonce.test", "orderonce.other", 1),
		"another version":    strings.Replace(valid, `"version":1`, `"version":2`, 1),
		"an invalid id":      strings.Replace(valid, "ORD-1", "cänary", 1),
		"a day without time": strings.Replace(valid, "2026-05-01T12:00:00.020Z", "canary", 1),
		"an unknown type":    strings.Replace(valid, "order.paid", "order.shipped", 1),
		"no detail":          `{"source":"orderonce.test"}`,
		"no JSON":            "canary",
	} {
		if body == valid {
			t.Fatalf("%s: nothing replaced in %s", claim, valid)
		}
		if got, err := eventbridge.Decode(body, "test"); err == nil || strings.Contains(err.Error(), "anary") {
			t.Errorf("%s: got %+v, %v, want an error without the value", claim, got, err)
		}
	}
	if got := eventbridge.Source("canary"); got != "" {
		t.Errorf("source of no event: %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"source":"orderonce.test","detail":{"version":1,"orderId":"ORD-1","seq":1,"type":"order.paid","from":"open",` +
		`"status":"paid","amount":1,"currency":"usd","occurredAt":"2026-05-01T12:00:00.020Z"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if e, err := eventbridge.Decode(body, "test"); err == nil && !order.ValidID(string(e.OrderID)) {
			t.Errorf("got %+v of %q", e, body)
		}
	})
}
