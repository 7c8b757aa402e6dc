package watch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// scene is a picture of a queue and a Stripe, with the taps of a function that does not
// exist and a table that is empty.
type scene struct {
	*Watch

	t      *testing.T
	taps   system.Options
	system *system.System
	now    time.Time
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, now: time.UnixMilli(1_767_225_600_000)}
	s.Watch = New(func() time.Time { return s.now })
	s.Hook(&s.taps)
	s.system = systemtest.Doubles(t, system.Options{}, func() time.Time { return s.now })
	s.system.Engine = &dynamodbtest.Engine{Endpoint: newRequests(t).endpoint}
	s.refresh()
	return s
}

func (s *scene) deliver(instance int) {
	message := sqstest.Message{ID: "message-0001", Draft: sqstest.Draft{Body: body}, Receives: 1, Sent: s.now}
	s.taps.ObserveInstance(lambdatest.Event{Change: lambdatest.Started, Instance: instance, Binary: "/up/order-v2"})
	s.taps.ObserveInstance(lambdatest.Event{
		Change: lambdatest.Invoked, Instance: instance, Binary: "/up/order-v2",
		Payload: sqstest.Event(system.OrderQueue, []sqstest.Message{message}),
	})
}

func (s *scene) charge() {
	form := url.Values{
		"amount": {"1998"}, "currency": {"usd"}, "payment_method": {"pm_card_visa"}, "confirm": {"true"}, "off_session": {"true"},
		"metadata[orderId]": {"ORD-1"}, "metadata[scope]": {system.Scope},
		"automatic_payment_methods[enabled]":         {"true"},
		"automatic_payment_methods[allow_redirects]": {"never"},
	}
	s.system.Stripe.Machine(func(m *stripetest.Machine) {
		r := m.Do(s.now, stripetest.Request{
			Method: http.MethodPost, Path: "/v1/payment_intents", APIKey: system.PretendKey, Form: form,
		})
		if r.Status != http.StatusOK {
			s.t.Fatalf("create an intent: %d %+v", r.Status, r.Error)
		}
	})
}

func (s *scene) refresh() Picture {
	s.t.Helper()
	s.Refresh(s.t.Context(), s.system)
	p, _ := s.Picture()
	if text, err := json.Marshal(p); err != nil || strings.Contains(string(text), ":null") {
		s.t.Errorf("got %s, %v, want a picture without a missing list", text, err)
	}
	return p
}

func TestADeliveryIsShownUntilItsInstanceIsKilled(t *testing.T) {
	s := newScene(t)
	s.deliver(1)
	s.taps.BeforeStripe(stripetest.Call{Endpoint: stripetest.Confirm, OrderID: "ORD-1", Intent: "pi_1"})
	f := s.refresh()
	want := Instance{N: 1, State: Working, Version: "v2", Work: []Work{{Order: "ORD-1"}}}
	if diff := cmp.Diff(f.Instances, []Instance{want}); diff != "" {
		t.Errorf("instances: got -, want +\n%s", diff)
	}
	if o := f.Orders[0]; o.Place != AtStripe || o.Deliveries != 1 || o.Amount != "19.98 USD" {
		t.Errorf("got %+v, want the first delivery of 19.98 USD at Stripe", o)
	}
	s.taps.AfterStripe(stripetest.Call{
		Endpoint: stripetest.Confirm, OrderID: "ORD-1", Intent: "pi_1", Status: 200, Result: "succeeded",
	})
	s.taps.ObserveInstance(lambdatest.Event{Change: lambdatest.Killed, Instance: 1})
	f = s.refresh()
	if i := f.Instances[0]; i.State != Killed || f.Totals.Kills != 1 || i.Work != nil {
		t.Errorf("got %+v, want a killed instance without an order", f.Instances)
	}
	timeline, _ := s.Timeline("ORD-1")
	var got []string
	for _, e := range timeline.Entries {
		got = append(got, string(e.Kind)+": "+strings.TrimSpace(e.Text+" "+e.Answer))
	}
	if diff := cmp.Diff(got, []string{
		"message: delivery 1 of message …0001", "lost: confirm pi_1 200 succeeded, not delivered", "death: killed",
	}); diff != "" {
		t.Errorf("timeline: got -, want +\n%s", diff)
	}
}

func TestASecondChargeIsNamedAtOnce(t *testing.T) {
	s := newScene(t)
	s.SetControl(func(c *Control) { c.Missing = "the bind" })
	s.taps.ObserveInstance(lambdatest.Event{
		Change: lambdatest.Started, Instance: 7, Binary: "/up/order-v3-without-bind",
	})
	s.deliver(7)
	s.charge()
	if f := s.refresh(); f.Totals.Charges != 1 || f.Totals.Twice != 0 {
		t.Errorf("after one charge: got %+v", f.Totals)
	}
	s.charge()
	f := s.refresh()
	const want = "ORD-1 was charged twice: 19.98 USD through pi_000001 and 19.98 USD through pi_000002; missing: the bind"
	if f.Totals.Twice != 1 || f.Lights[0].ID != "I1" || !cmp.Equal(f.Lights[0].Broken, []string{want}) {
		t.Errorf("got %d orders charged twice and %+v, want one and %q", f.Totals.Twice, f.Lights[0], want)
	}
	if last := f.Log[len(f.Log)-1]; last.Tone != Bad || last.Text != want {
		t.Errorf("got the line %+v, want %q", last, want)
	}
	if f.Instances[0].Broken != "bind" || f.Instances[0].Version != "v3" {
		t.Errorf("got %+v, want version v3 without bind", f.Instances[0])
	}
}

// TestAnOrderIsAuditedWhenItIsAtRest leaves a charge without a row.
func TestAnOrderIsAuditedWhenItIsAtRest(t *testing.T) {
	s := newScene(t)
	s.deliver(1)
	s.charge()
	broken := func() (ids []string) {
		t.Helper()
		s.audit(t.Context(), s.system)
		for _, l := range s.refresh().Lights {
			if len(l.Broken) > 0 {
				ids = append(ids, l.ID)
			}
		}
		return ids
	}
	s.refresh()
	s.now = s.now.Add(time.Minute)
	if got := broken(); got != nil {
		t.Errorf("while an instance works on it: got %v broken, want none", got)
	}
	s.taps.ObserveInstance(lambdatest.Event{Change: lambdatest.Answered, Instance: 1})
	if got := broken(); got != nil {
		t.Errorf("at once after the delivery: got %v broken, want none", got)
	}
	s.now = s.now.Add(3 * time.Second)
	if diff := cmp.Diff(broken(), []string{"I2", "I3", "I4"}); diff != "" {
		t.Errorf("at rest: broken: got -, want +\n%s", diff)
	}
}

// TestADeadLetterIsAuditedToo leaves a dead letter that no code parked: it has no reason.
func TestADeadLetterIsAuditedToo(t *testing.T) {
	s := newScene(t)
	s.system.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Send(now, system.DeadLetters, sqstest.Draft{Body: body})
		systemtest.Must(t, err)
	})
	s.deliver(1)
	s.taps.ObserveInstance(lambdatest.Event{Change: lambdatest.Answered, Instance: 1})
	f := s.refresh()
	if len(f.Dead) != 1 || f.Orders[0].Place != DeadLetter {
		t.Errorf("got %+v and %+v, want an order among the dead letters", f.Dead, f.Orders)
	}
	for range 30 { // the queue is read ten times a second
		s.now = s.now.Add(100 * time.Millisecond)
		s.refresh()
	}
	s.audit(t.Context(), s.system)
	for _, l := range s.refresh().Lights {
		if l.ID == "I3" && len(l.Broken) == 0 {
			t.Error("I3 holds, want it broken: the message was delivered, and is neither settled nor parked")
		}
	}
}

func TestAnOrderThatWasChargedTwiceStaysInThePicture(t *testing.T) {
	s := newScene(t)
	s.deliver(1)
	s.charge()
	s.charge()
	for i := range 1000 {
		_, err := fmt.Fprintf(s, `{"message":"order","order_id":"ORD-%d","verdict":"done"}`+"\n", i+2)
		systemtest.Must(t, err)
	}
	f := s.refresh()
	if o := f.Orders[0]; o.ID != "ORD-1" || o.Charges != 2 || len(f.Orders) > 300 {
		t.Errorf("got %d orders, the first %+v, want ORD-1 before the newest ones", len(f.Orders), o)
	}
}

func TestALeakIntoAnyLogLineTurnsItsLightRed(t *testing.T) {
	for line, want := range map[string]bool{
		`{"message":"order","order_id":"ORD-1","verdict":"done"}`: false,
		`panic: runtime error: canary-customer`:                   true,
		`{"message":"start","key":"` + system.PretendKey + `"}`:   true,
	} {
		s := newScene(t)
		_, err := s.Write([]byte(line + "\n"))
		systemtest.Must(t, err)
		s.audit(t.Context(), s.system)
		for _, l := range s.refresh().Lights {
			if l.ID == "I13" && (len(l.Broken) > 0) != want {
				t.Errorf("%s: got %q broken", line, l.Broken)
			}
		}
	}
}
