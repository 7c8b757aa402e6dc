package system_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestIntake puts orders by HTTP. The functions are the compiled ones.
func TestIntake(t *testing.T) {
	t.Parallel()
	w := intakeWorld{world: world{systemtest.New(t)}}
	w.binary = w.Build(t, "functions/intake")
	for claim, test := range map[string]func(*testing.T){
		"an order that is put twice is charged once and answered the same":                w.twice,
		"a new order costs 3 DynamoDB calls and 1 message, a repeated one 1 and none":     w.counts,
		"a queue or a table that is down is 503, and the repetition is charged once":      w.down,
		"1,000 concurrent PUTs of one order are one charge":                               w.thousandAtOnce,
		"killed before and after every call of a PUT, then repeated: one charge, one row": w.killed,
		"a POST is an order of its caller and key, over FIFO queues as well":              w.post,
		"an order whose row was deleted is not charged by a later PUT":                    w.lost,
		"another content by the queue is parked, and one that came by the queue is a 409": w.besideTheQueue,
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

type intakeWorld struct {
	world

	binary string
}

func (w intakeWorld) start(t *testing.T, o system.Options) *running {
	t.Helper()
	o.Intake = w.binary
	return w.world.start(t, o)
}

// put puts the order of body(id).
func (o *running) put(id, body string) system.Answer {
	o.t.Helper()
	a, err := o.PutOrder(o.t.Context(), id, body)
	must(o.t, err)
	return a
}

// settlePut waits until the worker is done, and checks every invariant, as if the order
// had come as one message.
func (o *running) settlePut(bodies ...string) invariants.Books {
	o.t.Helper()
	for _, b := range bodies {
		o.posted = append(o.posted, invariants.NewMessage(jobs.NewDecoder(), b, ""))
	}
	return o.settle()
}

func (w intakeWorld) twice(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{}))
	if got := s.put("twice", body("twice")); got.Status != http.StatusAccepted || !strings.Contains(got.Body, `"received"`) {
		t.Errorf("got %+v, want 202 and received", got)
	}
	s.settlesOnce(s.settlePut(body("twice")), "twice")
	paid := s.put("twice", body("twice"))
	if paid.Status != http.StatusOK || !strings.Contains(paid.Body, `"type":"order.paid"`) {
		t.Errorf("got %+v, want 200 and the event", paid)
	}
	get, err := s.CallAPI(t.Context(), http.MethodGet, "/orders/twice", "")
	must(t, err)
	if diff := cmp.Diff([]system.Answer{s.put("twice", body("twice")), get}, []system.Answer{paid, paid}); diff != "" {
		t.Errorf("repeated, and read (-got +want):\n%s", diff)
	}
	if got := s.put("twice", bodyWith("twice", "pm_card_mastercard")); got.Status != http.StatusConflict {
		t.Errorf("other content: got %+v, want 409", got)
	}
	invalid := strings.Replace(body("invalid"), `"quantity":2`, `"quantity":0`, 1)
	if got := s.put("invalid", invalid); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("an invalid order: got %+v, want 422", got)
	}
	s.settlesOnce(s.settle(), "twice")
	if n := len(s.Stripe.Calls()); n != 2 {
		t.Errorf("got %d calls to Stripe, want 2", n)
	}
}

func (w intakeWorld) counts(t *testing.T) {
	t.Helper()
	var sent atomic.Int64
	s := w.start(t, generous(system.Options{BeforeSQS: func(c sqstest.Call) {
		if c.Operation == "SendMessage" {
			sent.Add(1)
		}
	}}))
	must(t, s.StopProcessing())
	s.put("counted", body("counted"))
	if diff := cmp.Diff(s.Proxy.Counts(), map[string]int{"Query": 1, "PutItem": 1, "UpdateItem": 1}); diff != "" || sent.Load() != 1 {
		t.Errorf("a new order: got %d messages, want 1; calls (-got +want):\n%s", sent.Load(), diff)
	}
	must(t, s.ResumeProcessing(t.Context()))
	s.settlesOnce(s.settlePut(body("counted")), "counted")
	s.Proxy.Reset()
	s.put("counted", body("counted"))
	if diff := cmp.Diff(s.Proxy.Counts(), map[string]int{"Query": 1}); diff != "" || sent.Load() != 1 {
		t.Errorf("a repeated order: got %d messages in all, want 1; calls (-got +want):\n%s", sent.Load(), diff)
	}
}

func (w intakeWorld) down(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{}))
	for id, what := range map[string]struct{ fail, heal func() }{
		"queue": {func() { s.SQS.Fail("SendMessage", 100, "ServiceUnavailable") }, s.SQS.Heal},
		"table": {func() { s.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.Throttled}) }, s.Proxy.Heal},
	} {
		what.fail()
		if got := s.put(id, body(id)); got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Body, `"unavailable"`) {
			t.Errorf("%s: got %+v, want 503", id, got)
		}
		if n := s.Waiting(); n > 0 {
			t.Errorf("%s: got %d messages, want none", id, n)
		}
		what.heal()
		if got := s.put(id, body(id)); got.Status != http.StatusAccepted {
			t.Errorf("%s: got %+v, want 202", id, got)
		}
		s.settlesOnce(s.settlePut(body(id)), order.ID(id))
	}
}

func (w intakeWorld) thousandAtOnce(t *testing.T) {
	t.Helper()
	const puts = 1000
	s := w.start(t, system.Options{Instances: 4})
	answers := make([]system.Answer, puts)
	errs := make([]error, puts)
	var putting sync.WaitGroup
	for i := range puts {
		putting.Go(func() { answers[i], errs[i] = s.PutOrder(t.Context(), "many", body("many")) })
	}
	putting.Wait()
	for i, a := range answers {
		if errs[i] != nil || a.Status != http.StatusAccepted && a.Status != http.StatusOK {
			t.Fatalf("PUT %d: got %+v, %v, want 202 or 200", i, a, errs[i])
		}
	}
	s.settlesOnce(s.settlePut(body("many")), "many")
}

func (w intakeWorld) killed(t *testing.T) {
	t.Helper()
	for _, call := range []string{"Query", "PutItem", "SendMessage"} {
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+call, func(t *testing.T) {
				t.Parallel()
				w.killedAt(t, call, when == "after")
			})
		}
	}
}

// killedAt kills the function of the entrance once, at a call that has its effect or not.
func (w intakeWorld) killedAt(t *testing.T, call string, effect bool) {
	t.Helper()
	var s *running
	var sprung atomic.Bool
	spring := func(name string) {
		if name == call && sprung.CompareAndSwap(false, true) {
			s.Intake.Kill(nil)
		}
	}
	o := generous(system.Options{Instances: 1})
	if effect {
		o.AfterSQS = func(c sqstest.Call) { spring(c.Operation) }
	} else {
		o.BeforeSQS = func(c sqstest.Call) { spring(c.Operation) }
	}
	s = w.start(t, o)
	dynamo := func(c dynamodbtest.Call) { spring(c.Operation) }
	if effect {
		s.Proxy.After(dynamo)
	} else {
		s.Proxy.Before(dynamo)
		s.Proxy.Fail(dynamodbtest.Fault{Operation: call, Kind: dynamodbtest.LoseBefore, Times: 1})
		s.SQS.Fail(call, 1, "InternalError")
	}
	if got := s.put("killed", body("killed")); got.Status != http.StatusInternalServerError || !sprung.Load() {
		t.Fatalf("got %+v, want the function killed", got)
	}
	for range 2 {
		if got := s.put("killed", body("killed")); got.Status != http.StatusAccepted && got.Status != http.StatusOK {
			t.Errorf("repeated: got %+v, want 202 or 200", got)
		}
	}
	if got := s.put("killed", bodyWith("killed", "pm_card_mastercard")); got.Status != http.StatusConflict {
		t.Errorf("other content: got %+v, want 409", got)
	}
	s.settlesOnce(s.settlePut(body("killed")), "killed")
	if got := s.put("killed", body("killed")); got.Status != http.StatusOK || !strings.Contains(got.Body, `"paid"`) {
		t.Errorf("settled: got %+v, want 200 and paid", got)
	}
}

func (w intakeWorld) post(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{FIFO: true}))
	text := strings.Replace(body("x"), `"orderId":"x",`, "", 1)
	post := func(key string) system.Answer {
		a, err := s.CallAPI(t.Context(), http.MethodPost, "/orders", text, "Idempotency-Key: "+key)
		must(t, err)
		return a
	}
	first := post("key-1")
	if again := post("key-1"); first.Status != http.StatusAccepted || again.Status != first.Status && again.Status != http.StatusOK {
		t.Errorf("got %+v, then %+v, want the same order accepted", first, again)
	}
	post("key-2")
	s.drain()
	charges := 0
	for o, err := range s.Orders(t.Context()) {
		must(t, err)
		if charges++; o.Status != order.Paid {
			t.Errorf("order %s is %s, want it paid", o.OrderID, o.Status)
		}
	}
	if charges != 2 {
		t.Errorf("got %d orders, want 2", charges)
	}
}

func (w intakeWorld) besideTheQueue(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{}))
	s.put("both", body("both"))
	s.settlePut(body("both"))
	s.post(bodyWith("both", "pm_card_mastercard"))
	s.settlesOnce(s.settle(), "both")
	if dead, err := s.Dead(); err != nil || len(dead) != 1 || dead[0].Attributes[sqs.AttrReason].Text != "conflict" {
		t.Errorf("got %+v, %v, want the message parked as a conflict", dead, err)
	}
	s.post(body("queued"))
	s.settle()
	if got := s.put("queued", body("queued")); got.Status != http.StatusOK {
		t.Errorf("the order of a message: got %+v, want 200", got)
	}
	if got := s.put("queued", bodyWith("queued", "pm_card_mastercard")); got.Status != http.StatusConflict {
		t.Errorf("other content than the message: got %+v, want 409", got)
	}
}

// The message of a repeated PUT is new. It carries the time of the first one, so that the
// worker asks Stripe before it charges an order whose row is younger.
func (w intakeWorld) lost(t *testing.T) {
	t.Helper()
	s := w.start(t, generous(system.Options{}))
	s.put("gone", body("gone"))
	s.settlesOnce(s.settlePut(body("gone")), "gone")
	s.dropRow("gone")
	_, err := s.table().UpdateItem(t.Context(), &sdk.UpdateItemInput{
		TableName: aws.String(s.Options.Table), UpdateExpression: aws.String("SET createdAt = createdAt - :age"),
		Key: map[string]types.AttributeValue{
			"orderId": &types.AttributeValueMemberS{Value: "gone"}, "sk": &types.AttributeValueMemberS{Value: "intake"},
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":age": &types.AttributeValueMemberN{Value: strconv.FormatInt((48 * time.Hour).Milliseconds(), 10)},
		},
	})
	must(t, err)
	s.Advance(48 * time.Hour) // Stripe has forgotten its keys
	if got := s.put("gone", body("gone")); got.Status != http.StatusAccepted {
		t.Errorf("got %+v, want 202", got)
	}
	s.drain()
	if dead, err := s.Dead(); err != nil || len(dead) != 1 || dead[0].Attributes[sqs.AttrReason].Text != "record_lost" {
		t.Errorf("got %+v, %v, want the message parked as record_lost", dead, err)
	}
}
