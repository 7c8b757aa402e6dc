package refunds

import (
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/lab/stage"
)

// The order's total, and the amount of each refund.
const (
	whole = 3998
	half  = whole / 2
)

// scene is a world of one paid order of 39.98 USD without faults, in which a test does
// what the product must not do.
type scene struct {
	*testing.T
	*World
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &stage.Stage{Context: t.Context()}
	s.Schedule(stage.NewPool(), stage.Tape(nil).Chooser(), stage.Epoch())
	c := Case{Class: Worst, Orders: []Order{{ID: "ORD-1", Amount: whole, Currency: "usd"}}}
	w := newWorld(s, c)
	w.FaultFree, w.dirty = true, true
	w.check()
	return &scene{t, w}
}

func (s *scene) request(id string) *refund.Request {
	r := newRequest(s.Orders[0], id, half)
	return &r
}

// work lets a worker work on a refund.
func (s *scene) work(name, id string, work func(a *actor)) {
	s.start(name, "a message", func(a *actor) {
		a.request = s.request(id)
		work(a)
	})
	s.finish()
}

// make makes a refund at the bank.
func (s *scene) make(id string) {
	s.work("worker", id, func(a *actor) {
		session := a.bank.Open(s.T.Context())
		_, _ = session.Read(s.T.Context(), "pi_1")
		_, err := session.Create(s.T.Context(), refund.CreateParams{
			Intent: "pi_1", OrderID: "ORD-1", ID: refund.ID(id), Amount: half, Key: id,
		})
		if err != nil {
			s.Error(err)
		}
	})
}

// record claims a refund as one worker, and records its outcome as another one or the
// same.
func (s *scene) record(id string, o refund.Outcome, as string) {
	s.Helper()
	l := order.Lease{Owner: "owner 1", From: s.Now, Until: s.Now.Add(time.Minute)}
	c, err := refund.Begin(s.T.Context(), s.store, *s.request(id), l)
	if err != nil {
		s.Fatal(err)
	}
	s.work(as, id, func(a *actor) {
		a.as.Name = as + " 1"
		_ = c.Finish(s.T.Context(), a.refunds(), o, s.Now)
	})
}

// The planted bugs show that the worlds see the other violations.
func TestTheOracleSeesWhatNoPlantedBugShows(t *testing.T) {
	t.Parallel()
	made := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
	exceed := func(s *scene, id string) {
		s.ended(&task{name: "message 1", request: s.request(id)}, order.Result{Verdict: order.Park, Reason: refund.ReasonExceeds})
	}
	for claim, tt := range map[string]struct {
		do   func(*scene)
		want stage.Invariant
	}{
		"a refund was made and recorded": {func(s *scene) { s.make("R1"); s.record("R1", made, "owner") }, ""},
		"a worker writes to a refund that another one holds": {
			func(s *scene) { s.make("R1"); s.record("R1", made, "other") }, CalledRight,
		},
		"a refund is parked although enough is left": {func(s *scene) { exceed(s, "R1") }, AsAtStripe},
		"a refund is parked because too little is left": {
			func(s *scene) {
				s.make("R1")
				s.record("R1", made, "owner")
				s.make("R2")
				s.record("R2", refund.Outcome{Status: refund.Succeeded, Refund: "re_2"}, "owner")
				exceed(s, "R3")
			}, "",
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
		"a charged order is canceled": {
			func(s *scene) {
				s.orders.Edit("ORD-1", func(r *order.Record) { r.Status = order.Canceled })
				s.dirty = true
			},
			ChargedAndCanceled,
		},
		"an unknown refund is requested again": {
			func(s *scene) {
				s.record("R1", refund.Outcome{Status: refund.Unknown}, "owner")
				s.work("worker", "R1", func(a *actor) {
					session := a.refunds().Open(s.T.Context())
					_, _ = session.Read(s.T.Context(), "pi_1")
					_, _ = session.Create(s.T.Context(), refund.CreateParams{Intent: "pi_1", OrderID: "ORD-1", ID: "R1", Amount: half, Key: "1"})
				})
			}, Settles,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			tt.do(s)
			s.check()
			if s.Broken == nil {
				s.atRest()
			}
			if got := s.Broken; (got == nil) != (tt.want == "") || got != nil && got.Invariant != tt.want {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}
