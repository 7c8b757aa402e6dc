package stripetest

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// AppendState appends a canonical encoding of the machine's state. Two machines with
// equal states respond to every future request alike, except for times and request ids.
// Ages are relative to now, so that machines that differ only in their clocks are equal.
func (m *Machine) AppendState(now time.Time, b []byte) []byte {
	s := state(b)
	for _, intent := range m.intents {
		s.add(intent)
	}
	s.add("ledger")
	for _, charge := range m.ledger {
		s.add(charge.Intent, string(charge.Outcome), charge.Key, charge.Failure.Code, charge.Failure.Reason)
	}
	s.add("disputes")
	for _, d := range m.disputes {
		s.add(d.Intent, d.Charge, string(d.Status)) // its charge is disputed, which the ledger need not repeat
	}
	s.add("refunds")
	for _, r := range m.refunds { // their charge's sum follows from them
		s.add(r)
		if lag := m.rules.RefundLag; lag > 0 {
			s.add(int64(min(now.Sub(r.Created), lag)))
		}
	}
	for i := range m.late {
		s.add(&m.late[i])
	}
	s.add("keys")
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		if first := m.keys[key]; !m.expired(first, now) {
			s.add(key, first.path, first.params, first.running, int64(now.Sub(first.at)), first.response)
		}
	}
	s.add("running")
	for _, ticket := range slices.Sorted(maps.Keys(m.running)) {
		c := m.running[ticket]
		s.add(int64(ticket), &c)
	}
	s.add("gone")
	for _, id := range slices.Sorted(maps.Keys(m.gone)) {
		s.add(id)
	}
	s.add("faults")
	for _, fault := range m.faults {
		s.add(fault)
	}
	return s
}

// state is an encoding under construction. Every text is preceded by its length, so that
// the encoding is unambiguous.
type state []byte

// add appends values. Of a response it omits what only the response to a GET has, because
// no key stores that.
func (s *state) add(values ...any) {
	for _, value := range values {
		switch v := value.(type) {
		case string:
			s.add(int64(len(v)))
			*s = append(*s, v...)
		case int64:
			*s = append(strconv.AppendInt(*s, v, 10), ',')
		case bool:
			*s = strconv.AppendBool(*s, v)
		case map[string]string:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				s.add(name, v[name])
			}
		case *Intent:
			s.addIntent(v)
		case *Refund:
			if v == nil {
				s.add("")
				continue
			}
			s.add(v.ID, v.Charge, v.Intent, v.Currency, v.Reason, string(v.Status), v.Failure, v.Amount)
			s.add(v.Metadata)
		case *Error:
			if v == nil {
				s.add("")
				continue
			}
			s.add(v.Type, v.Code, v.DeclineCode, v.Message, v.Param, v.PaymentMethod, v.Intent)
		case Response:
			s.add(int64(v.Status), v.Intent, v.Refund, v.Error)
		case Fault:
			s.add(string(v.Kind), string(v.On), v.OrderID, int64(v.Number), int64(v.Times), int64(v.Delay))
		case *call:
			s.add(v.Method, v.Path, v.APIKey, v.Key, v.Form.Encode(), v.done, int64(v.Number), v.fault, v.response)
		}
	}
}

func (s *state) addIntent(i *Intent) {
	if i == nil {
		s.add("")
		return
	}
	s.add(
		i.ID, i.Currency, i.Customer, i.PaymentMethod, string(i.Status), i.LatestCharge,
		i.Amount, i.Metadata, i.LastError,
	)
}
