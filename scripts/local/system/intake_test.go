package system_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestIntake puts orders by HTTP. The functions are the compiled ones.
func TestIntake(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	binary := w.Build(t, "functions/intake")
	start := func(t *testing.T, o system.Options) *running {
		t.Helper()
		o.Intake = binary
		return w.start(t, generous(o))
	}
	t.Run("an order that is put twice is charged once and answered the same", func(t *testing.T) {
		t.Parallel()
		putTwice(start(t, system.Options{}))
	})
	t.Run("a queue or a table that is down is 503, and the repetition is charged once", func(t *testing.T) {
		t.Parallel()
		putDown(start(t, system.Options{}))
	})
	t.Run("killed before and after every call, then repeated: one charge", func(t *testing.T) {
		t.Parallel()
		k := &intakeKiller{}
		k.running = start(t, system.Options{Instances: 1, BeforeSQS: k.sqs("before"), AfterSQS: k.sqs("after")})
		k.killEach()
	})
	t.Run("a POST is an order of its caller and key, over FIFO queues as well", func(t *testing.T) {
		t.Parallel()
		s := start(t, system.Options{FIFO: true})
		text := strings.Replace(body("x"), `"orderId":"x",`, "", 1)
		for _, key := range []string{"key-1", "key-1", "key-2"} {
			a, err := s.CallAPI(t.Context(), http.MethodPost, "/orders", text, "Idempotency-Key: "+key)
			must(t, err)
			s.accepted(a, key)
		}
		s.drain()
		if diff := cmp.Diff(map[order.Status]int{order.Paid: 2}, s.statuses()); diff != "" {
			t.Errorf("orders by status (-want +got):\n%s", diff)
		}
	})
}

// put puts an order, and records it as one message the first time.
func (o *running) put(id, body string) system.Answer {
	o.t.Helper()
	a, err := o.PutOrder(o.t.Context(), id, body)
	must(o.t, err)
	known := func(m invariants.Message) bool { return m.OrderID() == order.ID(id) }
	if a.Status < http.StatusMultipleChoices && !slices.ContainsFunc(o.posted, known) {
		o.posted = append(o.posted, invariants.NewMessage(jobs.NewDecoder(), body, ""))
	}
	return a
}

func (o *running) accepted(a system.Answer, what string) {
	o.t.Helper()
	if a.Status != http.StatusAccepted && a.Status != http.StatusOK {
		o.t.Errorf("%s: got %+v, want 202 or 200", what, a)
	}
}

func putTwice(s *running) {
	s.t.Helper()
	must(s.t, s.StopProcessing())
	s.wantCalls("a new order", func() { s.put("twice", body("twice")) },
		map[string]int{"Query": 1, "PutItem": 1, "UpdateItem": 1}, 0)
	must(s.t, s.ResumeProcessing(s.t.Context()))
	s.want(s.settle(), "twice", paid)
	s.wantCalls("a repeated order", func() { s.accepted(s.put("twice", body("twice")), "repeated") },
		map[string]int{"Query": 1}, 0)
	get, err := s.CallAPI(s.t.Context(), http.MethodGet, "/orders/twice", "")
	must(s.t, err)
	if diff := cmp.Diff(s.put("twice", body("twice")), get); diff != "" || !strings.Contains(get.Body, `"type":"order.paid"`) {
		s.t.Errorf("got %+v, want the event; repeated, and read (-put +get):\n%s", get, diff)
	}
	s.post(bodyWith("twice", declines), body("queued")) // the first one is parked as a conflict
	s.settle()
	invalid := strings.Replace(body("invalid"), `"quantity":2`, `"quantity":0`, 1)
	for claim, got := range map[string]struct{ status, want int }{
		"other content":                    {s.put("twice", bodyWith("twice", "pm_card_mastercard")).Status, http.StatusConflict},
		"the order of a message":           {s.put("queued", body("queued")).Status, http.StatusOK},
		"other content than the message's": {s.put("queued", bodyWith("queued", declines)).Status, http.StatusConflict},
		"an invalid order":                 {s.put("invalid", invalid).Status, http.StatusUnprocessableEntity},
	} {
		if got.status != got.want {
			s.t.Errorf("%s: got %d, want %d", claim, got.status, got.want)
		}
	}
	s.want(s.settle(), "twice", paid)
}

func putDown(s *running) {
	s.t.Helper()
	for id, what := range map[string]struct{ fail, heal func() }{
		"queue": {func() { s.SQS.Fail("SendMessage", 100, "ServiceUnavailable") }, s.SQS.Heal},
		"table": {func() { s.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.Throttled}) }, s.Proxy.Heal},
	} {
		what.fail()
		if got := s.put(id, body(id)); got.Status != http.StatusServiceUnavailable || s.Waiting() > 0 {
			s.t.Errorf("%s: got %+v and %d messages, want 503 and none", id, got, s.Waiting())
		}
		what.heal()
		s.accepted(s.put(id, body(id)), id)
		s.want(s.settle(), order.ID(id), paid)
	}
}

// intakeKiller kills the function of the entrance once, at a call that has its effect or
// not.
type intakeKiller struct {
	*running

	at atomic.Pointer[[2]string] // when, and the call
}

func (k *intakeKiller) sqs(when string) func(sqstest.Call) {
	return func(c sqstest.Call) { k.spring(when, c.Operation) }
}

func (k *intakeKiller) spring(when, call string) {
	if at := k.at.Load(); at != nil && *at == [2]string{when, call} && k.at.CompareAndSwap(at, nil) {
		if when == "before" {
			k.Proxy.Fail(dynamodbtest.Fault{Operation: call, Kind: dynamodbtest.LoseBefore, Times: 1})
			k.SQS.Fail(call, 1, "InternalError")
		}
		k.Intake.Kill(nil)
	}
}

func (k *intakeKiller) killEach() {
	k.t.Helper()
	k.Proxy.Before(func(c dynamodbtest.Call) { k.spring("before", c.Operation) })
	k.Proxy.After(func(c dynamodbtest.Call) { k.spring("after", c.Operation) })
	for _, call := range []string{"Query", "PutItem", "SendMessage"} {
		for _, when := range []string{"before", "after"} {
			id := when + "-" + call
			k.at.Store(&[2]string{when, call})
			if got := k.put(id, body(id)); got.Status != http.StatusInternalServerError || k.at.Load() != nil {
				k.t.Fatalf("%s: got %+v, want the function killed", id, got)
			}
			k.Proxy.Heal()
			k.SQS.Heal()
			k.accepted(k.put(id, body(id)), id)
			if got := k.put(id, bodyWith(id, "pm_card_mastercard")); got.Status != http.StatusConflict {
				k.t.Errorf("%s, other content: got %+v, want 409", id, got)
			}
			k.want(k.settle(), order.ID(id), paid)
			if got := k.put(id, body(id)); !strings.Contains(got.Body, `"paid"`) {
				k.t.Errorf("%s, settled: got %+v, want paid", id, got)
			}
		}
	}
	k.settle()
}
