package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestAnAuditOfTheLocalSystem audits orders whose workers were killed after the charge.
// Then it loses rows, as a restore from backup does, and sends every message again.
func TestAnAuditOfTheLocalSystem(t *testing.T) {
	t.Parallel()
	var running atomic.Pointer[system.System]
	var confirmed atomic.Int64
	s, _ := systemtest.New(t).Start(t, system.Options{AfterStripe: func(c stripetest.Call) {
		if c.Endpoint == stripetest.Confirm && confirmed.Add(1)%9 == 0 {
			running.Load().Function.Kill(nil)
		}
	}})
	running.Store(s)
	const orders = 30
	var drafts []sqstest.Draft
	for n := range orders {
		body := strings.Replace(line(fmt.Sprintf("ORD-%d", n)), "pm_canary", []string{pays, declines, takes}[n%3], 1)
		drafts = append(drafts, sqstest.Draft{Body: body})
	}
	deliver := func() {
		t.Helper()
		_, err := s.Post(drafts)
		must(t, err)
		must(t, drained(t.Context(), s))
	}
	deliver()
	if kills := s.Function.Report().Kills; kills == 0 {
		t.Error("no worker was killed")
	}
	end := time.Now().Add(time.Minute).Format(time.RFC3339) // Stripe's times have whole seconds
	a := auditTable{From: "1h", To: end, StripeRate: 1e6, TableRate: 1e6, Yes: true}
	sh := testShell(s.OperatorEnv(), "", new(strings.Builder))
	sh.Now = time.Now
	audits := func() (string, error) {
		var out strings.Builder
		sh.Out = &out
		err := a.Run(t.Context(), sh)
		return out.String(), err
	}
	if printed, err := audits(); err != nil {
		t.Errorf("after the kills: got %v, printed\n%s", err, printed)
	}
	lose(t.Context(), t, s, orders/2)
	if printed, err := audits(); !errors.Is(err, errDiffer) || !strings.Contains(printed, "15 differ\n") {
		t.Errorf("after the loss: got %v, printed\n%s", err, printed)
	}
	a.Repair = true
	if printed, err := audits(); err != nil || !strings.Contains(printed, "repaired 15 of 15 orders\n") {
		t.Errorf("repair: got %v, printed\n%s", err, printed)
	}
	s.Stripe.Machine(func(m *stripetest.Machine) { m.ForgetKeys() }) // a day later, they have expired
	deliver()
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for n := range orders {
			id := fmt.Sprintf("ORD-%d", n)
			if charges := len(m.Charges(id)); charges > 1 || charges == 0 && n%3 == 0 {
				t.Errorf("%s was charged %d times", id, charges)
			}
		}
	})
}

// lose deletes the rows of the first orders, with their events.
func lose(ctx context.Context, t *testing.T, s *system.System, orders int) {
	t.Helper()
	client := sdk.NewFromConfig(dynamodbtest.Config(s.Engine.Endpoint, func(string) string { return "" }))
	for n := range orders {
		for _, sk := range []string{"order", "event#000001"} {
			key := map[string]types.AttributeValue{"orderId": text(fmt.Sprintf("ORD-%d", n)), "sk": text(sk)}
			_, err := client.DeleteItem(ctx, &sdk.DeleteItemInput{TableName: &s.Options.Table, Key: key})
			must(t, err)
		}
	}
}
