package attack

import "math/rand/v2"

// StormBodies returns the messages of the first orders of a storm.
func StormBodies(seed uint64, orders int) (bodies []string) {
	st := &storm{seed: seed, dice: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // G404: not a secret
	for range orders {
		bodies = append(bodies, st.next()...)
	}
	return bodies
}
