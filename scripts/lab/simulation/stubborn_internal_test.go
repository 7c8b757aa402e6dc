package simulation

import (
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// stubborn is a world in which the same goes wrong at every delivery, for longer than any
// search goes.
type stubborn struct {
	world  Case
	fault  func(delivery int) Fault
	at     ordertest.Call
	denied action // from the beginning, instead of a fault
	why    order.Reason
	parked func(age time.Duration, receives int) bool // whether that is the right time for a person to look
}

func stubborns() map[string]stubborn {
	handler, nobodys := one(visa), one(noSuchCard)
	handler.Batch, handler.Adapter = 1, true
	nobodys.Batch = 1
	lastMoment := func(age time.Duration, _ int) bool { return age >= 6*day-honestSkew && age < 7*day }
	return map[string]stubborn{
		"an outage of Stripe": {
			world: one(visa), at: ordertest.Prepare, why: "provider_unavailable", parked: lastMoment,
			fault: func(int) Fault { return NotNow },
		},
		"an outage of the table": {
			world: one(visa), at: ordertest.Begin, why: "store_unavailable", parked: lastMoment,
			fault: func(int) Fault { return NeverArrives },
		},
		"a bug that only this order meets": {
			world: handler, at: ordertest.Prepare, why: "panic",
			fault:  func(int) Fault { return Panics },
			parked: func(_ time.Duration, receives int) bool { return receives == maxFailures },
		},
		"a charge that may not be written down": {
			world: one(visa), denied: putItem, why: "store_unavailable", parked: lastMoment,
		},
		"a claim that may not be made": {
			world: one(visa), denied: updateItem, why: "store_unavailable", parked: lastMoment,
		},
		"an order that nobody can charge and that may not be parked": { // so the queue moves it, without a reason
			world: nobodys, denied: sendMessage, why: "",
			parked: func(age time.Duration, receives int) bool { return age < 7*day && receives >= maxReceives },
		},
		"deaths, of which the queue has nearly had enough": {
			world: one(visa), at: ordertest.Begin, why: "store_unavailable",
			fault: func(delivery int) Fault {
				if delivery < 980 {
					return Dies
				}
				return NeverArrives
			},
			parked: func(_ time.Duration, receives int) bool {
				return receives > maxReceives-lastChances && receives <= maxReceives
			},
		},
	}
}

// A message is parked with a reason before the queue parks it without one, or forgets it;
// and not before waiting is of no use.
func TestWhatNeverEndsIsParkedInTimeWithItsReason(t *testing.T) {
	t.Parallel()
	for name, tt := range stubborns() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *World
			w = NewLab().World(tt.world, func(int) int {
				for i, way := range w.lab.ways {
					if tt.fault != nil && way.does == goes && way.k.at.name == tt.at &&
						way.fault == tt.fault(w.done.Deliveries) {
						return i
					}
				}
				return 0
			})
			w.Rare, w.denial = true, denial{of: tt.denied, until: w.start.Add(30 * day)}
			broken := w.RunUntil(func() bool { return must1(w.queue.Counts(w.now, w.deadQueue)).Visible > 0 })
			age, receives := w.now.Sub(w.start), w.done.Deliveries
			if why := w.oracle.orders[0].dead[0]; broken != nil || why != tt.why || !tt.parked(age, receives) {
				t.Errorf("parked for %q after %v and %d deliveries, want %q; broken: %v", why, age, receives, tt.why, broken)
			}
		})
	}
}
