package world

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"orderonce/scripts/lab/stage"
)

type choices struct {
	trace          trace
	deviates       bool     // the last choice is not the default one
	deviations     []string // the kind of each choice that is not the default one
	receiving      bool     // the queue chooses a message
	sinceDeviation int      // steps since the last deviation
}

// Trace returns a hash of the choices, of the number of options of each and, after a run,
// of the time at its end.
func (w *World) Trace() uint64 { return uint64(w.choices.trace) }

// Deviations returns the kind of each choice so far that is not the default one.
func (w *World) Deviations() []string { return w.choices.deviations }

func (w *World) chose(i, n int) {
	w.choices.deviates = i > 0
	w.choices.trace.number(int64(i))
	w.choices.trace.number(int64(n))
}

const outOfOrder = "delivery out of order"

func (w *World) pickMessage(n int) int {
	w.choices.receiving = true
	i := w.Pick(stage.Deviation, n)
	w.chose(i, n)
	w.choices.receiving = false
	if i > 0 {
		w.choices.deviations = append(w.choices.deviations, outOfOrder)
	}
	return i
}

// stepsSinceDeviation returns the number of steps since the last deviation or denial. It
// does not count the events that a publisher sends: an order that cannot be parked has
// thousands.
func (w *World) stepsSinceDeviation() int {
	if current := w.current(); current == nil || current.task.kind != publish {
		w.choices.sinceDeviation++
	}
	if w.choices.deviates || w.denying() {
		w.choices.sinceDeviation = 0
	}
	return w.choices.sinceDeviation
}

// Options describes the n options of the current choice, the default one as "". A
// description says where the world is, so that it means the same in a world with fewer
// messages, in which the numbers of the options differ.
func (w *World) Options(n int) []string {
	all := make([]string, n)
	for i := 1; i < n; i++ {
		all[i] = outOfOrder
		if !w.choices.receiving {
			all[i] = w.cue(w.lab.options[i])
		}
	}
	return all
}

// cue describes an option by what it is and where the world is.
func (w *World) cue(o option) string {
	at := ""
	if w.Current != nil {
		at = string(w.current().next.Name)
	}
	if o.worker != nil && o.worker != w.current() {
		at += fmt.Sprintf(", %s (frozen: %t)", o.worker.next.Name, o.worker.Frozen)
	}
	if o.kind == deliver || o.kind == pause { // which clock, or how long
		at += fmt.Sprintf(", %d", o.n)
	}
	return o.deviation() + " at " + at
}

// trace is a hash of all that was added to it (FNV-1a).
type trace uint64

func (t *trace) number(n int64) {
	u := uint64(n) //nolint:gosec // G115: a bit pattern
	*t = (*t ^ trace(u&0xffffffff)) * 0x100000001b3
	*t = (*t ^ trace(u>>32)) * 0x100000001b3
	*t ^= *t >> 29
}

func (t trace) bits() int64 { return int64(t) } //nolint:gosec // G115: a bit pattern

func (t *trace) text(s string) {
	for i := range len(s) {
		*t = (*t ^ trace(s[i])) * 0x100000001b3
	}
	t.number(int64(len(s)))
}

func (t *trace) response(r response, err error) {
	t.number(int64(r.attempt))
	t.text(r.intent)
	t.text(r.state)
	if err != nil {
		t.text(brief(err))
	}
}

// Digest returns a hash of everything that can still make a difference: two worlds of one
// case with the same digest have the same future. The state of a worker is the sequence
// of its responses, because it knows nothing else.
func (w *World) Digest(seed maphash.Seed) uint64 {
	b := w.services.store.AppendState(w.lab.state[:0])
	b = w.services.stripe.AppendState(w.Now, b)
	b = w.queue.AppendState(b)
	b = appendHooks(w.incidents.appendState(b), w.hooks)
	b = appendNumbers(b, w.Now.UnixNano(), int64(w.queue.unseen))
	b = appendNumbers(b, int64(w.stream.done), int64(len(w.stream.all)))
	b = w.appendWorkers(b)
	b = w.oracle.AppendState(b)
	w.lab.state = b
	return maphash.Bytes(seed, b)
}

func (w *World) appendWorkers(b []byte) []byte {
	b = appendNumbers(b, int64(len(w.Actors)), int64(len(w.late)), int64(w.born), int64(w.message))
	for _, a := range w.Actors {
		k := workerOf(a)
		b = append(append(append(b, k.Name...), k.task.kind...), k.task.of...)
		b = appendNumbers(b, k.received.bits(), bit(a == w.Current), bit(k.seen.Old))
		b = appendNumbers(k.seen.AppendState(b), int64(k.Skew), k.called.UnixNano(), bit(k.Frozen),
			k.frozenAt.UnixNano(), bit(k.stops))
		for _, m := range k.messages {
			b = append(b, m.Handle...)
		}
	}
	for _, l := range w.late {
		b = appendNumbers(b, l.received.bits())
	}
	return b
}

func appendNumbers(b []byte, all ...int64) []byte {
	for _, n := range all {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
