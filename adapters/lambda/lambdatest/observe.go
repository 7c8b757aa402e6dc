package lambdatest

// Change is what happened to an instance.
type Change string

// The changes. An instance is Started, then Invoked and Answered any number of times. One
// of the last five ends it, also during an invocation, which then has no Answered.
const (
	Started  Change = "started"
	Invoked  Change = "invoked"
	Answered Change = "answered"
	Frozen   Change = "frozen" // by Freeze, not between invocations
	Thawed   Change = "thawed"

	Killed   Change = "killed"    // by Kill
	TimedOut Change = "timed_out" // at the deadline of its start or of an invocation
	Exited   Change = "exited"    // by itself, or killed by another process
	Replaced Change = "replaced"  // after Replace
	Closed   Change = "closed"    // by Close
)

// Event is a change of one instance.
type Event struct {
	Change   Change
	Instance int    // 1 for the first process of the host
	PID      int    // of the process
	Binary   string // absolute path of the instance's program
	Payload  []byte // of the running invocation; nil if there is none
	Err      error  // of Answered: the function's error, or nil
}

// note adds an event for publish. The caller holds h.mu, so that the events have the
// order of the changes.
func (h *Host) note(in *instance, change Change, err error) {
	event := Event{Change: change, Instance: in.number, PID: in.cmd.Process.Pid, Binary: in.binary, Err: err}
	if call := h.live[in]; call != nil {
		event.Payload = call.payload
	}
	h.events = append(h.events, event)
}

// publish returns when every event noted before was observed. The caller does not hold
// h.mu.
func (h *Host) publish() {
	h.observing.Lock()
	defer h.observing.Unlock()
	h.mu.Lock()
	events := h.events
	h.events = nil
	h.mu.Unlock()
	for _, event := range events {
		h.opts.Observe(event)
	}
}
