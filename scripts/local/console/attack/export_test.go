package attack

import "context"

// StormBodies returns the messages of the first orders of a storm, with so many
// deliveries between two of them.
func StormBodies(seed uint64, orders, deliveries int) (bodies []string) {
	st := newStorm(seed, nil)
	for range orders {
		bodies = append(bodies, st.next()...)
		for range deliveries {
			st.duplicate()
		}
	}
	return bodies
}

// Worsen lets something go wrong as in a storm, without its other acts.
func (d *Desk) Worsen(ctx context.Context) (text string, err error) {
	d.mu.Lock()
	d.storm = newStorm(1, func() {})
	d.mu.Unlock()
	for d.storm.now.text == "" && err == nil {
		err = d.changeProfile(ctx)
	}
	return d.storm.now.text, err
}
