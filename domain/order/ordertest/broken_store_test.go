package ordertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// The calls to a store; ordertest has no name for the last five.
const (
	begin                   = ordertest.Begin
	bind                    = ordertest.Bind
	finish                  = ordertest.Finish
	release                 = ordertest.Release
	load     ordertest.Call = "load"
	settle   ordertest.Call = "settle"
	recreate ordertest.Call = "recreate"
	park     ordertest.Call = "park"
	dispute  ordertest.Call = "dispute"
)

// call is one call to a store with its arguments and results.
type call struct {
	ctx context.Context
	m   *ordertest.Memory
	row order.Record // in the store

	id      order.ID
	order   order.Order
	lease   order.Lease
	claim   order.Claim // of Begin: its result
	intent  order.Intent
	outcome order.Outcome
	record  order.Record // of Load: its result; of Settle, Recreate and RecordDispute: the argument
	dispute order.Dispute
	at      time.Time

	sku    string // of AddStock
	pieces int64

	pass func() error // calls the Memory
}

// edit writes what change makes of c.row, if the record exists.
func (c *call) edit(change func(c *call)) {
	c.m.Edit(c.id, func(r *order.Record) {
		c.row = *r
		change(c)
		*r = c.row
	})
}

func (c *call) exists() bool  { return c.row.Attempt > 0 }
func (c *call) settled() bool { return c.row.Seq > 0 }
func (c *call) owner() string { return c.claim.Lease.Owner }

// store is a Memory with a bug.
type store struct {
	*ordertest.Memory
	storeBug
}

// storeBug handles one kind of call in place of the Memory.
type storeBug struct {
	on ordertest.Call
	do func(c *call) error
}

func (s store) call(kind ordertest.Call, c *call, pass func() error) error {
	c.m, c.row, c.pass = s.Memory, s.Row(c.id), pass
	if kind == s.on {
		return s.do(c)
	}
	return pass()
}

func (s store) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	c := &call{ctx: ctx, id: o.ID(), order: o, lease: l, at: l.From}
	err := s.call(begin, c, func() (err error) {
		c.claim, err = s.Memory.Begin(ctx, c.order, c.lease)
		return err
	})
	return c.claim, err
}

func (s store) Bind(ctx context.Context, claim order.Claim, i order.Intent, at time.Time) error {
	c := &call{ctx: ctx, id: claim.Order.ID(), claim: claim, intent: i, at: at}
	return s.call(bind, c, func() error { return s.Memory.Bind(ctx, c.claim, c.intent, at) })
}

func (s store) Finish(ctx context.Context, claim order.Claim, o order.Outcome, at time.Time) error {
	c := &call{ctx: ctx, id: claim.Order.ID(), claim: claim, outcome: o, at: at}
	return s.call(finish, c, func() error { return s.Memory.Finish(ctx, c.claim, c.outcome, at) })
}

func (s store) Release(ctx context.Context, claim order.Claim, why order.Reason, at time.Time) error {
	c := &call{ctx: ctx, id: claim.Order.ID(), claim: claim, at: at}
	return s.call(release, c, func() error { return s.Memory.Release(ctx, c.claim, why, at) })
}

func (s store) Load(ctx context.Context, id order.ID) (order.Record, error) {
	c := &call{ctx: ctx, id: id}
	err := s.call(load, c, func() (err error) {
		c.record, err = s.Memory.Load(ctx, id)
		return err
	})
	return c.record, err
}

func (s store) Settle(ctx context.Context, seen order.Record, o order.Outcome, at time.Time) error {
	c := &call{ctx: ctx, id: seen.OrderID, record: seen, outcome: o, at: at}
	return s.call(settle, c, func() error { return s.Memory.Settle(ctx, c.record, c.outcome, at) })
}

func (s store) Recreate(ctx context.Context, lost order.Record, at time.Time) error {
	c := &call{ctx: ctx, id: lost.OrderID, record: lost, at: at}
	return s.call(recreate, c, func() error { return s.Memory.Recreate(ctx, c.record, at) })
}

func (s store) Park(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
	c := &call{ctx: ctx, id: o.ID(), order: o, at: at}
	return s.call(park, c, func() error { return s.Memory.Park(ctx, c.order, why, at) })
}

func (s store) RecordDispute(ctx context.Context, seen order.Record, d order.Dispute, at time.Time) error {
	c := &call{ctx: ctx, id: seen.OrderID, record: seen, dispute: d, at: at}
	return s.call(dispute, c, func() error { return s.Memory.RecordDispute(ctx, c.record, c.dispute, at) })
}

// afterCall changes the record, or the result, after a successful call.
func afterCall(on ordertest.Call, change func(c *call)) storeBug {
	return storeBug{on, func(c *call) error {
		err := c.pass()
		if err == nil {
			c.edit(change)
		}
		return err
	}}
}

// beforeCall changes the record, or the arguments, before the call.
func beforeCall(on ordertest.Call, change func(c *call)) storeBug {
	return storeBug{on, func(c *call) error {
		c.edit(change)
		return c.pass()
	}}
}

// inPlaceOfCall changes the record and does nothing else.
func inPlaceOfCall(on ordertest.Call, change func(c *call)) storeBug {
	return storeBug{on, func(c *call) error {
		c.edit(change)
		return nil
	}}
}

// returnIf returns err without a call if when holds.
func returnIf(on ordertest.Call, err error, when func(c *call) bool) storeBug {
	return storeBug{on, func(c *call) error {
		if when(c) {
			return err
		}
		return c.pass()
	}}
}

// inProgressIf returns an InProgressError without a call if when holds.
func inProgressIf(on ordertest.Call, when func(c *call) bool) storeBug {
	return storeBug{on, func(c *call) error {
		if when(c) {
			return &order.InProgressError{Until: c.row.Until}
		}
		return c.pass()
	}}
}

// replaceError replaces the error of a call.
func replaceError(on ordertest.Call, old, replacement error) storeBug {
	return storeBug{on, func(c *call) error {
		if err := c.pass(); !errors.Is(err, old) {
			return err
		}
		return replacement
	}}
}

// replaceErrorType replaces an error of type E.
func replaceErrorType[E error](on ordertest.Call, replacement error) storeBug {
	return changeError(on, func(E) error { return replacement })
}

// changeError changes an error of type E.
func changeError[E error](on ordertest.Call, change func(e E) error) storeBug {
	return storeBug{on, func(c *call) error {
		err := c.pass()
		if e, ok := errors.AsType[E](err); ok {
			return change(e)
		}
		return err
	}}
}

// createRecord creates a record for an unknown order.
func createRecord(on ordertest.Call, err error) storeBug {
	return storeBug{on, func(c *call) error {
		if c.exists() {
			return c.pass()
		}
		_, _ = c.m.Begin(c.ctx, ordertest.Order(c.id), order.Lease{Owner: "other", From: c.at, Until: c.at})
		return err
	}}
}

func loseIntent(c *call)    { c.row.Intent = "" }
func loseMode(c *call)      { c.row.Mode = "" }
func loseDueTime(c *call)   { c.row.DueAt = time.Time{} }
func acceptOwner(c *call)   { c.claim.Lease.Owner = c.row.Owner }
func acceptContent(c *call) { c.row.Fingerprint = c.order.Fingerprint() }
func touch(c *call)         { c.row.UpdatedAt = c.at }

// storeBugs are the bugs that break a promise of TestStore, by promise and by name.
type storeBugs map[string]map[string]storeBug

func beginBugs() storeBugs {
	return storeBugs{
		"a new order is claimed": {
			"the time is missing":           afterCall(begin, func(c *call) { c.row.CreatedAt = time.Time{} }),
			"the first attempt is number 0": afterCall(begin, func(c *call) { c.claim.Attempt-- }),
		},
		"an order whose lease has expired is taken over with its intent": {
			"the next attempt knows no intent":        afterCall(begin, func(c *call) { c.claim.Intent = "" }),
			"the intent is lost":                      beforeCall(begin, loseIntent),
			"the order is as old as its last attempt": afterCall(begin, func(c *call) { c.row.CreatedAt = c.at }),
		},
		"begin reopens a refused order and adds an event": {
			"there is no event": afterCall(begin, func(c *call) {
				if c.row.Seq > 1 {
					c.row.Events = c.row.Events[:1]
				}
			}),
			"it stays settled": returnIf(begin, &order.SettledError{}, func(c *call) bool {
				return c.row.Status == order.Refused
			}),
			"it stays parked": afterCall(begin, func(c *call) {
				if c.row.Seq > 1 {
					c.row.ParkedAt = c.at
				}
			}),
		},
		"begin reopens a refused order with its intent": {
			"the intent is lost": beforeCall(begin, loseIntent),
		},
		"begin and load of a corrupt record return ErrCorrupt": {
			"begin ignores it": returnIf(begin, nil, (*call).exists),
			"load ignores it":  replaceError(load, order.ErrCorrupt, nil),
		},
		"begin and load of an unknown status return ErrUnknownVersion": {
			"it is corrupt": replaceError(load, order.ErrUnknownVersion, order.ErrCorrupt),
		},
	}
}

func leaseBugs() storeBugs {
	return storeBugs{
		"a lease is respected through its last millisecond": {
			"a lease ends early": beforeCall(begin, func(c *call) {
				c.lease.From = c.lease.From.Add(time.Millisecond)
			}),
			"a lease ends late": beforeCall(begin, func(c *call) {
				c.lease.From = c.lease.From.Add(-time.Millisecond)
			}),
			"the error has no time": replaceErrorType[*order.InProgressError](begin, &order.InProgressError{}),
		},
		"a lease longer than the maximum is ignored": {
			"a clock that went backwards blocks the order": inProgressIf(begin, func(c *call) bool {
				return c.row.UpdatedAt.After(c.lease.From)
			}),
			"every lease is respected": inProgressIf(begin, func(c *call) bool {
				return c.row.Owner != c.lease.Owner && c.row.Until.After(c.lease.From)
			}),
		},
		"the longest lease of the most skewed clock is respected": {
			"skew is not allowed for": beforeCall(begin, func(c *call) {
				if c.row.Until.After(c.lease.From.Add(order.MaxLease)) {
					c.row.Until = time.Time{}
				}
			}),
		},
		"the trace of the first claim that has one is kept": {
			"the last claim's is kept": beforeCall(begin, func(c *call) { c.row.Trace = "" }),
			"it is not kept":           afterCall(begin, func(c *call) { c.row.Trace = "" }),
			"it is not returned":       afterCall(begin, func(c *call) { c.claim.Trace = "" }),
			"only a new record has it": beforeCall(begin, func(c *call) { c.lease.Trace = "" }),
		},
		"begin again by the same owner is no new attempt": {
			"the owner's own lease blocks it": inProgressIf(begin, func(c *call) bool {
				return c.row.Owner == c.lease.Owner
			}),
			"it counts as another attempt": beforeCall(begin, func(c *call) {
				if c.row.Owner == c.lease.Owner {
					c.row.Attempt++
				}
			}),
		},
	}
}

func conflictBugs() storeBugs {
	return storeBugs{
		"begin with different content returns ErrConflict": {
			"only the id counts": beforeCall(begin, acceptContent),
			"content is compared only after the lease": inProgressIf(begin, func(c *call) bool {
				return c.exists() && c.row.Owner != c.lease.Owner && !c.lease.From.After(c.row.Until)
			}),
		},
		"begin of a settled order returns its record": {
			"it is in progress": returnIf(begin, &order.InProgressError{}, (*call).settled),
			"the intent is missing": changeError(begin, func(e *order.SettledError) error {
				e.Record.Intent = ""
				return e
			}),
		},
		"a conflict is reported before the settled status": {
			"the settled status is reported first": beforeCall(begin, func(c *call) {
				if c.row.Status == order.Paid {
					acceptContent(c)
				}
			}),
		},
		"begin by the owner that settled the order returns its record": {
			"the owner can begin again": returnIf(begin, nil, func(c *call) bool {
				return c.settled() && c.lease.Owner == "first"
			}),
		},
		"begin with an unknown fingerprint version changes nothing": {
			"it is a conflict": replaceError(begin, order.ErrUnknownVersion, order.ErrConflict),
			"the record is overwritten": beforeCall(begin, func(c *call) {
				if strings.HasPrefix(string(c.row.Fingerprint), "v999:") {
					acceptContent(c)
				}
			}),
		},
		"two orders are independent": {
			"begin of one writes to the other": {begin, func(c *call) error {
				other := order.ID(strings.TrimSuffix(string(c.id), "-2"))
				c.m.Edit(other, func(r *order.Record) { r.UpdatedAt = c.at.Add(time.Hour) })
				return c.pass()
			}},
		},
	}
}

func bindBugs() storeBugs {
	bound := func(c *call) bool { return c.row.Intent == c.intent.ID }
	return storeBugs{
		"bind writes the intent": {
			"nothing is written":      inPlaceOfCall(bind, func(*call) {}),
			"its mode is not written": afterCall(bind, loseMode),
		},
		"bind removes the intent that was found before": {
			"it stays": afterCall(bind, func(c *call) { c.row.Suspect = c.intent.ID }),
		},
		"bind of the same intent again succeeds": {
			"the second bind fails": returnIf(bind, order.ErrClaimLost, func(c *call) bool {
				return c.row.Intent != ""
			}),
			"it counts as another attempt": beforeCall(bind, func(c *call) {
				if bound(c) {
					c.row.Attempt++
				}
			}),
		},
		"bind of another intent returns ErrClaimLost": {
			"the last bind counts": beforeCall(bind, loseIntent),
		},
		"bind after the claim was lost changes nothing": {
			"the owner is not compared": beforeCall(bind, acceptOwner),
			"it fails and writes": beforeCall(bind, func(c *call) {
				c.row.LastError = "refused"
			}),
			"the owner is not compared if the intent is bound": returnIf(bind, nil, bound),
		},
		"bind of a settled order returns ErrClaimLost": {
			"a settled order can still be bound": returnIf(bind, nil, (*call).settled),
		},
		"bind of an unknown order creates no record": {
			"it creates one": createRecord(bind, order.ErrClaimLost),
		},
	}
}

func finishBugs() storeBugs {
	return storeBugs{
		"finish settles with one event and ends the claim": {
			"there is no event":                 afterCall(finish, func(c *call) { c.row.Events = nil }),
			"the claim goes on":                 afterCall(finish, func(c *call) { c.row.Owner = c.owner() }),
			"a pending order waits for nothing": afterCall(finish, loseDueTime),
		},
		"finish again with the same outcome changes nothing": {
			"it updates the time": afterCall(finish, touch),
		},
		"finish with another outcome returns ErrClaimLost": {
			"every outcome succeeds": returnIf(finish, nil, (*call).settled),
			"the status is not compared": returnIf(finish, nil, func(c *call) bool {
				return c.settled() && c.row.Intent == c.outcome.Intent
			}),
			"the intent is not compared": returnIf(finish, nil, func(c *call) bool {
				return c.row.Status == c.outcome.Status
			}),
		},
		"finish with an invalid transition returns a TransitionError": {
			"it returns ErrClaimLost": replaceErrorType[*order.TransitionError](finish, order.ErrClaimLost),
		},
		"finish with an intent that is not bound returns ErrClaimLost": {
			"the intent is not compared": beforeCall(finish, func(c *call) { c.outcome.Intent = c.row.Intent }),
			"the intent is not compared if none is bound": beforeCall(finish, func(c *call) {
				if c.row.Intent == "" {
					c.row.Intent = c.outcome.Intent
				}
			}),
		},
		"finish after the claim was lost changes nothing": {
			"the owner is not compared": beforeCall(finish, acceptOwner),
		},
		"finish after the claim was lost succeeds if the outcome is recorded": {
			"it returns ErrClaimLost": returnIf(finish, order.ErrClaimLost, func(c *call) bool {
				return c.row.Owner != c.owner()
			}),
			"it always succeeds": returnIf(finish, nil, (*call).settled),
		},
		"finish of an unknown order creates no record": {
			"it creates one": createRecord(finish, order.ErrClaimLost),
		},
		"finish records a refusal without an intent": {
			"it needs an intent": returnIf(finish, order.ErrClaimLost, func(c *call) bool {
				return c.outcome.Intent == ""
			}),
			"paid needs no intent either": returnIf(finish, nil, func(c *call) bool {
				return c.outcome.Intent == "" && c.outcome.Status == order.Paid
			}),
		},
		"finish clears the park note": {
			"the note stays": afterCall(finish, func(c *call) { c.row.ParkedAt = c.at }),
		},
	}
}

func parkBugs() storeBugs {
	return storeBugs{
		"park records the time and the reason and nothing else": {
			"the time is missing": afterCall(park, func(c *call) { c.row.ParkedAt = time.Time{} }),
			"it ends the claim":   afterCall(park, func(c *call) { c.row.Owner = "" }),
		},
		"park of a settled order changes nothing": {
			"it is parked": inPlaceOfCall(park, func(c *call) { c.row.ParkedAt = c.at }),
		},
		"park with different content changes nothing": {
			"only the id counts": beforeCall(park, func(c *call) { c.order = ordertest.Order(c.id) }),
		},
		"park of an unknown order creates no record": {"it creates one": createRecord(park, nil)},
	}
}

func releaseBugs() storeBugs {
	released := func(c *call) bool { return c.row.Owner == "" }
	return storeBugs{
		"release lets the next attempt begin at once": {
			"the lease runs on": {release, func(c *call) error {
				until := c.row.Until
				err := c.pass()
				c.edit(func(c *call) { c.row.Until = until })
				return err
			}},
			"the reason is missing": afterCall(release, func(c *call) { c.row.LastError = "" }),
			"the intent is removed": afterCall(release, loseIntent),
		},
		"an intent that was found is in every later claim": {
			"it is not recorded":               afterCall(release, func(c *call) { c.row.Suspect = "" }),
			"the next release removes it":      afterCall(release, func(c *call) { c.row.Suspect = c.claim.Suspect }),
			"the claim does not have it":       afterCall(begin, func(c *call) { c.claim.Suspect = "" }),
			"it is bound, as if it was chosen": afterCall(release, func(c *call) { c.row.Intent = c.row.Suspect }),
		},
		"a released claim is lost": {
			"the claim can still bind":        returnIf(bind, nil, released),
			"the claim can still finish":      returnIf(finish, nil, released),
			"the claim can be released again": afterCall(release, func(c *call) { c.row.Owner = c.owner() }),
		},
		"release after the claim was lost changes nothing": {
			"the owner is not compared": beforeCall(release, acceptOwner),
		},
		"release of a settled order changes nothing": {
			"it writes the reason": beforeCall(release, func(c *call) { c.row.LastError = "too late" }),
		},
		"release of an unknown order creates no record": {
			"it creates one": createRecord(release, order.ErrClaimLost),
		},
	}
}

func settleBugs() storeBugs {
	return storeBugs{
		"load of an unknown order returns ErrNotFound": {
			"it returns an empty record": replaceError(load, order.ErrNotFound, nil),
		},
		"load returns a copy": {
			"it returns the stored events": afterCall(load, func(c *call) { c.record = c.row }),
		},
		"settle adds its events in order": {
			"earlier events are lost": afterCall(settle, func(c *call) {
				c.row.Events = c.row.Events[len(c.row.Events)-1:]
			}),
			"the newest event comes first": afterCall(settle, func(c *call) {
				c.row.Events = slices.Clone(c.row.Events)
				slices.Reverse(c.row.Events)
			}),
		},
		"settle as paid clears the failure": {
			"it stays": afterCall(settle, func(c *call) { c.row.Failure = c.record.Failure }),
		},
		"settle ends the claim of a running attempt": {
			"the claim stays": afterCall(settle, func(c *call) { c.row.Owner = c.record.Owner }),
			"finish with the same outcome fails": returnIf(finish, order.ErrClaimLost, func(c *call) bool {
				return c.row.Owner != c.owner()
			}),
		},
		"settle with the recorded outcome changes nothing": {
			"it is stale": returnIf(settle, order.ErrStale, func(c *call) bool {
				return c.row.Seq > c.record.Seq
			}),
			"it updates the time": afterCall(settle, touch),
		},
		"settle of a record that changed returns ErrStale": {
			"the status is not compared": beforeCall(settle, func(c *call) { c.record.Status = c.row.Status }),
			"the seq is not compared":    beforeCall(settle, func(c *call) { c.record.Seq = c.row.Seq }),
			"the intent is not compared": beforeCall(settle, func(c *call) { c.record.Intent = c.row.Intent }),
		},
		"settle with another intent returns ErrStale": {
			"the intent is not compared": beforeCall(settle, func(c *call) { c.outcome.Intent = c.row.Intent }),
		},
		"settle with an invalid transition returns a TransitionError": {
			"it is stale": replaceErrorType[*order.TransitionError](settle, order.ErrStale),
		},
		"settle of an unknown order creates no record": {
			"it creates one": createRecord(settle, order.ErrStale),
		},
		"settle cancels an order without an intent, and no attempt can bind one": {
			"an order without an intent is left": returnIf(settle, nil, func(c *call) bool { return c.outcome.Intent == "" }),
			"the claim still binds":              returnIf(bind, nil, func(c *call) bool { return c.row.Status == order.Canceled }),
			"it is tried again": returnIf(begin, nil, func(c *call) bool {
				return c.row.Status == order.Canceled && c.row.Intent == ""
			}),
			"a bound intent is not looked at": returnIf(settle, nil, func(c *call) bool {
				return c.outcome.Intent == "" && c.row.Intent != ""
			}),
		},
		"settle of an order without an intent as paid returns ErrStale": {
			"it is paid": returnIf(settle, nil, func(c *call) bool {
				return c.outcome.Intent == "" && c.outcome.Status == order.Paid
			}),
		},
		"settle of a refused order records a late payment": {
			"no status follows refused": returnIf(settle, order.ErrStale, func(c *call) bool {
				return c.record.Status == order.Refused
			}),
		},
	}
}

func disputeBugs() storeBugs {
	return storeBugs{
		"a dispute adds its event and changes nothing else": {
			"there is no event":               afterCall(dispute, func(c *call) { c.row.Events = c.row.Events[:1] }),
			"the event names no dispute":      afterCall(dispute, func(c *call) { c.row.Events[1].Dispute = order.Dispute{} }),
			"the time of the dispute is ours": beforeCall(dispute, func(c *call) { c.dispute.CreatedAt = c.at }),
			"the order waits again":           afterCall(dispute, func(c *call) { c.row.DueAt = c.at }),
			"a paid order is canceled":        afterCall(dispute, func(c *call) { c.row.Status = order.Canceled }),
		},
		"the end of a dispute is another event": {
			"the first status stays": returnIf(dispute, nil, func(c *call) bool { return c.row.Dispute.ID == c.dispute.ID }),
			"the first dispute stays": returnIf(dispute, nil, func(c *call) bool {
				return c.row.Dispute.Status == c.dispute.Status
			}),
		},
		"a dispute that is recorded changes nothing": {
			"it is stale":         returnIf(dispute, order.ErrStale, func(c *call) bool { return c.row.Seq > c.record.Seq }),
			"it updates the time": afterCall(dispute, touch),
		},
		"a dispute of a record that changed returns ErrStale": {
			"the status is not compared": beforeCall(dispute, func(c *call) { c.record.Status = c.row.Status }),
			"the seq is not compared":    beforeCall(dispute, func(c *call) { c.record.Seq = c.row.Seq }),
			"the intent is not compared": beforeCall(dispute, func(c *call) { c.record.Intent = c.row.Intent }),
		},
		"a dispute during an attempt leaves its claim": {
			"it ends the claim": afterCall(dispute, func(c *call) { c.row.Owner = "" }),
		},
		"a dispute of an unknown order creates no record": {
			"it creates one": createRecord(dispute, order.ErrStale),
		},
	}
}

func recreateBugs() storeBugs {
	return storeBugs{
		"recreate writes an open record with the intent bound": {
			"it binds no intent":      afterCall(recreate, loseIntent),
			"the mode is missing":     afterCall(recreate, loseMode),
			"its due time is missing": afterCall(recreate, loseDueTime),
		},
		"a recreated order is taken over with its intent and its customer": {
			"the customer stays empty": afterCall(begin, func(c *call) { c.row.CustomerID = "" }),
		},
		"recreate binds the intent to an open record without one": {
			"every existing record is rejected": returnIf(recreate, &order.SettledError{}, (*call).exists),
			"it counts as another attempt":      beforeCall(recreate, func(c *call) { c.row.Attempt++ }),
			"the intent that was found stays":   afterCall(recreate, func(c *call) { c.row.Suspect = "pi_1" }),
		},
		"recreate of the bound intent changes nothing": {
			"it is rejected": returnIf(recreate, &order.SettledError{}, func(c *call) bool {
				return c.row.Intent == c.record.Intent
			}),
		},
		"recreate over another bound intent returns a MismatchError": {
			"it overwrites the intent": beforeCall(recreate, func(c *call) { c.row.Intent = c.record.Intent }),
		},
		"recreate with different content returns ErrConflict": {
			"only the id counts": beforeCall(recreate, func(c *call) { c.row.Fingerprint = c.record.Fingerprint }),
		},
		"recreate with an unknown fingerprint version returns ErrUnknownVersion": {
			"it is a conflict": replaceError(recreate, order.ErrUnknownVersion, order.ErrConflict),
		},
		"recreate during a running lease returns an InProgressError": {
			"it ignores the lease": beforeCall(recreate, func(c *call) { c.row.Until = time.Time{} }),
		},
		"recreate ignores a lease longer than a function can run": {
			"every lease is respected": inProgressIf(recreate, func(c *call) bool { return c.row.Until.After(c.at) }),
		},
		"recreate ends the claim of an expired lease": {
			"the claim stays": {recreate, func(c *call) error {
				owner := c.row.Owner
				err := c.pass()
				c.edit(func(c *call) { c.row.Owner = owner })
				return err
			}},
		},
	}
}

// raceBugs lose no race: a bug that depends on timing would fail only sometimes.
func raceBugs() storeBugs {
	allBegin := replaceErrorType[*order.InProgressError](begin, nil)
	allBind := replaceError(bind, order.ErrClaimLost, nil)
	return storeBugs{
		"of fifty concurrent begins one succeeds": {
			"all succeed":                 allBegin,
			"the others get ErrClaimLost": replaceErrorType[*order.InProgressError](begin, order.ErrClaimLost),
		},
		"of fifty concurrent begins of a refused order one succeeds":  {"all succeed": allBegin},
		"of fifty concurrent attempts only the last binds its intent": {"all succeed": allBind},
		"fifty concurrent binds of one claim bind one intent":         {"all succeed": allBind},
		"fifty concurrent finishes record one outcome and one event": {
			"all succeed": replaceError(finish, order.ErrClaimLost, nil),
			"each one adds an event": afterCall(finish, func(c *call) {
				c.row.Events = append(slices.Clip(c.row.Events), order.Event{Seq: len(c.row.Events) + 1})
			}),
		},
		"fifty concurrent records of one dispute add one event": {
			"all but one are stale": returnIf(dispute, order.ErrStale, func(c *call) bool { return c.row.Dispute.ID != "" }),
			"each one adds an event": afterCall(dispute, func(c *call) {
				c.row.Events = append(slices.Clip(c.row.Events), order.Event{Seq: len(c.row.Events) + 1})
			}),
		},
	}
}

func TestEveryBrokenStoreFailsItsPromise(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, bugs := range []storeBugs{
		beginBugs(), leaseBugs(), conflictBugs(), bindBugs(), finishBugs(), parkBugs(), releaseBugs(), settleBugs(),
		disputeBugs(), recreateBugs(), raceBugs(),
	} {
		for promise, byName := range bugs {
			covered[promise] = true
			for name, bug := range byName {
				t.Run(promise+" - "+name, func(t *testing.T) {
					t.Parallel()
					testBug[ordertest.Store](
						t, ordertest.StorePromises(), promise, store{new(ordertest.Memory), bug}, new(ordertest.Memory),
					)
				})
			}
		}
	}
	if missing := uncovered(ordertest.StorePromises(), covered); len(missing) > 0 {
		t.Errorf("no broken double for the promises %q", missing)
	}
}

// notEditable is a store that is not an Editor.
type notEditable struct{ ordertest.Store }

func TestWithoutAnEditorAPromiseIsSkippedWithInstructions(t *testing.T) {
	t.Parallel()
	p := findPromise(t, ordertest.StorePromises(), "begin with an unknown fingerprint version changes nothing")
	h := runPromise[ordertest.Store](t, p, notEditable{new(ordertest.Memory)})
	if h.Failed() || !strings.Contains(h.String(), "ordertest.Editor") {
		t.Errorf("got %q, failed: %t, want a skip that names ordertest.Editor", h, h.Failed())
	}
}
