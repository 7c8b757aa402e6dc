package oracle

import (
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/stage"
)

// change is a row before and after a step. before is the zero Record if there was no row.
type change struct {
	order         *tracked
	before, after order.Record
	cause         Cause
	used          bool // the owner had a claim before
}

// rule is what every change of a row must satisfy.
type rule struct {
	breaks stage.Invariant
	says   string
	holds  func(c *change) bool
}

// Rules are what every change of a row must satisfy. Many oracles can share them.
type Rules []rule

// NewRules returns the rules for rows. They cover every attribute of
// docs/reference/row.md, and every field of an event. docs/reference/proof-in-words.md
// says what each protects.
func NewRules() Rules {
	return Rules{
		{AsAllowed, "a new row is open, has one attempt and is blank otherwise", (*change).isFresh},
		{SettlesSoon, "owner and lease are set together, and only on an open row", (*change).isHeldOpen},
		{AsAllowed, "each claim counts one attempt and has an owner of its own", (*change).isClaimed},
		{SettlesSoon, "no attempt takes over an order whose lease has not ended", (*change).awaitsLease},
		{
			SettlesSoon, "a lease ends after its claim, and within the longest run of a function",
			func(c *change) bool {
				until := c.after.Until
				return !c.claims() || until.After(c.after.UpdatedAt) && !until.After(c.after.UpdatedAt.Add(longestRun))
			},
		},
		{AsAllowed, "only the owner of a claim binds, finishes and releases", (*change).isOwned},
		{AsAllowed, "an intent is bound once and stays bound", func(c *change) bool {
			return c.before.Intent == "" || c.after.Intent == c.before.Intent
		}},
		{BooksAgree, "the bound intent is the one that Stripe returned", func(c *change) bool {
			return c.after.Intent == c.before.Intent || c.cause.by == nil ||
				c.cause.call.Name == ordertest.Bind && string(c.after.Intent) == c.cause.known.intent
		}},
		{
			BooksAgree, "failure is Stripe's code of an order that was refused or waits for its customer",
			(*change).isExplained,
		},
		{
			EverythingEnds, "lastError is why the last attempt released its claim, or why the message was parked",
			(*change).hasReason,
		},
		{
			AsAllowed, "the intent of a lost row is noted by a release, and until an intent is bound",
			(*change).isSuspect,
		},
		{OneEventEach, "events are only added", func(c *change) bool {
			n := len(c.before.Events)
			return len(c.after.Events) >= n && slices.Equal(c.after.Events[:n], c.before.Events)
		}},
		{OneEventEach, "an event says what the change of its row says", (*change).isRecorded},
		{BooksAgree, "updatedAt is the time of the change by the clock of the caller", (*change).isDated},
		{BooksAgree, "createdAt is the time of the first claim", (*change).isAged},
		{
			EverythingEnds, "an unsettled order is in the index, and due when it is to be checked again",
			(*change).isDue,
		},
		{
			NoneForgotten, "a recheck postpones the next one by at most a day, or six hours if it failed, " +
				"and is the last of a declined order", (*change).isPostponed,
		},
		{
			AsAllowed, "a recheck that finds no outcome changes nothing but when the next one is due",
			func(c *change) bool {
				before := c.before
				before.DueAt = c.after.DueAt
				return !c.postpones() || unchanged(&before, &c.after)
			},
		},
	}
}

// checkRules checks a row against what it was after the last step.
func (o *Oracle) checkRules(x *tracked, r *order.Record, cause Cause) {
	if unchanged(&x.row, r) {
		return
	}
	c := &o.change
	*c = change{order: x, before: x.row, after: *r, cause: cause, used: slices.Contains(o.owners, r.Owner)}
	if c.claims() {
		o.owners = append(o.owners, r.Owner)
	}
	x.row = *r
	for _, rule := range o.rules {
		if !rule.holds(c) {
			o.note(rule.breaks, x.id, "not so: "+rule.says)
		}
	}
}

// unchanged reports whether at most the version of the fingerprint has changed. Every
// write changes a time, the owner, the status, the intent or a number.
func unchanged(a, b *order.Record) bool {
	return a.OrderID == b.OrderID && a.Owner == b.Owner && a.Status == b.Status &&
		a.Intent == b.Intent && a.Attempt == b.Attempt && a.Seq == b.Seq &&
		a.UpdatedAt.Equal(b.UpdatedAt) && a.CreatedAt.Equal(b.CreatedAt) && a.DueAt.Equal(b.DueAt) &&
		a.Until.Equal(b.Until) && a.Failure == b.Failure && a.LastError == b.LastError &&
		sameEvents(a.Events, b.Events)
}

// sameEvents does not compare the events of one slice with themselves.
func sameEvents(a, b []order.Event) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

func (c *change) isNew() bool { return c.before.OrderID == "" }

func (c *change) claims() bool { return c.after.Owner != "" && c.after.Owner != c.before.Owner }

func (c *change) parks() bool {
	return !c.after.ParkedAt.IsZero() && !c.after.ParkedAt.Equal(c.before.ParkedAt)
}

// postpones reports whether the reconciler made the change after a look without an
// outcome.
func (c *change) postpones() bool {
	return c.cause.by != nil && c.cause.call.Name == ordertest.Postpone
}

func (c *change) isPostponed() bool {
	least, waits := recheckAfter(c.after.Status)
	due := c.after.DueAt.Sub(c.cause.at)
	switch {
	case !c.postpones():
		return true
	case c.cause.known.recheckFailed():
		return due >= 15*time.Minute && due <= Day/4
	case c.after.Status == order.Declined: // which is looked at once
		return c.after.DueAt.IsZero()
	}
	return waits && due >= least && due <= Day
}

func (c *change) isFresh() bool {
	r := c.after
	return !c.isNew() ||
		r.OrderID == c.order.id && r.Status == order.Open && r.Attempt == 1 && r.Owner != "" && r.Seq == 0 &&
			r.Intent == "" && r.Failure == "" && r.LastError == ""
}

func (c *change) isClaimed() bool {
	if !c.claims() {
		return c.after.Attempt == c.before.Attempt
	}
	return !c.used && c.after.Attempt == c.before.Attempt+1
}

// awaitsLease reports whether the previous lease had ended, or was one that no honest
// clock could write.
func (c *change) awaitsLease() bool {
	until, now := c.before.Until, c.after.UpdatedAt
	return !c.claims() || c.before.Owner == "" || until.Before(now) ||
		until.After(now.Add(longestRun+HonestSkew))
}

func (c *change) isHeldOpen() bool {
	held := c.after.Owner != ""
	return held != c.after.Until.IsZero() && (!held || c.after.Status == order.Open)
}

func (c *change) isAged() bool {
	want := c.before.CreatedAt
	if c.isNew() {
		want = c.after.UpdatedAt
	}
	return c.after.CreatedAt.Equal(want)
}

func (c *change) isOwned() bool {
	by, call := c.cause.by, c.cause.call.Name
	writes := call == ordertest.Bind || call == ordertest.Finish || call == ordertest.Release
	return by == nil || !writes || by.owns(c.before.Owner)
}

func (c *change) hasReason() bool {
	why := c.after.LastError
	switch {
	case c.parks():
		return slices.Contains(c.order.parked, order.Reason(why))
	case c.cause.by != nil && c.cause.call.Name == ordertest.Release:
		return why != "" && why == c.cause.call.Detail
	}
	return why == c.before.LastError
}

func (c *change) isSuspect() bool {
	noted := c.cause.call.Name == ordertest.Release && c.cause.call.Detail == string(order.ReasonRecordLost)
	return c.after.Suspect == c.before.Suspect || c.before.Suspect == "" && noted ||
		c.after.Suspect == "" && c.after.Intent != ""
}

func (c *change) isExplained() bool {
	r := c.after
	switch {
	case r.Status == c.before.Status || c.isNew():
		return r.Failure == c.before.Failure
	case r.Status == order.Declined || r.Status == order.Canceled || r.Status == order.ActionRequired:
		return c.cause.by == nil || r.Failure == c.cause.known.failure
	case r.Status == order.Refused:
		return r.Failure != ""
	}
	return r.Failure == ""
}

// isDated compares the time with that of the call. A refresh reads the clock once, when
// it begins.
func (c *change) isDated() bool {
	switch {
	case c.cause.by == nil || c.parks() || c.postpones():
		return true
	case c.cause.known.stale && !c.after.UpdatedAt.Before(c.cause.known.tried): // again, on a changed row
		return !c.after.UpdatedAt.After(c.cause.at)
	case c.cause.call.Name == Settle:
		return !c.after.UpdatedAt.Before(c.cause.by.Begun) && !c.after.UpdatedAt.After(c.cause.at)
	}
	return c.after.UpdatedAt.Equal(c.cause.at)
}

func (c *change) isRecorded() bool {
	r := c.after
	if len(r.Events) <= len(c.before.Events) {
		return true // another rule says that events are only added
	}
	want := order.Event{
		Seq: r.Seq, From: c.before.Status, To: r.Status, Intent: r.Intent, Failure: r.Failure, At: r.UpdatedAt,
	}
	if !r.Dispute.Is(c.before.Dispute) {
		want.Dispute, want.Failure = r.Dispute, ""
	}
	return r.Events[len(r.Events)-1] == want
}

func (c *change) isDue() bool {
	after, waits := recheckAfter(c.after.Status)
	if !waits {
		return c.after.DueAt.IsZero()
	}
	due := c.after.DueAt.Sub(c.after.UpdatedAt)
	switch {
	case c.postpones():
		return true // another rule says by how much
	case c.claims() || c.after.Status != c.before.Status:
		return due == after
	}
	return !c.after.DueAt.IsZero() && (due <= after || c.after.DueAt.Equal(c.before.DueAt)) // that of the claim
}
