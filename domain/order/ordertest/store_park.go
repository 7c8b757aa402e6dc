package ordertest

import (
	"time"

	"orderonce/domain/order"
)

func parkPromises() []promise {
	return []promise{
		{"park records the time and the reason and nothing else", trial.parkNotes},
		{"park of a settled order changes nothing", trial.parkSettled},
		{"park with different content changes nothing", trial.parkOtherContent},
		{"park of an unknown order creates no record", trial.parkUnknown},
		{"finish clears the park note", trial.parkEnds},
	}
}

func (x trial) parkNotes() {
	c := x.bound("pi_1")
	want := x.load()
	x.ok(x.Park(x.Context(), x.order, order.ReasonUnknown, at(time.Minute)))
	want.LastError, want.ParkedAt, want.UpdatedAt = string(order.ReasonUnknown), at(time.Minute), at(time.Minute)
	x.changed(want)
	next := x.begin(lease("second", c.Lease.Until.Add(time.Second)))
	if r := x.load(); !r.ParkedAt.IsZero() || next.Attempt != 2 {
		x.Errorf("got attempt %d, parked at %v, want attempt 2 and not parked", next.Attempt, r.ParkedAt)
	}
}

func (x trial) parkSettled() {
	x.finished(order.Paid)
	x.untouched(func() { x.ok(x.Park(x.Context(), x.order, order.ReasonUnknown, at(time.Hour))) })
}

func (x trial) parkOtherContent() {
	x.bound("pi_1")
	x.untouched(func() { x.ok(x.Park(x.Context(), otherContent(x.order), order.ReasonConflict, at(time.Hour))) })
}

func (x trial) parkUnknown() {
	x.ok(x.Park(x.Context(), x.order, order.ReasonStore, at(0)))
	x.absent()
}

func (x trial) parkEnds() {
	c := x.bound("pi_1")
	x.ok(x.Park(x.Context(), x.order, order.ReasonUnknown, at(time.Second)))
	want, paid := x.load(), order.Outcome{Status: order.Paid, Intent: "pi_1"}
	x.ok(x.Finish(x.Context(), c, paid, at(time.Minute)))
	want.ParkedAt = time.Time{}
	x.changed(after(want, paid, at(time.Minute)))
}
