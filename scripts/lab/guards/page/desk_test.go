package page_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/console/attack"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system"
)

// scene is a system with the settings of the page, and the desk that attacks it.
type scene struct {
	*system.System

	desk *attack.Desk
	t    *testing.T
	log  *system.Log

	mu     sync.Mutex
	posted map[string]invariants.Message // every message that was delivered, by id
}

// start starts a system with every guard.
func (k kit) start(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, log: &system.Log{}, posted: map[string]invariants.Message{}}
	folder := t.TempDir()
	order := filepath.Join(folder, "order")
	must(t, os.Link(k.binaries["order"], order))
	w := watch.New(time.Now)
	s.desk = attack.New(w, folder, func(ctx context.Context, guard, out string) error {
		g, err := guards.Find(k.root, guard)
		if err != nil {
			return err
		}
		return g.Build(ctx, k.root, "./functions/order", out)
	})
	o := system.Options{
		Binary: order, Webhook: k.binaries["webhook"], Reconcile: k.binaries["reconcile"], Publish: k.binaries["publish"],
		Engine: k.engine, Output: s.log, Stock: map[string]int64{attack.Article: 1000},
		FunctionTimeout: attack.FunctionTimeout, Visibility: attack.Visibility, Env: attack.Env(),
	}
	s.desk.Hook(&o)
	duplicate := o.Duplicate
	o.Duplicate = func(m sqstest.Message) sqstest.Twice { // it is called before each delivery
		s.note(m)
		return duplicate(m)
	}
	w.Hook(&o)
	var err error
	s.System, err = system.Start(t.Context(), o)
	must(t, err)
	s.desk.Start(t.Context(), s.System)
	t.Cleanup(func() {
		s.desk.Close()
		must(t, s.Close())
	})
	return s
}

// note records a message.
func (s *scene) note(m sqstest.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posted[m.ID] = invariants.NewMessage(jobs.NewDecoder(), m.Body, m.ID)
}

// brokenBy does what the page's button does, waits until every message has ended or an
// order was charged twice, and returns the broken invariants. Without the guard bind, a
// message never ends.
func (s *scene) brokenBy(name string) []invariants.Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	_, err := s.desk.Attack(ctx, name)
	must(s.t, err)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for s.Waiting() > 0 && !s.chargedTwice() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("not at rest: %+v\n%s", s.Counts(), s.log.Text())
		}
	}
	must(s.t, s.Heard(ctx))
	books, err := s.Collect(ctx, s.messages(), s.log)
	must(s.t, err)
	return slices.DeleteFunc(books.Audit(), func(c invariants.Result) bool { return len(c.Broken) == 0 })
}

func (s *scene) messages() []invariants.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.posted))
}

func (s *scene) chargedTwice() (twice bool) {
	s.Stripe.Machine(func(m *stripetest.Machine) {
		charged := map[string]bool{}
		for _, c := range m.Ledger() {
			twice = twice || c.Outcome == stripetest.Charged && charged[c.OrderID]
			charged[c.OrderID] = charged[c.OrderID] || c.Outcome == stripetest.Charged
		}
	})
	return twice
}
