package world

import (
	"context"
	"strconv"
	"strings"

	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
)

var (
	_ order.Store    = store{}
	_ order.Payments = payments{}
	_ order.Canceler = payments{}
)

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

type store struct{ worker *Worker }

func (s store) Load(ctx context.Context, id order.ID) (got order.Record, err error) {
	err = s.worker.call(oracle.Call{Name: ordertest.Load, Subject: string(id)}, func() (response, error) {
		got, err = s.worker.world.services.store.Load(ctx, id)
		return response{
			intent: string(got.Intent), state: string(got.Status), text: string(got.Status) + ", no intent bound",
		}, err
	})
	return got, err
}

func (s store) Save(ctx context.Context, before, after order.Record) (now order.Record, err error) {
	k, c := s.worker, s.callOf(before, after)
	if before.Status == "" && k.handler != nil { // the first write of a delivery
		k.handler.batch.Started(after.OrderID, k.messagesAbout(after.Fingerprint))
	}
	err = k.call(c, func() (response, error) {
		if now, err = s.save(ctx, c, before, after); c.Name == ordertest.Begin && err == nil {
			return response{attempt: now.Attempt, intent: string(now.Intent)}, nil
		}
		return ok(), err
	})
	if c.Name == ordertest.Finish && k.handler != nil && err == nil && after.Status != order.Refused {
		k.handler.batch.Finished(after.OrderID)
	}
	return now, err
}

// callOf names a write. Who has no claim settles an order instead of finishing it.
func (s store) callOf(before, after order.Record) oracle.Call {
	c := oracle.Call{Name: ordertest.CallOf(before, after), Subject: string(after.OrderID)}
	switch c.Name { //nolint:exhaustive // the others need no more words
	case ordertest.Bind:
		c.Subject = string(after.Intent)
	case ordertest.Finish:
		if c.Detail = string(after.Status); len(s.worker.messages) == 0 {
			c.Name = oracle.Settle
		}
	case ordertest.Release:
		c.Detail = after.LastError
	case ordertest.Postpone:
		c.Detail = waiting(s).until(after.DueAt)
	}
	return c
}

// save makes a write of a worker. The store has fingerprints of a version that the older
// release does not know.
func (s store) save(ctx context.Context, c oracle.Call, before, after order.Record) (order.Record, error) {
	k := s.worker
	if c.Name != ordertest.Begin {
		return k.world.services.store.Save(ctx, before, after)
	}
	if about := k.messagesAbout(after.Fingerprint); len(about) > 0 {
		k.world.message = about[len(about)-1]
	}
	if k.world.setup.Releases && !k.seen.Old {
		k.replaceVersion(ctx, after.OrderID, "v2:", "v1:")
		defer k.replaceVersion(ctx, after.OrderID, "v1:", "v2:")
	}
	return k.world.services.store.Save(ctx, before, after)
}

func (k *Worker) messagesAbout(f order.Fingerprint) (all []int) {
	for _, m := range k.messages {
		i := numberOf(m)
		if k.world.setup.Messages[i].Poison == "" && k.world.lab.order(m.Body).Fingerprint() == f {
			all = append(all, i)
		}
	}
	return all
}

func (k *Worker) replaceVersion(ctx context.Context, id order.ID, from, to string) {
	store := &k.world.services.store
	r, err := store.Load(ctx, id)
	if hash, has := strings.CutPrefix(string(r.Fingerprint), from); err == nil && has {
		store.Edit(id, func(r *order.Record) { r.Fingerprint = order.Fingerprint(to + hash) })
	}
}

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
