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

// The calls that ordertest does not name.
const (
	load     ordertest.Call = "load"
	settle   ordertest.Call = "settle"
	recreate ordertest.Call = "recreate"
	park     ordertest.Call = "park"
)

// call is a call to a store on its way, with what it brings and what it is answered.
type call struct {
	ctx context.Context
	m   *ordertest.Memory

	id      order.ID
	order   order.Order
	lease   order.Lease
	claim   order.Claim // of Begin: its answer
	intent  order.Intent
	outcome order.Outcome
	record  order.Record // of Load: its answer; of Settle: as it was seen; of Recreate: as it was lost
	at      time.Time

	pass func() error // what Memory does with all this
}

func (c *call) row() order.Record                 { return c.m.Row(c.id) }
func (c *call) edit(change func(r *order.Record)) { c.m.Edit(c.id, change) }
func (c *call) known() bool                       { return c.row().Attempt > 0 }
func (c *call) owner() string                     { return c.claim.Lease.Owner }

// store is a Memory that does one kind of call its own way.
type store struct {
	*ordertest.Memory

	on   ordertest.Call
	does func(c *call) error
}

func (s store) call(kind ordertest.Call, c *call, pass func() error) error {
	c.m, c.pass = s.Memory, pass
	if kind == s.on {
		return s.does(c)
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
	does   func(c *call) error
}

// then lets the call happen, and what it wrote be otherwise.
func then(change func(c *call, r *order.Record)) func(*call) error {
	return func(c *call) error {
		err := c.pass()
		if err == nil {
			c.edit(func(r *order.Record) { change(c, r) })
		}
		return err
	}
}

// first lets the call find a record, or its own arguments, otherwise than they are.
func first(change func(c *call, r *order.Record)) func(*call) error {
	return func(c *call) error {
		c.edit(func(r *order.Record) { change(c, r) })
		return c.pass()
	}
}

// unless answers some calls without a look at the rules.
func unless(when func(c *call) bool, answer error) func(*call) error {
	return func(c *call) error {
		if when(c) {
			return answer
		}
		return c.pass()
	}
}

// instead is another answer to what would be refused with this error.
func instead(of, answer error) func(*call) error {
	return func(c *call) error {
		if err := c.pass(); !errors.Is(err, of) {
			return err
		}
		return answer
	}
}

// leaves makes a record for an order that nobody began.
func leaves(c *call) error {
	if c.known() {
		return c.pass()
	}
	_, _ = c.m.Begin(c.ctx, ordertest.Order(c.id), order.Lease{Owner: "somebody", From: c.at, Until: c.at})
	if c.record.OrderID != "" {
		return order.ErrStale // to Settle
	}
	return order.ErrClaimLost
}

// anyOwner takes every claim for the one that holds the order.
func anyOwner(c *call, r *order.Record) { c.claim.Lease.Owner = r.Owner }

func brokenBegins() []storeBug {
	return []storeBug{
		{
			"a new order is claimed", "nobody knows since when", ordertest.Begin,
			then(func(_ *call, r *order.Record) { r.CreatedAt = time.Time{} }),
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
			"an order whose lease has expired is taken over with its intent", "the intent is forgotten", ordertest.Begin,
			first(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"an order whose lease has expired is taken over with its intent", "the order is as old as its last attempt", ordertest.Begin,
			then(func(c *call, r *order.Record) { r.CreatedAt = c.at }),
		},
	}
}

func brokenLeases() []storeBug {
	return []storeBug{
		{
			"a lease is respected through its last millisecond",
			"a lease ends before its end",
			ordertest.Begin,
			func(c *call) error {
				c.lease.From = c.lease.From.Add(time.Millisecond)
				return c.pass()
			},
		},
		{
			"a lease is respected through its last millisecond",
			"a lease holds beyond its end",
			ordertest.Begin,
			func(c *call) error {
				c.lease.From = c.lease.From.Add(-time.Millisecond)
				return c.pass()
			},
		},
		{
			"a lease is respected through its last millisecond",
			"nobody is told how long",
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
			"a lease longer than the maximum is ignored", "a clock that went backwards waits", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); r.UpdatedAt.After(c.lease.From) {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"a lease longer than the maximum is ignored", "every lease is believed", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); r.Owner != c.lease.Owner && r.Until.After(c.lease.From) {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"the longest lease of the most skewed clock is respected", "no clock is skewed", ordertest.Begin,
			first(func(c *call, r *order.Record) {
				if r.Until.After(c.lease.From.Add(order.MaxLease)) {
					r.Until = time.Time{}
				}
			}),
		},
		{
			"begin again by the same owner is no new attempt", "our own lease is in our way", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); r.Owner == c.lease.Owner {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"begin again by the same owner is no new attempt", "it counts as another attempt", ordertest.Begin,
			first(func(c *call, r *order.Record) {
				if r.Owner == c.lease.Owner {
					r.Attempt++
				}
			}),
		},
	}
}

func brokenRefusals() []storeBug {
	return []storeBug{
		{"begin with different content returns ErrConflict", "only the id counts", ordertest.Begin, first(sameContent)},
		{
			"begin with different content returns ErrConflict", "content counts once the lease is over", ordertest.Begin,
			func(c *call) error {
				if r := c.row(); !c.lease.From.After(r.Until) && c.known() && r.Owner != c.lease.Owner {
					return &order.InProgressError{Until: r.Until}
				}
				return c.pass()
			},
		},
		{
			"begin of a settled order returns its record", "what is settled is in progress", ordertest.Begin,
			unless(func(c *call) bool { return c.row().Seq > 0 }, &order.InProgressError{}),
		},
		{
			"begin of a settled order returns its record", "nobody is told which intent", ordertest.Begin,
			func(c *call) error {
				err := c.pass()
				if settled, ok := errors.AsType[*order.SettledError](err); ok {
					settled.Record.Intent = ""
				}
				return err
			},
		},
		{
			"a conflict is reported before the settled status", "settled is told before a conflict", ordertest.Begin,
			first(func(c *call, r *order.Record) {
				if r.Status == order.Paid {
					sameContent(c, r)
				}
			}),
		},
		{
			"begin by the owner that settled the order returns its record", "an owner is remembered for ever", ordertest.Begin,
			unless(func(c *call) bool { return c.row().Seq > 0 && c.lease.Owner == "first" }, nil),
		},
		{
			"begin with an unknown fingerprint version changes nothing", "what nobody can read is other content", ordertest.Begin,
			instead(order.ErrUnknownVersion, order.ErrConflict),
		},
		{
			"begin with an unknown fingerprint version changes nothing", "what nobody can read is written anew", ordertest.Begin,
			first(func(c *call, r *order.Record) {
				if strings.HasPrefix(string(r.Fingerprint), "v999:") {
					sameContent(c, r)
				}
			}),
		},
		{
			"two orders are independent", "a settled order notes that another one was begun", ordertest.Begin,
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
			then(func(_ *call, r *order.Record) { r.Mode = "" }),
		},
		{
			"bind of the same intent again succeeds", "an intent is bound once and never again", ordertest.Bind,
			unless(func(c *call) bool { return c.row().Intent != "" }, order.ErrClaimLost),
		},
		{
			"bind of the same intent again succeeds", "it counts as another attempt", ordertest.Bind,
			first(func(c *call, r *order.Record) {
				if r.Intent == c.intent.ID {
					r.Attempt++
				}
			}),
		},
		{"bind of another intent returns ErrClaimLost", "the last bind counts", ordertest.Bind, first(noIntent)},
		{"bind after the claim was lost changes nothing", "anybody binds", ordertest.Bind, first(anyOwner)},
		{
			"bind after the claim was lost changes nothing", "it is refused and written", ordertest.Bind,
			func(c *call) error {
				c.edit(func(r *order.Record) { r.LastError = "refused" })
				return c.pass()
			},
		},
		{
			"bind after the claim was lost changes nothing", "what is bound may be said by anybody", ordertest.Bind,
			unless(func(c *call) bool { return c.row().Intent == c.intent.ID }, nil),
		},
		{
			"bind of a settled order returns ErrClaimLost", "a settled order can still be bound", ordertest.Bind,
			unless(func(c *call) bool { return c.row().Seq > 0 }, nil),
		},
		{"bind of an unknown order creates no record", "it makes one", ordertest.Bind, leaves},
	}
}

func brokenFinishes() []storeBug {
	return []storeBug{
		{
			"finish settles with one event and ends the claim", "there is no event", ordertest.Finish,
			then(func(_ *call, r *order.Record) { r.Events = nil }),
		},
		{
			"finish settles with one event and ends the claim", "the claim goes on", ordertest.Finish,
			then(func(c *call, r *order.Record) { r.Owner = c.owner() }),
		},
		{
			"finish settles with one event and ends the claim", "a pending order waits for nothing", ordertest.Finish,
			then(func(_ *call, r *order.Record) { r.DueAt = time.Time{} }),
		},
		{
			"finish again with the same outcome changes nothing", "the record says when it was said last", ordertest.Finish,
			then(func(c *call, r *order.Record) { r.UpdatedAt = c.at }),
		},
		{
			"finish with another outcome returns ErrClaimLost", "a settled order swallows every outcome", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Seq > 0 }, nil),
		},
		{
			"finish with another outcome returns ErrClaimLost", "another status is fine for the same intent", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Seq > 0 && c.row().Intent == c.outcome.Intent }, nil),
		},
		{
			"finish with another outcome returns ErrClaimLost", "another intent is fine for the same status", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Status == c.outcome.Status }, nil),
		},
		{
			"finish with an invalid transition returns a TransitionError", "it is fenced", ordertest.Finish,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.TransitionError)) {
					return err
				}
				return order.ErrClaimLost
			},
		},
		{
			"finish with an intent that is not bound returns ErrClaimLost", "any intent will do", ordertest.Finish,
			first(func(c *call, r *order.Record) { c.outcome.Intent = r.Intent }),
		},
		{
			"finish with an intent that is not bound returns ErrClaimLost", "any intent will do where none is bound", ordertest.Finish,
			first(func(c *call, r *order.Record) {
				if r.Intent == "" {
					r.Intent = c.outcome.Intent
				}
			}),
		},
		{"finish after the claim was lost changes nothing", "anybody finishes", ordertest.Finish, first(anyOwner)},
		{
			"finish after the claim was lost succeeds if the outcome is recorded", "it is fenced all the same", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Owner != c.owner() }, order.ErrClaimLost),
		},
		{
			"finish after the claim was lost succeeds if the outcome is recorded", "it is fine whatever the record says", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Seq > 0 }, nil),
		},
		{"finish of an unknown order creates no record", "it makes one", ordertest.Finish, leaves},
	}
}

func brokenRefused() []storeBug {
	return []storeBug{
		{
			"begin reopens a refused order and adds an event", "there is no event", ordertest.Begin,
			then(func(_ *call, r *order.Record) {
				if r.Seq > 1 {
					r.Events = r.Events[:1]
				}
			}),
		},
		{
			"begin reopens a refused order and adds an event", "it is settled for ever", ordertest.Begin,
			unless(func(c *call) bool { return c.row().Status == order.StatusRefused }, &order.SettledError{}),
		},
		{
			"begin reopens a refused order and adds an event", "it stays parked", ordertest.Begin,
			then(func(c *call, r *order.Record) {
				if r.Seq > 1 {
					r.ParkedAt = c.at
				}
			}),
		},
		{
			"begin reopens a refused order with its intent", "the intent is forgotten", ordertest.Begin,
			first(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"finish records a refusal without an intent", "it needs an intent", ordertest.Finish,
			unless(func(c *call) bool { return c.outcome.Intent == "" }, order.ErrClaimLost),
		},
		{
			"finish records a refusal without an intent", "any outcome may do without", ordertest.Finish,
			unless(func(c *call) bool { return c.outcome.Intent == "" && c.outcome.Status == order.Paid }, nil),
		},
		{
			"settle of a refused order records a late payment", "refused is the end", settle,
			unless(func(c *call) bool { return c.record.Status == order.StatusRefused }, order.ErrStale),
		},
		{
			"begin and load of a corrupt record return ErrCorrupt", "it is begun", ordertest.Begin,
			unless(func(c *call) bool { return c.row().Attempt > 0 }, nil),
		},
		{
			"begin and load of a corrupt record return ErrCorrupt", "it is loaded", load,
			instead(order.ErrCorrupt, nil),
		},
		{
			"begin and load of an unknown status return ErrUnknownVersion", "it is corrupt", load,
			instead(order.ErrUnknownVersion, order.ErrCorrupt),
		},
	}
}

func brokenParks() []storeBug {
	return []storeBug{
		{
			"park records the time and the reason and nothing else", "nobody knows since when", park,
			then(func(_ *call, r *order.Record) { r.ParkedAt = time.Time{} }),
		},
		{
			"park records the time and the reason and nothing else", "it ends the claim", park,
			then(func(_ *call, r *order.Record) { r.Owner = "" }),
		},
		{
			"park of a settled order changes nothing", "it is parked all the same", park,
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
		{"park of an unknown order creates no record", "it makes one", park, func(c *call) error {
			_, _ = c.m.Begin(c.ctx, c.order, order.Lease{Owner: "somebody", From: c.at, Until: c.at})
			return nil
		}},
		{
			"finish clears the park note", "the note stays", ordertest.Finish,
			then(func(c *call, r *order.Record) { r.ParkedAt = c.at }),
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
			"release lets the next attempt begin at once", "nobody is told why", ordertest.Release,
			then(func(_ *call, r *order.Record) { r.LastError = "" }),
		},
		{
			"release lets the next attempt begin at once", "the intent goes with the claim", ordertest.Release,
			then(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"a released claim is lost", "whoever let go may still bind", ordertest.Bind,
			unless(func(c *call) bool { return c.row().Owner == "" }, nil),
		},
		{
			"a released claim is lost", "whoever let go may still finish", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Owner == "" }, nil),
		},
		{
			"a released claim is lost", "who let go still holds it", ordertest.Release,
			then(func(c *call, r *order.Record) { r.Owner = c.owner() }),
		},
		{"release after the claim was lost changes nothing", "anybody lets go", ordertest.Release, first(anyOwner)},
		{
			"release of a settled order changes nothing", "it notes why", ordertest.Release,
			func(c *call) error {
				c.edit(func(r *order.Record) { r.LastError = "too late" })
				return c.pass()
			},
		},
		{"release of an unknown order creates no record", "it makes one", ordertest.Release, leaves},
	}
}

func brokenRecords() []storeBug {
	return []storeBug{
		{"load of an unknown order returns ErrNotFound", "it is found empty", load, instead(order.ErrNotFound, nil)},
		{
			"load returns a copy", "it is the store's own", load,
			func(c *call) error {
				err := c.pass()
				if err == nil {
					c.record = c.row()
				}
				return err
			},
		},
		{
			"settle adds its events in order", "the last event is the only one", settle,
			then(func(_ *call, r *order.Record) { r.Events = r.Events[len(r.Events)-1:] }),
		},
		{
			"settle adds its events in order", "the newest event comes first", settle,
			then(func(_ *call, r *order.Record) {
				r.Events = slices.Clone(r.Events)
				slices.Reverse(r.Events)
			}),
		},
		{
			"settle as paid clears the failure", "it stays", settle,
			then(func(c *call, r *order.Record) { r.Failure = c.record.Failure }),
		},
		{
			"settle ends the claim of a running attempt", "the attempt works on", settle,
			then(func(c *call, r *order.Record) { r.Owner = c.record.Owner }),
		},
		{
			"settle ends the claim of a running attempt", "the attempt is not told that it was settled", ordertest.Finish,
			unless(func(c *call) bool { return c.row().Owner != c.owner() }, order.ErrClaimLost),
		},
		{
			"settle with the recorded outcome changes nothing", "it is stale", settle,
			unless(func(c *call) bool { return c.row().Seq > c.record.Seq }, order.ErrStale),
		},
		{
			"settle with the recorded outcome changes nothing", "the record says when it was said last", settle,
			then(func(c *call, r *order.Record) { r.UpdatedAt = c.at }),
		},
		{
			"settle of a record that changed returns ErrStale", "its status does not count", settle,
			first(func(c *call, r *order.Record) { c.record.Status = r.Status }),
		},
		{
			"settle of a record that changed returns ErrStale", "its seq does not count", settle,
			first(func(c *call, r *order.Record) { c.record.Seq = r.Seq }),
		},
		{
			"settle of a record that changed returns ErrStale", "its intent does not count", settle,
			first(func(c *call, r *order.Record) { c.record.Intent = r.Intent }),
		},
		{
			"settle with another intent returns ErrStale", "any intent will do", settle,
			first(func(c *call, r *order.Record) { c.outcome.Intent = r.Intent }),
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
		{"settle of an unknown order creates no record", "it makes one", settle, leaves},
	}
}

func brokenRecreates() []storeBug {
	bound := func(c *call) bool { return c.row().Intent == c.record.Intent }
	return []storeBug{
		{
			"recreate writes an open record with the intent bound", "it binds no intent", recreate,
			then(func(_ *call, r *order.Record) { r.Intent = "" }),
		},
		{
			"recreate writes an open record with the intent bound", "its mode is lost", recreate,
			then(func(_ *call, r *order.Record) { r.Mode = "" }),
		},
		{
			"recreate writes an open record with the intent bound", "nobody looks at it again", recreate,
			then(func(_ *call, r *order.Record) { r.DueAt = time.Time{} }),
		},
		{
			"a recreated order is taken over with its intent and its customer", "its customer stays unknown", ordertest.Begin,
			then(func(_ *call, r *order.Record) { r.CustomerID = "" }),
		},
		{
			"recreate binds the intent to an open record without one", "a record is never touched", recreate,
			unless((*call).known, &order.SettledError{}),
		},
		{
			"recreate binds the intent to an open record without one", "it counts as another attempt", recreate,
			first(func(_ *call, r *order.Record) { r.Attempt++ }),
		},
		{
			"recreate of the bound intent changes nothing", "it is refused", recreate,
			unless(bound, &order.SettledError{}),
		},
		{
			"recreate over another bound intent returns a MismatchError", "the last intent counts", recreate,
			first(func(c *call, r *order.Record) { r.Intent = c.record.Intent }),
		},
		{
			"recreate with different content returns ErrConflict", "only the id counts", recreate,
			first(func(c *call, r *order.Record) { r.Fingerprint = c.record.Fingerprint }),
		},
		{
			"recreate with an unknown fingerprint version returns ErrUnknownVersion", "it is a conflict", recreate,
			instead(order.ErrUnknownVersion, order.ErrConflict),
		},
		{
			"recreate during a running lease returns an InProgressError", "it takes the order from its worker", recreate,
			first(func(_ *call, r *order.Record) { r.Until = time.Time{} }),
		},
		{
			"recreate ends the claim of an expired lease", "the attempt works on", recreate,
			func(c *call) error {
				owner := c.row().Owner
				err := c.pass()
				c.edit(func(r *order.Record) { r.Owner = owner })
				return err
			},
		},
	}
}

// brokenRaces say yes to everybody: whoever wins by jitter alone would be caught only now
// and then.
func brokenRaces() []storeBug {
	return []storeBug{
		{
			"of fifty concurrent begins one succeeds", "everybody may", ordertest.Begin,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.InProgressError)) {
					return err
				}
				return nil
			},
		},
		{
			"of fifty concurrent begins of a refused order one succeeds", "everybody may", ordertest.Begin,
			func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.InProgressError)) {
					return err
				}
				return nil
			},
		},
		{
			"of fifty concurrent attempts only the last binds its intent",
			"nobody is told no",
			ordertest.Bind,
			instead(order.ErrClaimLost, nil),
		},
		{
			"fifty concurrent binds of one claim bind one intent",
			"nobody is told no",
			ordertest.Bind,
			instead(order.ErrClaimLost, nil),
		},
		{
			"fifty concurrent finishes record one outcome and one event",
			"nobody is told no",
			ordertest.Finish,
			instead(order.ErrClaimLost, nil),
		},
		{
			"fifty concurrent finishes record one outcome and one event", "each one who agrees adds an event", ordertest.Finish,
			then(func(_ *call, r *order.Record) {
				r.Events = append(slices.Clip(r.Events), order.Event{Seq: len(r.Events) + 1})
			}),
		},
		{
			"of fifty concurrent begins one succeeds", "whoever loses is fenced", ordertest.Begin, func(c *call) error {
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
		brokenBegins(),
		brokenLeases(),
		brokenRefusals(),
		brokenBinds(),
		brokenFinishes(),
		brokenRefused(),
		brokenParks(),
		brokenReleases(),
		brokenRecords(),
		brokenRecreates(),
		brokenRaces(),
	)
}

func TestEveryBrokenStoreIsSeenByItsPromise(t *testing.T) {
	t.Parallel()
	var broken []string
	for _, b := range brokenStores() {
		broken = append(broken, b.breaks)
		p := find(t, ordertest.StorePromises(), b.breaks)
		t.Run(b.breaks+" - "+b.bug, func(t *testing.T) {
			t.Parallel()
			wrong, right := store{
				Memory: new(ordertest.Memory),
				on:     b.on,
				does:   b.does,
			}, store{
				Memory: new(ordertest.Memory),
			}
			if h := hear[ordertest.Store](t, p, wrong); !h.Failed() {
				t.Error("the suite sees nothing wrong")
			}
			if h := hear[ordertest.Store](t, p, right); h.Failed() {
				t.Errorf("the suite sees something wrong without the bug: %s", h)
			}
		})
	}
	covered(t, ordertest.StorePromises(), broken)
}

// unwritable is a store whose records no test can edit.
type unwritable struct{ ordertest.Store }

func TestAPromiseThatCannotBeTriedSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	p := find(t, ordertest.StorePromises(), "begin with an unknown fingerprint version changes nothing")
	h := hear[ordertest.Store](t, p, unwritable{new(ordertest.Memory)})
	if h.Failed() || !strings.Contains(h.String(), "ordertest.Editor") {
		t.Errorf("got %q, failed: %t; want a skip that names what to add", h, h.Failed())
	}
}
