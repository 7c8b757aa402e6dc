package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	own "orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// world is the compiled function between a queue, a table and a carrier.
type world struct {
	*testing.T
	queue *sqstest.Server
	table *dynamodbtest.Harness
	name  string // of the table
	host  *lambdatest.Host
	log   bytes.Buffer // of the function; read it after host.Close

	mu        sync.Mutex
	ahead     time.Duration // of the queue's clock; the function's is real
	shipments []Shipment    // at the carrier
	calls     []string      // of the function in this delivery, to the table and to the carrier
	fault     func(n int, call string) fault
}

// fault is what happens at a call. The zero value lets it pass.
type fault struct {
	kill   bool   // the function
	lose   bool   // the request; with after, the answer. A client may retry it
	again  bool   // with lose: also every retry
	after  bool   // the call has its effect before
	status int    // of the answer; a 200 without effect shows the shipment as it is
	other  bool   // the answer is about another order's shipment
	do     func() // before the answer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	lambdatest.FullOnly(t)
	w := &world{T: t, table: dynamodbtest.Open(t)}
	w.createTable()
	carrier := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(carrier.Close)
	var err error
	w.queue, err = sqstest.Serve(sqstest.Options{Now: w.now})
	w.must(err)
	t.Cleanup(func() { _ = w.queue.Close() })
	w.queue.Machine(func(m *sqstest.Machine, now time.Time) {
		s := sqstest.DefaultSettings()
		s.Retention = 14 * 24 * time.Hour
		w.must(m.Create(now, "dead", s))
		s.DeadLetters, s.MaxReceives = "dead", 1000
		w.must(m.Create(now, "labels", s))
	})
	binary := filepath.Join(t.TempDir(), "label")
	w.must(lambdatest.Build(t.Context(), "examples/label", binary))
	w.host, err = lambdatest.Start(lambdatest.Options{
		Binary: binary, Timeout: 12 * time.Second, Instances: 2, Output: &w.log,
		Env: map[string]string{
			"AWS_ENDPOINT_URL_DYNAMODB": w.table.Proxy.URL, "AWS_ENDPOINT_URL_SQS": w.queue.URL,
			"LABELS_TABLE": w.name, "QUEUE_URL": w.queue.QueueURL("labels"),
			"DEAD_LETTER_QUEUE_URL": w.queue.QueueURL("dead"), "SCOPE": "test", "CARRIER_URL": carrier.URL,
		},
	})
	w.must(err)
	t.Cleanup(func() { _ = w.host.Close() })
	w.table.Proxy.Before(w.atTable)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) later(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

// direct returns a client whose calls are not counted and do not fail.
func (w *world) direct() *dynamodb.Client {
	return dynamodb.NewFromConfig(dynamodbtest.Config(w.table.Engine.Endpoint, func(string) string { return "" }))
}

func (w *world) createTable() {
	id := "id"
	w.name = w.table.Table + "-labels"
	_, err := w.direct().CreateTable(w.Context(), &dynamodb.CreateTableInput{
		TableName: &w.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &id, AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &id, KeyType: "HASH"}},
	})
	w.must(err)
	ctx := context.WithoutCancel(w.Context())
	w.Cleanup(func() { w.must(dynamodbtest.DropTable(ctx, w.direct(), w.name)) })
}

// at sets what happens at the calls from now on.
func (w *world) at(f func(n int, call string) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// atCall lets f happen at the nth call of a delivery.
func (w *world) atCall(n int, f fault) {
	w.at(func(i int, _ string) fault {
		if i == n {
			return f
		}
		return fault{}
	})
}

// arrive counts a call and returns what happens at it.
func (w *world) arrive(call string) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
	if w.fault == nil {
		return fault{}
	}
	return w.fault(len(w.calls), call)
}

// atTable lets a fault happen at a call to the table.
func (w *world) atTable(c dynamodbtest.Call) {
	f := w.arrive("table")
	kind := dynamodbtest.LoseBefore
	switch {
	case f.kill && !f.after:
		w.host.Kill(nil)
	case f.after:
		kind = dynamodbtest.LoseAfter
		w.table.Proxy.After(func(got dynamodbtest.Call) {
			if f.kill && got.Number == c.Number {
				w.host.Kill(nil)
			}
		})
	}
	switch {
	case f.lose && f.again:
		w.table.Proxy.Fail(dynamodbtest.Fault{Kind: kind, Times: 5}) // the attempts of dynamodb.NewClient
	case f.lose, f.kill:
		w.table.Proxy.Fail(dynamodbtest.Fault{Kind: kind, Number: c.Number})
	}
}

// serve is the carrier.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	path := strings.Split(r.URL.Path, "/") // "", shipments, id, buy
	f := w.arrive([]string{"quote", "read", "buy"}[len(path)-2])
	var status int
	var s Shipment
	switch {
	case f.after, !f.kill && !f.lose && f.status == 0:
		status, s = w.effect(r, path)
	case f.status == http.StatusOK:
		status, s = w.effect(r, path[:3])
	}
	if f.do != nil {
		f.do()
	}
	if f.kill {
		w.host.Kill(nil)
	}
	if f.kill || f.lose {
		panic(http.ErrAbortHandler)
	}
	if f.other {
		s.Reference = "test/another/adr_1"
	}
	if f.status != 0 {
		status = f.status
	}
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(map[string]string{"id": s.ID, "reference": s.Reference, "status": s.Status})
}

// effect makes, reads or buys a shipment. It refuses to sell one twice.
func (w *world) effect(r *http.Request, path []string) (int, Shipment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(path) == 2 {
		var in map[string]string
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.shipments = append(w.shipments, Shipment{fmt.Sprintf("shp_%d", len(w.shipments)), in["reference"], "quoted"})
		return http.StatusCreated, w.shipments[len(w.shipments)-1]
	}
	i := slices.IndexFunc(w.shipments, func(s Shipment) bool { return s.ID == path[2] })
	if len(path) == 4 {
		if w.shipments[i].Status != "quoted" {
			return http.StatusUnprocessableEntity, Shipment{}
		}
		w.shipments[i].Status = "purchased"
	}
	return http.StatusOK, w.shipments[i]
}

func (w *world) send(id order.ID, address string) {
	w.Helper()
	w.queue.Machine(func(m *sqstest.Machine, now time.Time) {
		body := fmt.Sprintf(`{"orderId":%q,"addressId":%q}`, id, address)
		_, err := m.Send(now, "labels", sqstest.Draft{Body: body})
		w.must(err)
	})
}

// deliver invokes the function with every visible message, as Lambda does, and returns
// the function's calls.
func (w *world) deliver() []string {
	w.mu.Lock()
	w.calls = nil
	w.mu.Unlock()
	var batch []sqstest.Message
	w.queue.Machine(func(m *sqstest.Machine, now time.Time) { batch, _ = m.Receive(now, "labels", 10, nil) })
	w.invoke(batch)
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// invoke invokes the function with messages and deletes those that did not fail.
func (w *world) invoke(batch []sqstest.Message) {
	var ids []string
	for _, m := range batch {
		ids = append(ids, m.ID)
	}
	response, err := w.host.Invoke(w.Context(), sqstest.Event("labels", batch))
	done, _ := sqstest.Verdict(ids, response, err)
	w.queue.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, message := range batch {
			if slices.Contains(done, message.ID) {
				_ = m.Delete(now, "labels", message.Receipt) // an expired receipt fails; so does Lambda's delete
			}
		}
	})
}

// freeze delivers a message of the order to two workers. The first is frozen at its
// quote, which has the fault f, until the second waits for the answer to its nth call.
func (w *world) freeze(id order.ID, f fault, n int) {
	w.Helper()
	frozen, thaw, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	f.do = func() { close(frozen); <-thaw }
	w.send(id, "adr_1")
	w.atCall(2, f)
	go func() { w.deliver(); close(ended) }()
	<-frozen
	w.expire(id, time.Minute)
	w.atCall(n, fault{do: func() { close(thaw); <-ended }})
	w.deliver()
}

// expire lets the lease of an order end an age ago, and its message be visible again.
func (w *world) expire(id order.ID, age time.Duration) {
	w.Helper()
	w.at(nil)
	w.table.Proxy.Heal()
	w.later(time.Hour)
	update, condition := "SET leaseUntil = :until", "attribute_exists(leaseUntil)"
	_, err := w.direct().UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.name, Key: own.Item{"id": own.Text(string(id))}, UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeValues: own.Item{":until": own.Millis(time.Now().Add(-age))},
	})
	if err != nil && !strings.Contains(err.Error(), "ConditionalCheckFailed") {
		w.Fatal(err)
	}
}

// bought returns how many labels of an order were bought.
func (w *world) bought(id order.ID) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.shipments {
		if s.Status != "quoted" && strings.HasPrefix(s.Reference, "test/"+string(id)+"/") {
			n++
		}
	}
	return n
}

// settled fails the test unless the order has one label, a row that says so, and no
// message in either queue.
func (w *world) settled(id order.ID, story ...any) {
	w.Helper()
	if n := w.bought(id); n != 1 {
		w.Errorf("order %s %+v: %d labels, want 1", id, story, n)
	}
	out, err := w.direct().GetItem(w.Context(), &dynamodb.GetItemInput{TableName: &w.name, Key: own.Item{"id": own.Text(string(id))}})
	w.must(err)
	if got := own.TextOf(out.Item, "status"); got != "purchased" {
		w.Errorf("order %s %+v: row %q, want purchased", id, story, got)
	}
	for _, queue := range []string{"labels", "dead"} {
		w.queue.Machine(func(m *sqstest.Machine, now time.Time) {
			if c, _ := m.Counts(now, queue); !c.Empty() {
				w.Errorf("order %s %+v: queue %s has %+v, want it empty", id, story, queue, c)
			}
		})
	}
}

// parked removes the messages from the dead-letter queue and returns their reasons.
func (w *world) parked() (reasons []string) {
	w.queue.Machine(func(m *sqstest.Machine, now time.Time) {
		all, _ := m.Receive(now, "dead", 10, nil)
		for _, message := range all {
			reasons = append(reasons, message.Attributes[sqs.AttrReason].Text)
			w.must(m.Delete(now, "dead", message.Receipt))
		}
	})
	return reasons
}
