package attack

// StormBodies returns the messages of the first orders of a storm, with so many
// deliveries between two of them.
func StormBodies(seed uint64, orders, deliveries int) (bodies []string) {
	st := newStorm(seed, nil)
	for range orders {
		bodies = append(bodies, st.next()...)
		for range deliveries {
			st.faults.Duplicate(duplicates)
		}
	}
	return bodies
}
