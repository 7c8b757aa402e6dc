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

// TestPost runs the compiled function where nothing goes well. What goes as planned is
// compared with README and the tutorial.
func TestPost(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	begin := func(t *testing.T, o system.Options) *local {
		t.Helper()
		o.Instances = 1
		s, log := kit.Start(t, o)
		return &local{System: s, folder: "build/test", log: log}
	}
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
