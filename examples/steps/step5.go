package main

// step5 binds the intent to the row before it confirms it, and confirms no other. Stripe
// charges an intent at most once, at any age, so the order no longer depends on keys,
// which Stripe forgets after a day.
func step5(d *delivery, m message) verdict {
	id := m.Order.ID
	r, ok := d.update(id, d.free(), d.claim)
	if !ok {
		return held(r)
	}
	if r.Intent == "" {
		created := d.create(m.Order, id+"/create")
		if created.Status != 200 {
			return again
		}
		if r, ok = d.update(id, d.unbound(), func(r *row) { r.Intent = created.Intent.ID }); !ok {
			return again
		}
	}
	now := d.read(r.Intent)
	if now.Status != 200 {
		return again
	}
	if now.Intent.Status != "succeeded" && d.confirm(r.Intent, id+"/confirm").Status != 200 {
		return again
	}
	if _, ok = d.update(id, d.mine(), func(r *row) { r.Status = paid }); !ok {
		return again
	}
	return done
}

// unbound holds while no intent is bound.
func (d *delivery) unbound() condition {
	return condition{d.name + " has it, no intent", func(r row) bool {
		return d.mine().holds(r) && r.Intent == ""
	}}
}
