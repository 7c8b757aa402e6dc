package ordertest

import (
	"time"

	"orderonce/domain/order"
)

func parkPromises() []promise {
	return []promise{
		{"park records the time and the reason and nothing else", storeTest.parkRecords},
		{"park of a settled order changes nothing", storeTest.parkSettled},
		{"park with different content changes nothing", storeTest.parkDifferentContent},
		{"park of an unknown order creates no record", storeTest.parkUnknown},
		{"finish clears the park note", storeTest.finishClearsPark},
	}
}

func (x storeTest) parkRecords() {
	c := x.mustBind("pi_1")
	want := x.mustLoad()
	x.must(x.Park(x.Context(), x.order, order.ReasonUnknown, at(time.Minute)))
	want.LastError, want.ParkedAt, want.UpdatedAt = string(order.ReasonUnknown), at(time.Minute), at(time.Minute)
	x.wantRecord(want)
	next := x.mustBegin(lease("second", c.Lease.Until.Add(time.Second)))
	if r := x.mustLoad(); !r.ParkedAt.IsZero() || next.Attempt != 2 {
		x.Errorf("got attempt %d, parked at %v, want attempt 2 and not parked", next.Attempt, r.ParkedAt)
	}
}

func (x storeTest) parkSettled() {
	x.mustFinish(order.Paid)
	x.wantUnchanged(func() { x.must(x.Park(x.Context(), x.order, order.ReasonUnknown, at(time.Hour))) })
}

func (x storeTest) parkDifferentContent() {
	x.mustBind("pi_1")
	x.wantUnchanged(func() {
		x.must(x.Park(x.Context(), differentContent(x.order), order.ReasonConflict, at(time.Hour)))
	})
}

func (x storeTest) parkUnknown() {
	x.must(x.Park(x.Context(), x.order, order.ReasonStore, at(0)))
	x.wantNoRecord()
}

func (x storeTest) finishClearsPark() {
	c := x.mustBind("pi_1")
	x.must(x.Park(x.Context(), x.order, order.ReasonUnknown, at(time.Second)))
	want, paid := x.mustLoad(), outcome(order.Paid, "pi_1")
	x.must(x.Finish(x.Context(), c, paid, at(time.Minute)))
	want.ParkedAt = time.Time{}
	x.wantRecord(recordAfter(want, paid, at(time.Minute)))
}
