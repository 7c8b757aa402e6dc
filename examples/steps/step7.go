package main

import "fmt"

// step7 parks what no further delivery can settle, with a reason: a message whose content
// conflicts with its order, an order that Stripe refuses, and one whose deliveries end.
func step7(d *delivery, m message) verdict {
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
		created := d.create(m.Order, id+"/create")
		if created.Status == 400 {
			d.update(id, d.mine(), func(r *row) { r.Status = refused })
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
	switch {
	case outcome != "":
	case m.Deliveries == maxReceiveCount:
		return "unknown: Stripe says nothing of " + verdict(r.Intent)
	default:
		return again
	}
	if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = outcome }); !ok {
		return again
	}
	return done
}

// freeFor is free for an order with the same content.
func (d *delivery) freeFor(o order) condition {
	return condition{"nobody has it, same content", func(r row) bool {
		return d.free().holds(r) && (r.Status == "" || r.Amount == o.Amount)
	}}
}
