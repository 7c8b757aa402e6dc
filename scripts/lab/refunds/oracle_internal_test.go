package refunds

import (
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// scene is a world of one paid order of 39.98 USD in which a test does what the product
// must not do.
type scene struct {
	*testing.T
	*World

	keys int
}

// The order's total, and the amount of each refund.
const (
	whole = 3998
	half  = whole / 2
)

// make makes a refund of our order at the bank, under a key of its own.
func (s *scene) make(id string) {
	s.Helper()
	r, _ := s.orders.Peek("ORD-1")
	session := s.bank.Open(s.Context())
	_, err := session.Read(s.Context(), r.Intent)
	if s.keys++; err == nil {
		_, err = session.Create(s.Context(), refund.Order{
			Intent: r.Intent, OrderID: "ORD-1", ID: refund.ID(id), Amount: half, Key: fmt.Sprint(s.keys),
		})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// record records an outcome of a refund, or none.
func (s *scene) record(id string, o refund.Outcome) {
	s.Helper()
	l := order.Lease{Owner: "test", From: s.now, Until: s.now.Add(time.Minute)}
	c, err := s.store.Begin(s.Context(), newRequest(s.Orders[0], id, half), l)
	if err == nil && o.Status != refund.Open {
		err = s.store.Finish(s.Context(), c, o, s.now)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func TestTheOracleSeesEveryViolation(t *testing.T) {
	t.Parallel()
	made := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
	for claim, tt := range map[string]struct {
		do   func(*scene)
		want Invariant
	}{
		"nothing happened": {func(*scene) {}, ""},
		"a refund was made and recorded": {
			func(s *scene) { s.make("R1"); s.record("R1", made) }, "",
		},
		"a refund was made twice": {func(s *scene) { s.make("R1"); s.make("R1") }, MadeOnce},
		"a small refund was made twice, once by a late request": {
			func(s *scene) {
				s.make("R1")
				s.make("R1")
				s.oracle.excused["re_2"] = true
				s.record("R1", made)
				s.refresh("ORD-1")
			}, "",
		},
		"two refunds were made, each once": {
			func(s *scene) {
				s.make("R1")
				s.make("R2")
				s.record("R1", made)
				s.record("R2", refund.Outcome{Status: refund.Succeeded, Refund: "re_2"})
			}, "",
		},
		"a refund is called succeeded, and was not made": {func(s *scene) { s.record("R1", made) }, CalledRight},
		"a refund is called refused, and was made": {
			func(s *scene) { s.make("R1"); s.record("R1", refund.Outcome{Status: refund.Refused}) }, CalledRight,
		},
		"a refund is called failed, and succeeded": {
			func(s *scene) { s.make("R1"); s.record("R1", refund.Outcome{Status: refund.Failed}) }, CalledRight,
		},
		"a refund is open": {func(s *scene) { s.record("R1", refund.Outcome{Status: refund.Open}) }, Settles},
		"somebody refunds in the Dashboard, and nobody refreshes": {
			func(s *scene) { s.bank.InDashboard("pi_1", order.Money{Amount: whole, Currency: "usd"}) }, AsAtStripe,
		},
		"more goes back than was charged": {
			func(s *scene) {
				s.bank.InDashboard("pi_1", order.Money{Amount: whole, Currency: "usd"})
				s.bank.InDashboard("pi_1", order.Money{Amount: 1, Currency: "usd"})
			}, AsAtStripe,
		},
		"a charged order is canceled": {
			func(s *scene) { _ = s.orders.SetStatus(s.Context(), "ORD-1", order.Canceled) }, ChargedAndCanceled,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c := Case{Class: Worst, Orders: []Order{{ID: "ORD-1", Amount: whole, Currency: "usd"}}}
			w := newWorld(t.Context(), c, played(nil))
			w.dirty = true
			w.check()
			tt.do(&scene{T: t, World: w})
			w.choose.calm, w.dirty = true, true
			w.finish()
			w.check()
			if w.broken == nil {
				w.atRest()
			}
			if got := w.broken; (got == nil) != (tt.want == "") || got != nil && got.Invariant != tt.want {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

// An unknown refund is not requested again, whoever redelivers its message.
func TestTheOracleSeesTheRequestOfAnUnknownRefund(t *testing.T) {
	t.Parallel()
	c := Case{Class: Worst, Orders: []Order{{ID: "ORD-1", Amount: whole, Currency: "usd"}}}
	w := newWorld(t.Context(), c, played(nil))
	s := &scene{T: t, World: w}
	s.record("R1", refund.Outcome{Status: refund.Unknown})
	w.choose.calm = true
	r := newRequest(c.Orders[0], "R1", half)
	w.start("worker", 0, func(a *actor) {
		a.request = &r
		session := a.refunds().Open(t.Context())
		_, _ = session.Read(t.Context(), "pi_1")
		_, _ = session.Create(t.Context(), refund.Order{Intent: "pi_1", OrderID: "ORD-1", ID: "R1", Amount: half, Key: "1"})
	})
	w.finish()
	if w.broken == nil || w.broken.Invariant != Settles {
		t.Errorf("got %v, want %s", w.broken, Settles)
	}
}
