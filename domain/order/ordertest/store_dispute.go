package ordertest

import (
	"time"

	"orderonce/domain/order"
)

func disputePromises() []promise {
	return []promise{
		{"a dispute adds its event and changes nothing else", storeTest.disputeAdds},
		{"the end of a dispute is another event", storeTest.disputeEnds},
		{"a dispute that is recorded changes nothing", storeTest.disputeAgain},
		{"a dispute of a record that changed returns ErrStale", storeTest.disputeStale},
		{"a dispute during an attempt leaves its claim", storeTest.disputeDuringAttempt},
		{"a dispute of an unknown order creates no record", storeTest.disputeUnknown},
		{"fifty concurrent records of one dispute add one event", storeTest.oneDisputes},
	}
}

// dispute returns du_1 in a status.
func dispute(s order.DisputeStatus) order.Dispute {
	return order.Dispute{ID: "du_1", Status: s, CreatedAt: at(48 * time.Hour)}
}

// wantDispute records the dispute and checks the new record.
func (x storeTest) wantDispute(d order.Dispute, now time.Time) {
	x.Helper()
	r := x.mustLoad()
	x.must(x.RecordDispute(x.Context(), r, d, now))
	want := order.Disputed(r, d, now)
	want.UpdatedAt = now
	x.wantRecord(want)
}

func (x storeTest) disputeAdds() {
	for _, s := range []order.Status{order.Paid, order.Pending, order.Declined} {
		x := x.with(Order(x.order.ID() + order.ID(s)))
		x.mustFinish(s)
		x.wantDispute(dispute(order.DisputeOpen), at(49*time.Hour))
	}
}

func (x storeTest) disputeEnds() {
	x.mustFinish(order.Paid)
	x.wantDispute(dispute(order.DisputeOpen), at(49*time.Hour))
	x.wantDispute(dispute(order.DisputeLost), at(50*time.Hour))
	second := dispute(order.DisputeLost)
	second.ID = "du_2"
	x.wantDispute(second, at(51*time.Hour))
}

func (x storeTest) disputeAgain() {
	x.mustFinish(order.Paid)
	loaded, d := x.mustLoad(), dispute(order.DisputeOpen)
	x.wantDispute(d, at(49*time.Hour))
	x.wantUnchanged(func() {
		x.must(x.RecordDispute(x.Context(), loaded, d, at(50*time.Hour)))
		x.must(x.RecordDispute(x.Context(), x.mustLoad(), d, at(51*time.Hour)))
	})
}

func (x storeTest) disputeStale() {
	x.mustFinish(order.Paid)
	loaded := x.mustLoad()
	for name, age := range map[string]func(*order.Record){
		"status": func(r *order.Record) { r.Status = order.Pending },
		"seq":    func(r *order.Record) { r.Seq++ },
		"intent": func(r *order.Record) { r.Intent = "pi_2" },
	} {
		seen := loaded
		age(&seen)
		x.wantUnchanged(func() {
			err := x.RecordDispute(x.Context(), seen, dispute(order.DisputeOpen), at(49*time.Hour))
			if x.wantError(err, order.ErrStale); x.Failed() {
				x.Fatalf("with another %s", name)
			}
		})
	}
	x.wantDispute(dispute(order.DisputeLost), at(49*time.Hour))
	x.wantUnchanged(func() { // an older list of the provider's
		err := x.RecordDispute(x.Context(), loaded, dispute(order.DisputeOpen), at(50*time.Hour))
		x.wantError(err, order.ErrStale)
	})
}

func (x storeTest) disputeDuringAttempt() {
	c := x.mustBind("pi_1")
	x.wantDispute(dispute(order.DisputeOpen), at(2*time.Second))
	want := recordAfter(x.mustLoad(), outcome(order.Paid, "pi_1"), at(3*time.Second))
	x.must(x.Finish(x.Context(), c, outcome(order.Paid, "pi_1"), at(3*time.Second)))
	x.wantRecord(want)
}

func (x storeTest) disputeUnknown() {
	seen := order.Record{OrderID: x.order.ID(), Status: order.Paid, Intent: "pi_1", Seq: 1}
	x.wantError(x.RecordDispute(x.Context(), seen, dispute(order.DisputeOpen), at(0)), order.ErrStale)
	x.wantNoRecord()
}

func (x storeTest) oneDisputes() {
	x.mustFinish(order.Paid)
	loaded := x.mustLoad()
	won := x.winners(race(func(int) error {
		return x.RecordDispute(x.Context(), loaded, dispute(order.DisputeOpen), at(49*time.Hour))
	}), func(error) bool { return false })
	if r := x.mustLoad(); len(won) != racers || len(r.Events) != 2 || r.Seq != 2 {
		x.Errorf("got winners %v and events %v, want every racer, and one event beside the first", won, r.Events)
	}
}
