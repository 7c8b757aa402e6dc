package attack

import "context"

// StormBodies returns the messages of the first orders of a storm.
func StormBodies(seed uint64, orders int) (bodies []string) {
	st := newStorm(seed, nil)
	for range orders {
		bodies = append(bodies, st.next()...)
	}
	return bodies
}

// Worsen lets something go wrong as in a storm, without its other acts.
func (d *Desk) Worsen(ctx context.Context) (text string, err error) {
	d.mu.Lock()
	d.storm = newStorm(1, func() {})
	d.mu.Unlock()
	for d.storm.faults.text == "" && err == nil {
		err = d.changeProfile(ctx)
	}
	return d.storm.faults.text, err
}
