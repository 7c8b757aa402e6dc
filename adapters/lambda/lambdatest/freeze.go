package lambdatest

import "time"

// thawGrace is the least time that an invocation may run after a thaw, so that a worker
// that stood still reaches its next call before it is killed.
const thawGrace = 2 * time.Second

// Freeze stops the instances that run an invocation with a matching payload, or all that
// run one if match is nil, and lets them continue after d. It returns their number
// without waiting, without those that it has stopped already. The connections of a frozen
// process stay open, and the clocks that it reads go on, so a context in the function may
// have expired at the thaw.
//
// A frozen invocation is not killed at its deadline. If the deadline is earlier than two
// seconds after the thaw, it moves there; Lambda would not grant this time. Kill and
// Close end frozen instances at once.
//
// Freeze works on Linux only. On other systems it does nothing and returns 0.
func (h *Host) Freeze(d time.Duration, match func(payload []byte) bool) (frozen int) {
	if !canFreeze {
		return 0
	}
	defer h.publish()
	h.mu.Lock()
	defer h.mu.Unlock()
	for in, call := range h.live {
		if call == nil || in.frozen || (match != nil && !match(call.payload)) {
			continue
		}
		in.freeze()
		in.frozen = true
		call.timer.Reset(max(call.deadline.Sub(h.opts.Now()), d+thawGrace))
		h.note(in, Frozen, nil)
		h.ended.Go(func() { h.thawAfter(d, in, call) }) // the instance lives, so Close waits
		frozen++
	}
	return frozen
}

func (h *Host) thawAfter(d time.Duration, in *instance, call *invocation) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.dead:
		return
	}
	defer h.publish()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live[in] == call { // it runs this invocation still
		h.resume(in)
	}
}

// resume ends what Freeze began, unless that has ended. The caller holds h.mu.
func (h *Host) resume(in *instance) {
	if in.frozen {
		in.frozen = false
		in.thaw()
		h.note(in, Thawed, nil)
	}
}
