package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
)

func TestALabelIsBoughtOnceWeeksAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.at(func(_ int, call string) fault { return fault{kill: call == "confirm", after: true} })
	w.deliver("ORD-1", content)
	if n := w.effects("ORD-1"); n != 1 {
		t.Fatalf("%d labels before the second delivery, want 1", n)
	}
	w.later(10 * 24 * time.Hour)
	if got, want := w.settles("ORD-1"), []string{"table", "read", "table"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestALostAnswerBuysOneLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n, call := range []string{"table", "make", "table", "confirm", "table"} {
		faults := []fault{{lose: true}, {lose: true, after: true}} // the SDK repeats a call to the table
		if call == "table" {
			faults = append(faults, fault{lose: true, again: true}, fault{lose: true, after: true, again: true})
		} else {
			faults = append(faults, fault{status: 500}, fault{status: 500, after: true})
			faults = append(faults, fault{status: 429}, fault{status: 409}, fault{status: 503})
		}
		if call == "confirm" { // bought by another attempt, which was frozen until now; or not bought yet
			faults = append(faults, fault{status: http.StatusUnprocessableEntity, after: true}, fault{status: 200})
		}
		for i, f := range faults {
			id := order.ID(fmt.Sprintf("ORD-%d-%d", n, i))
			w.atCall(n+1, f)
			r := w.deliver(id, content)
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
		go func() { result <- w.deliver(id, content) }()
		<-frozen
		w.later(time.Hour)
		w.atCall(tt.until, fault{do: func() {
			close(thaw)
			if r := <-result; r.Verdict != order.Redeliver || r.Reason != order.ReasonClaimLost {
				t.Errorf("%s: the frozen worker got %+v, want a lost claim", id, r)
			}
		}})
		w.deliver(id, content)
		w.settles(id)
	}
}

func TestWhatNoRetryHelpsIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused := fault{status: http.StatusUnprocessableEntity}
	for _, tt := range []struct {
		id      order.ID
		address string
		at      string
		fault   fault
		want    order.Reason
	}{
		{"ORD-2", content, "make", refused, order.ReasonRefused},
		{"ORD-3", content, "confirm", refused, order.ReasonRefused},
		{"ORD-3", other, "", fault{}, order.ReasonConflict}, // although no label was bought
		{"ORD-4", content, "make", fault{after: true, other: true}, order.ReasonMismatch},
		{"ORD-5", "nowhere", "", fault{}, order.ReasonInvalid},
	} {
		w.later(time.Hour)
		w.at(func(_ int, call string) fault {
			if call == tt.at {
				return tt.fault
			}
			return fault{}
		})
		got := w.deliver(tt.id, tt.address)
		if got.Verdict != order.Park || got.Reason != tt.want || w.effects(tt.id) != 0 {
			t.Errorf("order %s to %s: %+v with %d labels, want %s", tt.id, tt.address, got, w.effects(tt.id), tt.want)
		}
	}
	w.settles("ORD-3") // a person sends it again
}
