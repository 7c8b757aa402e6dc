package sqstest

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// AppendState appends everything that can affect a later response, in a canonical form:
// two machines with equal states and no Pick respond equally to every sequence of calls.
// It leaves out the counts of messages that left.
func (m *Machine) AppendState(b []byte) []byte {
	b = appendNumbers(b, int64(m.seed), int64(m.serial)) //nolint:gosec // G115: bit patterns
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		q := m.queues[name]
		s := q.settings
		b = appendStrings(b, name, s.DeadLetters)
		b = appendNumbers(
			b, int64(s.Visibility), int64(s.Retention), int64(s.MaxReceives),
			int64(len(q.recent)), int64(len(q.entries)),
		)
		for _, sent := range q.recent {
			b = appendTimes(appendStrings(b, sent.DeduplicationID, sent.ID), sent.Sent)
		}
		for _, e := range q.entries {
			b = e.appendState(b)
		}
	}
	return b
}

func (e *entry) appendState(b []byte) []byte {
	b = appendStrings(b, e.ID, e.Body, e.Source, e.Handle, e.Group, e.DeduplicationID)
	b = appendTimes(b, e.Sent, e.FirstReceived, e.received, e.VisibleAt)
	b = appendNumbers(b, int64(e.Receives), int64(e.State), int64(len(e.Attributes)))
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

func appendNumbers(b []byte, n ...int64) []byte {
	for _, v := range n {
		b = binary.AppendVarint(b, v)
	}
	return b
}

// appendTimes appends seconds and nanoseconds, because the zero time has no UnixNano.
func appendTimes(b []byte, t ...time.Time) []byte {
	for _, v := range t {
		b = appendNumbers(b, v.Unix(), int64(v.Nanosecond()))
	}
	return b
}
