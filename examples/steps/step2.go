package main

// step2 uses the business key: the order id, which the shop chose, and not the message
// id, which is new for each send.
func step2(d *delivery, m message) verdict {
	if _, ok := d.update(m.Order.ID, nothing(), func(r *row) { r.Status = started }); !ok {
		return done
	}
	created := d.create(m.Order, "")
	if created.Status != 200 {
		return again
	}
	if d.confirm(created.Intent.ID, "").Status != 200 {
		return again
	}
	d.update(m.Order.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}
