package attack

// StormBodies returns the messages of the first orders of a storm.
func StormBodies(seed uint64, orders int) (bodies []string) {
	st := newStorm(seed, nil)
	for range orders {
		bodies = append(bodies, st.next()...)
	}
	return bodies
}
