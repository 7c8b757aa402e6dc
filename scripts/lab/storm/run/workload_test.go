package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/storm/run"
)

func TestWorkloadIsReproducible(t *testing.T) {
	t.Parallel()
	workload := run.Workload{Seed: 7, Orders: 3000, Duplicates: 0.3}
	decoder := sqs.NewDecoder()
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

// find returns the first order of a workload whose messages fit.
func find(t *testing.T, fits func([]run.Message) bool) (run.Workload, int) {
	t.Helper()
	workload := run.Workload{Seed: 7, Orders: 3000}
	for n := range workload.Orders {
		if fits(workload.Messages(n)) {
			return workload, n
		}
	}
	t.Fatal("no order of the workload fits")
	return workload, 0
}

func TestCountOrder(t *testing.T) {
	t.Parallel()
	plain := func(m []run.Message) bool { return len(m) == 1 && m[0].Want == order.Paid }
	conflict := func(m []run.Message) bool { return len(m) == 2 && m[1].Conflicting && m[0].Want == order.Paid }
	declined := func(m []run.Message) bool { return len(m) == 1 && m[0].Want == order.Declined }
	authenticate := func(m []run.Message) bool { return len(m) == 1 && m[0].Want == order.ActionRequired }
	invalid := func(m []run.Message) bool { return m[0].Invalid }
	paid := run.Row{Settled: true, Status: order.Paid}

	for name, tt := range map[string]struct {
		order   func([]run.Message) bool
		row     run.Row
		charged []int // which messages' amounts
		inYen   bool
		ledger  []stripetest.Charge // further charges
		dead    []int               // which messages are dead letters
		want    run.Count
	}{
		"settled and charged once": {order: plain, row: paid, charged: []int{0}, want: run.Count{Settled: 1}},
		"charged twice": {
			order: plain, row: paid, charged: []int{0, 0},
			want: run.Count{Settled: 1, ChargedTwice: 1, ExtraCharges: 1},
		},
		"lost":                                  {order: plain, want: run.Count{Lost: 1}},
		"charged without a row is lost":         {order: plain, charged: []int{0}, want: run.Count{Lost: 1}},
		"an unsettled order with a dead letter": {order: plain, dead: []int{0}, want: run.Count{Stuck: 1}},
		"a paid row without a charge":           {order: plain, row: paid, want: run.Count{Settled: 1, LedgerMismatch: 1}},
		"a declined row with a charge": {
			order: plain, row: run.Row{Settled: true, Status: order.Declined}, charged: []int{0},
			want: run.Count{Settled: 1, LedgerMismatch: 1, WrongStatus: 1},
		},
		"an amount that differs from the row": {
			order: plain, row: run.Row{Settled: true, Status: order.Paid, Amount: 1}, charged: []int{0},
			want: run.Count{Settled: 1, WrongAmount: 1},
		},
		"an amount that was not sent, in row and ledger": {
			order: plain, row: run.Row{Settled: true, Status: order.Paid, Amount: 1},
			ledger: []stripetest.Charge{{Amount: 1, Currency: "usd", Outcome: stripetest.Charged}},
			want:   run.Count{Settled: 1, WrongAmount: 1},
		},
		"another currency": {
			order: plain, row: paid, inYen: true, charged: []int{0},
			want: run.Count{Settled: 1, WrongAmount: 1},
		},
		"a declined row of a good card": {
			order: plain, row: run.Row{Settled: true, Status: order.Declined},
			want: run.Count{Settled: 1, WrongStatus: 1},
		},
		"a declined card": {
			order: declined, row: run.Row{Settled: true, Status: order.Declined},
			want: run.Count{Settled: 1},
		},
		"a declined row of a card that needs authentication": {
			order: authenticate, row: run.Row{Settled: true, Status: order.Declined},
			want: run.Count{Settled: 1, WrongStatus: 1},
		},
		"a conflicting duplicate is parked": {
			order: conflict, row: paid, charged: []int{0}, dead: []int{1},
			want: run.Count{Settled: 1},
		},
		"a conflicting duplicate is deleted": {
			order: conflict, row: paid, charged: []int{1},
			want: run.Count{Settled: 1, ConflictLost: 1},
		},
		"both conflicting orders are charged": {
			order: conflict, row: paid, charged: []int{0, 1},
			want: run.Count{Settled: 1, ChargedTwice: 1, ExtraCharges: 1, WrongAmount: 1},
		},
		"an invalid order is parked": {order: invalid, dead: []int{0}, want: run.Count{}},
		"an invalid order is lost":   {order: invalid, want: run.Count{Lost: 1}},
		"an invalid order is charged": {
			order: invalid, row: paid, charged: []int{0}, dead: []int{0},
			want: run.Count{WrongAmount: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workload, n := find(t, tt.order)
			messages := workload.Messages(n)
			ledger := tt.ledger
			for _, i := range tt.charged {
				c := stripetest.Charge{
					Amount:   messages[i].Total.Amount,
					Currency: string(messages[i].Total.Currency),
					Outcome:  stripetest.Charged,
				}
				if tt.inYen {
					c.Currency = "jpy"
				}
				ledger = append(ledger, c)
			}
			var dead []string
			for _, i := range tt.dead {
				dead = append(dead, messages[i].Name)
			}
			tt.want.Messages = len(messages)
			if !messages[0].Invalid {
				tt.want.Orders = 1
			}
			if diff := cmp.Diff(run.CountOrder(workload, n, tt.row, ledger, dead...), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}
