package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func TestALabelIsBoughtOnceWeeksAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at(func(_ int, call string) fault { return fault{kill: call == "buy", after: true} })
	w.deliver("ORD-1", "adr_1")
	if n := w.bought("ORD-1"); n != 1 {
		t.Fatalf("%d labels before the second delivery, want 1", n)
	}
	w.later(10 * 24 * time.Hour)
	if got, want := w.settles("ORD-1"), []string{"table", "read", "table"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	w.later(100 * 24 * time.Hour)
	if got, want := w.settles("ORD-1"), []string{"table"}; !slices.Equal(got, want) {
		t.Errorf("calls for a duplicate %q, want %q", got, want)
	}
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
			for _, n := range []int{first, second} {
				w.atCall(1+n/2, fault{kill: true, after: n%2 == 1})
				w.deliver(id, "adr_1")
				w.later(time.Hour)
			}
			w.settles(id)
		}
	}
}

func TestALostAnswerBuysOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, call := range []string{"table", "quote", "table", "buy", "table"} {
		faults := []fault{{lose: true}, {lose: true, after: true}} // the SDK repeats a call to the table
		if call == "table" {
			faults = append(faults, fault{lose: true, again: true}, fault{lose: true, after: true, again: true})
		} else {
			faults = append(faults, fault{status: 500}, fault{status: 500, after: true})
			faults = append(faults, fault{status: 429}, fault{status: 409}, fault{status: 503})
		}
		if call == "buy" { // bought by another attempt, which was frozen until now; or not bought yet
			faults = append(faults, fault{status: http.StatusUnprocessableEntity, after: true}, fault{status: 200})
		}
		for i, f := range faults {
			id := order.ID(fmt.Sprintf("ORD-%d-%d", n, i))
			w.atCall(n+1, f)
			r := w.deliver(id, "adr_1")
			own := n == 0 && !f.again // the repeated write finds that the claim is its own
			if own && r.Verdict != order.Done || r.Verdict == order.Park {
				t.Errorf("%s %+v: got %+v, want it done: %t, and never parked", call, f, r, own)
			}
			w.settles(id, call, f)
		}
	}
}

// A worker is frozen at its quote until another one waits for the answer to its buy or to
// its quote. It can neither bind a shipment nor park the message.
func TestAFrozenWorkerBuysAndParksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id, tt := range map[order.ID]struct {
		fault fault
		until int // the call of the other worker
	}{
		"ORD-buys": {fault{}, 4}, "ORD-parks": {fault{status: http.StatusUnprocessableEntity}, 2},
	} {
		frozen, thaw, result := make(chan struct{}), make(chan struct{}), make(chan order.Result, 1)
		tt.fault.do = func() { close(frozen); <-thaw }
		w.later(time.Hour)
		w.atCall(2, tt.fault)
		go func() { result <- w.deliver(id, "adr_1") }()
		<-frozen
		w.later(time.Hour)
		w.atCall(tt.until, fault{do: func() {
			close(thaw)
			if r := <-result; r.Verdict != order.Redeliver || r.Reason != order.ReasonClaimLost {
				t.Errorf("%s: the frozen worker got %+v, want a lost claim", id, r)
			}
		}})
		w.deliver(id, "adr_1")
		w.settles(id)
	}
}

func TestDuplicatesBuyOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var workers sync.WaitGroup
	for i := range 20 {
		workers.Go(func() { w.deliver(order.ID(fmt.Sprintf("ORD-%d", i%5)), "adr_1") })
	}
	workers.Wait()
	for i := range 5 {
		w.settles(order.ID(fmt.Sprintf("ORD-%d", i)))
	}
}

func TestWhatNoRetryHelpsIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settles("ORD-1")
	refused := fault{status: http.StatusUnprocessableEntity}
	for _, tt := range []struct {
		id      order.ID
		address string
		at      string
		fault   fault
		want    order.Reason
	}{
		{"ORD-1", "adr_2", "", fault{}, order.ReasonConflict},
		{"ORD-2", "adr_1", "quote", refused, order.ReasonRefused},
		{"ORD-3", "adr_1", "buy", refused, order.ReasonRefused},
		{"ORD-3", "adr_2", "", fault{}, order.ReasonConflict}, // although no label was bought
		{"ORD-4", "adr_1", "quote", fault{after: true, other: true}, order.ReasonMismatch},
		{"ORD-5", "nowhere", "", fault{}, order.ReasonInvalid},
		{"no id", "adr_1", "", fault{}, order.ReasonInvalid},
	} {
		w.later(time.Hour)
		w.at(func(_ int, call string) fault {
			if call == tt.at {
				return tt.fault
			}
			return fault{}
		})
		got := w.deliver(tt.id, tt.address)
		if got.Verdict != order.Park || got.Reason != tt.want || tt.id != "ORD-1" && w.bought(tt.id) != 0 {
			t.Errorf("order %s to %s: %+v with %d labels, want %s", tt.id, tt.address, got, w.bought(tt.id), tt.want)
		}
	}
	w.settles("ORD-3") // a person sends it again
}

// The compiled function, with its wiring, between a queue, the table and the carrier.
func TestTheFunctionBuysALabelOnce(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	w := newWorld(t)
	queue, err := sqstest.Serve(sqstest.Options{Now: time.Now})
	w.must(err)
	t.Cleanup(func() { _ = queue.Close() })
	var batch []sqstest.Message
	queue.Machine(func(m *sqstest.Machine, now time.Time) {
		w.must(m.Create(now, "labels", sqstest.DefaultSettings()))
		for range 2 { // the second is a duplicate
			_, err := m.Send(now, "labels", sqstest.Draft{Body: `{"orderId":"ORD-1","addressId":"adr_1"}`})
			w.must(err)
		}
		batch, err = m.Receive(now, "labels", 10, nil)
		w.must(err)
	})
	binary := filepath.Join(t.TempDir(), "label")
	w.must(lambdatest.Build(t.Context(), "examples/label", binary))
	host, err := lambdatest.Start(lambdatest.Options{Binary: binary, Timeout: 12 * time.Second, Env: map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": w.table.Proxy.URL, "AWS_ENDPOINT_URL_SQS": queue.URL,
		"LABELS_TABLE": w.job.Table, "QUEUE_URL": queue.QueueURL("labels"), "SCOPE": "test",
		"DEAD_LETTER_QUEUE_URL": queue.QueueURL("labels"), "CARRIER_URL": w.carrier,
	}})
	w.must(err)
	t.Cleanup(func() { _ = host.Close() })
	response, err := host.Invoke(t.Context(), sqstest.Event("labels", batch))
	done, failed := sqstest.Verdict([]string{batch[0].ID, batch[1].ID}, response, err)
	if len(done) != 2 || w.bought("ORD-1") != 1 {
		t.Errorf("%d labels, %v, %v and %v failed, want 1 and none", w.bought("ORD-1"), err, done, failed)
	}
}
