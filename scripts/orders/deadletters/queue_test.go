package deadletters_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/deadletters"
)

// queues are an order queue and its dead-letter queue, with a clock that a test sets.
type queues struct {
	*testing.T
	*sqstest.Server

	orders, dead         string
	refunds, deadRefunds string
	now                  time.Time
	before               func(sqstest.Call) // each call; nil: nothing
	sent                 int
}

func newQueues(t *testing.T, fifo bool) *queues {
	t.Helper()
	q := &queues{T: t, orders: "orders", dead: "dead", refunds: "refunds", deadRefunds: "refunds-dead", now: start()}
	if fifo {
		q.orders, q.dead, q.refunds, q.deadRefunds = "orders.fifo", "dead.fifo", "refunds.fifo", "refunds-dead.fifo"
	}
	s, err := sqstest.Serve(sqstest.Options{Now: q.clock, Before: func(c sqstest.Call) {
		if q.before != nil {
			q.before(c)
		}
	}})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	q.Server = s
	settings := sqstest.DefaultSettings()
	settings.Retention = 14 * day
	q.Machine(func(m *sqstest.Machine, now time.Time) {
		must(t, m.Create(now, q.refunds, settings))
		must(t, m.Create(now, q.deadRefunds, settings))
		must(t, m.Create(now, q.dead, settings))
		settings.DeadLetters, settings.MaxReceives = q.dead, 3
		must(t, m.Create(now, q.orders, settings))
	})
	return q
}

func (q *queues) clock() time.Time { return q.now }

// queue returns the dead-letter queue through an HTTP client. A call that fails is not
// repeated, so that a test counts calls.
func (q *queues) queue(client *http.Client) *deadletters.Queue {
	return deadletters.NewQueue(q.config(client), q.clock, 0,
		deadletters.Pair{Live: q.QueueURL(q.orders), Dead: q.QueueURL(q.dead)}, deadletters.Pair{})
}

func (q *queues) config(client *http.Client) aws.Config {
	return aws.Config{
		Region: sqstest.Region, BaseEndpoint: &q.URL, HTTPClient: config.WholeBody(client), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("pretend", "pretend", ""),
	}
}

// send sends a message, in a group of its own or of others.
func (q *queues) send(queue, group string, d sqstest.Draft) (sent sqstest.Message) {
	q.Helper()
	if q.sent++; strings.HasSuffix(queue, ".fifo") {
		d.Group, d.DeduplicationID = group, fmt.Sprint("message-", q.sent)
	}
	q.Machine(func(m *sqstest.Machine, now time.Time) {
		var err error
		sent, err = m.Send(now, queue, d)
		must(q.T, err)
	})
	return sent
}

// park sends a message to the dead-letter queue as the function does.
func (q *queues) park(group, body string, reason order.Reason) (parked sqstest.Message) {
	q.Helper()
	why := map[string]sqstest.Attribute{sqs.AttrReason: sqstest.Text(string(reason))}
	return q.send(q.dead, group, sqstest.Draft{Body: body, Attributes: why})
}

// fill parks n messages, each in a group of its own.
func (q *queues) fill(n int) (ids []string) {
	for i := range n {
		ids = append(ids, q.park(fmt.Sprint(i), fmt.Sprint("body ", i), "refused").ID)
	}
	return ids
}

func (q *queues) counts(queue string) (c sqstest.Counts) {
	q.Machine(func(m *sqstest.Machine, now time.Time) { c, _ = m.Counts(now, queue) })
	return c
}

func (q *queues) messages(queue string) (all []sqstest.Message) {
	q.Machine(func(m *sqstest.Machine, now time.Time) { all, _ = m.Messages(now, queue) })
	return all
}

func TestEachMessageIsSeenOnceAndPutBack(t *testing.T) {
	t.Parallel()
	const n = 1000
	for claim, tt := range map[string]struct {
		fifo     bool
		wait     func(seen int) time.Duration // after each message
		receives int                          // of each message; 0: any number
	}{
		"quickly":                             {false, func(int) time.Duration { return 0 }, 1},
		"of a FIFO queue":                     {true, func(int) time.Duration { return 0 }, 1},
		"for an hour: visibility is extended": {false, func(int) time.Duration { return 4 * time.Second }, 1},
		"of a FIFO queue for an hour":         {true, func(int) time.Duration { return 4 * time.Second }, 1},
		"on a computer that sleeps now and again": {false, func(seen int) time.Duration {
			if seen%150 == 0 {
				return time.Hour
			}
			return 0
		}, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			q := newQueues(t, tt.fifo)
			want := q.fill(n)
			var got []string
			pages, err := q.queue(http.DefaultClient).Each(t.Context(), 2*n, func(_ context.Context, m deadletters.Message) (bool, error) {
				got = append(got, m.ID)
				q.now = q.now.Add(tt.wait(len(got)))
				return false, nil
			})
			if want := (deadletters.Pages{Seen: n, Ended: true}); err != nil || pages != want {
				t.Errorf("got %+v, %v, want %+v", pages, err, want)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %d messages, want each of %d once", len(got), n)
			}
			if c := q.counts(q.dead); c.Visible != n {
				t.Errorf("%d of %d messages are visible afterwards", c.Visible, n)
			}
			for _, m := range q.messages(q.dead) {
				if tt.receives > 0 && m.Receives != tt.receives {
					t.Fatalf("message %s was received %d times, want %d", m.ID, m.Receives, tt.receives)
				}
			}
		})
	}
}

var errStop = errors.New("stop")

func TestEachPutsMessagesBackWhenItEndsEarly(t *testing.T) {
	t.Parallel()
	const n = 35
	for claim, tt := range map[string]struct {
		limit int
		after int // messages, this happens
		does  func(q *queues, cancel func()) error
		want  deadletters.Pages
		err   string
	}{
		"at the limit":             {12, 0, nil, deadletters.Pages{Seen: 12, Unseen: 23}, ""},
		"by an error of the visit": {100, 15, func(*queues, func()) error { return errStop }, deadletters.Pages{Seen: 20}, "stop"},
		"by Ctrl-C": {100, 15, func(_ *queues, cancel func()) error {
			cancel()
			return nil
		}, deadletters.Pages{Seen: 20}, "context canceled"},
		"by Ctrl-C during a receive, which may hide messages all the same": {100, 1, func(q *queues, cancel func()) error {
			q.before = func(c sqstest.Call) {
				if c.Operation == "ReceiveMessage" {
					cancel()
				}
			}
			return nil
		}, deadletters.Pages{Seen: 20}, "context canceled"},
		"by an error of SQS": {100, 20, func(q *queues, _ func()) error {
			q.Fail("ReceiveMessage", 1, sqstest.CodeOverLimit)
			return nil
		}, deadletters.Pages{Seen: 20}, "OverLimit"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			q := newQueues(t, false)
			q.fill(n)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := 0
			pages, err := q.queue(http.DefaultClient).Each(ctx, tt.limit, func(context.Context, deadletters.Message) (bool, error) {
				if seen++; seen == tt.after {
					return false, tt.does(q, cancel)
				}
				return false, nil
			})
			if pages != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v, want %+v, %q", pages, err, tt.want, tt.err)
			}
			if c := q.counts(q.dead); c.Visible != n {
				t.Errorf("%d of %d messages are visible afterwards", c.Visible, n)
			}
		})
	}
}

func TestMessagesThatCannotBeSeenAreCounted(t *testing.T) {
	t.Parallel()
	seeNone := func(context.Context, deadletters.Message) (bool, error) { return false, nil }
	grouped := newQueues(t, true)
	for i := range 25 {
		grouped.park("one-group", fmt.Sprint("body ", i), "refused")
	}
	if got, err := grouped.queue(http.DefaultClient).Each(t.Context(), 100, seeNone); err != nil || got.Seen != 10 || got.Unseen != 15 {
		t.Errorf("behind others of their group: got %+v, %v, want 10 seen, 15 unseen", got, err)
	}
	deleted := 0
	q := grouped.queue(http.DefaultClient)
	got, err := q.Each(t.Context(), 100, func(ctx context.Context, m deadletters.Message) (bool, error) {
		deleted++
		return true, q.Delete(ctx, m)
	})
	if want := (deadletters.Pages{Seen: 25, Ended: true}); err != nil || got != want || deleted != 25 {
		t.Errorf("deleting each: got %+v, %v, want %+v", got, err, want)
	}
}

// lose posts a message and receives it until SQS moves it to the dead-letter queue.
func (q *queues) lose(body string) (lost sqstest.Message) {
	q.Helper()
	lost = q.send(q.orders, "g", sqstest.Draft{Body: body, Attributes: map[string]sqstest.Attribute{"mine": sqstest.Text("1")}})
	q.moveDead()
	return lost
}

// moveDead receives messages until SQS moves them to the dead-letter queue.
func (q *queues) moveDead() {
	q.Helper()
	q.Machine(func(m *sqstest.Machine, now time.Time) {
		for range 4 {
			_, err := m.Receive(now, q.orders, 10, new(time.Duration(0)))
			must(q.T, err)
		}
	})
}

// bodyOf returns the message of ordertest.Order with a payment method.
func bodyOf(id order.ID, method string) string {
	return orders.Encode(ordertest.DraftWith(id, method))
}

// mortal is the HTTP client of a process that is killed before or after its call number
// at, from 0: that call and all later ones fail.
type mortal struct {
	at     int64
	before bool
	calls  atomic.Int64
}

var errKilled = errors.New("killed")

// RoundTrip makes the call if the process lives.
func (k *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	n := k.calls.Add(1) - 1
	if n > k.at || n == k.at && k.before {
		return nil, errKilled
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if n == k.at && err == nil {
		_ = response.Body.Close()
		return nil, errKilled
	}
	return response, err
}

func redrive(q *deadletters.Queue) deadletters.Visit[deadletters.Message] {
	return func(ctx context.Context, m deadletters.Message) (bool, error) {
		err := q.Redrive(ctx, m)
		return err == nil, err
	}
}

func (q *queues) redriveAll(ctx context.Context, w *world, client *http.Client) error {
	queue := q.queue(client)
	_, err := queue.Each(ctx, 100, func(ctx context.Context, m deadletters.Message) (bool, error) {
		if w.sources().Letter(ctx, m).Action != deadletters.Redrive {
			return false, nil
		}
		return redrive(queue)(ctx, m)
	})
	return err
}

func (q *queues) process(w *world) {
	for {
		var received []sqstest.Message
		q.Machine(func(m *sqstest.Machine, now time.Time) { received, _ = m.Receive(now, q.orders, 10, nil) })
		if len(received) == 0 {
			return
		}
		for _, m := range received {
			job, err := jobs.NewDecoder().Decode(m.Body)
			must(q.T, err)
			if r := w.deliver(job); r.Verdict != order.Done {
				q.Errorf("order %s: %s (%s): %v, want it done", job.OrderID(), r.Verdict, r.Reason, r.Err)
			}
			q.Machine(func(machine *sqstest.Machine, now time.Time) { must(q.T, machine.Delete(now, q.orders, m.Handle)) })
		}
	}
}

// TestARedriveThatIsKilledLosesNothingAndChargesNothingTwice kills a redrive before and
// after each of its calls to SQS and starts it again, at once as a person does, and after
// the messages are visible.
func TestARedriveThatIsKilledLosesNothingAndChargesNothingTwice(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("fifo %t, before %t", fifo, before), func(t *testing.T) {
				t.Parallel()
				for at := int64(0); ; at++ {
					if !killedAt(t, fifo, &mortal{at: at, before: before}) {
						if at < 10 {
							t.Errorf("a redrive took %d calls, want more", at)
						}
						return
					}
				}
			})
		}
	}
}

// killedAt reports whether the redrive made so many calls that it was killed.
func killedAt(t *testing.T, fifo bool, k *mortal) bool {
	t.Helper()
	q, w := newQueues(t, fifo), newWorld(t)
	defer func() { must(t, q.Close()) }()
	w.chargeFailing(ordertest.Confirm, ordertest.LosesResponse) // ORD-1 is charged, its row is open
	q.park("ORD-1", bodyOf("ORD-1", "pm_card_visa"), order.ReasonUnknown)
	q.park("ORD-2", bodyOf("ORD-2", "pm_card_visa"), order.ReasonStore)
	q.park("ORD-2", bodyOf("ORD-2", "pm_card_visa"), order.ReasonStore) // a duplicate
	q.park("ORD-3", bodyOf("ORD-3", "pm_card_chargeDeclined"), order.ReasonStore)
	q.park("ORD-4", bodyOf("ORD-4", "pm_card_visa"), order.ReasonRefused) // stays
	w.now = w.now.Add(time.Hour)

	killed := errors.Is(q.redriveAll(t.Context(), w, &http.Client{Transport: k}), errKilled)
	q.process(w) // the function is quick
	must(t, q.redriveAll(t.Context(), w, http.DefaultClient))
	q.process(w)
	q.now, w.now = q.now.Add(10*time.Minute), w.now.Add(10*time.Minute)
	must(t, q.redriveAll(t.Context(), w, http.DefaultClient))
	q.process(w)

	for id, want := range map[order.ID]struct {
		status  order.Status
		charges int
	}{"ORD-1": {order.Paid, 1}, "ORD-2": {order.Paid, 1}, "ORD-3": {order.Declined, 0}, "ORD-4": {"", 0}} {
		r, _ := w.store.Peek(id)
		if charges := len(w.bank.Charges(id)); r.Status != want.status || charges != want.charges || w.bank.Declines(id) > 1 {
			t.Errorf("killed at call %d: %s is %q and was charged %d times, want %q, %d", k.at, id, r.Status, charges, want.status, want.charges)
		}
	}
	_, err := q.queue(http.DefaultClient).Each(t.Context(), 100, func(ctx context.Context, m deadletters.Message) (bool, error) {
		l := w.sources().Letter(ctx, m)
		if l.Action == deadletters.Redrive || l.Action == deadletters.Look && l.OrderID() != "ORD-4" {
			t.Errorf("killed at call %d: %s is left with the verdict %s", k.at, l.OrderID(), l.Action)
		}
		return false, nil
	})
	must(t, err)
	return killed
}

func TestARedriveKeepsBodyAttributesAndGroup(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		q := newQueues(t, fifo)
		lost := q.lose(bodyOf("ORD-1", "pm_card_visa"))
		queue := q.queue(http.DefaultClient)
		_, err := queue.Each(t.Context(), 10, redrive(queue))
		must(t, err)
		got := q.messages(q.orders)
		if len(got) != 1 || len(q.messages(q.dead)) != 0 {
			t.Fatalf("fifo %t: got %d messages in the order queue, want the message alone", fifo, len(got))
		}
		want := map[string]sqstest.Attribute{
			"mine": sqstest.Text("1"), sqs.AttrFirstMessageID: sqstest.Text(lost.ID), sqs.AttrFirstSent: sqstest.Text("2026-11-01T08:00:00Z"),
		}
		if diff := cmp.Diff(got[0].Attributes, want); diff != "" || got[0].Body != lost.Body || got[0].Group != lost.Group {
			t.Errorf("fifo %t: got %+v, attributes (-got +want):\n%s", fifo, got[0], diff)
		}
	}
}

// SQS drops a message silently if it received one with the same deduplication id in the
// last five minutes. Nothing may be deleted for such a message but itself.
func TestARedriveIsNotDroppedAsADuplicate(t *testing.T) {
	t.Parallel()
	q := newQueues(t, true)
	queue := q.queue(http.DefaultClient)
	q.lose(bodyOf("ORD-1", "pm_card_visa"))
	for round := range 3 { // redriven and moved again, all within a minute
		_, err := queue.Each(t.Context(), 10, redrive(queue))
		must(t, err)
		if got := q.counts(q.orders).Visible; got != 1 {
			t.Fatalf("round %d: got %d messages in the order queue, want 1", round, got)
		}
		q.now = q.now.Add(10 * time.Second)
		q.moveDead()
	}
	_, err := queue.Each(t.Context(), 10, func(ctx context.Context, m deadletters.Message) (bool, error) {
		must(t, queue.Redrive(ctx, m))
		must(t, queue.Redrive(ctx, m)) // as after a kill before the delete
		return true, nil
	})
	if got := q.counts(q.orders).Visible; err == nil && got != 1 {
		t.Errorf("the same dead letter sent twice: got %d messages in the order queue, want 1", got)
	}
}

// A release that had one queue for both leaves refunds among the dead letters of orders.
func TestEachMessageGoesBackToTheQueueOfItsKind(t *testing.T) {
	t.Parallel()
	const refundBody = `{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1000,"reason":"duplicate"}`
	for _, fifo := range []bool{false, true} {
		q := newQueues(t, fifo)
		q.park("a", bodyOf("ORD-1", "pm_card_visa"), order.ReasonStore)
		q.park("b", refundBody, order.ReasonInvalid)
		for i, body := range []string{refundBody, "{", bodyOf("ORD-2", "pm_card_visa")} {
			q.send(q.deadRefunds, fmt.Sprint(i), sqstest.Draft{Body: body})
		}
		queue := q.queue(http.DefaultClient)
		if _, err := queue.Each(t.Context(), 10, redrive(queue)); err == nil || !strings.Contains(err.Error(), "REFUND_QUEUE_URL") {
			t.Errorf("without a refund queue: got %v, want the missing variable", err)
		}
		queue = deadletters.NewQueue(q.config(http.DefaultClient), q.clock, 0,
			deadletters.Pair{Live: q.QueueURL(q.orders), Dead: q.QueueURL(q.dead)},
			deadletters.Pair{Live: q.QueueURL(q.refunds), Dead: q.QueueURL(q.deadRefunds)})
		pages, err := queue.Each(t.Context(), 10, redrive(queue))
		want := deadletters.Pages{Seen: 4, Ended: true}
		if diff := cmp.Diff(pages, want); err != nil || diff != "" {
			t.Errorf("fifo %t: got %v, pages (-got +want):\n%s", fifo, err, diff)
		}
		got := map[string]int{}
		for _, name := range []string{q.orders, q.dead, q.refunds, q.deadRefunds} {
			got[name] = q.counts(name).Visible
		}
		if diff := cmp.Diff(got, map[string]int{q.orders: 2, q.dead: 0, q.refunds: 3, q.deadRefunds: 0}); diff != "" {
			t.Errorf("fifo %t: messages (-got +want):\n%s", fifo, diff)
		}
	}
}

func TestAFieldSelectsByTheJSONOfTheBody(t *testing.T) {
	t.Parallel()
	const body = `{"orderId":"ORD-1","lines":[{"sku":"MUG","unitAmount":5},{"unitAmount" : 240000}],"gift":true,"note":null}`
	event, _ := json.Marshal(map[string]any{"detail-type": "Order", "detail": json.RawMessage(body)})
	notification, _ := json.Marshal(map[string]string{"Type": "Notification", "Message": body})
	for field, bodies := range map[string]map[string]bool{
		"lines.unitAmount=240000":         {body: true, string(event): false, `{"lines":{"unitAmount":240000}}`: true},
		"lines.unitAmount=24000":          {body: false},
		"lines.sku=MUG":                   {body: true, `{"lines":["MUG"]}`: false, `{"lines":[{"sku":"MUG"`: false},
		"lines.sku=":                      {body: false, `{"lines":[{"sku":""}]}`: true},
		"lines=MUG":                       {body: false, `{"lines":["A","MUG"]}`: true},
		"gift=true":                       {body: true, `{"gift":"true"}`: true},
		"note=null":                       {body: true, "{}": false},
		"note.text=null":                  {body: false},
		"orderId=ORD=1":                   {`{"orderId":"ORD=1"}`: true, body: false},
		"detail.lines.unitAmount=240000":  {string(event): true, body: false},
		"Message.lines.unitAmount=240000": {string(notification): true, body: false},
	} {
		var f deadletters.Field
		must(t, f.UnmarshalText([]byte(field)))
		for body, want := range bodies {
			filter := deadletters.Filter{Fields: []deadletters.Field{f}}
			if got := filter.Matches(deadletters.Message{Body: body}); got != want {
				t.Errorf("%s of %s: got %t, want %t", field, body, got, want)
			}
		}
	}
	for _, invalid := range []string{"", "=1", "lines.sku"} {
		if err := new(deadletters.Field).UnmarshalText([]byte(invalid)); err == nil {
			t.Errorf("%q is a field, want an error", invalid)
		}
	}
}
