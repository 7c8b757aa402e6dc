package simulation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// knowledge is what a worker was told. The oracle holds what the worker does next against
// it.
type knowledge struct {
	order   order.ID       // of its last claim
	until   time.Time      // the end of its lease
	last    ordertest.Call // its last call
	asked   ordertest.Call // its last call to Stripe, and what came of it:
	trouble order.ErrorKind
	intent  string
	status  order.Status // what the intent meant at that moment
	failure string       // Stripe's code at that moment
	wrong   bool         // the answer was about something else
	noted   order.Reason // why it released its claim
}

// change is a row before and after a step. before is the zero Record if there was none.
type change struct {
	*World

	order         *watched
	before, after order.Record
}

// rule is what must hold for every change of a row.
type rule struct {
	breaks   Invariant
	says     string
	protects string
	holds    func(c *change) bool
}

// rules lists what a row must say. They are about every attribute of
// docs/reference/row.md, and about every field of an event.
func rules() []rule {
	return slices.Concat(claimRules(), contentRules(), timeRules())
}

func claimRules() []rule {
	return []rule{
		{
			AsAllowed, "a new row is open, has one attempt and is blank otherwise",
			"whatever is read from a row before its first change", (*change).isFresh,
		},
		{
			SettlesSoon, "owner and lease are there together, and only on an open row",
			"the next claim, which waits for a lease only if somebody holds it", func(c *change) bool {
				held := c.after.Owner != ""
				return held != c.after.Until.IsZero() && (!held || c.after.Status == order.Open)
			},
		},
		{
			AsAllowed,
			"each claim counts one attempt and has an owner of its own",
			"the fencing token",
			(*change).isClaimed,
		},
		{
			SettlesSoon,
			"nobody takes over an order whose lease is running",
			"the work of the attempt that holds it",
			(*change).awaitsLease,
		},
		{
			SettlesSoon, "a lease ends after its claim, and within the longest run of a function",
			"the attempts that wait for it", func(c *change) bool {
				until := c.after.Until
				return !c.claims() || until.After(c.after.UpdatedAt) && !until.After(c.after.UpdatedAt.Add(longestRun))
			},
		},
		{
			AsAllowed, "only the owner of a claim binds, finishes and releases",
			"the row from attempts that lost their claim", func(c *change) bool {
				by, call := c.deed.by, c.deed.call.name
				writes := call == ordertest.Bind || call == ordertest.Finish || call == ordertest.Release
				return by == nil || !writes || by.owns(c.before.Owner)
			},
		},
		{
			AsAllowed,
			"an intent is bound once and stays bound",
			"the one intent that may be confirmed",
			func(c *change) bool {
				return c.before.Intent == "" || c.after.Intent == c.before.Intent
			},
		},
		{
			BooksAgree,
			"the intent that is bound is the one that Stripe answered with",
			"the intent's id in the row",
			func(c *change) bool {
				d := c.deed
				return c.after.Intent == c.before.Intent || d.by == nil ||
					d.call.name == ordertest.Bind && string(c.after.Intent) == d.knows.intent
			},
		},
	}
}

func contentRules() []rule {
	return []rule{
		{
			BooksAgree, "failure is Stripe's code of an order that was refused or waits for its customer",
			"what a customer is told", (*change).isExplained,
		},
		{
			EverythingEnds, "lastError is why the last attempt released its claim, or why the message was parked",
			"what an operator reads first", func(c *change) bool {
				if c.parks() {
					return slices.Contains(c.order.dead, order.Reason(c.after.LastError))
				}
				if c.deed.by != nil && c.deed.call.name == ordertest.Release {
					return c.after.LastError != "" && c.after.LastError == c.deed.call.detail
				}
				return c.after.LastError == c.before.LastError
			},
		},
		{OneEventEach, "events are only added", "the history, and the outbox", func(c *change) bool {
			n := len(c.before.Events)
			return len(c.after.Events) >= n && slices.Equal(c.after.Events[:n], c.before.Events)
		}},
		{
			OneEventEach,
			"an event says what the change of its row says",
			"those who read events and no rows",
			(*change).isTold,
		},
	}
}

func timeRules() []rule {
	return []rule{
		{
			BooksAgree, "updatedAt is when the change was asked for, by the clock of who asked",
			"the order of what operators read", (*change).isDated,
		},
		{BooksAgree, "createdAt is when the order was first claimed", "the age of an order", func(c *change) bool {
			if c.isNew() {
				return c.after.CreatedAt.Equal(c.after.UpdatedAt)
			}
			return c.after.CreatedAt.Equal(c.before.CreatedAt)
		}},
		{
			EverythingEnds, "an order is in the index while it waits, and due when its next look is",
			"orders that would otherwise be forgotten", (*change).isDue,
		},
	}
}

func (c *change) isNew() bool { return c.before.OrderID == "" }

// claims reports whether the change is a new claim.
func (c *change) claims() bool { return c.after.Owner != "" && c.after.Owner != c.before.Owner }

// parks reports whether the change notes that a message was parked.
func (c *change) parks() bool {
	return !c.after.ParkedAt.IsZero() && !c.after.ParkedAt.Equal(c.before.ParkedAt)
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
	used := slices.Contains(c.oracle.owners, c.after.Owner)
	c.oracle.owners = append(c.oracle.owners, c.after.Owner)
	return !used && c.after.Attempt == c.before.Attempt+1
}

// awaitsLease reports whether the lease before was over, or one that no honest clock
// could write.
func (c *change) awaitsLease() bool {
	until, now := c.before.Until, c.after.UpdatedAt
	return !c.claims() || c.before.Owner == "" || until.Before(now) ||
		until.After(now.Add(longestRun+honestSkew))
}

func (c *change) isExplained() bool {
	r := c.after
	switch {
	case r.Status == c.before.Status || c.isNew():
		return r.Failure == c.before.Failure
	case r.Status == order.Declined || r.Status == order.Canceled || r.Status == order.ActionRequired:
		return c.deed.by == nil || r.Failure == c.deed.knows.failure
	case r.Status == order.Refused:
		return r.Failure != ""
	}
	return r.Failure == ""
}

// isDated compares the time with that of the call; an operator's refresh takes it once,
// when it begins.
func (c *change) isDated() bool {
	d := c.deed
	switch {
	case d.by == nil || c.parks():
		return true
	case d.call.name == settle:
		return !c.after.UpdatedAt.Before(d.by.begun) && !c.after.UpdatedAt.After(d.at)
	}
	return c.after.UpdatedAt.Equal(d.at)
}

func (c *change) isTold() bool {
	r := c.after
	if len(r.Events) <= len(c.before.Events) {
		return true // another rule says that events are only added
	}
	told := r.Events[len(r.Events)-1]
	return told == order.Event{
		Seq: r.Seq, From: c.before.Status, To: r.Status, Intent: r.Intent, Failure: r.Failure, At: r.UpdatedAt,
	}
}

func (c *change) isDue() bool {
	after, waits := nextLook(c.after.Status)
	if !waits {
		return c.after.DueAt.IsZero()
	}
	due := c.after.DueAt.Sub(c.after.UpdatedAt)
	if c.claims() || c.after.Status != c.before.Status {
		return due == after
	}
	return !c.after.DueAt.IsZero() && (due <= after || c.parks()) // a store may keep it from the claim
}

// owns reports whether an owner in a row is this worker.
func (k *Worker) owns(owner string) bool {
	rest, is := strings.CutPrefix(owner, "owner-"+k.name)
	return is && (rest == "" || rest[0] == '-')
}

// look checks the row of an order against what it was before the last step.
func (o *oracle) look(w *World, x *watched, r order.Record) {
	if same(r, x.row) {
		return
	}
	c := change{World: w, order: x, before: x.row, after: r}
	x.row = r
	for _, rule := range w.lab.rules {
		if !rule.holds(&c) {
			o.note(w, 0, rule.breaks, x.id, "not so: "+rule.says)
		}
	}
}

// same reports whether nothing has changed but the version of the fingerprint. Each write
// has its own time, owner, status, intent or number.
func same(a, b order.Record) bool {
	return a.OrderID == b.OrderID && a.Owner == b.Owner && a.Status == b.Status &&
		a.Intent == b.Intent && a.Attempt == b.Attempt && a.Seq == b.Seq &&
		a.UpdatedAt.Equal(b.UpdatedAt) && a.CreatedAt.Equal(b.CreatedAt) && a.DueAt.Equal(b.DueAt) &&
		a.Until.Equal(b.Until) && a.Failure == b.Failure && a.LastError == b.LastError &&
		slices.Equal(a.Events, b.Events)
}

// asks checks a call before it is made: a worker acts only on what it was told.
func (o *oracle) asks(k *Worker, c call) {
	if k.other != nil {
		return
	}
	knows, id := &k.knows, k.knows.order
	bad := func(i Invariant, text string) { o.note(k.World, 1, i, id, text) }
	switch c.name {
	case ordertest.Begin:
		*knows = knowledge{order: order.ID(c.subject)}
	case ordertest.Confirm:
		if k.stood.Add(confirmTime).After(knows.until) {
			bad(SettlesSoon, "a confirmation begins although too little of the lease is left for it")
		}
		o.uses(k, c.subject)
	case ordertest.Bind:
		o.uses(k, c.subject)
	case ordertest.Finish, settle:
		if c.detail == "refused" {
			if !knows.refused() {
				bad(BooksAgree, "the order is given up as refused, and Stripe was not asked what became of its intent")
			}
			break
		}
		if knows.asked != "" {
			o.uses(k, knows.intent)
		}
		if knows.trouble != "" || knows.status != order.Status(c.detail) {
			bad(BooksAgree, "the row is to say "+c.detail+", and Stripe did not")
		}
	case ordertest.Release:
		if text := knows.unlike(order.Reason(c.detail)); text != "" {
			bad(EverythingEnds, text)
		}
		if c.detail == "refused" {
			bad(EverythingEnds, "the order is refused, and its row stays open")
		}
	case ordertest.Prepare, ordertest.Read, ordertest.Find, reply, park, back, load, stored, pays:
	}
	knows.last = c.name
}

// uses checks that an intent may be used: Stripe's last answer said that it is the
// order's, and it is.
func (o *oracle) uses(k *Worker, id string) {
	i := k.stripe.Intent(id)
	made := i != nil && k.ours(i) && i.OrderID() == string(k.knows.order)
	if k.knows.wrong || !made {
		o.note(
			k.World,
			1,
			ChargedAmount,
			k.knows.order,
			"intent "+id+" is used, and Stripe says that it was made for something else",
		)
	}
}

// unlike compares the reason that a worker gives with what Stripe answered to its last
// call.
func (n *knowledge) unlike(why order.Reason) string {
	if n.trouble == "" || n.last != n.asked || why == means(n.trouble, n.asked) {
		return ""
	}
	return "the row is to say " + string(why) + ", and Stripe's answer was: " + string(n.trouble)
}

// refused reports whether nothing but a refusal is left of what Stripe said.
func (n *knowledge) refused() bool {
	return n.asked == ordertest.Prepare && n.trouble == order.KindRefused ||
		n.trouble == "" && n.status == order.Open
}

// means says which reason a person reads for an answer (docs/reference/failures.md).
func means(t order.ErrorKind, c ordertest.Call) order.Reason {
	if c == ordertest.Read && (t == order.KindRefused || t == order.KindKeyReused) {
		return "misconfigured" // the intent is bound, so it is not the order that is refused
	}
	switch t {
	case order.KindUnavailable:
		return "provider_unavailable"
	case order.KindUnknown:
		return "provider_unknown"
	case order.KindReplayed:
		return "provider_replayed_failure"
	case order.KindMisconfigured:
		return "misconfigured"
	case order.KindRefused:
		return "refused"
	case order.KindKeyReused:
		return "key_reused"
	}
	return ""
}

// hears notes what a worker was told.
func (o *oracle) hears(k *Worker, c call, said answer, err error) {
	if k.other != nil {
		return
	}
	knows := &k.knows
	switch {
	case c.toStripe():
		*knows = knowledge{
			order: knows.order, until: knows.until, last: c.name, asked: c.name,
			trouble: troubleIn(err), intent: said.intent, wrong: knows.wrong,
		}
		if i := k.stripe.Intent(said.intent); i != nil {
			knows.status, knows.failure = saidBy(i), codeOf(i)
		}
	case c.name == ordertest.Begin && err == nil:
		r, _ := k.row(order.ID(c.subject))
		knows.until = r.Until
	case c.name == load:
		*knows = knowledge{order: order.ID(c.subject), last: c.name}
	case c.name == ordertest.Release && err == nil,
		c.name == ordertest.Finish && err == nil && c.detail == "refused":
		knows.noted = order.Reason(c.detail)
	}
}

func troubleIn(err error) order.ErrorKind {
	if p, ok := errors.AsType[*order.PaymentError](err); ok {
		return p.Kind
	}
	return ""
}

// codeOf is the more telling of the two codes of an intent's last failure.
func codeOf(i *stripetest.Intent) string {
	if i.LastError == nil {
		return ""
	}
	if i.LastError.DeclineCode != "" {
		return i.LastError.DeclineCode
	}
	return i.LastError.Code
}

// replies checks the reason with which a message is answered against the one in its row.
func (o *oracle) replies(k *Worker, id order.ID, why order.Reason) {
	if k.knows.order == id && k.knows.noted != "" && k.knows.noted != why {
		o.note(
			k.World,
			1,
			EverythingEnds,
			id,
			"the row says "+string(k.knows.noted)+" and the message says "+string(why),
		)
	}
}

// note keeps the first promise that a row or a call broke, and lets the world go on: a
// graver one may follow from it. lines is how much of the history is still to be told.
func (o *oracle) note(w *World, lines int, i Invariant, id order.ID, text string) {
	if o.noticed == nil {
		o.noticed, o.noticedAt, o.noticedStep = &Violation{i, id, text}, len(w.history)+lines, w.done.Steps
	}
}

// conclude decides which broken promise is told: the graver one.
func (o *oracle) conclude(w *World) {
	if o.noticed == nil {
		return
	}
	if all := Invariants(); o.broken != nil &&
		slices.Index(all, o.broken.Invariant) <= slices.Index(all, o.noticed.Invariant) {
		return
	}
	o.broken, w.history = o.noticed, w.history[:min(o.noticedAt, len(w.history))]
}
