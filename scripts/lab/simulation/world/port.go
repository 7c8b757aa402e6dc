package world

import (
	"context"
	"strconv"
	"strings"
	"time"

	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
)

var (
	_ order.Claims   = claims{}
	_ order.Records  = records{}
	_ order.Payments = payments{}
	_ order.Canceler = payments{}
)

// describe returns a call as a history shows it.
func describe(c oracle.Call) string {
	switch c.Name {
	case ordertest.Finish, oracle.Settle:
		return string(c.Name) + " " + c.Subject + " as " + c.Detail
	case ordertest.Release:
		return "release " + c.Subject + ": " + c.Detail
	case ordertest.Prepare:
		return "prepare under " + c.Detail
	case oracle.Reply:
		if c.Message == 0 {
			return c.Subject + " with " + c.Detail
		}
		return c.Subject + " message " + strconv.Itoa(c.Message) + " (" + c.Detail + ")"
	case oracle.Postpone:
		return "postpone " + c.Subject + " " + c.Detail
	case oracle.Due:
		return "which orders are due?"
	case oracle.Answer:
		return "answers " + c.Subject + " (" + c.Detail + ")"
	case oracle.Checkpoint:
		return "answers " + c.Detail
	case oracle.Put:
		return "put " + c.Detail
	case oracle.Table, oracle.Charge:
		return c.Detail
	case ordertest.Begin, ordertest.Bind, ordertest.Confirm, ordertest.Read, ordertest.Find, oracle.Load,
		oracle.Park, oracle.Return, ordertest.Cancel, ordertest.ListDisputes:
	}
	return strings.TrimSpace(string(c.Name) + " " + c.Subject)
}

// receiver returns the service that a call is for.
func receiver(c oracle.Call) string {
	switch {
	case c.ToStripe(), c.Name == oracle.Answer:
		return "Stripe"
	case c.Name == oracle.Put:
		return "bus"
	case c.Name == oracle.Checkpoint:
		return "stream"
	case c.ToQueue():
		return "queue"
	}
	return "table"
}

// response is what a call returns to its worker, besides the error.
type response struct {
	attempt       int
	intent, state string
	text          string
}

// String returns the response as a history shows it.
func (r response) String() string {
	switch {
	case r.attempt > 0 && r.intent != "":
		return "attempt " + strconv.Itoa(r.attempt) + ", " + r.intent + " is bound"
	case r.attempt > 0:
		return "attempt " + strconv.Itoa(r.attempt) + ", no intent bound"
	case r.intent != "":
		return r.intent + " " + r.state
	}
	return r.text
}

func ok() response { return response{text: "ok"} }

// claims is the store as one worker reaches it.
type claims struct{ worker *Worker }

func (c claims) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	var got order.Claim
	k := c.worker
	if k.handler != nil {
		k.handler.batch.Started(o.ID(), k.messagesAbout(o))
	}
	name := oracle.Call{Name: ordertest.Begin, Subject: string(o.ID())}
	err := k.call(name, func() (_ response, err error) {
		if about := k.messagesAbout(o); len(about) > 0 {
			k.world.message = about[len(about)-1]
		}
		ours := k.world.setup.Releases && !k.seen.Old
		if ours { // the store has fingerprints of a version that the older release does not know
			k.replaceVersion(ctx, o.ID(), "v2:", "v1:")
		}
		got, err = k.world.services.store.Begin(ctx, o, l)
		if ours {
			k.replaceVersion(ctx, o.ID(), "v1:", "v2:")
		}
		return response{attempt: got.Attempt, intent: string(got.Intent)}, err
	})
	if err != nil {
		return order.Claim{}, err
	}
	return got, nil
}

// messagesAbout returns the places of the worker's messages with an order's content.
func (k *Worker) messagesAbout(o order.Order) (all []int) {
	for _, m := range k.messages {
		i := numberOf(m)
		if k.world.setup.Messages[i].Poison == "" && k.world.lab.order(m.Body).Fingerprint() == o.Fingerprint() {
			all = append(all, i)
		}
	}
	return all
}

func (k *Worker) replaceVersion(ctx context.Context, id order.ID, from, to string) {
	store := &k.world.services.store
	r, err := store.Load(ctx, id)
	if hash, has := strings.CutPrefix(string(r.Fingerprint), from); err == nil && has {
		must(store.SetFingerprint(ctx, id, order.Fingerprint(to+hash)))
	}
}

func (c claims) Bind(ctx context.Context, claim order.Claim, i order.Intent, at time.Time) error {
	name := oracle.Call{Name: ordertest.Bind, Subject: string(i.ID)}
	return c.worker.call(name, func() (response, error) {
		return ok(), c.worker.world.services.store.Bind(ctx, claim, i, at)
	})
}

func (c claims) Finish(ctx context.Context, claim order.Claim, o order.Outcome, at time.Time) error {
	k, id := c.worker, claim.Order.ID()
	name := oracle.Call{Name: ordertest.Finish, Subject: string(id), Detail: string(o.Status)}
	err := k.call(name, func() (response, error) {
		return ok(), k.world.services.store.Finish(ctx, claim, o, at)
	})
	if k.handler != nil && err == nil && o.Status != order.Refused {
		k.handler.batch.Finished(id)
	}
	return err
}

func (c claims) Release(ctx context.Context, claim order.Claim, why order.Reason, at time.Time) error {
	id := claim.Order.ID()
	name := oracle.Call{Name: ordertest.Release, Subject: string(id), Detail: string(why)}
	return c.worker.call(name, func() (response, error) {
		return ok(), c.worker.world.services.store.Release(ctx, claim, why, at)
	})
}

// records is the store as all reach it who have no claim.
type records struct{ worker *Worker }

func (r records) Load(ctx context.Context, id order.ID) (got order.Record, err error) {
	err = r.worker.call(oracle.Call{Name: oracle.Load, Subject: string(id)}, func() (response, error) {
		got, err = r.worker.world.services.store.Load(ctx, id)
		return response{
			intent: string(got.Intent), state: string(got.Status), text: string(got.Status) + ", no intent bound",
		}, err
	})
	return got, err
}

func (r records) Settle(ctx context.Context, seen order.Record, o order.Outcome, at time.Time) error {
	name := oracle.Call{Name: oracle.Settle, Subject: string(seen.OrderID), Detail: string(o.Status)}
	return r.worker.call(name, func() (response, error) {
		return ok(), r.worker.world.services.store.Settle(ctx, seen, o, at)
	})
}

// Park is not a step: the handler calls it together with its
// call to the queue, and ignores its error.
func (r records) Park(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
	return r.worker.world.services.store.Park(ctx, o, why, at)
}

// Recreate is not a step either: no worker calls it.
func (r records) Recreate(ctx context.Context, lost order.Record, at time.Time) error {
	return r.worker.world.services.store.Recreate(ctx, lost, at)
}

// payments is Stripe as one worker reaches it.
type payments struct{ worker *Worker }

func (p payments) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	name := oracle.Call{Name: ordertest.Prepare, Subject: string(o.ID()), Detail: k.String()}
	return p.intent(name, func() (order.Intent, error) { return p.adapter().Prepare(ctx, o, k) })
}

func (p payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	name := oracle.Call{Name: ordertest.Confirm, Subject: string(id)}
	return p.intent(name, func() (order.Intent, error) { return p.adapter().Confirm(ctx, id, k) })
}

func (p payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	name := oracle.Call{Name: ordertest.Read, Subject: string(id)}
	return p.intent(name, func() (order.Intent, error) { return p.adapter().Read(ctx, id) })
}

func (p payments) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	name := oracle.Call{Name: ordertest.Cancel, Subject: string(id)}
	return p.intent(name, func() (order.Intent, error) { return p.adapter().CancelIntent(ctx, id, k) })
}

func (p payments) Find(ctx context.Context, id order.ID) (found []order.Intent, err error) {
	err = p.worker.call(oracle.Call{Name: ordertest.Find, Subject: string(id)}, func() (response, error) {
		found, err = p.adapter().Find(ctx, id)
		r := response{text: strconv.Itoa(len(found)) + " found"}
		if len(found) == 1 {
			r.intent, r.state = string(found[0].ID), string(found[0].State)
		}
		return r, err
	})
	return found, err
}

func (p payments) intent(c oracle.Call, do func() (order.Intent, error)) (got order.Intent, err error) {
	err = p.worker.call(c, func() (response, error) {
		got, err = do()
		return response{intent: string(got.ID), state: string(got.State)}, err
	})
	return got, err
}

// adapter returns the Stripe adapter, which sends its next requests for this worker.
func (p payments) adapter() *charge.Payments {
	p.worker.world.services.caller = p.worker
	return p.worker.world.services.payments
}

// Table makes a call of a Consumer to its table, as a step.
func (k *Worker) Table(what string, do func() error) error {
	return k.call(oracle.Call{Name: oracle.Table, Detail: what}, func() (response, error) { return ok(), do() })
}
