package main

import "fmt"

// step7 parks what no further delivery can settle, with a reason: a message whose content
// conflicts with its order, an order that Stripe refuses, and one whose deliveries end.
func step7(d *delivery, m message) verdict {
	v := d.settle(m)
	if v == again && m.Deliveries == maxReceiveCount {
		return "unsettled after the last delivery"
	}
	return v
}

func (d *delivery) settle(m message) verdict {
	id := m.Order.ID
	r, ok := d.update(id, d.freeFor(m.Order), func(r *row) {
		d.claim(r)
		r.Amount = m.Order.Amount
	})
	switch {
	case !ok && r.Amount != m.Order.Amount:
		return "conflict: the id belongs to another order"
	case !ok:
		return held(r)
	}
	if r.Intent == "" {
		created := d.create(m.Order, fmt.Sprint(id, "/create/", r.Attempt))
		if created.Status == 400 {
			if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = refused }); !ok {
				return again
			}
			return "refused: " + verdict(created.Error.Code)
		}
		if created.Status != 200 {
			return again
		}
		if r, ok = d.update(id, d.unbound(), func(r *row) { r.Intent = created.Intent.ID }); !ok {
			return again
		}
	}
	outcome := outcomeOf(d.read(r.Intent))
	if outcome == "" {
		outcome = outcomeOf(d.confirm(r.Intent, fmt.Sprint(id, "/confirm/", r.Attempt)))
	}
	if outcome == "" {
		return again
	}
	if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = outcome }); !ok {
		return again
	}
	return done
}

// freeFor is free for an order with the same content. A refused order is free too: it is
// tried again, and refused and parked again.
func (d *delivery) freeFor(o order) condition {
	return condition{"free, with this content", func(r row) bool {
		return (d.free().holds(r) || r.Status == refused) && (r.Amount == 0 || r.Amount == o.Amount)
	}}
}
