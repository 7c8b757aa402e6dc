package run_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/storm/run"
)

func TestWorkloadIsReproducible(t *testing.T) {
	t.Parallel()
	workload := run.Workload{Seed: 7, Orders: 3000, Duplicates: 0.3}
	decoder := orders.NewDecoder()
	invalid, conflicting, resent := 0, 0, 0
	for n := range workload.Orders {
		messages := workload.Messages(n)
		if diff := cmp.Diff(workload.Messages(n), messages); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		first, firstErr := decoder.Decode(messages[0].Body)
		for i, m := range messages {
			o, err := decoder.Decode(m.Body)
			if (err != nil) != m.Invalid {
				t.Fatalf("message %s: got error %v, want an error: %v\n%s", m.Name, err, m.Invalid, m.Body)
			}
			if err == nil && o.Total() != m.Total {
				t.Errorf("message %s: got a total of %v, want %v", m.Name, o.Total(), m.Total)
			}
			if m.Conflicting &&
				(o.Fingerprint() == first.Fingerprint() || o.Total() == first.Total() || o.ID() != first.ID()) {
				t.Errorf("message %s does not conflict with the first", m.Name)
			}
			if i > 0 && !m.Conflicting {
				resent++
			}
		}
		if firstErr != nil {
			invalid++
		}
		if len(messages) > 1 && messages[1].Conflicting {
			conflicting++
		}
	}
	for what, tt := range map[string]struct{ got, low, high int }{
		"invalid orders":     {invalid, 30, 90},
		"conflicting orders": {conflicting, 50, 130},
		"duplicate messages": {resent, 250, 350},
	} {
		if tt.got < tt.low || tt.got > tt.high {
			t.Errorf("got %d %s of %d, want %d to %d", tt.got, what, workload.Orders, tt.low, tt.high)
		}
	}
}

func TestRefundsLeaveTheMessagesAsTheyAre(t *testing.T) {
	t.Parallel()
	plain := run.Workload{Seed: 7, Orders: 3000, Duplicates: 0.3, Later: true}
	workload := plain
	workload.Refunded, workload.Resent = 0.5, 0.5
	decoder := jobs.NewDecoder()
	refunds, resent, conflicting, early, orders := map[string]bool{}, 0, 0, 0, 0
	for n := range workload.Orders {
		messages, all := workload.Messages(n), workload.RefundMessages(n)
		if diff := cmp.Diff(messages, plain.Messages(n)); diff != "" || len(plain.RefundMessages(n)) > 0 {
			t.Fatalf("order %d (-with refunds +without):\n%s", n, diff)
		}
		if diff := cmp.Diff(all, workload.RefundMessages(n)); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		orders += min(len(all), 1)
		for _, m := range all {
			job, err := decoder.Decode(m.Body)
			if r := job.Refund; err != nil || string(r.OrderID()) != m.OrderID || r.ID() != m.ID || r.Amount() != m.Amount {
				t.Fatalf("message %s: got %+v, %v\n%s", m.Name, r, err, m.Body)
			}
			if step := messages[0].Total.Currency.Step(); m.Amount%step != 0 || m.Amount < 1 {
				t.Errorf("message %s: amount %d is not a multiple of %d", m.Name, m.Amount, step)
			}
			id := m.OrderID + " " + string(m.ID)
			resent += count(refunds[id])
			conflicting, early, refunds[id] = conflicting+count(m.Conflicting), early+count(m.Early), true
		}
	}
	for what, tt := range map[string]struct{ got, low, high int }{
		"orders with refunds":       {orders, 1250, 1450}, // half of those that neither wait nor conflict
		"refunds":                   {len(refunds), 4200, 5200},
		"further copies":            {resent, 4200, 5200}, // two of each second refund
		"copies with other content": {conflicting, 180, 290},
		"messages sent early":       {early, 1600, 2200},
	} {
		if tt.got < tt.low || tt.got > tt.high {
			t.Errorf("got %d %s, want %d to %d", tt.got, what, tt.low, tt.high)
		}
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func TestNoRefundDependsOnTheMoment(t *testing.T) {
	t.Parallel()
	w := run.Workload{Seed: 7, Orders: 3000, Later: true, Refunded: 1}
	for n := range w.Orders {
		messages := w.Messages(n)
		if len(w.RefundMessages(n)) == 0 {
			continue
		}
		for _, m := range messages {
			waits := strings.Contains(m.Body, "usBankAccount") || strings.Contains(m.Body, "authenticationRequired")
			if m.Invalid || m.Conflicting || waits || n >= 2700 && w.Loses(n) {
				t.Errorf("order %d has refunds, want none of %+v", n, m)
			}
		}
	}
}

func TestOrdersAreCanceledAtEveryMoment(t *testing.T) {
	t.Parallel()
	type moment struct {
		call   stripetest.Endpoint
		before bool
	}
	canceled, w := map[moment]int{}, run.Workload{Seed: 7, Orders: 10_000, Later: true}
	product := w
	w.Later = false
	for n := range w.Orders {
		if call, before := product.Cancels(n); call != "" {
			canceled[moment{call, before}]++
		}
		if call, _ := w.Cancels(n); call != "" {
			t.Fatalf("order %d is canceled for a handler that cannot cancel", n)
		}
	}
	for _, m := range []moment{
		{stripetest.Create, true}, {stripetest.Create, false}, {stripetest.Confirm, true}, {stripetest.Confirm, false},
	} {
		if n := canceled[m]; n < 30 || n > 70 {
			t.Errorf("got %d of 10,000 orders canceled at %+v, want about 50", n, m)
		}
	}
}
