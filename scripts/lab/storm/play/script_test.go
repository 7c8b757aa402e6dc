package play_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/storm/play"
)

func TestScript(t *testing.T) {
	t.Parallel()
	script := play.Script{Seed: 7, Orders: 3000, Duplicates: 0.3}
	decoder := sqs.NewDecoder()
	invalid, others, again := 0, 0, 0
	for n := range script.Orders {
		messages := script.Messages(n)
		if diff := cmp.Diff(script.Messages(n), messages); diff != "" {
			t.Fatalf("the same script sent something else:\n%s", diff)
		}
		first, firstErr := decoder.Decode(messages[0].Body)
		for i, m := range messages {
			o, err := decoder.Decode(m.Body)
			if (err != nil) != m.Invalid {
				t.Fatalf("message %s: %v, want an error: %v\n%s", m.Name, err, m.Invalid, m.Body)
			}
			if err == nil && o.Total() != m.Total {
				t.Errorf("message %s is of %v, the script says %v", m.Name, o.Total(), m.Total)
			}
			if m.Other && (o.Fingerprint() == first.Fingerprint() || o.Total() == first.Total() || o.ID() != first.ID()) {
				t.Errorf("message %s has no other content under the same id", m.Name)
			}
			if i > 0 && !m.Other {
				again++
			}
		}
		if firstErr != nil {
			invalid++
		}
		if len(messages) > 1 && messages[1].Other {
			others++
		}
	}
	for what, tt := range map[string]struct{ got, low, high int }{
		"orders that are none":     {invalid, 30, 90},
		"orders with two contents": {others, 50, 130},
		"messages sent again":      {again, 250, 350},
	} {
		if tt.got < tt.low || tt.got > tt.high {
			t.Errorf("%d %s of %d, want %d to %d", tt.got, what, script.Orders, tt.low, tt.high)
		}
	}
}

// find returns the first order of a script whose messages fit.
func find(t *testing.T, fits func([]play.Message) bool) (play.Script, int) {
	t.Helper()
	script := play.Script{Seed: 7, Orders: 3000}
	for n := range script.Orders {
		if fits(script.Messages(n)) {
			return script, n
		}
	}
	t.Fatal("no order of the script fits")
	return script, 0
}

func TestJudge(t *testing.T) {
	t.Parallel()
	plain := func(m []play.Message) bool { return len(m) == 1 && m[0].Ends == order.Paid }
	two := func(m []play.Message) bool { return len(m) == 2 && m[1].Other && m[0].Ends == order.Paid }
	refused := func(m []play.Message) bool { return len(m) == 1 && m[0].Ends == order.Declined }
	wanted := func(m []play.Message) bool { return len(m) == 1 && m[0].Ends == order.ActionRequired }
	none := func(m []play.Message) bool { return m[0].Invalid }
	paid := play.Row{Settled: true, Status: order.Paid}

	for name, tt := range map[string]struct {
		order   func([]play.Message) bool
		row     play.Row
		charged []int // which messages' amounts
		inYen   bool
		ledger  []stripetest.Charge // further charges
		dead    []int               // which messages are dead letters
		want    play.Count
	}{
		"settled and charged once": {order: plain, row: paid, charged: []int{0}, want: play.Count{Settled: 1}},
		"charged twice": {
			order: plain, row: paid, charged: []int{0, 0},
			want: play.Count{Settled: 1, ChargedTwice: 1, ExtraCharges: 1},
		},
		"gone without a trace":                          {order: plain, want: play.Count{Lost: 1}},
		"charged and without a row is lost as well":     {order: plain, charged: []int{0}, want: play.Count{Lost: 1}},
		"a dead letter of an order that is not settled": {order: plain, dead: []int{0}, want: play.Count{Stuck: 1}},
		"a row that says paid without a charge":         {order: plain, row: paid, want: play.Count{Settled: 1, BooksDiffer: 1}},
		"a charge that the row calls failed": {
			order: plain, row: play.Row{Settled: true, Status: order.Declined}, charged: []int{0},
			want: play.Count{Settled: 1, BooksDiffer: 1, ToldWrong: 1},
		},
		"another sum than the row's": {
			order: plain, row: play.Row{Settled: true, Status: order.Paid, Amount: 1}, charged: []int{0},
			want: play.Count{Settled: 1, WrongAmount: 1},
		},
		"a sum that nobody sent, in the row and the ledger alike": {
			order: plain, row: play.Row{Settled: true, Status: order.Paid, Amount: 1},
			ledger: []stripetest.Charge{{Amount: 1, Currency: "usd", Outcome: stripetest.Charged}},
			want:   play.Count{Settled: 1, WrongAmount: 1},
		},
		"another currency": {
			order: plain, row: paid, inYen: true, charged: []int{0},
			want: play.Count{Settled: 1, WrongAmount: 1},
		},
		"a good card that nobody has declined": {
			order: plain, row: play.Row{Settled: true, Status: order.Declined},
			want: play.Count{Settled: 1, ToldWrong: 1},
		},
		"a declined card is told so": {
			order: refused, row: play.Row{Settled: true, Status: order.Declined},
			want: play.Count{Settled: 1},
		},
		"declined, although the bank only wants the customer": {
			order: wanted, row: play.Row{Settled: true, Status: order.Declined},
			want: play.Count{Settled: 1, ToldWrong: 1},
		},
		"other content is a dead letter": {
			order: two, row: paid, charged: []int{0}, dead: []int{1},
			want: play.Count{Settled: 1},
		},
		"other content is acknowledged in silence": {
			order: two, row: paid, charged: []int{1},
			want: play.Count{Settled: 1, Swallowed: 1},
		},
		"both contents are charged": {
			order: two, row: paid, charged: []int{0, 1},
			want: play.Count{Settled: 1, ChargedTwice: 1, ExtraCharges: 1, WrongAmount: 1},
		},
		"no order, and kept for a person": {order: none, dead: []int{0}, want: play.Count{}},
		"no order, and gone":              {order: none, want: play.Count{Lost: 1}},
		"no order, and charged": {
			order: none, row: paid, charged: []int{0}, dead: []int{0},
			want: play.Count{WrongAmount: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, n := find(t, tt.order)
			messages := script.Messages(n)
			ledger := tt.ledger
			for _, i := range tt.charged {
				c := stripetest.Charge{Amount: messages[i].Total.Amount, Currency: string(messages[i].Total.Currency), Outcome: stripetest.Charged}
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
			if diff := cmp.Diff(play.Judge(script, n, tt.row, ledger, dead...), tt.want); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
}
