package main

// step0 is the handler that everybody writes: get, work, put, delete.
func step0(d *delivery, m message) verdict {
	if d.get(m.ID).Status == paid {
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
