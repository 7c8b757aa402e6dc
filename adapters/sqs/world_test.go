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
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
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
	*orders.Tasks

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
	Sent     time.Time // when its message was first sent
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
		settings := sqstest.DefaultSettings()
		settings.Visibility, settings.Retention = 3*time.Minute, 7*day
		settings.DeadLetters, settings.MaxReceives, settings.FIFO = w.dead, sqs.DefaultPolicy().MaxReceives, fifo
		w.must(m.Create(now, w.orders, settings))
	})
	w.Tasks = &orders.Tasks{Decoder: orders.NewDecoder(), Process: w.process, NoteParked: w.noteParked}
	w.Handler = &sqs.Handler{
		Decode: func(body string) (sqs.Task, error) { return w.Task(body) },
		Queue:  w.queueThrough(nil), Policy: sqs.DefaultPolicy(), Meter: counter{w},
		Name: "order", Log: slog.New(slog.NewJSONHandler(&lockedWriter{w: w}, nil)),
		Now: w.Now, NewOwner: w.newOwner, Jitter: func() float64 { return minJitter },
		RequestID: func(context.Context) string { return "request-1" },
		Parallel:  4, OrderBudget: orderBudget, AnswerTime: answerTime,
	}
	return w
}

// queueThrough returns a client of both queues that uses an HTTP client; nil is the SDK's
// own.
func (w *world) queueThrough(client aws.HTTPClient) *sqs.Queue {
	return sqs.NewQueue(w.config(client), w.server.QueueURL(w.orders), w.server.QueueURL(w.dead))
}

func (w *world) config(client aws.HTTPClient) aws.Config {
	return aws.Config{
		Region: sqstest.Region, BaseEndpoint: &w.server.URL, HTTPClient: client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }, // a fault is one fault
	}
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

// processFor makes each order take d.
func (w *world) processFor(d time.Duration) {
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		defer w.advance(d)
		return w.process(ctx, o, sent, l)
	}
}

// failsFor makes Process call f for one order.
func (w *world) failsFor(id order.ID, f func()) {
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		if o.ID() == id {
			f()
		}
		return w.process(ctx, o, sent, l)
	}
}

// process records the call and returns the scripted result.
func (w *world) process(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
	deadline, _ := ctx.Deadline()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calledWith = append(w.calledWith, work{o.ID(), sent.UTC(), l, deadline})
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

// line returns the only log line with this field, without its time.
func (w *world) line(field, value string) map[string]any {
	w.t.Helper()
	var found []map[string]any
	for _, line := range w.lines() {
		if line[field] == value {
			delete(line, "time")
			found = append(found, line)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("%d log lines with %s %q, want 1", len(found), field, value)
	}
	return found[0]
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

func unconfirmed(attempt int) order.Result {
	return order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: attempt}
}

// held is the result of an order that another attempt holds for d.
func held(d time.Duration) order.Result {
	return order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start().Add(d), Transient: true,
	}
}

func refused(err error) order.Result {
	return order.Result{Verdict: order.Park, Reason: order.ReasonRefused, Err: err}
}

func conflict() order.Result {
	return order.Result{Verdict: order.Park, Reason: order.ReasonConflict, Err: order.ErrConflict}
}

// canary must appear in no log line and in no attribute.
const canary = "4242 4242 canary"

const good = bodytest.Order

// orderWithID is the good order with another id.
func orderWithID(id string) string { return bodytest.OrderWith("ORD12345", id) }

// send sends bodies to the order queue and returns their message ids.
func (w *world) send(bodies ...string) (ids []string) {
	w.t.Helper()
	for _, body := range bodies {
		ids = append(ids, w.sendDraft(sqstest.Draft{Body: body}))
	}
	return ids
}

// sendGrouped sends bodies to a group, on either type of queue, and returns their message
// ids.
func (w *world) sendGrouped(group string, bodies ...string) (ids []string) {
	w.t.Helper()
	for _, body := range bodies {
		d := sqstest.Draft{Body: body, Group: group}
		if w.orders == "orders.fifo" {
			w.sent++
			d.DeduplicationID = fmt.Sprint(w.sent)
		}
		ids = append(ids, w.sendDraft(d))
	}
	return ids
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

// deliverWithin delivers an event to a function with this time left.
func (w *world) deliverWithin(left time.Duration, e events.SQSEvent) (failed []string) {
	w.t.Helper()
	ctx, cancel := context.WithDeadline(w.t.Context(), w.Now().Add(left))
	defer cancel()
	return w.deliver(ctx, e)
}

// deliverVisible delivers all visible messages.
func (w *world) deliverVisible() (failed []string) {
	w.t.Helper()
	return w.deliver(w.t.Context(), w.receive())
}

// outcome is what a delivery did. A message is named by its order id, or by its body if
// it is not an order.
type outcome struct {
	Failed    []string // the batch item failures
	Processed []string // so far, sorted
	Parked    []string // so far, each with its reason, sorted
}

// outcome delivers all visible messages and returns the outcome.
func (w *world) outcome() outcome {
	w.t.Helper()
	e := w.receive()
	names := map[string]string{}
	for _, r := range e.Records {
		names[r.MessageId] = nameOf(r.Body)
	}
	var o outcome
	for _, id := range w.deliver(w.t.Context(), e) {
		o.Failed = append(o.Failed, names[id])
	}
	for _, m := range w.messages(w.dead) {
		o.Parked = append(o.Parked, nameOf(m.Body)+": "+m.Attributes[sqs.AttrReason].Text)
	}
	slices.Sort(o.Parked)
	o.Processed = processedIDs(w)
	return o
}

func nameOf(body string) string {
	var m struct{ OrderID string }
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return body
	}
	return m.OrderID
}

// processedIDs returns the ids of the processed orders, sorted.
func processedIDs(w *world) (ids []string) {
	for _, d := range w.processed() {
		ids = append(ids, string(d.ID))
	}
	slices.Sort(ids)
	return ids
}

// receivedTimes receives all visible messages as if it was the nth receive of each.
func (w *world) receivedTimes(n int) events.SQSEvent {
	w.t.Helper()
	e := w.receive()
	for i := range e.Records {
		e.Records[i].Attributes["ApproximateReceiveCount"] = fmt.Sprint(n)
	}
	return e
}

// redrive moves the dead letters back to the order queue.
func (w *world) redrive() {
	w.t.Helper()
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Redrive(now, w.dead, w.orders)
		w.must(err)
	})
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
