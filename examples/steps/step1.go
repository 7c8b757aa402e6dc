package main

// step1 claims the message with a conditional write before it charges: of two deliveries
// at once, one charges.
func step1(d *delivery, m message) verdict {
	if _, ok := d.update(m.ID, nothing(), func(r *row) { r.Status = started }); !ok {
		return done
	}
	created := d.create(m.Order, "")
	if created.Status != 200 {
		return again
	}
	if d.confirm(created.Intent.ID, "").Status != 200 {
		return again
	}
	d.update(m.ID, anyway(), func(r *row) { r.Status = paid })
	return done
}
