package simulation

import (
	"encoding/binary"
	"hash/maphash"
)

// trace is a number made of all that was added to it (FNV-1a).
type trace uint64

func (t *trace) number(n int64) {
	u := uint64(n) //nolint:gosec // G115: a bit pattern
	*t = (*t ^ trace(u&0xffffffff)) * 0x100000001b3
	*t = (*t ^ trace(u>>32)) * 0x100000001b3
	*t ^= *t >> 29
}

func (t *trace) text(s string) {
	for i := range len(s) {
		*t = (*t ^ trace(s[i])) * 0x100000001b3
	}
	t.number(int64(len(s)))
}

func (t *trace) answer(a answer, err error) {
	t.number(int64(a.attempt))
	t.text(a.intent)
	t.text(a.state)
	if err != nil {
		t.text(brief(err))
	}
}

// digest stands for all that can still make a difference: two worlds of one case with the
// same digest have the same future. A worker's own state is what it was told, because it
// knows nothing else.
func (w *World) digest(seed maphash.Seed) uint64 {
	b := w.store.AppendState(w.lab.state[:0])
	b = w.stripe.AppendState(w.now, b)
	b = w.queue.AppendState(b)
	number := func(all ...int64) {
		for _, n := range all {
			b = binary.AppendVarint(b, n)
		}
	}
	number(
		w.now.UnixNano(),
		int64(len(w.workers)),
		int64(len(w.late)),
		int64(w.unseen),
		int64(w.born),
		int64(w.acting),
		bit(w.paused),
		bit(w.forgot),
		bit(w.redriven),
		bit(w.mistaken),
		bit(w.met),
		w.denial.until.UnixNano(),
	)
	b = append(b, w.denial.of...)
	for _, id := range w.strays {
		b = append(b, id...)
	}
	for _, k := range w.workers {
		b = append(append(b, k.name...), k.asks...)
		number(
			int64(k.seen), //nolint:gosec // G115: a bit pattern
			int64(k.calls),
			k.frozenAt.UnixNano(),
			k.stood.UnixNano(),
			int64(k.behind),
			bit(k.frozen),
			bit(k.losesTime),
			bit(k == w.current),
			bit(k.old),
			bit(k.settled),
		)
		for _, m := range k.messages {
			b = append(b, m.Receipt...)
		}
	}
	for _, l := range w.late {
		number(int64(l.state)) //nolint:gosec // G115: a bit pattern
	}
	b = w.oracle.appendState(b)
	w.lab.state = b
	return maphash.Bytes(seed, b)
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
