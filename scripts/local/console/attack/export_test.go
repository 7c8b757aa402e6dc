package attack

// StormBodies returns the messages of the first orders of a storm, with so many
// deliveries between two of them.
func StormBodies(seed uint64, orders, deliveries int) (bodies []string) {
	st := newStorm(seed, nil)
	for range orders {
		bodies = append(bodies, st.next()...)
		for range deliveries {
			st.hits.IntN(20)
		}
	}
	return bodies
}

// Worsen lets something go wrong as in a storm, without its other acts.
func (a *Attacker) Worsen() (text string, err error) {
	a.mu.Lock()
	a.storm = newStorm(1, func() {})
	a.mu.Unlock()
	for a.storm.now.text == "" && err == nil {
		err = a.changeProfile()
	}
	return a.storm.now.text, err
}
