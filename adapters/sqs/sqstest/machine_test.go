package sqstest_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"orderonce/adapters/sqs/sqstest"
)

const day = 24 * time.Hour

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// world is a machine with a clock, a queue "orders" and its dead-letter queue "dead", and
// the same as FIFO queues.
type world struct {
	*sqstest.Machine

	t       *testing.T
	now     time.Time
	fifo    string   // the suffix of the queues that send and take use
	sent    int      // makes deduplication ids
	handles []string // of every message that was taken
}

// newWorld sets maxReceiveCount to 2, and the retention of dead-letter queues to five
// days, of others to four.
func newWorld(t *testing.T, fifo bool) *world {
	t.Helper()
	w := &world{Machine: sqstest.New(1), t: t, now: start()}
	for _, suffix := range []string{"", ".fifo"} {
		s := sqstest.DefaultSettings()
		s.Retention = 5 * day
		w.must(w.Create(w.now, "dead"+suffix, s))
		s.Retention, s.DeadLetters, s.MaxReceives = 4*day, "dead"+suffix, 2
		w.must(w.Create(w.now, "orders"+suffix, s))
	}
	if fifo {
		w.fifo = ".fifo"
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// send sends bodies. On a FIFO queue, the first letter of a body is its group.
func (w *world) send(bodies ...string) (first sqstest.Message) {
	w.t.Helper()
	for i, body := range bodies {
		d := sqstest.Draft{Body: body}
		if w.fifo != "" {
			w.sent++
			d.Group, d.DeduplicationID = body[:1], fmt.Sprint(w.sent)
		}
		m, err := w.Send(w.now, "orders"+w.fifo, d)
		w.must(err)
		if i == 0 {
			first = m
		}
	}
	return first
}

func (w *world) receive(queue string, limit int) []sqstest.Message {
	w.t.Helper()
	got, err := w.Receive(w.now, queue+w.fifo, limit, nil)
	w.must(err)
	for _, m := range got {
		w.handles = append(w.handles, m.Handle)
	}
	return got
}

// step takes a step on the queue of orders, and returns what it shows: "take N" receives
// up to N orders, "delete N" and "hide N D" use the handle of the Nth that was taken,
// "count" shows how many are visible, in flight and dead.
func (w *world) step(text string) string {
	w.t.Helper()
	part := strings.Fields(text)
	number := func(i int) int {
		n, err := strconv.Atoi(part[i])
		w.must(err)
		return n
	}
	duration := func(i int) time.Duration {
		d, err := time.ParseDuration(part[i])
		w.must(err)
		return d
	}
	switch part[0] {
	case "send":
		w.send(part[1:]...)
	case "wait":
		w.pass(duration(1))
	case "last": // of several, the last is picked first
		w.Pick = func(n int) int { return n - 1 }
	case "take":
		return w.take(number(1))
	case "delete":
		return code(w.Delete(w.now, "orders"+w.fifo, w.handles[number(1)]))
	case "hide":
		return code(w.ChangeVisibility(w.now, "orders"+w.fifo, w.handles[number(1)], duration(2)))
	case "count":
		c := w.counts("orders")
		return fmt.Sprint(c.Visible, " ", c.InFlight, " ", w.counts("dead").Visible)
	default:
		w.t.Fatalf("no such step: %s", text)
	}
	return ""
}

func (w *world) take(limit int) string {
	w.t.Helper()
	var all []string
	for _, m := range w.receive("orders", limit) {
		all = append(all, fmt.Sprint(m.Body, ":", m.Receives))
	}
	return strings.Join(all, " ")
}

func (w *world) counts(queue string) sqstest.Counts {
	w.t.Helper()
	c, err := w.Counts(w.now, queue+w.fifo)
	w.must(err)
	return c
}

func code(err error) string {
	if e, ok := errors.AsType[*sqstest.Error](err); ok {
		return e.Code
	}
	return ""
}

const invalid = sqstest.CodeInvalidParameterValue

// What a caller can see is a rule of scripts/conform. These are the moments between, and
// what the double chooses. Each case names its source in the API reference, or in the SQS
// developer guide. The result of a step follows after its colon; the queue hides a
// message for 30 seconds.
func TestRulesOfQueues(t *testing.T) {
	for rule, script := range map[string]string{
		// "you must use the ReceiptHandle from the most recent time you received the
		// message. If you use an old one, the request will succeed, but the message might
		// not be deleted"
		"DeleteMessage: only the latest handle deletes, also when the message is visible again": "send a; take 9: a:1; wait 30s; " +
			"take 9: a:2; delete 0:; count: 0 1 0; wait 30s; delete 1:; take 9:; delete 1:",

		"ChangeMessageVisibility: 12 hours at most, counted from the receive": "send a; take 9: a:1; wait 10s; " +
			"hide 0 11h59m51s: " + invalid + "; hide 0 -1s: " + invalid + "; hide 0 12h1s: " + invalid + "; hide 0 11h59m50s:; count: 0 1 0",
		// Undocumented; moto's suite says that "this is allowed in AWS"
		// (test_change_message_visibility_on_old_message). It is the harder case for a
		// function: the message of another attempt becomes visible.
		"ChangeMessageVisibility: an old handle changes a later receive": "send a; take 9: a:1; wait 30s; take 9: a:2; hide 0 0s:; count: 1 0 0",

		"Amazon SQS standard queues: best-effort ordering, and Pick chooses": "send a; wait 1s; send b; wait 1s; send c; " +
			"take 9: a:1 b:1 c:1; wait 1m; last; take 9: c:2 b:2 a:2",

		// Groups "might arrive or be processed out of order" among one another.
		"FIFO queue delivery logic: Pick chooses the order of groups": "last; send a1 a2 b1 b2; take 9: b1:1 b2:1 a1:1 a2:1",
		"FIFO queue delivery logic: or visible again, and nothing overtakes": "send a1 a2 a3; take 2: a1:1 a2:1; hide 1 0s:; " +
			"take 9:; hide 0 1h:; wait 30s; take 9:; hide 0 0s:; take 9: a1:2 a2:2 a3:1",
		"FIFO queue delivery logic: or expired": "send a1; take 9: a1:1; hide 0 12h:; wait 96h; send a2; take 9: a2:1",
		// "if a consumer whose message processing time is longer than the visibility
		// timeout tries to delete the processed messages, the action fails with an
		// error". Chosen: ChangeMessageVisibility fails too, because its page says that
		// it "might".
		"FIFO, ReceiveMessage: an expired handle fails": "send a1; take 9: a1:1; wait 30s; delete 0: " + invalid + "; " +
			"hide 0 1h: " + invalid + "; take 9: a1:2; delete 0: " + invalid + "; hide 0 1h: " + invalid + "; count: 0 1 0",
		"FIFO, Using dead-letter queues: a dead letter leaves its group to the next": "send a1 a2; take 1: a1:1; wait 30s; " +
			"take 1: a1:2; wait 30s; take 9: a2:1; count: 0 1 1",
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t, strings.HasPrefix(rule, "FIFO"))
			for text := range strings.SplitSeq(script, "; ") {
				step, _, _ := strings.Cut(text, ":")
				want := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, step), ":"))
				if got := w.step(step); got != want {
					t.Errorf("%s: got %q, want %q", step, got, want)
				}
			}
		})
	}
}

func TestNextIsTheNextVisibilityOrExpiry(t *testing.T) {
	w := newWorld(t, false)
	if _, ok := w.Next(w.now); ok {
		t.Error("an empty machine has a next moment")
	}
	w.send("a")
	w.take(1)
	w.step("hide 0 1m") // and not after the queue's 30 seconds
	for _, want := range []time.Time{start().Add(time.Minute), start().Add(4 * day)} {
		if got, _ := w.Next(w.now); !got.Equal(want) {
			t.Errorf("at %v: got %v, want %v", w.now, got, want)
		}
		w.now = want
	}
}

// A search treats two machines with the same state as one.
func TestTheStateIsThatOfTheSameHistory(t *testing.T) {
	state := func(play func(*world)) string {
		w := newWorld(t, true)
		if m := w.send("a1"); len(m.ID) != 36 || m.ID[14] != '4' || m.ID[19] != '8' {
			t.Errorf("id %q is not a version 4 UUID", m.ID)
		}
		w.take(1)
		play(w)
		return string(w.AppendState(nil))
	}
	nothing := func(*world) {}
	if again := state(nothing); again != state(nothing) {
		t.Error("the same history led to two states")
	}
	for name, play := range map[string]func(*world){
		"a delete":                 func(w *world) { w.step("delete 0") },
		"a change of visibility":   func(w *world) { w.step("hide 0 1h") },
		"a send that is forgotten": func(w *world) { w.pass(5 * time.Minute); w.counts("orders") },
	} {
		if state(play) == state(nothing) {
			t.Errorf("the state is the same after %s", name)
		}
	}
}

// Whatever happens, a message is visible, in flight, deleted, expired, dead-lettered or
// redriven.
func TestEveryMessageIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, rapid.Bool().Draw(r, "fifo"))
		w.Pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "pick") }
		handle := func() int { return rapid.IntRange(0, len(w.handles)-1).Draw(r, "handle") }
		duration := func() time.Duration { return time.Duration(rapid.Int64Range(0, int64(3*day)).Draw(r, "duration")) }
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			switch op := rapid.IntRange(0, 5).Draw(r, "op"); {
			case op == 0:
				w.send("a", "b", "a")
			case op == 1:
				w.take(rapid.IntRange(1, 10).Draw(r, "limit"))
			case op == 2:
				w.pass(duration())
			case op == 3:
				_, err := w.Redrive(w.now, "dead"+w.fifo, "orders"+w.fifo)
				w.must(err)
			case len(w.handles) == 0:
			case op == 4:
				w.step(fmt.Sprint("delete ", handle()))
			default:
				w.step(fmt.Sprint("hide ", handle(), " ", duration()))
			}
			for _, queue := range []string{"orders", "dead"} {
				c := w.counts(queue)
				left, err := w.Messages(w.now, queue+w.fifo)
				w.must(err)
				if gone := c.Deleted + c.Expired + c.DeadLettered + c.Redriven; c.Sent+c.Arrived != len(left)+gone ||
					len(left) != c.Visible+c.InFlight {
					r.Fatalf("%s has %d messages, and %+v", queue, len(left), c)
				}
			}
		}
	})
}

// The rest of what a send is refused for are rules of scripts/conform.
func TestSendRejects(t *testing.T) {
	attribute := func(name string, a sqstest.Attribute) sqstest.Draft {
		return sqstest.Draft{Body: "a", Attributes: map[string]sqstest.Attribute{name: a}}
	}
	for name, tt := range map[string]struct {
		draft sqstest.Draft
		want  string
	}{
		"no body":                    {sqstest.Draft{}, sqstest.CodeMissingParameter},
		"text in a binary attribute": {attribute("a", sqstest.Attribute{Type: "Binary", Text: "x"}), invalid},
		"a reserved name":            {attribute("aws.a", sqstest.Text("x")), invalid},
		"standard: an id":            {sqstest.Draft{Body: "a", DeduplicationID: "x"}, invalid},
		"standard: a group":          {sqstest.Draft{Body: "a", Group: "fair"}, ""},
	} {
		w := newWorld(t, false)
		if _, err := w.Send(w.now, "orders", tt.draft); code(err) != tt.want {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
