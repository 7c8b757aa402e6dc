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
		s.intent(intent)
		if lag := max(m.rules.ListLag, m.rules.SearchLag); lag > 0 {
			s.number(int64(min(now.Sub(intent.Created), lag)))
		}
	}
	s.part('L')
	for _, charge := range m.ledger {
		s.text(charge.Intent, string(charge.Outcome), charge.Key, charge.Failure.Code, charge.Failure.Reason)
	}
	s.part('D')
	for _, d := range m.disputes {
		s.text(d.Intent, d.Charge, string(d.Status)) // its charge is disputed, which the ledger need not repeat
	}
	s.part('P')
	for _, r := range m.refunds { // their charge's sum follows from them
		s.refund(r)
		if m.rules.RefundLag > 0 {
			s.number(int64(min(now.Sub(r.Created), m.rules.RefundLag)))
		}
	}
	for _, c := range m.late {
		s.call(&c)
	}
	s.part('K')
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		if first := m.keys[key]; !m.expired(first, now) {
			s.text(key, first.path, first.params, strconv.FormatBool(first.running))
			s.number(int64(now.Sub(first.at)))
			s.response(first.response)
		}
	}
	s.part('R')
	for _, ticket := range slices.Sorted(maps.Keys(m.running)) {
		s.number(int64(ticket))
		c := m.running[ticket]
		s.call(&c)
	}
	s.part('C')
	for _, method := range slices.Sorted(maps.Keys(m.cards)) {
		s.text(method, string(m.cards[method]))
	}
	s.part('G')
	for _, id := range slices.Sorted(maps.Keys(m.gone)) {
		s.text(id)
	}
	s.part('F')
	for _, fault := range m.faults {
		s.fault(fault)
	}
	return s
}

// state is an encoding under construction. Every text is preceded by its length, so that
// the encoding is unambiguous.
type state []byte

func (s *state) part(mark byte) { *s = append(*s, mark) }

func (s *state) number(n int64) { *s = append(strconv.AppendInt(*s, n, 10), ',') }

func (s *state) text(parts ...string) {
	for _, part := range parts {
		s.number(int64(len(part)))
		*s = append(*s, part...)
	}
}

func (s *state) intent(i *Intent) {
	if i == nil {
		s.part('-')
		return
	}
	s.text(
		i.ID, i.Account, i.Currency, i.Customer, i.PaymentMethod, string(i.Status), i.Description, i.LatestCharge,
		i.CancellationReason,
	)
	s.number(i.Amount)
	s.text(strconv.FormatBool(i.MayRedirect), strconv.FormatBool(i.Automatic))
	for _, name := range slices.Sorted(maps.Keys(i.Metadata)) {
		s.text(name, i.Metadata[name])
	}
	s.problem(i.LastError)
}

func (s *state) refund(r *Refund) {
	if r == nil {
		s.part('-')
		return
	}
	s.text(r.ID, r.Account, r.Charge, r.Intent, r.Currency, r.Reason, string(r.Status), r.Failure)
	s.number(r.Amount)
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		s.text(name, r.Metadata[name])
	}
}

func (s *state) problem(e *Error) {
	if e == nil {
		s.part('-')
		return
	}
	s.text(e.Type, e.Code, e.DeclineCode, e.Message, e.Param, e.PaymentMethod)
	s.intent(e.Intent)
}

// response omits what only the response to a GET has, because no key stores that.
func (s *state) response(r Response) {
	s.number(int64(r.Status))
	s.intent(r.Intent)
	s.refund(r.Refund)
	s.problem(r.Error)
}

func (s *state) call(c *call) {
	s.text(c.Method, c.Path, c.APIKey, c.Key, c.Form.Encode(), strconv.FormatBool(c.done))
	s.number(int64(c.Number))
	s.fault(c.fault)
	s.response(c.response)
}

func (s *state) fault(f Fault) {
	s.text(string(f.Kind), string(f.On), f.OrderID)
	s.number(int64(f.Number))
	s.number(int64(f.Times))
	s.number(int64(f.Delay))
}
