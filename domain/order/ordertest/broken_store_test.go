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

// Calls that ordertest has no name for.
const (
	load     ordertest.Call = "load"
	settle   ordertest.Call = "settle"
	recreate ordertest.Call = "recreate"
	park     ordertest.Call = "park"
)

// call is one call to a store with its arguments and results.
type call struct {
	ctx context.Context
	m   *ordertest.Memory

	id      order.ID
	order   order.Order
	lease   order.Lease
	claim   order.Claim // of Begin: its result
	intent  order.Intent
	outcome order.Outcome
	record  order.Record // of Load: its result; of Settle and Recreate: the argument
	at      time.Time

	pass func() error // calls the Memory
}

func (c *call) row() order.Record                 { return c.m.Row(c.id) }
func (c *call) edit(change func(r *order.Record)) { c.m.Edit(c.id, change) }
func (c *call) exists() bool                      { return c.row().Attempt > 0 }
func (c *call) owner() string                     { return c.claim.Lease.Owner }

// store is a Memory that handles one kind of call in its own way.
type store struct {
	*ordertest.Memory

	on ordertest.Call
	do func(c *call) error
}

func (s store) call(kind ordertest.Call, c *call, pass func() error) error {
	c.m, c.pass = s.Memory, pass
	if kind == s.on {
		return s.do(c)
	}
	return pass()
}

func (s store) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	c := &call{ctx: ctx, id: o.ID(), order: o, lease: l, at: l.From}
	err := s.call(ordertest.Begin, c, func() (err error) {
		c.claim, err = s.Memory.Begin(ctx, c.order, c.lease)
		return err
	})
	return c.claim, err
}

func (s store) Bind(ctx context.Context, claim order.Claim, i order.Intent, at time.Time) error {
	c := &call{ctx: ctx, id: claim.Order.ID(), claim: claim, intent: i, at: at}
	return s.call(ordertest.Bind, c, func() error { return s.Memory.Bind(ctx, c.claim, c.intent, at) })
}

func (s store) Finish(ctx context.Context, claim order.Claim, o order.Outcome, at time.Time) error {
	c := &call{ctx: ctx, id: claim.Order.ID(), claim: claim, outcome: o, at: at}
	return s.call(ordertest.Finish, c, func() error { return s.Memory.Finish(ctx, c.claim, c.outcome, at) })
}

func (s store) Release(ctx context.Context, claim order.Claim, why order.Reason, at time.Time) error {
	c := &call{ctx: ctx, id: claim.Order.ID(), claim: claim, at: at}
	return s.call(ordertest.Release, c, func() error { return s.Memory.Release(ctx, c.claim, why, at) })
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

// storeBug is a store that breaks one promise.
type storeBug struct {
	breaks string // the promise, as TestStore names it
	bug    string
	on     ordertest.Call
	do     func(c *call) error
}

// afterCall changes the record after a successful call.
func afterCall(change func(c *call, r *order.Record)) func(*call) error {
	return func(c *call) error {
		err := c.pass()
		if err == nil {
			c.edit(func(r *order.Record) { change(c, r) })
		}
		return err
	}
}

// beforeCall changes the record, or the arguments, before the call.
func beforeCall(change func(c *call, r *order.Record)) func(*call) error {
	return func(c *call) error {
		c.edit(func(r *order.Record) { change(c, r) })
		return c.pass()
	}
}

// returnIf returns err without a call if when holds.
func returnIf(when func(c *call) bool, err error) func(*call) error {
	return func(c *call) error {
		if when(c) {
			return err
		}
		return c.pass()
	}
}

// replaceError replaces the error of a call.
func replaceError(old, replacement error) func(*call) error {
	return func(c *call) error {
		if err := c.pass(); !errors.Is(err, old) {
			return err
		}
		return replacement
	}
}

// createRecord creates a record for an unknown order.
func createRecord(c *call) error {
	if c.exists() {
		return c.pass()
	}
	_, _ = c.m.Begin(c.ctx, ordertest.Order(c.id), order.Lease{Owner: "other", From: c.at, Until: c.at})
	if c.record.OrderID != "" {
		return order.ErrStale // to Settle
	}
	return order.ErrClaimLost
}

// anyOwner accepts every claim.
func anyOwner(c *call, r *order.Record) { c.claim.Lease.Owner = r.Owner }

func brokenBegins() []storeBug {
	return []storeBug{
		{
			"a new order is claimed", "the time is missing", ordertest.Begin,
			afterCall(func(_ *call, r *order.Record) { r.CreatedAt = time.Time{} }),
		},
		{"a new order is claimed", "the first attempt is number 0", ordertest.Begin, func(c *call) error {
			err := c.pass()
			c.claim.Attempt--
			return err
		}},
		{
			"an order whose lease has expired is taken over with its intent",
			"the next attempt knows no intent",
			ordertest.Begin,
			func(c *call) error {
				err := c.pass()
				c.claim.Intent = ""
				return err
			},
		},
		{
			"an order whose lease has expired is taken over with its intent", "the intent is lost", ordertest.Begin,
			beforeCall(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"an order whose lease has expired is taken over with its intent",
			"the order is as old as its last attempt", ordertest.Begin,
			afterCall(func(c *call, r *order.Record) { r.CreatedAt = c.at }),
		},
	}
}

func brokenLeases() []storeBug {
	return []storeBug{
		{
			"a lease is respected through its last millisecond",
			"a lease ends early",
			ordertest.Begin,
			func(c *call) error {
				c.lease.From = c.lease.From.Add(time.Millisecond)
				return c.pass()
			},
		},
		{
			"a lease is respected through its last millisecond",
			"a lease ends late",
			ordertest.Begin,
			func(c *call) error {
				c.lease.From = c.lease.From.Add(-time.Millisecond)
				return c.pass()
			},
		},
		{
			"a lease is respected through its last millisecond",
			"the error has no time",
			ordertest.Begin,
			func(c *call) error {
				err := c.pass()
				if held, ok := errors.AsType[*order.InProgressError](err); ok {
					held.Until = time.Time{}
				}
				return err
			},
		},
		{
			"a lease longer than the maximum is ignored",
			"a clock that went backwards blocks the order", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); r.UpdatedAt.After(c.lease.From) {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"a lease longer than the maximum is ignored", "every lease is respected", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); r.Owner != c.lease.Owner && r.Until.After(c.lease.From) {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"the longest lease of the most skewed clock is respected", "skew is not allowed for", ordertest.Begin,
			beforeCall(func(c *call, r *order.Record) {
				if r.Until.After(c.lease.From.Add(order.MaxLease)) {
					r.Until = time.Time{}
				}
			}),
		},
		{
			"begin again by the same owner is no new attempt", "the owner's own lease blocks it", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); r.Owner == c.lease.Owner {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"begin again by the same owner is no new attempt", "it counts as another attempt", ordertest.Begin,
			beforeCall(func(c *call, r *order.Record) {
				if r.Owner == c.lease.Owner {
					r.Attempt++
				}
			}),
		},
	}
}

func brokenRefusals() []storeBug {
	return []storeBug{
		{
			"begin with different content returns ErrConflict",
			"only the id counts", ordertest.Begin, beforeCall(sameContent),
		},
		{
			"begin with different content returns ErrConflict",
			"content is compared only after the lease", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); !c.lease.From.After(r.Until) && c.exists() && r.Owner != c.lease.Owner {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"begin of a settled order returns its record", "it is in progress", ordertest.Begin,
			returnIf(func(c *call) bool { return c.row().Seq > 0 }, &order.InProgressError{}),
		},
		{
			"begin of a settled order returns its record", "the intent is missing", ordertest.Begin,
			func(c *call) error {
				err := c.pass()
				if settled, ok := errors.AsType[*order.SettledError](err); ok {
					settled.Record.Intent = ""
				}
				return err
			},
		},
		{
			"a conflict is reported before the settled status",
			"the settled status is reported first", ordertest.Begin,
			beforeCall(func(c *call, r *order.Record) {
				if r.Status == order.Paid {
					sameContent(c, r)
				}
			}),
		},
		{
			"begin by the owner that settled the order returns its record",
			"the owner can begin again", ordertest.Begin,
			returnIf(func(c *call) bool { return c.row().Seq > 0 && c.lease.Owner == "first" }, nil),
		},
		{
			"begin with an unknown fingerprint version changes nothing", "it is a conflict", ordertest.Begin,
			replaceError(order.ErrUnknownVersion, order.ErrConflict),
		},
		{
			"begin with an unknown fingerprint version changes nothing", "the record is overwritten", ordertest.Begin,
			beforeCall(func(c *call, r *order.Record) {
				if strings.HasPrefix(string(r.Fingerprint), "v999:") {
					sameContent(c, r)
				}
			}),
		},
		{
			"two orders are independent", "begin of one writes to the other", ordertest.Begin,
			func(c *call) error {
				c.m.Edit(
					order.ID(strings.TrimSuffix(string(c.id), "-2")),
					func(r *order.Record) { r.UpdatedAt = c.at.Add(time.Hour) },
				)
				return c.pass()
			},
		},
	}
}

func sameContent(c *call, r *order.Record) { r.Fingerprint = c.order.Fingerprint() }

func brokenBinds() []storeBug {
	noIntent := func(_ *call, r *order.Record) { r.Intent = "" }
	return []storeBug{
		{"bind writes the intent", "nothing is written", ordertest.Bind, func(*call) error { return nil }},
		{
			"bind writes the intent", "its mode is not written", ordertest.Bind,
			afterCall(func(_ *call, r *order.Record) { r.Mode = "" }),
		},
		{
			"bind of the same intent again succeeds", "the second bind fails", ordertest.Bind,
			returnIf(func(c *call) bool { return c.row().Intent != "" }, order.ErrClaimLost),
		},
		{
			"bind of the same intent again succeeds", "it counts as another attempt", ordertest.Bind,
			beforeCall(func(c *call, r *order.Record) {
				if r.Intent == c.intent.ID {
					r.Attempt++
				}
			}),
		},
		{
			"bind of another intent returns ErrClaimLost",
			"the last bind counts", ordertest.Bind, beforeCall(noIntent),
		},
		{
			"bind after the claim was lost changes nothing",
			"the owner is not compared", ordertest.Bind, beforeCall(anyOwner),
		},
		{
			"bind after the claim was lost changes nothing", "it fails and writes", ordertest.Bind,
			func(c *call) error {
				c.edit(func(r *order.Record) { r.LastError = "refused" })
				return c.pass()
			},
		},
		{
			"bind after the claim was lost changes nothing",
			"the owner is not compared if the intent is bound", ordertest.Bind,
			returnIf(func(c *call) bool { return c.row().Intent == c.intent.ID }, nil),
		},
		{
			"bind of a settled order returns ErrClaimLost", "a settled order can still be bound", ordertest.Bind,
			returnIf(func(c *call) bool { return c.row().Seq > 0 }, nil),
		},
		{"bind of an unknown order creates no record", "it creates one", ordertest.Bind, createRecord},
	}
}

func brokenFinishes() []storeBug {
	return []storeBug{
		{
			"finish settles with one event and ends the claim", "there is no event", ordertest.Finish,
			afterCall(func(_ *call, r *order.Record) { r.Events = nil }),
		},
		{
			"finish settles with one event and ends the claim", "the claim goes on", ordertest.Finish,
			afterCall(func(c *call, r *order.Record) { r.Owner = c.owner() }),
		},
		{
			"finish settles with one event and ends the claim", "a pending order waits for nothing", ordertest.Finish,
			afterCall(func(_ *call, r *order.Record) { r.DueAt = time.Time{} }),
		},
		{
			"finish again with the same outcome changes nothing", "it updates the time", ordertest.Finish,
			afterCall(func(c *call, r *order.Record) { r.UpdatedAt = c.at }),
		},
		{
			"finish with another outcome returns ErrClaimLost", "every outcome succeeds", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Seq > 0 }, nil),
		},
		{
			"finish with another outcome returns ErrClaimLost", "the status is not compared", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Seq > 0 && c.row().Intent == c.outcome.Intent }, nil),
		},
		{
			"finish with another outcome returns ErrClaimLost", "the intent is not compared", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Status == c.outcome.Status }, nil),
		},
		{
			"finish with an invalid transition returns a TransitionError", "it returns ErrClaimLost", ordertest.Finish,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.TransitionError)) {
					return err
				}
				return order.ErrClaimLost
			},
		},
		{
			"finish with an intent that is not bound returns ErrClaimLost",
			"the intent is not compared", ordertest.Finish,
			beforeCall(func(c *call, r *order.Record) { c.outcome.Intent = r.Intent }),
		},
		{
			"finish with an intent that is not bound returns ErrClaimLost",
			"the intent is not compared if none is bound", ordertest.Finish,
			beforeCall(func(c *call, r *order.Record) {
				if r.Intent == "" {
					r.Intent = c.outcome.Intent
				}
			}),
		},
		{
			"finish after the claim was lost changes nothing",
			"the owner is not compared", ordertest.Finish, beforeCall(anyOwner),
		},
		{
			"finish after the claim was lost succeeds if the outcome is recorded",
			"it returns ErrClaimLost", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Owner != c.owner() }, order.ErrClaimLost),
		},
		{
			"finish after the claim was lost succeeds if the outcome is recorded",
			"it always succeeds", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Seq > 0 }, nil),
		},
		{"finish of an unknown order creates no record", "it creates one", ordertest.Finish, createRecord},
	}
}

func brokenRefused() []storeBug {
	return []storeBug{
		{
			"begin reopens a refused order and adds an event", "there is no event", ordertest.Begin,
			afterCall(func(_ *call, r *order.Record) {
				if r.Seq > 1 {
					r.Events = r.Events[:1]
				}
			}),
		},
		{
			"begin reopens a refused order and adds an event", "it stays settled", ordertest.Begin,
			returnIf(func(c *call) bool { return c.row().Status == order.Refused }, &order.SettledError{}),
		},
		{
			"begin reopens a refused order and adds an event", "it stays parked", ordertest.Begin,
			afterCall(func(c *call, r *order.Record) {
				if r.Seq > 1 {
					r.ParkedAt = c.at
				}
			}),
		},
		{
			"begin reopens a refused order with its intent", "the intent is lost", ordertest.Begin,
			beforeCall(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"finish records a refusal without an intent", "it needs an intent", ordertest.Finish,
			returnIf(func(c *call) bool { return c.outcome.Intent == "" }, order.ErrClaimLost),
		},
		{
			"finish records a refusal without an intent", "paid needs no intent either", ordertest.Finish,
			returnIf(func(c *call) bool { return c.outcome.Intent == "" && c.outcome.Status == order.Paid }, nil),
		},
		{
			"settle of a refused order records a late payment", "no status follows refused", settle,
			returnIf(func(c *call) bool { return c.record.Status == order.Refused }, order.ErrStale),
		},
		{
			"begin and load of a corrupt record return ErrCorrupt", "begin ignores it", ordertest.Begin,
			returnIf(func(c *call) bool { return c.row().Attempt > 0 }, nil),
		},
		{
			"begin and load of a corrupt record return ErrCorrupt", "load ignores it", load,
			replaceError(order.ErrCorrupt, nil),
		},
		{
			"begin and load of an unknown status return ErrUnknownVersion", "it is corrupt", load,
			replaceError(order.ErrUnknownVersion, order.ErrCorrupt),
		},
	}
}

func brokenParks() []storeBug {
	return []storeBug{
		{
			"park records the time and the reason and nothing else", "the time is missing", park,
			afterCall(func(_ *call, r *order.Record) { r.ParkedAt = time.Time{} }),
		},
		{
			"park records the time and the reason and nothing else", "it ends the claim", park,
			afterCall(func(_ *call, r *order.Record) { r.Owner = "" }),
		},
		{
			"park of a settled order changes nothing", "it is parked", park,
			func(c *call) error {
				c.edit(func(r *order.Record) { r.ParkedAt = c.at })
				return nil
			},
		},
		{
			"park with different content changes nothing", "only the id counts", park,
			func(c *call) error {
				c.order = ordertest.Order(c.id)
				return c.pass()
			},
		},
		{"park of an unknown order creates no record", "it creates one", park, func(c *call) error {
			_, _ = c.m.Begin(c.ctx, c.order, order.Lease{Owner: "other", From: c.at, Until: c.at})
			return nil
		}},
		{
			"finish clears the park note", "the note stays", ordertest.Finish,
			afterCall(func(c *call, r *order.Record) { r.ParkedAt = c.at }),
		},
	}
}

func brokenReleases() []storeBug {
	return []storeBug{
		{
			"release lets the next attempt begin at once", "the lease runs on", ordertest.Release,
			func(c *call) error {
				until := c.row().Until
				err := c.pass()
				c.edit(func(r *order.Record) { r.Until = until })
				return err
			},
		},
		{
			"release lets the next attempt begin at once", "the reason is missing", ordertest.Release,
			afterCall(func(_ *call, r *order.Record) { r.LastError = "" }),
		},
		{
			"release lets the next attempt begin at once", "the intent is removed", ordertest.Release,
			afterCall(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"a released claim is lost", "the claim can still bind", ordertest.Bind,
			returnIf(func(c *call) bool { return c.row().Owner == "" }, nil),
		},
		{
			"a released claim is lost", "the claim can still finish", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Owner == "" }, nil),
		},
		{
			"a released claim is lost", "the claim can be released again", ordertest.Release,
			afterCall(func(c *call, r *order.Record) { r.Owner = c.owner() }),
		},
		{
			"release after the claim was lost changes nothing",
			"the owner is not compared", ordertest.Release, beforeCall(anyOwner),
		},
		{
			"release of a settled order changes nothing", "it writes the reason", ordertest.Release,
			func(c *call) error {
				c.edit(func(r *order.Record) { r.LastError = "too late" })
				return c.pass()
			},
		},
		{"release of an unknown order creates no record", "it creates one", ordertest.Release, createRecord},
	}
}

func brokenRecords() []storeBug {
	return []storeBug{
		{
			"load of an unknown order returns ErrNotFound",
			"it returns an empty record", load, replaceError(order.ErrNotFound, nil),
		},
		{
			"load returns a copy", "it returns the stored events", load,
			func(c *call) error {
				err := c.pass()
				if err == nil {
					c.record = c.row()
				}
				return err
			},
		},
		{
			"settle adds its events in order", "earlier events are lost", settle,
			afterCall(func(_ *call, r *order.Record) { r.Events = r.Events[len(r.Events)-1:] }),
		},
		{
			"settle adds its events in order", "the newest event comes first", settle,
			afterCall(func(_ *call, r *order.Record) {
				r.Events = slices.Clone(r.Events)
				slices.Reverse(r.Events)
			}),
		},
		{
			"settle as paid clears the failure", "it stays", settle,
			afterCall(func(c *call, r *order.Record) { r.Failure = c.record.Failure }),
		},
		{
			"settle ends the claim of a running attempt", "the claim stays", settle,
			afterCall(func(c *call, r *order.Record) { r.Owner = c.record.Owner }),
		},
		{
			"settle ends the claim of a running attempt", "finish with the same outcome fails", ordertest.Finish,
			returnIf(func(c *call) bool { return c.row().Owner != c.owner() }, order.ErrClaimLost),
		},
		{
			"settle with the recorded outcome changes nothing", "it is stale", settle,
			returnIf(func(c *call) bool { return c.row().Seq > c.record.Seq }, order.ErrStale),
		},
		{
			"settle with the recorded outcome changes nothing", "it updates the time", settle,
			afterCall(func(c *call, r *order.Record) { r.UpdatedAt = c.at }),
		},
		{
			"settle of a record that changed returns ErrStale", "the status is not compared", settle,
			beforeCall(func(c *call, r *order.Record) { c.record.Status = r.Status }),
		},
		{
			"settle of a record that changed returns ErrStale", "the seq is not compared", settle,
			beforeCall(func(c *call, r *order.Record) { c.record.Seq = r.Seq }),
		},
		{
			"settle of a record that changed returns ErrStale", "the intent is not compared", settle,
			beforeCall(func(c *call, r *order.Record) { c.record.Intent = r.Intent }),
		},
		{
			"settle with another intent returns ErrStale", "the intent is not compared", settle,
			beforeCall(func(c *call, r *order.Record) { c.outcome.Intent = r.Intent }),
		},
		{
			"settle with an invalid transition returns a TransitionError", "it is stale", settle,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.TransitionError)) {
					return err
				}
				return order.ErrStale
			},
		},
		{"settle of an unknown order creates no record", "it creates one", settle, createRecord},
	}
}

func brokenRecreates() []storeBug {
	bound := func(c *call) bool { return c.row().Intent == c.record.Intent }
	return []storeBug{
		{
			"recreate writes an open record with the intent bound", "it binds no intent", recreate,
			afterCall(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"recreate writes an open record with the intent bound", "the mode is missing", recreate,
			afterCall(func(_ *call, r *order.Record) { r.Mode = "" }),
		},
		{
			"recreate writes an open record with the intent bound", "its due time is missing", recreate,
			afterCall(func(_ *call, r *order.Record) { r.DueAt = time.Time{} }),
		},
		{
			"a recreated order is taken over with its intent and its customer",
			"the customer stays empty", ordertest.Begin,
			afterCall(func(_ *call, r *order.Record) { r.CustomerID = "" }),
		},
		{
			"recreate binds the intent to an open record without one", "every existing record is rejected", recreate,
			returnIf((*call).exists, &order.SettledError{}),
		},
		{
			"recreate binds the intent to an open record without one", "it counts as another attempt", recreate,
			beforeCall(func(_ *call, r *order.Record) { r.Attempt++ }),
		},
		{
			"recreate of the bound intent changes nothing", "it is rejected", recreate,
			returnIf(bound, &order.SettledError{}),
		},
		{
			"recreate over another bound intent returns a MismatchError", "it overwrites the intent", recreate,
			beforeCall(func(c *call, r *order.Record) { r.Intent = c.record.Intent }),
		},
		{
			"recreate with different content returns ErrConflict", "only the id counts", recreate,
			beforeCall(func(c *call, r *order.Record) { r.Fingerprint = c.record.Fingerprint }),
		},
		{
			"recreate with an unknown fingerprint version returns ErrUnknownVersion", "it is a conflict", recreate,
			replaceError(order.ErrUnknownVersion, order.ErrConflict),
		},
		{
			"recreate during a running lease returns an InProgressError", "it ignores the lease", recreate,
			beforeCall(func(_ *call, r *order.Record) { r.Until = time.Time{} }),
		},
		{
			"recreate ignores a lease longer than a function can run", "every lease is respected", recreate,
			func(c *call) error {
				if r := c.row(); r.Until.After(c.at) {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"recreate ends the claim of an expired lease", "the claim stays", recreate,
			func(c *call) error {
				owner := c.row().Owner
				err := c.pass()
				c.edit(func(r *order.Record) { r.Owner = owner })
				return err
			},
		},
	}
}

// brokenRaces lose no race: a bug that depends on timing would fail only sometimes.
func brokenRaces() []storeBug {
	return []storeBug{
		{
			"of fifty concurrent begins one succeeds", "all succeed", ordertest.Begin,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.InProgressError)) {
					return err
				}
				return nil
			},
		},
		{
			"of fifty concurrent begins of a refused order one succeeds", "all succeed", ordertest.Begin,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.InProgressError)) {
					return err
				}
				return nil
			},
		},
		{
			"of fifty concurrent attempts only the last binds its intent",
			"all succeed",
			ordertest.Bind,
			replaceError(order.ErrClaimLost, nil),
		},
		{
			"fifty concurrent binds of one claim bind one intent",
			"all succeed",
			ordertest.Bind,
			replaceError(order.ErrClaimLost, nil),
		},
		{
			"fifty concurrent finishes record one outcome and one event",
			"all succeed",
			ordertest.Finish,
			replaceError(order.ErrClaimLost, nil),
		},
		{
			"fifty concurrent finishes record one outcome and one event", "each one adds an event", ordertest.Finish,
			afterCall(func(_ *call, r *order.Record) {
				r.Events = append(slices.Clip(r.Events), order.Event{Seq: len(r.Events) + 1})
			}),
		},
		{
			"of fifty concurrent begins one succeeds",
			"the others get ErrClaimLost", ordertest.Begin, func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.InProgressError)) {
					return err
				}
				return order.ErrClaimLost
			},
		},
	}
}

func brokenStores() []storeBug {
	return slices.Concat(
		brokenBegins(), brokenLeases(), brokenRefusals(), brokenBinds(), brokenFinishes(), brokenRefused(),
		brokenParks(), brokenReleases(), brokenRecords(), brokenRecreates(), brokenRaces(),
	)
}

func TestEveryBrokenStoreFailsItsPromise(t *testing.T) {
	t.Parallel()
	var broken []string
	for _, b := range brokenStores() {
		broken = append(broken, b.breaks)
		p := findPromise(t, ordertest.StorePromises(), b.breaks)
		t.Run(b.breaks+" - "+b.bug, func(t *testing.T) {
			t.Parallel()
			wrong, right := store{Memory: new(ordertest.Memory), on: b.on, do: b.do}, store{Memory: new(ordertest.Memory)}
			if got := runPromise[ordertest.Store](t, p, wrong); !got.Failed() {
				t.Error("got no failure, want the promise to fail")
			}
			if got := runPromise[ordertest.Store](t, p, right); got.Failed() {
				t.Errorf("without the bug: got failure %s, want none", got)
			}
		})
	}
	if missing := uncovered(ordertest.StorePromises(), broken); len(missing) > 0 {
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
