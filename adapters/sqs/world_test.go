package sqs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"pgregory.net/rapid"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// The time settings of the handler under test.
const (
	orderBudget = 5 * time.Second
	answerTime  = 2 * time.Second
)

// tester is implemented by *testing.T and *rapid.T.
type tester interface {
	rapid.TB
	Cleanup(f func())
	Context() context.Context
}

// world is a handler with a queue and a dead-letter queue of sqstest, and a script for
// the results of orders.
type world struct {
	*sqs.Handler

	orders, dead string // the names of the queues

	t      tester
	server *sqstest.Server
	script map[order.ID]order.Result // an order that it does not name is paid

	mu         sync.Mutex
	now        time.Time
	calls      []sqstest.Call // of the JSON face, in their order
	calledWith []work
	notes      []string // "order reason" of each call to NoteParked
	log        bytes.Buffer
	meter      map[string]int // by "metric" and by "metric value"
	data       []datapoint
	sent       int // by sendGrouped
}

// datapoint is one value of a metric.
type datapoint struct {
	At        time.Time
	Metric    string
	Dimension string // its value
	Value     float64
}

// work is one call of Process.
type work struct {
	ID       order.ID
	Lease    order.Lease
	Deadline time.Time // of its context
}

func newWorld(t tester) *world {
	t.Helper()
	return newWorldWith(t, "orders", "dead", false)
}

func newFIFOWorld(t tester) *world {
	t.Helper()
	return newWorldWith(t, "orders.fifo", "dead.fifo", true)
}

func newWorldWith(t tester, orderQueue, deadQueue string, fifo bool) *world {
	t.Helper()
	w := &world{
		orders: orderQueue, dead: deadQueue, t: t, now: start(), script: map[order.ID]order.Result{},
		meter: map[string]int{},
	}
	server, err := sqstest.Serve(sqstest.Options{Now: w.Now, Before: w.called})
	w.must(err)
	t.Cleanup(func() { w.must(server.Close()) })
	w.server = server
	server.Machine(func(m *sqstest.Machine, now time.Time) {
		dead := sqstest.DefaultSettings()
		dead.Retention, dead.FIFO = 14*day, fifo
		w.must(m.Create(now, w.dead, dead))
		orders := sqstest.DefaultSettings()
		orders.Visibility, orders.Retention = 3*time.Minute, 7*day
		orders.DeadLetters, orders.MaxReceives, orders.FIFO = w.dead, sqs.DefaultPolicy().MaxReceives, fifo
		w.must(m.Create(now, w.orders, orders))
	})
	w.Handler = &sqs.Handler{
		Process: w.process, NoteParked: w.noteParked, Decode: sqs.NewDecoder().Decode,
		Queue: w.queueThrough(nil), Policy: sqs.DefaultPolicy(), Meter: counter{w},
		Log: slog.New(slog.NewJSONHandler(&lockedWriter{w: w}, nil)),
		Now: w.Now, NewOwner: w.newOwner, Jitter: func() float64 { return minJitter },
		RequestID: func(context.Context) string { return "request-1" },
		Parallel:  4, OrderBudget: orderBudget, AnswerTime: answerTime,
	}
	return w
}

// queueThrough returns a client of both queues that uses an HTTP client; nil is the SDK's
// own.
func (w *world) queueThrough(client aws.HTTPClient) *sqs.Queue {
	cfg := aws.Config{
		Region: sqstest.Region, BaseEndpoint: &w.server.URL, HTTPClient: client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }, // a fault is one fault
	}
	return sqs.NewQueue(cfg, w.server.QueueURL(w.orders), w.server.QueueURL(w.dead))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Now is the clock of the handler and of the queues.
func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) called(c sqstest.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
}

func (w *world) newOwner() string { return fmt.Sprintf("owner-%d", len(w.processed())) }

// process records the call and returns the scripted result.
func (w *world) process(ctx context.Context, o order.Order, _ time.Time, l order.Lease) order.Result {
	deadline, _ := ctx.Deadline()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calledWith = append(w.calledWith, work{o.ID(), l, deadline})
	if r, scripted := w.script[o.ID()]; scripted {
		return r
	}
	return paid()
}

// noteParked records the call.
func (w *world) noteParked(_ context.Context, o order.Order, why order.Reason, _ time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, string(o.ID())+" "+string(why))
	return nil
}

func (w *world) processed() []work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calledWith)
}

// counted returns how often a metric was counted, or "metric value" for one value of its
// dimension.
func (w *world) counted(metric string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.meter[metric]
}

// lockedWriter is the log, to which the lanes of a batch write in parallel.
type lockedWriter struct{ w *world }

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return l.w.log.Write(p)
}

// lines returns the log lines so far.
func (w *world) lines() []map[string]any {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []map[string]any
	for line := range strings.Lines(w.log.String()) {
		var fields map[string]any
		w.must(json.Unmarshal([]byte(line), &fields))
		all = append(all, fields)
	}
	return all
}

// counter is a sqs.Meter that counts in its world.
type counter struct{ w *world }

func (c counter) Count(metric, dimension, value string) {
	c.add(metric, dimension, value, datapoint{Dimension: value, Value: 1})
}

// Observe keeps milliseconds, as the real meter does.
func (c counter) Observe(metric, _, value string, d time.Duration) {
	c.add(metric, "seconds", fmt.Sprint(d.Seconds()), datapoint{
		Dimension: value, Value: float64(d.Milliseconds()),
	})
}

func (c counter) Flush() { c.Count("flush", "", "") }

func (c counter) add(metric, dimension, value string, d datapoint) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	d.At, d.Metric = c.w.now, metric
	c.w.data = append(c.w.data, d)
	c.w.meter[metric]++
	if dimension != "" {
		c.w.meter[metric+" "+value]++
	}
}

// waitingAges returns the values of WaitingAge in seconds, in the order of their
// observation.
func (w *world) waitingAges() (seconds []float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.data {
		if d.Metric == "WaitingAge" {
			seconds = append(seconds, d.Value/1000)
		}
	}
	return seconds
}

// Results of an order.

func paid() order.Result {
	return order.Result{
		Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 1, Intent: "pi_1",
	}
}

func outage() order.Result {
	return order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonStore, Transient: true,
		Err: errors.New("no route to the store"),
	}
}

func conflict() order.Result {
	return order.Result{Verdict: order.Park, Reason: order.ReasonConflict, Err: order.ErrConflict}
}

// orderWithID is the good order with another id.
func orderWithID(id string) string { return with("ORD12345", id) }

// send sends bodies to the order queue and returns their message ids.
func (w *world) send(bodies ...string) (ids []string) {
	w.t.Helper()
	for _, body := range bodies {
		ids = append(ids, w.sendDraft(sqstest.Draft{Body: body}))
	}
	return ids
}

// sendGrouped sends a body to a group, with a new deduplication id.
func (w *world) sendGrouped(group, body string) (id string) {
	w.t.Helper()
	w.sent++
	return w.sendDraft(sqstest.Draft{Body: body, Group: group, DeduplicationID: fmt.Sprint(w.sent)})
}

// sendInto sends a body to a group, on either type of queue.
func (w *world) sendInto(group, body string) {
	w.t.Helper()
	if w.orders == "orders.fifo" {
		w.sendGrouped(group, body)
		return
	}
	w.sendDraft(sqstest.Draft{Body: body, Group: group})
}

func (w *world) sendDraft(d sqstest.Draft) (id string) {
	w.t.Helper()
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		sent, err := m.Send(now, w.orders, d)
		w.must(err)
		id = sent.ID
	})
	return id
}

// receive receives all visible messages, as the event of one invocation.
func (w *world) receive() events.SQSEvent {
	w.t.Helper()
	var all []sqstest.Message
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		for {
			some, err := m.Receive(now, w.orders, 10, nil)
			w.must(err)
			if all = append(all, some...); len(some) == 0 {
				return
			}
		}
	})
	var e events.SQSEvent
	w.must(json.Unmarshal(sqstest.Event(w.orders, all), &e))
	return e
}

// deliver calls the handler with an event, and deletes messages as Lambda does. It
// returns the batch item failures.
func (w *world) deliver(ctx context.Context, e events.SQSEvent) (failed []string) {
	w.t.Helper()
	response, err := w.Handle(ctx, e)
	w.must(err)
	raw, err := json.Marshal(response)
	w.must(err)
	receipts := map[string]string{}
	var ids []string
	for _, r := range e.Records {
		ids = append(ids, r.MessageId)
		receipts[r.MessageId] = r.ReceiptHandle
	}
	deleted, failed := sqstest.Verdict(ids, raw, nil)
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, id := range deleted {
			w.must(m.Delete(now, w.orders, receipts[id]))
		}
	})
	if len(failed) != len(response.BatchItemFailures) {
		w.t.Errorf("Lambda reads %s as %d failures", raw, len(failed))
	}
	return failed
}

// deliverVisible delivers all visible messages.
func (w *world) deliverVisible() (failed []string) {
	w.t.Helper()
	return w.deliver(w.t.Context(), w.receive())
}

// messageIDs returns the ids of all messages in a queue, in any state.
func (w *world) messageIDs(queue string) (ids []string) {
	w.t.Helper()
	for _, m := range w.messages(queue) {
		ids = append(ids, m.ID)
	}
	return ids
}

func (w *world) messages(queue string) (all []sqstest.Message) {
	w.t.Helper()
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		var err error
		all, err = m.Messages(now, queue)
		w.must(err)
	})
	return all
}

// visible returns the ids of the visible messages.
func (w *world) visible() (ids []string) {
	w.t.Helper()
	for _, m := range w.messages(w.orders) {
		if m.State == sqstest.Visible {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// untilVisible moves the clock to the moment when a message becomes visible, and returns
// how long that took.
func (w *world) untilVisible(id string) time.Duration {
	w.t.Helper()
	began := w.Now()
	for !slices.Contains(w.visible(), id) {
		var next time.Time
		var ok bool
		w.server.Machine(func(m *sqstest.Machine, now time.Time) { next, ok = m.Next(now) })
		if !ok {
			w.t.Fatalf("message %s is gone", id)
		}
		w.advance(next.Sub(w.Now()))
	}
	return w.Now().Sub(began)
}
