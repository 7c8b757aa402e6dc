package audit_test

import (
	"slices"
	"testing"
	"time"

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
	const again = audit.ChargedAgain
	const twice = audit.RefundedTwice
	type result struct {
		class  audit.Class // "" if it matches
		risk   audit.Risk  // of processing a message
		bind   bool
		strays int
		busy   bool
	}
	strays := func(n int, r result) result { r.strays = n; return r }
	canceled, unconfirmed := stripe(order.IntentCanceled), stripe(order.NeedsConfirmation)
	payment := func(set func(*audit.Payment)) change { return func(o *audit.Order) { set(&o.Payments[0]) } }
	amount := payment(func(p *audit.Payment) { p.Total.Amount++ })
	matches, busy, differs := result{}, result{busy: true}, result{class: audit.ContentDiffers}
	missing, older := result{audit.MissingRow, again, true, 0, false}, result{audit.RowOlder, again, true, 0, false}
	finds := result{class: audit.RowOlder} // its message finds the charge
	contradicts, charged := result{class: audit.StatusContradicts}, result{class: audit.StatusContradicts, risk: again}
	back5 := result{class: audit.RefundsDiffer, risk: twice}
	for claim, tt := range map[string]struct {
		want    result
		changes []change
	}{
		"a paid order whose intent succeeded":                {},
		"an order without an intent on either side":          {matches, []change{row(order.Open), unbound, unpaid}},
		"a declined order whose intent was declined":         {matches, []change{row(order.Declined), declined}},
		"an intent that waits for its first confirmation":    {matches, []change{row(order.Open), unconfirmed}},
		"unbound intents that took no money":                 {strays(2, matches), []change{also(waits, intent("pi_2", order.IntentCanceled))}},
		"an unbound intent whose money went back":            {strays(1, matches), []change{also(back)}},
		"a refunded order whose intent gave all back":        {matches, []change{row(order.Refunded), givenBack(1999, 1999)}},
		"an intent that names another order since":           {matches, []change{also(other)}},
		"an open row, unbound, whose intent waits":           {strays(1, matches), []change{row(order.Open), unbound, unconfirmed}},
		"a canceled row, unbound, whose intent was declined": {strays(1, matches), []change{row(order.Canceled), unbound, declined}},
		"a row out of stock, with a canceled intent":         {strays(1, matches), []change{row(order.OutOfStock), unbound, canceled}},
		"an order under a lease": {busy, []change{row(order.Open), func(o *audit.Order) {
			o.Row.BusyUntil = noon().Add(time.Minute)
		}}},
		"an open order whose intent is minutes old": {busy, []change{row(order.Open), payment(func(p *audit.Payment) {
			p.CreatedAt = noon().Add(-5 * time.Minute)
		})}},
		"a refund of ours beside one of others": {
			matches, []change{row(order.PartiallyRefunded), givenBack(5, 5), refunds(ours, []string{"re_2", "re_1"})},
		},
		"a dispute that both sides show": {matches, []change{disputed(lost, lost)}},

		"an intent without a row":                                                   {missing, []change{rowless}},
		"a refunded intent without a row":                                           {missing, []change{givenBack(0, 1999), rowless}},
		"a canceled intent without a row":                                           {missing, []change{rowless, canceled}},
		"of several without a row, the one that took money counts":                  {strays(1, missing), []change{rowless, also(waits)}},
		"of two without a row, the canceled one counts, and not the one that waits": {strays(1, missing), []change{rowless, canceled, also(waits)}},
		"an open row, unbound, whose intent was canceled":                           {older, []change{row(order.Open), unbound, canceled}},
		"an open row, unbound, one of whose intents was declined":                   {strays(1, older), []change{row(order.Open), unbound, declined, also(waits)}},
		"an open row, unbound, whose intent was charged and refunded":               {older, []change{row(order.Open), unbound, givenBack(0, 1999)}},
		"an open row, unbound, whose intent succeeded":                              {older, []change{row(order.Open), unbound}},
		"an open row whose intent succeeded":                                        {finds, []change{row(order.Open)}},
		"a pending row whose intent was declined":                                   {finds, []change{row(order.Pending), declined}},
		"a row whose intent Stripe lacks":                                           {result{class: audit.IntentMissing}, []change{unpaid}},
		"another amount":                                                            {differs, []change{amount}},
		"another amount, of an open row":                                            {result{class: audit.ContentDiffers, risk: again}, []change{row(order.Open), amount}},
		"another currency":                                                          {differs, []change{payment(func(p *audit.Payment) { p.Total.Currency = "eur" })}},
		"another fingerprint":                                                       {differs, []change{payment(func(p *audit.Payment) { p.Fingerprint = "v1:1" })}},
		"another scope":                                                             {differs, []change{payment(func(p *audit.Payment) { p.Scope = "other" })}},
		"another order's intent":                                                    {differs, []change{payment(func(p *audit.Payment) { p.OrderID = "ORD-2" })}},
		"two intents that succeeded":                                                {result{class: audit.TwoCharges}, []change{also(second)}},
		"two that took money, and no row":                                           {result{class: audit.TwoCharges, risk: again}, []change{rowless, also(intent("pi_2", order.Processing))}},
		"an intent that the row does not name took the money": {
			result{class: audit.OtherCharged}, []change{row(order.Declined), declined, also(second)},
		},
		"an intent that an open row does not name took the money": {
			result{class: audit.OtherCharged, risk: again}, []change{row(order.Open), declined, also(second)},
		},
		"a paid row whose intent was canceled":              {contradicts, []change{canceled}},
		"a paid row whose intent was never confirmed":       {contradicts, []change{unconfirmed}},
		"a canceled row whose intent succeeded":             {contradicts, []change{row(order.Canceled)}},
		"a refused row, unbound, whose intent succeeded":    {charged, []change{row(order.Refused), unbound}},
		"a refused row, unbound, whose intent was canceled": {charged, []change{row(order.Refused), unbound, canceled}},
		"Stripe gave more back than the row shows":          {back5, []change{givenBack(0, 5)}},
		"a refund that the bank returned":                   {back5, []change{row(order.PartiallyRefunded), givenBack(5, 0)}},
		"a refund that failed, made again in the Dashboard": {
			back5, []change{row(order.PartiallyRefunded), givenBack(5, 5), refunds(ours, others)},
		},
		"an unknown refund that Stripe does not list": {result{class: audit.RefundUnknown}, []change{unknown}},
		"an unknown refund that Stripe has made":      {back5, []change{unknown, givenBack(0, 5)}},
		"a dispute that the row does not show": {
			result{class: audit.DisputeUnrecorded}, []change{disputed(order.Dispute{}, order.Dispute{})},
		},
		"a dispute whose end the row does not show": {result{class: audit.DisputeUnrecorded}, []change{disputed(open, lost)}},
		"both a refund and a dispute that the row does not show": {
			result{class: audit.RefundsDiffer + audit.DisputeUnrecorded, risk: twice},
			[]change{givenBack(0, 5), disputed(order.Dispute{}, order.Dispute{})},
		},
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
			got.risk += f.Risk
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
	for _, result := range books.Check() {
		if slices.Contains([]string{"I1", "I2", "I4"}, result.ID) {
			broken = append(broken, result.Broken...)
		}
	}
	return broken
}

func TestTheVerdictCountsTheRisksThatAreLeft(t *testing.T) {
	const unsafe = "verdict: not yet safe to process: "
	again, twice := map[audit.Risk]int{audit.ChargedAgain: 3}, map[audit.Risk]int{audit.RefundedTwice: 1}
	for _, tt := range []struct {
		risks, repaired map[audit.Risk]int
		want            string
	}{
		{again, map[audit.Risk]int{audit.ChargedAgain: 1}, unsafe + "orders that a message may charge again: 2"},
		{again, again, "verdict: safe to process every order that Stripe knows"},
		{twice, nil, unsafe + "orders of which a message may give money back twice: 1"},
	} {
		got := audit.Summary{InProgress: 1, Risks: tt.risks}.Verdict(tt.repaired)
		want := tt.want + "; not compared, because a worker has them: 1"
		if got.String() != want || got.Safe != (len(got.Risks) == 0) {
			t.Errorf("got  %s, safe %t, risks %v\nwant %s", got, got.Safe, got.Risks, want)
		}
	}
}
