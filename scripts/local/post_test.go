package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

func body(id string) string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"CUST-1","currency":"usd",`+
		`"lines":[{"sku":"MUG","quantity":1,"unitAmount":900}],"payment":{"customer":"cus_Test","method":"pm_card_visa"}}`, id)
}

// TestPost runs the compiled function.
func TestPost(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	webhook, reconcile := kit.Build(t, "orderonce/functions/webhook"), kit.Build(t, "orderonce/functions/reconcile")
	begin := func(t *testing.T, o system.Options) *local {
		t.Helper()
		o.Instances = 1
		s, log := kit.Start(t, o)
		return &local{System: s, folder: "build/test", log: log}
	}
	t.Run("one function is killed after the charge, the next wave waits, and every order has its history", func(t *testing.T) {
		t.Parallel()
		waves := [][]string{{body("killed"), body("lost")}, {body("killed"), body("later")}}
		tally, killer := &tally{deliveries: map[string]int{}}, newKiller(waves, "killed", "lost")
		s := begin(t, system.Options{
			AfterStripe: killer.afterStripe, Deliveries: killer.deliveries, Observe: tally.observe, Webhook: webhook, Reconcile: reconcile,
		})
		killer.system.Store(s.System)
		posted, err := s.post(t.Context(), waves, time.Minute)
		must(t, err)
		victims, lost := killer.dead()
		later, err := s.later(t.Context(), lost)
		must(t, err)
		books, err := s.Collect(t.Context(), posted, s.log)
		must(t, err)
		a := summary{Books: books, deliveries: tally.deliveries, crashes: tally.crashes, killed: victims, later: later}
		for id, want := range map[order.ID]string{
			"killed": "function killed after the charge, next delivery settled it",
			"lost":   "killed, message and webhook lost; settled by reconcile", "later": "charged once",
		} {
			if got := a.history(id); !strings.Contains(got, want) {
				t.Errorf("history of order %q = %q, want %q in it\n%s", id, got, want, books.Logged)
			}
		}
		if n := a.deliveriesOf("killed"); n < 3 || a.crashes < 1 { // more on a busy machine
			t.Errorf("%d deliveries and %d crashes, want at least 3 and 1", n, a.crashes)
		}
		if err := showChecks(t.Output(), books.Audit()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a queue that is not empty in time is an error that names the log", func(t *testing.T) {
		t.Parallel()
		s := begin(t, system.Options{})
		s.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
		_, err := s.post(t.Context(), [][]string{{body("stuck")}}, 50*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), s.folder.log()) {
			t.Errorf("error = %v, want that the time is over and where the log is", err)
		}
	})
	t.Run("a function that exits at its start ends the run and make up at once, with its output", func(t *testing.T) {
		t.Parallel()
		s := begin(t, system.Options{Env: map[string]string{"SCOPE": ""}})
		_, err := s.post(t.Context(), [][]string{{body("never")}}, time.Minute)
		for _, err := range []error{err, s.wait(t.Context())} {
			if !errors.Is(err, lambdatest.ErrExited) || !strings.Contains(err.Error(), "exit status 1") ||
				!strings.Contains(err.Error(), "SCOPE") || !strings.Contains(err.Error(), s.folder.log()) {
				t.Errorf("error = %v, want exit status, output and where the log is", err)
			}
		}
	})
	t.Run("a message that the queue refuses ends the run", func(t *testing.T) {
		t.Parallel()
		s := begin(t, system.Options{})
		if _, err := s.post(t.Context(), [][]string{{"a\x00b"}}, time.Minute); err == nil {
			t.Error("the message was posted")
		}
	})
}
