package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

// TestDeadLettersOfTheLocalSystem lists and redrives what the compiled function parked.
func TestDeadLettersOfTheLocalSystem(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	for claim, fifo := range map[string]bool{"of a standard queue": false, "of a FIFO queue": true} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s, _ := kit.Start(t, system.Options{FIFO: fifo})
			const refund = `{"type":"refund","orderId":"DECLINED","refundId":"R-1","amount":1000,"reason":"duplicate"}`
			for i, body := range []string{
				lineOfOrder("PAID", "pm_card_visa"), lineOfOrder("DECLINED", "pm_card_chargeDeclined"),
				lineOfOrder("REFUSED", "pm_card_missing"), lineOfOrder("PAID", "pm_card_mastercard"), refund, `{"orderId":"`,
			} {
				draft := sqstest.Draft{Body: body}
				if fifo {
					draft.Group, draft.DeduplicationID = fmt.Sprint("group-", i%3), fmt.Sprint("sent-", i)
				}
				_, err := s.Post([]sqstest.Draft{draft})
				must(t, err)
				must(t, s.Drained(t.Context()))
			}
			want := []string{
				"DECLINED not_charged fix not refunded 1", "PAID conflict fix charged and settled 1",
				"REFUSED refused fix not charged 1", "invalid_order fix not charged 1",
			}
			if diff := cmp.Diff(parkedNow(t, s), want); diff != "" {
				t.Errorf("dead letters (-got +want):\n%s", diff)
			}

			every := selection{Limit: 100}
			redrive := redriveDead{Select: every, Verdict: "fix", Rate: 100}
			must(t, redrive.Run(t.Context(), operatorOf(s, "redrive\n", io.Discard)))
			must(t, s.Drained(t.Context()))
			for i := range want {
				want[i] = strings.TrimSuffix(want[i], "1") + "2" // parked again
			}
			if diff := cmp.Diff(parkedNow(t, s), want); diff != "" {
				t.Errorf("dead letters after the redrive (-got +want):\n%s", diff)
			}
			discard := discardDead{Select: every, Force: true}
			must(t, discard.Run(t.Context(), operatorOf(s, "discard\n", io.Discard)))
			if got := parkedNow(t, s); got != nil {
				t.Errorf("dead letters after the discard: got %q, want none", got)
			}
			s.Stripe.Machine(func(m *stripetest.Machine) {
				if charges := len(m.Charges("PAID")); charges != 1 || m.Attempts() != 2 {
					t.Errorf("PAID was charged %d times, and %d charges were tried, want 1 and 2", charges, m.Attempts())
				}
			})
		})
	}
}

// operatorOf returns the shell of an operator of the system, at a terminal.
func operatorOf(s *system.System, typed string, out io.Writer) shell.Shell {
	sh := testShell(s.OperatorEnv(), typed, out)
	sh.Now, sh.Terminal = time.Now, true
	return sh
}

// parkedNow returns what list prints: order, reason, verdict, money and how often it was
// parked, sorted.
func parkedNow(t *testing.T, s *system.System) (all []string) {
	t.Helper()
	var out strings.Builder
	sh := operatorOf(s, "", &out)
	sh.JSON = true
	must(t, listDead{Select: selection{Limit: 100}, Verdict: "any"}.Run(t.Context(), sh))
	for lines := json.NewDecoder(strings.NewReader(out.String())); lines.More(); {
		var l view.LetterJSON
		must(t, lines.Decode(&l))
		text := fmt.Sprintf("%s %s %s %s %d", l.OrderID, l.Reason, l.Verdict, l.Money, l.TimesParked)
		all = append(all, strings.TrimSpace(text))
	}
	slices.Sort(all)
	return all
}
