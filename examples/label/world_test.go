package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// Content of a message, and other content.
const content, other = "adr_1", "adr_2"

func body(id order.ID, content string) string {
	return fmt.Sprintf(`{"orderId":%q,"addressId":%q}`, id, content)
}

// world is a Job between a table and a provider that lose calls. Its clock is virtual.
type world struct {
	*testing.T
	job   Job
	table *dynamodbtest.Harness

	mu      sync.Mutex
	now     time.Time
	workers int
	calls   []string // of the last delivery
	fault   func(n int, call string) fault
	die     func()   // ends the worker of the last delivery
	dies    bool     // when its call to the table ends
	objects []Object // at the provider
}

// fault is what happens at a call. The zero value lets it pass.
type fault struct {
	kill  bool // the worker
	lose  bool // the request; with after, the answer. A client may retry it
	again bool // with lose: also every retry
	after bool // the call has its effect before
	// status of the provider's answer; a 200 without effect shows the object as it is
	status int
	other  bool   // the answer is about another order's object
	do     func() // before the provider's answer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, table: dynamodbtest.Open(t), now: time.UnixMilli(1_767_225_600_000)}
	name, id := w.table.Table+"-label", "id"
	w.must(dynamodbtest.Create(t.Context(), w.table.Client, &sdk.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &id, AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &id, KeyType: "HASH"}},
	}))
	config := w.table.Config
	config.HTTPClient = tableClient{w, config.HTTPClient}
	w.job.Table = Table{dynamodb.NewClient(config), name}
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	// On a connection for each call, no call is repeated because its connection was old.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w.job.Provider = Provider{client, server.URL + "/objects", "test"}
	w.table.Proxy.Before(w.beforeTable)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
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

// later ends every lease and every fault.
func (w *world) later(d time.Duration) {
	w.at(nil)
	w.table.Proxy.Heal()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
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

// beforeTable loses a call to the table, before or after its effect. Then tableClient
// kills the worker.
func (w *world) beforeTable(c dynamodbtest.Call) {
	if c.Operation == "GetItem" { // the test's own
		return
	}
	f := w.arrive("table")
	lost := dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Number: c.Number}
	if f.after {
		lost.Kind = dynamodbtest.LoseAfter
	}
	if f.again {
		lost.Number, lost.Times = 0, 5 // the attempts of dynamodb.NewClient
	}
	if f.lose || f.kill {
		w.table.Proxy.Fail(lost)
	}
	if f.kill {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dies = true
	}
}

// tableClient sends what the worker sends to the table, while it lives.
type tableClient struct {
	*world
	inner aws.HTTPClient
}

// Do implements aws.HTTPClient.
func (c tableClient) Do(r *http.Request) (*http.Response, error) {
	response, err := c.inner.Do(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dies {
		c.dies = false
		c.die()
	}
	return response, err
}

// serve is the provider.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	path := strings.Split(r.URL.Path, "/") // "", objects, its id, confirm
	f := w.arrive([]string{"make", "read", "confirm"}[len(path)-2])
	status, o := http.StatusOK, any(Object{})
	if f.after || !f.kill && !f.lose && f.status == 0 {
		status, o = w.effect(r)
	} else if f.status == http.StatusOK {
		r.URL.Path = strings.Join(path[:3], "/")
		status, o = w.effect(r)
	}
	if f.do != nil {
		f.do()
	}
	if f.kill {
		w.die()
	}
	if f.kill || f.lose {
		panic(http.ErrAbortHandler)
	}
	if shown, is := o.(Object); is && f.other {
		shown.Reference = "test/another/" + content
		o = shown
	}
	if f.status != 0 {
		status = f.status
	}
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(o)
}

// effect makes, reads or confirms an object. It refuses to confirm one twice.
func (w *world) effect(r *http.Request) (status int, shown any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := strings.Split(r.URL.Path, "/") // "", objects, its id, confirm
	if len(path) == 2 {
		var in map[string]string
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.objects = append(w.objects, Object{fmt.Sprintf("obj_%d", len(w.objects)), in["reference"], made})
		return http.StatusCreated, w.objects[len(w.objects)-1]
	}
	i := slices.IndexFunc(w.objects, func(o Object) bool { return o.ID == path[2] })
	if len(path) == 4 {
		if w.objects[i].Status != made {
			return http.StatusUnprocessableEntity, Object{}
		}
		w.objects[i].Status = "done"
	}
	return http.StatusOK, w.objects[i]
}

// deliver runs the message's task once. A worker that dies makes no further call.
func (w *world) deliver(id order.ID, content string) order.Result {
	w.Helper()
	ctx, die := context.WithCancel(w.Context())
	defer die()
	w.mu.Lock()
	w.calls, w.die = nil, die
	w.workers++
	lease := order.Lease{Owner: fmt.Sprint("worker ", w.workers), From: w.now, Until: w.now.Add(time.Minute)}
	w.mu.Unlock()
	task, err := w.job.Task(body(id, content))
	if err != nil { // as sqs.Handler does
		return order.Result{Verdict: order.Park, Reason: order.ReasonInvalid}
	}
	return task.Run(ctx, sqs.Delivery{}, lease)
}

// effects returns how often the job of an order took effect.
func (w *world) effects(id order.ID) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.objects {
		if o.Status != made && strings.HasPrefix(o.Reference, "test/"+string(id)+"/") {
			n++
		}
	}
	return n
}

// settles delivers the order's message without faults. The test fails unless the job then
// took effect once and needs no further delivery.
// It returns the calls.
func (w *world) settles(id order.ID, story ...any) []string {
	w.Helper()
	w.later(time.Hour)
	r := w.deliver(id, content)
	n := w.effects(id)
	if n != 1 || r.Verdict != order.Done {
		w.Errorf("order %s %+v: %d effects and %+v, want 1 and done", id, story, n, r)
	}
	return w.calls
}
