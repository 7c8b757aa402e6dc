package main

import "time"

// step3 claims the order under a lease. When the lease has expired, another delivery
// takes the order over. The owner is a fencing token: the writes of an earlier owner are
// refused.
func step3(d *delivery, m message) verdict {
	id := m.Order.ID
	r, ok := d.update(id, d.free(), d.claim)
	if !ok {
		return held(r)
	}
	created := d.create(m.Order, "")
	if created.Status != 200 {
		return again
	}
	if d.confirm(created.Intent.ID, "").Status != 200 {
		return again
	}
	if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = paid }); !ok {
		return again
	}
	return done
}

// lease is how long a delivery may work on an order before another takes over: longer
// than the function can run, and shorter than the visibility timeout.
const lease = 20 * time.Second

// claim gives the order to this delivery.
func (d *delivery) claim(r *row) {
	r.Status, r.Owner, r.Until = started, d.name, d.now.Add(lease)
	r.Attempt++
}

// free holds if no lease is running, and the order has no outcome.
func (d *delivery) free() condition {
	return condition{"free", func(r row) bool {
		return r.Status == "" || r.Status == started && r.Until.Before(d.now)
	}}
}

// mine holds while no other delivery has taken the order over.
func (d *delivery) mine() condition {
	return condition{d.name + " has it", func(r row) bool { return r.Status == started && r.Owner == d.name }}
}

// held is the verdict on the message of an order that cannot be claimed.
func held(r row) verdict {
	if r.Status == started {
		return again
	}
	return done
}
