package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func TestALabelIsBoughtOnceWeeksAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("ORD-1", "adr_1")
	w.at(func(_ int, call string) fault { return fault{kill: call == "buy", after: true} })
	w.deliver()
	if n := w.bought("ORD-1"); n != 1 {
		t.Fatalf("%d labels before the second delivery, want 1", n)
	}
	w.later(10 * 24 * time.Hour)
	w.expire("ORD-1", 10*24*time.Hour)
	if got, want := w.deliver(), []string{"table", "read", "table"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	w.settled("ORD-1")

	w.later(100 * 24 * time.Hour)
	w.send("ORD-1", "adr_1") // the sender's duplicate
	if got, want := w.deliver(), []string{"table"}; !slices.Equal(got, want) {
		t.Errorf("calls for a duplicate %q, want %q", got, want)
	}
	w.settled("ORD-1")
}

// One kill at each call, before or after its effect, and a second one at each call of the
// next attempt.
func TestAKillAtEveryCallBuysOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const calls = 5 // begin, quote, bind, buy, finish
	for first := range 2 * calls {
		for second := range 2 * (calls + 1) {
			id := order.ID(fmt.Sprintf("ORD-%d-%d", first, second))
			w.send(id, "adr_1")
			w.atCall(1+first/2, fault{kill: true, after: first%2 == 1})
			w.deliver()
			w.expire(id, time.Minute)
			w.atCall(1+second/2, fault{kill: true, after: second%2 == 1})
			w.deliver()
			w.expire(id, time.Minute)
			w.deliver()
			w.settled(id)
		}
	}
}

func TestALostAnswerBuysOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, call := range []string{"table", "quote", "table", "buy", "table"} {
		faults := []fault{
			{lose: true}, {lose: true, after: true}, // the SDK repeats a call to the table
			{lose: true, again: true}, {lose: true, after: true, again: true},
		}
		if call != "table" {
			faults = []fault{
				{lose: true},
				{lose: true, after: true},
				{status: 500},
				{status: 500, after: true},
				{status: 429},
				{status: 409},
				{status: 503},
			}
		}
		if call == "buy" { // bought by another attempt, which was frozen until now; or not bought yet
			faults = append(faults, fault{status: http.StatusUnprocessableEntity, after: true}, fault{status: 200})
		}
		for i, f := range faults {
			id := order.ID(fmt.Sprintf("ORD-%d-%d", n, i))
			w.send(id, "adr_1")
			w.atCall(n+1, f)
			w.deliver()
			if n == 0 && !f.again { // the repeated write finds that the claim is its own
				w.settled(id, call, f)
			}
			w.expire(id, time.Minute)
			w.deliver()
			w.settled(id, call, f)
		}
	}
}

// A worker that is frozen after its quote binds nothing while another one buys.
func TestAFrozenWorkerBuysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.freeze("ORD-1", fault{}, 4)
	w.settled("ORD-1")
	w.must(w.host.Close())
	if n := strings.Count(w.log.String(), `"reason":"claim_lost"`); n != 1 {
		t.Errorf("%d log lines with the reason claim_lost, want 1:\n%s", n, &w.log)
	}
}

// A worker that is frozen until another one has begun the order cannot park its message.
func TestAFrozenWorkerParksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.freeze("ORD-1", fault{status: http.StatusUnprocessableEntity}, 2)
	w.settled("ORD-1")
}

func TestDuplicatesBuyOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.send(order.ID(fmt.Sprintf("ORD-%d", i%5)), "adr_1")
	}
	for range 3 {
		var batch []sqstest.Message
		w.queue.Machine(func(m *sqstest.Machine, now time.Time) { batch, _ = m.Receive(now, "labels", 10, nil) })
		var twice sync.WaitGroup
		for range 2 {
			twice.Go(func() { w.invoke(batch) })
		}
		twice.Wait()
	}
	w.later(time.Hour)
	w.deliver()
	w.deliver()
	for i := range 5 {
		w.settled(order.ID(fmt.Sprintf("ORD-%d", i)))
	}
}

func TestWhatNoRetryHelpsIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("ORD-1", "adr_1")
	w.deliver()
	refused := fault{status: http.StatusUnprocessableEntity}
	for _, tt := range []struct {
		id      order.ID
		address string
		at      string
		fault   fault
		want    string
	}{
		{"ORD-1", "adr_2", "", fault{}, "conflict"},
		{"ORD-2", "adr_1", "quote", refused, "refused"},
		{"ORD-3", "adr_1", "buy", refused, "refused"},
		{"ORD-3", "adr_2", "", fault{}, "conflict"}, // although no label was bought
		{"ORD-4", "adr_1", "quote", fault{after: true, other: true}, "mismatch"},
		{"ORD-5", "nowhere", "", fault{}, "invalid_order"},
		{"no id", "adr_1", "", fault{}, "invalid_order"},
	} {
		w.at(func(_ int, call string) fault {
			if call == tt.at {
				return tt.fault
			}
			return fault{}
		})
		w.send(tt.id, tt.address)
		w.deliver()
		if got := w.parked(); !slices.Equal(got, []string{tt.want}) || tt.id != "ORD-1" && w.bought(tt.id) != 0 {
			t.Errorf("order %s to %s: parked %q with %d labels, want %s", tt.id, tt.address, got, w.bought(tt.id), tt.want)
		}
	}
	w.at(nil)
	w.send("ORD-3", "adr_1") // a person sends it again
	w.deliver()
	w.settled("ORD-3")
}
