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
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

func body(id string) string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"CUST-1","currency":"usd",`+
		`"lines":[{"sku":"MUG","quantity":1,"unitAmount":900}],"payment":{"customer":"cus_Test","method":"pm_card_visa"}}`, id)
}

func refundBody(id string, amount int) string {
	return fmt.Sprintf(
		`{"type":"refund","orderId":%q,"refundId":"R","amount":%d,"reason":"requested_by_customer"}`, id, amount,
	)
}

// TestPost runs the compiled function.
func TestPost(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	webhook, reconcile := kit.Build(t, "functions/webhook"), kit.Build(t, "functions/reconcile")
	begin := func(t *testing.T, o system.Options) *local {
		t.Helper()
		counted := &tally{deliveries: map[string]int{}}
		o.Instances, o.Observe = 1, counted.observe
		s, log := kit.Start(t, o)
		return &local{System: s, folder: "build/test", log: log, tally: counted}
	}
	t.Run("functions are killed, and every order and refund has its history", func(t *testing.T) {
		t.Parallel()
		all := killedStages()
		s := begin(t, system.Options{
			AfterStripe: all.afterStripe, Deliveries: all.deliveries, Webhook: webhook, Reconcile: reconcile,
		})
		got, err := run{Limit: time.Minute}.postAll(t.Context(), s, all)
		must(t, err)
		for id, want := range map[order.ID]string{
			"killed": "function killed after the charge, next delivery settled it",
			"lost":   "killed, message and webhook lost; settled by reconcile", "later": "charged once",
			"canceled": "operator canceled it, then a late message charged nobody",
		} {
			if h := got.history(id); !strings.Contains(h, want) {
				t.Errorf("history of order %q = %q, want %q in it\n%s", id, h, want, got.Log)
			}
		}
		last := got.Messages[len(got.Messages)-1]
		if h := got.refundHistory(last); h != "killed after Stripe made it, found there" || got.Made("killed", "R") != 1 {
			t.Errorf("history of the refund = %q, made %d times\n%s", h, got.Made("killed", "R"), got.Log)
		}
		ofKilled := func(p invariants.Message) bool { return p.Order.ID() == "killed" }
		if n := got.deliveriesOf(ofKilled); n < 3 || got.crashes < 2 { // more on a busy machine
			t.Errorf("%d deliveries and %d crashes, want at least 3 and 2", n, got.crashes)
		}
		if err := showChecks(t.Output(), got.Audit()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a queue that is not empty in time is an error that names the log", func(t *testing.T) {
		t.Parallel()
		s := begin(t, system.Options{})
		s.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
		_, err := s.post(t.Context(), stageOf(body("stuck")), 50*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), s.folder.log()) {
			t.Errorf("error = %v, want that the time is over and where the log is", err)
		}
	})
	t.Run("a function that exits at its start ends the run and make up at once, with its output", func(t *testing.T) {
		t.Parallel()
		s := begin(t, system.Options{Env: map[string]string{"SCOPE": ""}})
		_, err := s.post(t.Context(), stageOf(body("never")), time.Minute)
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
		if _, err := s.post(t.Context(), stageOf("a\x00b"), time.Minute); err == nil {
			t.Error("the message was posted")
		}
	})
}

// stageOf returns a stage of one message without a kill.
func stageOf(body string) stage {
	waves := [][]string{{body}}
	return stage{"test.jsonl", waves, newKiller(waves)}
}

// killedStages returns a stage of orders and one of a refund, each with a kill.
func killedStages() stages {
	orders := [][]string{
		{body("killed"), body("lost"), body("canceled")}, {body("killed"), body("later"), body("canceled")},
	}
	refunds := [][]string{{refundBody("killed", 100)}}
	return stages{
		{"orders.jsonl", orders, newKiller(
			orders, victim{"killed", stripetest.Confirm, false}, victim{"lost", stripetest.Confirm, true},
			victim{"canceled", stripetest.Create, true},
		)},
		{"refunds.jsonl", refunds, newKiller(refunds, victim{"killed", stripetest.CreateRefund, false})},
	}
}
