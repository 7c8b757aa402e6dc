package system_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestIntake puts an order twice over FIFO queues: it is charged once and answered the
// same. The storm kills the function.
func TestIntake(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	s := w.start(t, incidents.Unhurried(system.Options{Intake: w.Build(t, "functions/intake"), FIFO: true}))
	systemtest.Must(t, s.StopProcessing())
	s.wantCalls("a new order", func() { s.put("twice", body("twice"), http.StatusAccepted) },
		map[string]int{"Query": 1, "PutItem": 1, "UpdateItem": 1}, 0)
	systemtest.Must(t, s.ResumeProcessing(t.Context()))
	s.want(s.settle(), "twice", paid)
	s.wantCalls("a repeated order", func() { s.put("twice", body("twice"), http.StatusOK) }, map[string]int{"Query": 1}, 0)
	get, err := s.CallAPI(t.Context(), http.MethodGet, "/orders/twice", "")
	systemtest.Must(t, err)
	again := s.put("twice", body("twice"), http.StatusOK)
	if diff := cmp.Diff(again, get); diff != "" || !strings.Contains(get.Body, `"type":"order.paid"`) {
		t.Errorf("got %+v, want the event; repeated, and read (-put +get):\n%s", get, diff)
	}
	s.put("twice", bodyWith("twice", "pm_card_mastercard"), http.StatusConflict)
	s.put("invalid", strings.Replace(body("invalid"), `"quantity":2`, `"quantity":0`, 1), http.StatusUnprocessableEntity)
	text := strings.Replace(body("x"), `"orderId":"x",`, "", 1)
	for _, key := range []string{"key-1", "key-1", "key-2"} { // an order is that of its caller and key
		_, err := s.CallAPI(t.Context(), http.MethodPost, "/orders", text, "Idempotency-Key: "+key)
		systemtest.Must(t, err)
	}
	s.drain()
	orders := 0
	for o, err := range s.Orders(t.Context()) {
		systemtest.Must(t, err)
		if orders++; o.Status != order.Paid {
			t.Errorf("order %s: got %s, want paid", o.OrderID, o.Status)
		}
	}
	if orders != 3 {
		t.Errorf("got %d orders, want 3", orders)
	}
}

// put puts an order, compares the status, and records it as one message the first time.
func (o *running) put(id, body string, want ...int) system.Answer {
	o.t.Helper()
	a, err := o.PutOrder(o.t.Context(), id, body)
	systemtest.Must(o.t, err)
	if !slices.Contains(want, a.Status) {
		o.t.Errorf("put %s: got %+v, want %d", id, a, want)
	}
	known := func(m invariants.Message) bool { return m.OrderID() == order.ID(id) }
	if a.Status < http.StatusMultipleChoices && !slices.ContainsFunc(o.posted, known) {
		o.posted = append(o.posted, invariants.NewMessage(jobs.NewDecoder(), body, ""))
	}
	return a
}
