package stripetest_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// FuzzMachine reads bytes as a schedule of requests, half-done calls, faults, people and
// passing time, and checks after each step what must hold for ever.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 4, 20})
	f.Add([]byte{0, 1, 1, 11, 1, 3, 1, 5, 2, 2, 2, 12, 1, 13, 1, 7, 4, 23, 5, 4, 7})
	f.Add([]byte("a redelivered order is charged once, and its refund is made once"))
	f.Fuzz(func(t *testing.T, schedule []byte) {
		w := newWorld(t, stripetest.Rules{})
		responses := map[stripetest.RequestID][]byte{}
		var tickets []stripetest.Ticket
		for _, op := range schedule[:min(len(schedule), 200)] {
			twin, again, before := w.clone(), slices.Clone(tickets), w.Intents()
			got := fuzzStep(w, op, &tickets)
			if got != nil && !bytes.Equal(fuzzStep(twin, op, &again).Body(), got.Body()) {
				t.Fatalf("op %d: the clone has another response", op)
			}
			checkReplay(t, responses, got)
			checkMoney(t, w, before)
		}
		for _, ticket := range tickets {
			w.End(w.now, ticket)
		}
		checkMoney(t, w, nil)
	})
}

// fuzzStep decodes and executes one byte: its low half is the action, its high half the
// intent, card, key or fault.
func fuzzStep(w *world, op byte, tickets *[]stripetest.Ticket) *stripetest.Response {
	arg := int(op / 16)
	method := []string{
		"pm_card_visa", "pm_card_chargeDeclined", "pm_card_authenticationRequired", "pm_usBankAccount_processing",
	}[arg%4]
	id, key := fmt.Sprintf("pi_%06d", arg%4+1), fmt.Sprintf("key%d", arg%3)
	confirm := request("POST", root+"/"+id+"/confirm", key, "off_session=true&payment_method=pm_card_visa")
	switch op % 16 {
	case 0:
		return new(w.post(root, key, creation(method)))
	case 1:
		return new(w.confirm(id, key))
	case 2:
		return new(w.Do(w.now, confirm))
	case 3:
		return new(w.post(root+"/"+id+"/cancel", key, ""))
	case 4:
		return new(w.refund(id, fmt.Sprint(arg%4*500+1), fmt.Sprint("refund", arg)))
	case 5:
		_ = w.ChangeRefund(fmt.Sprintf("re_%06d", arg%4+1), stripetest.RefundFailed)
	case 6, 7:
		ticket, refusal := w.Begin(w.now, confirm)
		if refusal != nil {
			return refusal
		}
		*tickets = append(*tickets, ticket)
	case 8:
		if len(*tickets) > 0 {
			w.Effect(w.now, (*tickets)[arg%len(*tickets)])
		}
	case 9, 10:
		if len(*tickets) > 0 {
			ticket := (*tickets)[0]
			*tickets = (*tickets)[1:]
			return new(w.End(w.now, ticket))
		}
	case 11:
		w.now = w.now.Add(time.Duration(arg) * 2 * time.Hour)
	case 12:
		_ = w.CustomerPays(w.now, id)
		_, _ = w.RefundInDashboard(w.now, id, int64(arg*100+1))
	case 13:
		_ = w.Settle(w.now, id, arg >= 8)
		if d, err := w.OpenDispute(w.now, id); err == nil {
			_ = w.CloseDispute(d.ID, arg != 8)
		}
	case 14:
		w.RollForward(w.now)
	case 15:
		kinds := []stripetest.FaultKind{
			stripetest.LoseResponse, stripetest.ServerErrorAfterEffect, stripetest.ServerErrorBeforeEffect,
			stripetest.LoseRequest, stripetest.RateLimited, stripetest.Garbage, stripetest.Decline,
		}
		w.Fail(stripetest.Fault{Kind: kinds[arg%len(kinds)]})
	}
	return nil
}

// checkReplay compares a replay with the first response, byte by byte.
func checkReplay(t *testing.T, responses map[stripetest.RequestID][]byte, got *stripetest.Response) {
	t.Helper()
	if got == nil {
		return
	}
	plain := *got
	plain.Garbled = false
	if !got.Replayed() {
		responses[got.RequestID] = plain.Body()
	} else if first := responses[got.Original]; !bytes.Equal(first, plain.Body()) {
		t.Fatalf("request %s replays %s differently:\n%s\n%s", got.RequestID, got.Original, first, plain.Body())
	}
}

// checkMoney checks that an intent succeeds at most once and for ever, for its own
// amount, that ledger, intents and refunds agree, and that no more is refunded than was
// charged.
func checkMoney(t *testing.T, w *world, before []*stripetest.Intent) {
	t.Helper()
	paid, refunded := map[string]int{}, map[string]int64{}
	for _, r := range w.Refunds() {
		if r.Status != stripetest.RefundFailed {
			refunded[r.Intent] += r.Amount
		}
	}
	for _, charge := range w.Ledger() {
		if charge.Amount != 1999 || charge.Currency != "usd" {
			t.Fatalf("got a charge of %d %s, want 1999 usd", charge.Amount, charge.Currency)
		}
		if charge.Outcome == stripetest.Charged {
			paid[charge.Intent]++
			if back := refunded[charge.Intent]; back != charge.Refunded || back > 1999 {
				t.Fatalf("%s: %d refunded, and refunds of %d, want equal and at most 1999", charge.Intent, charge.Refunded, back)
			}
		}
	}
	for i, intent := range w.Intents() {
		succeeded := intent.Status == stripetest.StatusSucceeded
		if paid[intent.ID] > 1 || (paid[intent.ID] == 1) != succeeded {
			t.Fatalf("%s is %s and was paid %d times", intent.ID, intent.Status, paid[intent.ID])
		}
		if i < len(before) && before[i].Status == stripetest.StatusSucceeded && !succeeded {
			t.Fatalf("%s: got %s after succeeded", intent.ID, intent.Status)
		}
	}
}
