package audit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/orders/audit"
)

const scope = order.Scope("test")

func noon() time.Time { return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC) }

// paid returns an order that was paid a day ago and that both sides agree about.
func paid() audit.Order {
	return audit.Order{
		ID: "ORD-1",
		Row: &audit.Row{
			OrderID: "ORD-1", Status: order.Paid, Total: order.Money{Amount: 1999, Currency: "usd"}, Intent: "pi_1",
			Fingerprint: "v1:0", CreatedAt: noon().Add(-24 * time.Hour),
		},
		Payments: []audit.Payment{intent("pi_1", order.Succeeded)},
	}
}

func intent(id order.IntentID, state order.IntentState) audit.Payment {
	return audit.Payment{CreatedAt: noon().Add(-24 * time.Hour), Intent: order.Intent{
		ID: id, OrderID: "ORD-1", Scope: scope, State: state, Fingerprint: "v1:0",
		Total: order.Money{Amount: 1999, Currency: "usd"},
	}}
}

// change is one way in which the sides differ.
type change func(*audit.Order)

func row(s order.Status) change { return func(o *audit.Order) { o.Row.Status = s } }

func stripe(s order.IntentState) change { return func(o *audit.Order) { o.Payments[0].State = s } }

func also(more ...audit.Payment) change {
	return func(o *audit.Order) { o.Payments = append(o.Payments, more...) }
}

// givenBack sets what went back by each side.
func givenBack(row, stripe int64) change {
	return func(o *audit.Order) { o.Row.Refunded, o.Payments[0].Refunded = row, stripe }
}

func refunds(row, stripe []string) change {
	return func(o *audit.Order) { o.Row.Refunds, o.Payments[0].Refunds = row, stripe }
}

func disputed(row, stripe order.Dispute) change {
	return func(o *audit.Order) {
		o.Payments[0].Disputed, o.Row.Dispute, o.Payments[0].Dispute = true, row, stripe
	}
}

func unknown(o *audit.Order) { o.Row.Unknown = []string{"R-1"} }

func unbound(o *audit.Order) { o.Row.Intent = "" }

func rowless(o *audit.Order) { o.Row = nil }

func unpaid(o *audit.Order) { o.Payments = nil }

func declined(o *audit.Order) {
	o.Payments[0].State, o.Payments[0].Failure = order.NeedsMethod, order.Failure{Code: "card_declined"}
}

func TestCompare(t *testing.T) {
	back, other := intent("pi_2", order.Succeeded), intent("pi_2", order.Succeeded)
	back.Refunded, other.OrderID = 1999, "ORD-2"
	second, waits := intent("pi_2", order.Succeeded), intent("pi_0", order.NeedsConfirmation)
	open := order.Dispute{ID: "du_1", Status: order.DisputeOpen}
	lost := order.Dispute{ID: "du_1", Status: order.DisputeLost}
	ours, others := []string{"re_1"}, []string{"re_2"}
	type result struct {
		class  audit.Class // "" if it matches
		bind   bool
		strays int
		busy   bool
	}
	canceled, unconfirmed := stripe(order.IntentCanceled), stripe(order.NeedsConfirmation)
	payment := func(set func(*audit.Payment)) change { return func(o *audit.Order) { set(&o.Payments[0]) } }
	differs, contradicts := result{class: audit.ContentDiffers}, result{class: audit.StatusContradicts}
	for claim, tt := range map[string]struct {
		want    result
		changes []change
	}{
		"a paid order whose intent succeeded":                {},
		"an order without an intent on either side":          {result{}, []change{row(order.Open), unbound, unpaid}},
		"a declined order whose intent was declined":         {result{}, []change{row(order.Declined), declined}},
		"an intent that waits for its first confirmation":    {result{}, []change{row(order.Open), unconfirmed}},
		"unbound intents that took no money":                 {result{strays: 2}, []change{also(waits, intent("pi_2", order.IntentCanceled))}},
		"an unbound intent whose money went back":            {result{strays: 1}, []change{also(back)}},
		"a refunded order whose intent gave all back":        {result{}, []change{row(order.Refunded), givenBack(1999, 1999)}},
		"an intent that names another order since":           {result{}, []change{also(other)}},
		"an open row, unbound, whose intent waits":           {result{strays: 1}, []change{row(order.Open), unbound, unconfirmed}},
		"a canceled row, unbound, whose intent was declined": {result{strays: 1}, []change{row(order.Canceled), unbound, declined}},
		"a row out of stock, with a canceled intent":         {result{strays: 1}, []change{row(order.OutOfStock), unbound, canceled}},
		"an order under a lease": {result{busy: true}, []change{row(order.Open), func(o *audit.Order) {
			o.Row.BusyUntil = noon().Add(time.Minute)
		}}},
		"an open order whose intent is minutes old": {result{busy: true}, []change{row(order.Open), func(o *audit.Order) {
			o.Payments[0].CreatedAt = noon().Add(-5 * time.Minute)
		}}},
		"a refund of ours beside one of others": {
			result{}, []change{row(order.PartiallyRefunded), givenBack(5, 5), refunds(ours, []string{"re_2", "re_1"})},
		},
		"a dispute that both sides show": {result{}, []change{disputed(lost, lost)}},

		"an intent without a row": {result{class: audit.MissingRow, bind: true}, []change{rowless}},
		"a refunded intent without a row": {
			result{class: audit.MissingRow, bind: true}, []change{givenBack(0, 1999), rowless},
		},
		"of several intents without a row, the one that took money counts": {
			result{class: audit.MissingRow, bind: true, strays: 1}, []change{rowless, also(waits)},
		},
		"a canceled intent without a row": {
			result{class: audit.MissingRow, bind: true}, []change{rowless, canceled},
		},
		"of two without a row, the canceled one counts, and not the one that waits": {
			result{class: audit.MissingRow, bind: true, strays: 1}, []change{rowless, canceled, also(waits)},
		},
		"an open row, unbound, whose intent was canceled": {
			result{class: audit.RowOlder, bind: true}, []change{row(order.Open), unbound, canceled},
		},
		"an open row, unbound, one of whose intents was declined": {
			result{class: audit.RowOlder, bind: true, strays: 1}, []change{row(order.Open), unbound, declined, also(waits)},
		},
		"an open row, unbound, whose intent was charged and refunded": {
			result{class: audit.RowOlder, bind: true}, []change{row(order.Open), unbound, givenBack(0, 1999)},
		},
		"an open row, unbound, whose intent succeeded": {
			result{class: audit.RowOlder, bind: true}, []change{row(order.Open), unbound},
		},
		"an open row whose intent succeeded":      {result{class: audit.RowOlder}, []change{row(order.Open)}},
		"a pending row whose intent was declined": {result{class: audit.RowOlder}, []change{row(order.Pending), declined}},
		"a row whose intent Stripe lacks":         {result{class: audit.IntentMissing}, []change{unpaid}},
		"another amount":                          {differs, []change{payment(func(p *audit.Payment) { p.Total.Amount++ })}},
		"another currency":                        {differs, []change{payment(func(p *audit.Payment) { p.Total.Currency = "eur" })}},
		"another fingerprint":                     {differs, []change{payment(func(p *audit.Payment) { p.Fingerprint = "v1:1" })}},
		"another scope":                           {differs, []change{payment(func(p *audit.Payment) { p.Scope = "other" })}},
		"another order's intent":                  {differs, []change{payment(func(p *audit.Payment) { p.OrderID = "ORD-2" })}},
		"two intents that succeeded":              {result{class: audit.TwoCharges}, []change{also(second)}},
		"two that took money, and no row":         {result{class: audit.TwoCharges}, []change{rowless, also(intent("pi_2", order.Processing))}},
		"an intent that the row does not name took the money": {
			result{class: audit.OtherCharged}, []change{row(order.Declined), declined, also(second)},
		},
		"a paid row whose intent was canceled":        {contradicts, []change{canceled}},
		"a paid row whose intent was never confirmed": {contradicts, []change{unconfirmed}},
		"a canceled row whose intent succeeded":       {contradicts, []change{row(order.Canceled)}},
		"a refused row, unbound, whose intent succeeded": {
			contradicts, []change{row(order.Refused), unbound},
		},
		"a refused row, unbound, whose intent was canceled": {
			contradicts, []change{row(order.Refused), unbound, canceled},
		},
		"Stripe gave more back than the row shows": {result{class: audit.RefundsDiffer}, []change{givenBack(0, 5)}},
		"a refund that the bank returned":          {result{class: audit.RefundsDiffer}, []change{row(order.PartiallyRefunded), givenBack(5, 0)}},
		"a refund that failed, made again in the Dashboard": {
			result{class: audit.RefundsDiffer}, []change{row(order.PartiallyRefunded), givenBack(5, 5), refunds(ours, others)},
		},
		"an unknown refund that Stripe does not list": {result{class: audit.RefundUnknown}, []change{unknown}},
		"an unknown refund that Stripe has made":      {result{class: audit.RefundsDiffer}, []change{unknown, givenBack(0, 5)}},
		"a dispute that the row does not show": {
			result{class: audit.DisputeUnrecorded}, []change{disputed(order.Dispute{}, order.Dispute{})},
		},
		"a dispute whose end the row does not show": {result{class: audit.DisputeUnrecorded}, []change{disputed(open, lost)}},
		"a row that cannot be read": {result{class: audit.RowUnreadable}, []change{func(o *audit.Order) {
			o.Row = &audit.Row{OrderID: o.ID, Problem: "corrupt record"}
		}}},
	} {
		o := paid()
		for _, c := range tt.changes {
			c(&o)
		}
		r := audit.Compare(o, scope, noon())
		got := result{strays: r.Strays, busy: r.InProgress}
		for _, f := range r.Findings {
			got.class += f.Class
			got.bind = f.Bind
			if f.Bind && f.Intent != "pi_1" {
				t.Errorf("%s: got the intent %s, want pi_1 bound", claim, f.Intent)
			}
		}
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v: %+v", claim, got, tt.want, r.Findings)
		}
		if broken := brokenBy(o); len(broken) > 0 && got.class == "" && !got.busy {
			t.Errorf("%s: the audit finds nothing, and of the invariants these are broken: %q", claim, broken)
		}
	}
}

// brokenBy returns how an order breaks the invariants of docs/design.md that are about a
// row and its PaymentIntents. They allow for no money of another intent that went back.
func brokenBy(o audit.Order) (broken []string) {
	books := invariants.Books{Charges: map[order.ID][]invariants.Charge{}, Orders: map[order.ID]invariants.Order{}}
	for _, p := range o.Payments {
		back := (o.Row == nil || p.ID != o.Row.Intent) && p.Refunded == p.Total.Amount
		if p.State == order.Succeeded && p.OrderID == o.ID && !back {
			books.Charges[o.ID] = append(books.Charges[o.ID], invariants.Charge{Intent: p.ID, Total: p.Total})
		}
	}
	if r := o.Row; r != nil {
		books.Orders[o.ID] = invariants.Order{Record: order.Record{
			OrderID: o.ID, Status: r.Status, Total: r.Total, Intent: r.Intent, Dispute: r.Dispute,
		}}
	}
	for _, result := range books.Audit() {
		if slices.Contains([]string{"I1", "I2", "I4"}, result.ID) {
			broken = append(broken, result.Broken...)
		}
	}
	return broken
}

func TestAnOrderMayDifferInRefundsAndDispute(t *testing.T) {
	o := paid()
	o.Payments[0].Refunded, o.Payments[0].Disputed = 5, true
	r := audit.Compare(o, scope, noon())
	want := []string{
		"refunds_differ     ORD-1  row 0.00 USD, Stripe 0.05 USD given back",
		"dispute_unrecorded ORD-1  row not disputed, Stripe disputed",
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
