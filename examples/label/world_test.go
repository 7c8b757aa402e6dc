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

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// world is a Job between a table and a carrier that lose calls. Its clock is virtual.
type world struct {
	*testing.T
	job     Job
	table   *dynamodbtest.Harness
	carrier string // its URL

	mu        sync.Mutex
	now       time.Time
	workers   int
	shipments []Shipment // at the carrier
	calls     []string   // of the last delivery, to the table and to the carrier
	fault     func(n int, call string) fault
	die       func() // ends the worker of the last delivery
	dies      int    // the call to the table at which it ends
}

// fault is what happens at a call. The zero value lets it pass.
type fault struct {
	kill   bool   // the worker
	lose   bool   // the request; with after, the answer. A client may retry it
	again  bool   // with lose: also every retry
	after  bool   // the call has its effect before
	status int    // of the answer; a 200 without effect shows the shipment as it is
	other  bool   // the answer is about another order's shipment
	do     func() // before the carrier's answer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, table: dynamodbtest.Open(t), now: time.UnixMilli(1_767_225_600_000)}
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	w.carrier = server.URL
	name, id := w.table.Table+"-labels", "id"
	_, err := w.table.Client.CreateTable(t.Context(), &sdk.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &id, AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &id, KeyType: "HASH"}},
	})
	w.must(err)
	// On a connection for each call, no call is repeated because its connection was old.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w.job = Job{dynamodb.NewClient(w.table.Config), name, Carrier{client, server.URL + "/shipments", "test"}}
	w.table.Proxy.Before(w.beforeTable)
	w.table.Proxy.Observe(w.afterTable)
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

// beforeTable loses a call to the table. Behind the effect of a lost call, or instead of
// it, afterTable kills the worker.
func (w *world) beforeTable(c dynamodbtest.Call) {
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
		w.dies = c.Number
	}
}

func (w *world) afterTable(c dynamodbtest.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Number == w.dies {
		w.die()
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
		w.die()
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

// deliver runs the message's task once. A worker that dies makes no further call.
func (w *world) deliver(id order.ID, address string) order.Result {
	w.Helper()
	ctx, die := context.WithCancel(w.Context())
	defer die()
	w.mu.Lock()
	w.calls, w.die = nil, die
	w.workers++
	lease := order.Lease{Owner: fmt.Sprint("worker ", w.workers), From: w.now, Until: w.now.Add(time.Minute)}
	w.mu.Unlock()
	task, err := w.job.Task(fmt.Sprintf(`{"orderId":%q,"addressId":%q}`, id, address))
	if err != nil { // as sqs.Handler does
		return order.Result{Verdict: order.Park, Reason: order.ReasonInvalid}
	}
	return task.Run(ctx, sqs.Delivery{}, lease)
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

// settles delivers the order's message without faults. The test fails unless the order
// then has one label and needs no further delivery. It returns the calls.
func (w *world) settles(id order.ID, story ...any) []string {
	w.Helper()
	w.later(time.Hour)
	r := w.deliver(id, "adr_1")
	if n := w.bought(id); n != 1 || r.Verdict != order.Done {
		w.Errorf("order %s %+v: %d labels and %+v, want 1 and done", id, story, n, r)
	}
	return w.calls
}
