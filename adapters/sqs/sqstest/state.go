package sqstest

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Clone returns a copy of the machine, with which a search can explore another branch.
// Both have the same Pick.
func (m *Machine) Clone() *Machine {
	c := *m
	c.queues = make(map[string]*queue, len(m.queues))
	for name, q := range m.queues {
		c.queues[name] = q.clone()
	}
	return &c
}

func (q *queue) clone() *queue {
	c := *q
	c.messages = make(map[string]*entry, len(q.messages))
	for id, e := range q.messages {
		twin := *e
		c.messages[id] = &twin
	}
	c.accepted, c.recent = maps.Clone(q.accepted), slices.Clone(q.recent)
	c.groups = maps.Clone(q.groups)
	heaps := []*entryHeap{&c.shown, &c.hidden, &c.aging, &c.heads}
	for name, g := range q.groups {
		twin := *g
		c.groups[name] = &twin
		heaps = append(heaps, &twin.waiting)
	}
	for _, h := range heaps {
		h.entries = slices.Clone(h.entries)
		for i, e := range h.entries {
			h.entries[i] = c.messages[e.ID]
		}
	}
	return &c
}

// AppendState appends everything that can affect a later response, in a canonical form:
// two machines with equal states and no Pick respond equally to every sequence of calls.
// It leaves out the counts of messages that left.
func (m *Machine) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, m.seed)
	b = binary.AppendUvarint(b, m.serial)
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		q := m.queues[name]
		s := q.settings
		b = appendStrings(b, name, s.DeadLetters)
		b = appendInts(
			b, int64(s.Visibility), int64(s.Retention), int64(s.Delay), int64(s.Wait), int64(s.MaxSize),
			int64(s.MaxReceives),
		)
		b = appendBools(b, s.FIFO, s.ContentDeduplication)
		b = appendTimes(b, q.created, q.modified)
		b = binary.AppendUvarint(b, uint64(len(q.recent)))
		for _, a := range q.recent {
			b = appendTimes(appendStrings(b, a.deduplicationID, a.id, a.sequence), a.at)
		}
		b = binary.AppendUvarint(b, uint64(len(q.messages)))
		for _, e := range q.inOrder() {
			b = e.appendState(b)
		}
	}
	return b
}

func (e *entry) appendState(b []byte) []byte {
	b = appendStrings(b, e.ID, e.Body, e.Source, e.Receipt, e.Group, e.DeduplicationID, e.Sequence)
	b = appendTimes(b, e.Sent, e.FirstReceived, e.received, e.visible)
	b = appendInts(b, int64(e.Receives), int64(e.State), int64(len(e.Attributes)))
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		a := e.Attributes[name]
		b = appendStrings(b, name, a.Type, a.Text, string(a.Binary))
	}
	return b
}

func appendStrings(b []byte, s ...string) []byte {
	for _, v := range s {
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	return b
}

func appendInts(b []byte, n ...int64) []byte {
	for _, v := range n {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func appendBools(b []byte, t ...bool) []byte {
	for _, v := range t {
		b = strconv.AppendBool(b, v)
	}
	return b
}

// appendTimes appends seconds and nanoseconds, because the zero time has no UnixNano.
func appendTimes(b []byte, t ...time.Time) []byte {
	for _, v := range t {
		b = appendInts(b, v.Unix(), int64(v.Nanosecond()))
	}
	return b
}
