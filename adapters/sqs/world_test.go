package sqs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// start is the time at the start of every test. It is in the future, because contexts end
// by the real clock.
func start() time.Time { return time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC) }

const (
	day         = 24 * time.Hour
	orderBudget = 5 * time.Second
	answerTime  = 2 * time.Second
)

// canary must appear in no log line, attribute or error. It has a blank, so that no field
// accepts it.
const canary = "4242 4242 canary"

const good = bodytest.Order

// orderWithID is the good order with another id.
func orderWithID(id string) string { return bodytest.OrderWith("ORD12345", id) }

// Results of an order.

func paid() order.Result {
	return order.Result{
		Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 1, Intent: "pi_1",
	}
}

func outage() order.Result {
	return order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonStore, Transient: true, Err: errors.New("no route to the store"),
	}
}

func unconfirmed(attempt int) order.Result {
	return order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: attempt}
}

// inProgress is the result of an order whose lease runs for d.
func inProgress(d time.Duration) order.Result {
	return order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start().Add(d), Transient: true,
	}
}

func conflict() order.Result {
	return order.Result{Verdict: order.Park, Reason: order.ReasonConflict, Err: order.ErrConflict}
}

// world is a handler with a queue and a dead-letter queue of sqstest, and a script for
// the results of orders.
type world struct {
	*sqs.Handler
	*orders.Tasks

	t          *testing.T
	orders     string // the name of the queue
	dead       string
	server     *sqstest.Server
	script     map[order.ID]order.Result // an order that it does not name is paid
	deliveries int                       // that a message of a new event claims; 0 is the queue's count

	mu        sync.Mutex
	now       time.Time
	calls     []string // operations of the queues
	processed []work
	during    func(order.ID) // what Process calls before it returns
	notes     []string       // "order reason" of each call to NoteParked
	log       bytes.Buffer
	meter     map[string]int // by "metric", "metric value" or "metric seconds"
}

// The types of queues, which their names end in.
const standard, fifo = "", ".fifo"

type work struct {
	ID       order.ID
	Sent     time.Time // when its message was first sent
	Lease    order.Lease
	Deadline time.Time // of its context
}

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	w := &world{
		t: t, orders: "orders" + kind, dead: "dead" + kind, now: start(), during: func(order.ID) {},
		script: map[order.ID]order.Result{}, meter: map[string]int{},
	}
	server, err := sqstest.Serve(sqstest.Options{Now: w.Now, Before: func(c sqstest.Call) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, c.Operation)
	}})
	w.must(err)
	t.Cleanup(func() { w.must(server.Close()) })
	w.server = server
	server.Machine(func(m *sqstest.Machine, now time.Time) {
		s := sqstest.DefaultSettings()
		s.Retention = 14 * day
		w.must(m.Create(now, w.dead, s))
		s.Visibility, s.Retention = 3*time.Minute, 7*day
		s.DeadLetters, s.MaxReceives = w.dead, sqs.DefaultPolicy().MaxReceives
		w.must(m.Create(now, w.orders, s))
	})
	var owners atomic.Int64
	w.Tasks = &orders.Tasks{Decoder: orders.NewDecoder(), Process: w.process, NoteParked: w.noteParked}
	w.Handler = &sqs.Handler{
		Decode: func(body string) (sqs.Task, error) { return w.Task(body) },
		Policy: sqs.DefaultPolicy(), Meter: w, Name: "order", Log: slog.New(slog.NewJSONHandler(&w.log, nil)),
		Now: w.Now, Jitter: func() float64 { return minJitter },
		NewOwner:  func() string { return fmt.Sprint("owner-", owners.Add(1)-1) },
		RequestID: func(context.Context) string { return "request-1" },
		Parallel:  4, OrderBudget: orderBudget, AnswerTime: answerTime,
	}
	w.through(nil)
	return w
}

// through makes the handler call its queues through an HTTP client; nil is the SDK's own.
func (w *world) through(client aws.HTTPClient) {
	w.Queue = sqs.NewQueue(aws.Config{
		Region: sqstest.Region, BaseEndpoint: &w.server.URL, HTTPClient: client,
		Credentials: aws.AnonymousCredentials{},
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} }, // a fault is one fault
	}, w.server.QueueURL(w.orders), w.server.QueueURL(w.dead))
}

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }

func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
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

func (w *world) process(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
	deadline, _ := ctx.Deadline()
	w.mu.Lock()
	w.processed = append(w.processed, work{o.ID(), sent.UTC(), l, deadline})
	w.mu.Unlock()
	w.during(o.ID())
	if r, scripted := w.script[o.ID()]; scripted {
		return r
	}
	return paid()
}

// duringOrder makes Process call f for one order.
func (w *world) duringOrder(id order.ID, f func()) {
	w.during = func(other order.ID) {
		if other == id {
			f()
		}
	}
}

// gate makes Process wait, for each order, until it receives from the channel.
func (w *world) gate() chan struct{} {
	gate := make(chan struct{})
	w.during = func(order.ID) { <-gate }
	return gate
}

func (w *world) noteParked(_ context.Context, o order.Order, why order.Reason, _ time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, string(o.ID())+" "+string(why))
	return nil
}

// ids returns the processed orders, sorted.
func (w *world) ids() (ids []string) {
	for _, d := range w.processed {
		ids = append(ids, string(d.ID))
	}
	slices.Sort(ids)
	return ids
}

// Count, Observe and Flush make the world the meter of its handler.
func (w *world) Count(metric, _, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meter[strings.TrimSpace(metric+" "+value)]++
}

func (w *world) Observe(metric, _, _ string, d time.Duration) {
	w.Count(metric, "", fmt.Sprint(d.Seconds()))
}

func (w *world) Flush() { w.Count("flush", "", "") }

// lines returns the log lines that have this value in a field, without their times.
func (w *world) lines(field, value string) (all []map[string]any) {
	w.t.Helper()
	for line := range strings.Lines(w.log.String()) {
		var fields map[string]any
		w.must(json.Unmarshal([]byte(line), &fields))
		if delete(fields, "time"); fields[field] == value {
			all = append(all, fields)
		}
	}
	return all
}

// line returns the only such log line.
func (w *world) line(field, value string) map[string]any {
	w.t.Helper()
	all := w.lines(field, value)
	if len(all) != 1 {
		w.t.Fatalf("%d log lines with %s %q, want 1", len(all), field, value)
	}
	return all[0]
}

// send sends bodies to the order queue and returns their message ids.
func (w *world) send(bodies ...string) (ids []string) {
	w.t.Helper()
	return w.sendGrouped("", bodies...)
}

// sendGrouped sends bodies to a group, on either type of queue.
func (w *world) sendGrouped(group string, bodies ...string) (ids []string) {
	w.t.Helper()
	for i, body := range bodies {
		d := sqstest.Draft{Body: body, Group: group}
		if sqs.FIFO(w.orders) {
			d.DeduplicationID = fmt.Sprint(group, i)
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
	for i := range e.Records {
		if w.deliveries > 0 {
			e.Records[i].Attributes["ApproximateReceiveCount"] = fmt.Sprint(w.deliveries)
		}
	}
	return e
}

// deliver calls the handler with all visible messages, in an invocation of 30 seconds. It
// returns the batch item failures.
func (w *world) deliver() (failed []string) {
	w.t.Helper()
	return w.deliverWithin(30*time.Second, w.receive())
}

// deliverWithin calls the handler with an event, and deletes messages as Lambda does.
func (w *world) deliverWithin(left time.Duration, e events.SQSEvent) (failed []string) {
	w.t.Helper()
	ctx, cancel := context.WithDeadline(w.t.Context(), w.Now().Add(left))
	defer cancel()
	response, err := w.Handle(ctx, e)
	w.must(err)
	raw, err := json.Marshal(response)
	w.must(err)
	var ids []string
	for _, r := range e.Records {
		ids = append(ids, r.MessageId)
	}
	deleted, failed := sqstest.Verdict(ids, raw, nil)
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, r := range e.Records {
			if slices.Contains(deleted, r.MessageId) {
				w.must(m.Delete(now, w.orders, r.ReceiptHandle))
			}
		}
	})
	if len(failed) != len(response.BatchItemFailures) {
		w.t.Errorf("Lambda reads %s as %d failures", raw, len(failed))
	}
	return failed
}

func (w *world) redrive() {
	w.t.Helper()
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Redrive(now, w.dead, w.orders)
		w.must(err)
	})
}

// messages returns all messages of a queue, in any state.
func (w *world) messages(queue string) (all []sqstest.Message) {
	w.t.Helper()
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		var err error
		all, err = m.Messages(now, queue)
		w.must(err)
	})
	return all
}

// bodies returns the order id of each message of a queue, or its body if it is not an
// order, and the reason for which it is there.
func (w *world) bodies(queue string) (all []string) {
	w.t.Helper()
	for _, m := range w.messages(queue) {
		var fields struct{ OrderID string }
		if json.Unmarshal([]byte(m.Body), &fields) != nil {
			fields.OrderID = m.Body
		}
		all = append(all, strings.TrimSpace(fields.OrderID+" "+m.Attributes[sqs.AttrReason].Text))
	}
	slices.Sort(all)
	return all
}

func (w *world) visible() (ids []string) {
	w.t.Helper()
	for _, m := range w.messages(w.orders) {
		if m.State == sqstest.Visible {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
