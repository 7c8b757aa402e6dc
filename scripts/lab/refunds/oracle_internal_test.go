package refunds

import (
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
)

// scene is a world of one paid order of 39.98 USD in which a test does what the product
// must not do.
type scene struct {
	*testing.T
	*World

	keys int
}

// quiet returns a world in which nothing unusual happens.
func quiet(t *testing.T, c Case) *World {
	t.Helper()
	s := &stage.Stage{Context: t.Context()}
	s.Schedule(stage.NewPool(), stage.Tape(nil).Chooser(), stage.Epoch())
	return newWorld(s, c, nil)
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
	session := s.bank.Open(s.T.Context())
	_, err := session.Read(s.T.Context(), r.Intent)
	if s.keys++; err == nil {
		_, err = session.Create(s.T.Context(), refund.Order{
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
	l := order.Lease{Owner: "test", From: s.Now, Until: s.Now.Add(time.Minute)}
	c, err := refund.Begin(s.T.Context(), s.store, newRequest(s.Orders[0], id, half), l)
	if err == nil && o.Status != refund.Open {
		err = c.Finish(s.T.Context(), s.store, o, s.Now)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// exceed ends the delivery of a refund as one that is more than is left.
func (s *scene) exceed(id string) {
	r := newRequest(s.Orders[0], id, half)
	s.ended(&task{name: "message 1", request: &r}, order.Result{Verdict: order.Park, Reason: refund.ReasonExceeds})
}

// finishAs claims a refund as "test" and records its outcome as a worker of the given
// name.
func (s *scene) finishAs(name, id string, o refund.Outcome) {
	s.Helper()
	r := newRequest(s.Orders[0], id, half)
	l := order.Lease{Owner: "test 1", From: s.Now, Until: s.Now.Add(time.Minute)}
	c, err := refund.Begin(s.T.Context(), s.store, r, l)
	if err != nil {
		s.Fatal(err)
	}
	s.start(name, "a message", func(a *actor) {
		a.request = &r
		_ = c.Finish(s.T.Context(), a.refunds(), o, s.Now)
	})
	s.Calm = true
	s.finish()
}

func TestTheOracleSeesEveryViolation(t *testing.T) {
	t.Parallel()
	made := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
	for claim, tt := range map[string]struct {
		do   func(*scene)
		want stage.Invariant
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
		"a refund begins that is more than is left": {
			func(s *scene) {
				a, _ := s.store.Load(s.T.Context(), "ORD-1")
				began := a
				began.Items = []refund.Item{
					{ID: "R1", Amount: whole, Status: refund.Unknown}, {ID: "R2", Amount: 1, Status: refund.Open},
				}
				a.Items = began.Items[:1]
				s.checkChanges(a, began, nil)
			}, AsAtStripe,
		},
		"a refund is parked although enough is left": {func(s *scene) { s.exceed("R1") }, AsAtStripe},
		"a refund is parked because too little is left": {
			func(s *scene) {
				for n, id := range []string{"R1", "R2"} {
					s.make(id)
					s.record(id, refund.Outcome{Status: refund.Succeeded, Refund: refund.ProviderID(fmt.Sprintf("re_%d", n+1))})
				}
				s.exceed("R3")
			}, "",
		},
		"a worker writes to a refund that another one holds": {
			func(s *scene) { s.make("R1"); s.finishAs("other", "R1", made) }, CalledRight,
		},
		"a worker writes to the refund that it holds": {
			func(s *scene) { s.make("R1"); s.finishAs("test", "R1", made) }, "",
		},
		"a charged order is canceled": {
			func(s *scene) { _ = s.orders.SetStatus(s.T.Context(), "ORD-1", order.Canceled) }, ChargedAndCanceled,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c := Case{Class: Worst, Orders: []Order{{ID: "ORD-1", Amount: whole, Currency: "usd"}}}
			w := quiet(t, c)
			w.dirty = true
			w.check()
			tt.do(&scene{T: t, World: w})
			w.Calm, w.dirty = true, true
			w.finish()
			w.check()
			if w.Broken == nil {
				w.atRest()
			}
			if got := w.Broken; (got == nil) != (tt.want == "") || got != nil && got.Invariant != tt.want {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

// An unknown refund is not requested again, however often its message is delivered.
func TestTheOracleSeesTheRequestOfAnUnknownRefund(t *testing.T) {
	t.Parallel()
	c := Case{Class: Worst, Orders: []Order{{ID: "ORD-1", Amount: whole, Currency: "usd"}}}
	w := quiet(t, c)
	s := &scene{T: t, World: w}
	s.record("R1", refund.Outcome{Status: refund.Unknown})
	w.Calm = true
	r := newRequest(c.Orders[0], "R1", half)
	w.start("worker", "a message", func(a *actor) {
		a.request = &r
		session := a.refunds().Open(t.Context())
		_, _ = session.Read(t.Context(), "pi_1")
		_, _ = session.Create(t.Context(), refund.Order{Intent: "pi_1", OrderID: "ORD-1", ID: "R1", Amount: half, Key: "1"})
	})
	w.finish()
	if w.Broken == nil || w.Broken.Invariant != Settles {
		t.Errorf("got %v, want %s", w.Broken, Settles)
	}
}
