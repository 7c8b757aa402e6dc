package simulation

import (
	"context"
	"strconv"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

var (
	_ order.Claims   = claims{}
	_ order.Records  = records{}
	_ order.Payments = payments{}
)

// call is what a worker is about to do. Its words are made only if somebody wants to read
// them.
type call struct {
	name            ordertest.Call
	subject, detail string
	n               int // of a message
}

func (c call) String() string {
	switch c.name {
	case ordertest.Finish, settle:
		return string(c.name) + " " + c.subject + " as " + c.detail
	case ordertest.Release:
		return "release " + c.subject + ": " + c.detail
	case ordertest.Prepare:
		return "prepare under " + c.detail
	case reply:
		if c.n == 0 {
			return c.subject + " with " + c.detail
		}
		return c.subject + " message " + strconv.Itoa(c.n) + " (" + c.detail + ")"
	case stored, pays:
		return c.detail
	case ordertest.Begin,
		ordertest.Bind,
		ordertest.Confirm,
		ordertest.Read,
		ordertest.Find,
		load,
		recreate,
		park,
		back:
	}
	return strings.TrimSpace(string(c.name) + " " + c.subject)
}

func (c call) toStripe() bool {
	return c.name == ordertest.Prepare || c.name == ordertest.Confirm || c.name == ordertest.Read ||
		c.name == ordertest.Find || c.name == pays
}

// to is whom a call is for.
func (c call) to() string {
	switch {
	case c.toStripe():
		return "Stripe"
	case c.name == reply, c.name == park, c.name == back:
		return "queue"
	}
	return "table"
}

// answer is what a worker is told.
type answer struct {
	attempt       int
	intent, state string
	text          string
}

func (a answer) String() string {
	switch {
	case a.attempt > 0 && a.intent != "":
		return "attempt " + strconv.Itoa(a.attempt) + ", " + a.intent + " is bound"
	case a.attempt > 0:
		return "attempt " + strconv.Itoa(a.attempt) + ", no intent bound"
	case a.intent != "":
		return a.intent + " " + a.state
	}
	return a.text
}

// claims is the store as one worker reaches it.
type claims struct{ *Worker }

func (c claims) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	var got order.Claim
	what := call{name: ordertest.Begin, subject: string(o.ID())}
	c.starts(o)
	err := c.noted(what, StoreCall{Order: o.ID(), Owner: l.Owner}, func() (_ answer, err error) {
		c.acts(o)
		c.versions(ctx, o.ID(), func() { got, err = c.store.Begin(ctx, o, l) })
		return answer{attempt: got.Attempt, intent: string(got.Intent)}, err
	})
	if err != nil {
		return order.Claim{}, err
	}
	return got, nil
}

// acts notes which message a claim is for.
func (c claims) acts(o order.Order) {
	for _, m := range c.messages {
		if i := numberOf(m); c.Messages[i].Poison == "" && c.lab.order(m.Body).Fingerprint() == o.Fingerprint() {
			c.acting = i
		}
	}
}

// versions lets our release read and write fingerprints that the older one does not know.
func (c claims) versions(ctx context.Context, id order.ID, do func()) {
	if !c.Releases || c.old {
		do()
		return
	}
	c.rewrite(ctx, id, "v2:", "v1:")
	do()
	c.rewrite(ctx, id, "v1:", "v2:")
}

func (c claims) rewrite(ctx context.Context, id order.ID, from, to string) {
	r, err := c.store.Load(ctx, id)
	if hash, ours := strings.CutPrefix(string(r.Fingerprint), from); err == nil && ours {
		must(c.store.SetFingerprint(ctx, id, order.Fingerprint(to+hash)))
	}
}

func (c claims) Bind(ctx context.Context, claim order.Claim, i order.Intent, at time.Time) error {
	sent := StoreCall{Order: claim.Order.ID(), Owner: claim.Lease.Owner, Intent: string(i.ID)}
	return c.noted(call{name: ordertest.Bind, subject: string(i.ID)}, sent, func() (answer, error) {
		return answer{text: "ok"}, c.store.Bind(ctx, claim, i, at)
	})
}

func (c claims) Finish(ctx context.Context, claim order.Claim, o order.Outcome, at time.Time) error {
	what := call{name: ordertest.Finish, subject: string(claim.Order.ID()), detail: string(o.Status)}
	sent := StoreCall{
		Order: claim.Order.ID(), Owner: claim.Lease.Owner, Intent: string(o.Intent), Status: o.Status,
	}
	err := c.noted(what, sent, func() (answer, error) {
		return answer{text: "ok"}, c.store.Finish(ctx, claim, o, at)
	})
	if c.in != nil && err == nil && o.Status != order.Refused {
		c.in.finished[claim.Order.ID()] = true
	}
	return err
}

func (c claims) Release(ctx context.Context, claim order.Claim, why order.Reason, at time.Time) error {
	what := call{name: ordertest.Release, subject: string(claim.Order.ID()), detail: string(why)}
	return c.noted(what, StoreCall{Order: claim.Order.ID(), Owner: claim.Lease.Owner}, func() (answer, error) {
		return answer{text: "ok"}, c.store.Release(ctx, claim, why, at)
	})
}

// records is the store as an operator reaches it.
type records struct{ *Worker }

func (r records) Load(ctx context.Context, id order.ID) (got order.Record, err error) {
	err = r.call(call{name: load, subject: string(id)}, func() (answer, error) {
		got, err = r.store.Load(ctx, id)
		return answer{intent: string(got.Intent), state: string(got.Status)}, err
	})
	return got, err
}

func (r records) Settle(ctx context.Context, seen order.Record, o order.Outcome, at time.Time) error {
	return r.call(
		call{name: settle, subject: string(seen.OrderID), detail: string(o.Status)},
		func() (answer, error) {
			return answer{text: "ok"}, r.store.Settle(ctx, seen, o, at)
		},
	)
}

// Park is not a step: the edge does it beside its answer to the queue, and goes on if it
// fails.
func (r records) Park(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
	return r.store.Park(ctx, o, why, at)
}

func (r records) Recreate(ctx context.Context, lost order.Record, at time.Time) error {
	return r.call(call{name: recreate, subject: string(lost.OrderID)}, func() (answer, error) {
		return answer{text: "ok"}, r.store.Recreate(ctx, lost, at)
	})
}

// payments is Stripe as one worker reaches it.
type payments struct{ *Worker }

func (p payments) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	return p.intent(
		call{name: ordertest.Prepare, subject: string(o.ID()), detail: k.String()},
		func() (order.Intent, error) {
			return p.pay.Prepare(ctx, o, k)
		},
	)
}

func (p payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return p.intent(call{name: ordertest.Confirm, subject: string(id)}, func() (order.Intent, error) {
		return p.pay.Confirm(ctx, id, k)
	})
}

func (p payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return p.intent(call{name: ordertest.Read, subject: string(id)}, func() (order.Intent, error) {
		return p.pay.Read(ctx, id)
	})
}

func (p payments) Find(ctx context.Context, id order.ID) (found []order.Intent, err error) {
	err = p.call(call{name: ordertest.Find, subject: string(id)}, func() (answer, error) {
		p.asking = p.Worker
		found, err = p.pay.Find(ctx, id)
		said := answer{text: strconv.Itoa(len(found)) + " found"}
		if len(found) == 1 {
			said.intent, said.state = string(found[0].ID), string(found[0].State)
		}
		return said, err
	})
	return found, err
}

func (p payments) intent(c call, do func() (order.Intent, error)) (got order.Intent, err error) {
	err = p.call(c, func() (answer, error) {
		p.asking = p.Worker
		got, err = do()
		return answer{intent: string(got.ID), state: string(got.State)}, err
	})
	return got, err
}

// Table makes a call of a baseline to its table, as a step.
func (k *Worker) Table(what string, do func() error) error {
	return k.call(call{name: stored, detail: what}, func() (answer, error) { return answer{text: "ok"}, do() })
}
