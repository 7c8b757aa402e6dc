package main

// step4 sends idempotency keys that are derived from the order id. Stripe responds to a
// repeated request with the stored response, and charges nothing twice.
func step4(d *delivery, m message) verdict {
	id := m.Order.ID
	r, ok := d.update(id, d.free(), d.claim)
	if !ok {
		return held(r)
	}
	created := d.create(m.Order, id+"/create")
	if created.Status != 200 {
		return again
	}
	if d.confirm(created.Intent.ID, id+"/confirm").Status != 200 {
		return again
	}
	if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = paid }); !ok {
		return again
	}
	return done
}
