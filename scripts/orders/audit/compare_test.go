package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
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
	return audit.Payment{
		ID: id, OrderID: "ORD-1", Scope: scope, State: state, Total: order.Money{Amount: 1999, Currency: "usd"},
		Fingerprint: "v1:0", CreatedAt: noon().Add(-24 * time.Hour),
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	declined := intent("pi_1", order.NeedsMethod)
	declined.Failure = order.Failure{Code: "card_declined"}
	lost := order.Dispute{ID: "du_1", Status: order.DisputeLost}
	for claim, tt := range map[string]struct {
		change func(*audit.Order)
		class  audit.Class // "" if it matches
		bind   bool
		strays int
		busy   bool
		intent order.IntentID // of the finding; "": any
	}{
		"a paid order whose intent succeeded matches": {change: func(*audit.Order) {}},
		"an order without an intent on either side matches": {change: func(o *audit.Order) {
			o.Row.Status, o.Row.Intent, o.Payments = order.Open, "", nil
		}},
		"a declined order whose intent was declined matches": {change: func(o *audit.Order) {
			o.Row.Status, o.Payments[0] = order.Declined, declined
		}},
		"an intent that waits for its first confirmation shows no outcome": {change: func(o *audit.Order) {
			o.Row.Status, o.Payments[0] = order.Open, intent("pi_1", order.NeedsConfirmation)
		}},
		"unbound intents that took no money are strays": {strays: 2, change: func(o *audit.Order) {
			o.Payments = append(o.Payments, intent("pi_2", order.IntentCanceled), intent("pi_3", order.NeedsConfirmation))
		}},
		"an unbound intent whose money went back is a stray": {strays: 1, change: func(o *audit.Order) {
			back := intent("pi_2", order.Succeeded)
			back.Refunded = 1999
			o.Payments = append(o.Payments, back)
		}},
		"a refunded order whose intent gave all back matches": {change: func(o *audit.Order) {
			o.Row.Status, o.Row.Refunded, o.Payments[0].Refunded = order.Refunded, 1999, 1999
		}},
		"a refunded intent without a row": {class: audit.MissingRow, bind: true, change: func(o *audit.Order) {
			o.Row, o.Payments[0].Refunded = nil, 1999
		}},
		"an intent that names another order since it was listed is not this order's": {change: func(o *audit.Order) {
			other := intent("pi_2", order.Succeeded)
			other.OrderID = "ORD-2"
			o.Payments = append(o.Payments, other)
		}},
		"an open row without an intent, one of which waits": {strays: 1, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Intent, o.Payments = order.Open, "", []audit.Payment{intent("pi_1", order.NeedsConfirmation)}
		}},
		"a canceled row without an intent, one of which was declined": {strays: 1, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Intent, o.Payments[0] = order.Canceled, "", declined
		}},
		"an order out of stock, with a canceled intent": {strays: 1, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Intent, o.Payments[0].State = order.OutOfStock, "", order.IntentCanceled
		}},
		"an order under a lease is in progress": {busy: true, change: func(o *audit.Order) {
			o.Row.Status, o.Row.BusyUntil = order.Open, noon().Add(time.Minute)
		}},
		"an open order whose intent is minutes old is in progress": {busy: true, change: func(o *audit.Order) {
			o.Row.Status, o.Payments[0].CreatedAt = order.Open, noon().Add(-5*time.Minute)
		}},

		"an intent without a row": {class: audit.MissingRow, bind: true, change: func(o *audit.Order) { o.Row = nil }},
		"of several intents without a row, the one that took money counts": {
			class: audit.MissingRow, bind: true, strays: 1, change: func(o *audit.Order) {
				o.Row, o.Payments = nil, []audit.Payment{intent("pi_0", order.NeedsConfirmation), o.Payments[0]}
			},
		},
		"a canceled intent without a row": {class: audit.MissingRow, bind: true, change: func(o *audit.Order) {
			o.Row, o.Payments[0].State = nil, order.IntentCanceled
		}},
		"of two intents without a row, the canceled one counts, and not the one that waits": {
			class: audit.MissingRow, bind: true, strays: 1, intent: "pi_0", change: func(o *audit.Order) {
				o.Row, o.Payments = nil, []audit.Payment{
					intent("pi_0", order.IntentCanceled), intent("pi_1", order.NeedsConfirmation),
				}
			},
		},
		"an open row without an intent, one of which was canceled": {
			class: audit.RowOlder, bind: true, change: func(o *audit.Order) {
				o.Row.Status, o.Row.Intent, o.Payments[0].State = order.Open, "", order.IntentCanceled
			},
		},
		"an open row without an intent, one of which was declined": {
			class: audit.RowOlder, bind: true, strays: 1, intent: "pi_1", change: func(o *audit.Order) {
				o.Row.Status, o.Row.Intent = order.Open, ""
				o.Payments = []audit.Payment{intent("pi_2", order.NeedsConfirmation), declined}
			},
		},
		"an open row without an intent, one of which was charged and refunded": {
			class: audit.RowOlder, bind: true, change: func(o *audit.Order) {
				o.Row.Status, o.Row.Intent, o.Payments[0].Refunded = order.Open, "", 1999
			},
		},
		"a refused row without an intent, one of which was canceled": {
			class: audit.StatusContradicts, change: func(o *audit.Order) {
				o.Row.Status, o.Row.Intent, o.Payments[0].State = order.Refused, "", order.IntentCanceled
			},
		},
		"an open row whose intent succeeded": {class: audit.RowOlder, change: func(o *audit.Order) {
			o.Row.Status = order.Open
		}},
		"a pending row whose intent was declined": {class: audit.RowOlder, change: func(o *audit.Order) {
			o.Row.Status, o.Payments[0] = order.Pending, declined
		}},
		"an open row without an intent, one of which succeeded": {class: audit.RowOlder, bind: true, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Intent = order.Open, ""
		}},
		"a row that names an intent that Stripe lacks": {class: audit.IntentMissing, change: func(o *audit.Order) {
			o.Payments = nil
		}},
		"another amount": {class: audit.ContentDiffers, change: func(o *audit.Order) { o.Payments[0].Total.Amount++ }},
		"another currency": {class: audit.ContentDiffers, change: func(o *audit.Order) {
			o.Payments[0].Total.Currency = "eur"
		}},
		"another fingerprint": {class: audit.ContentDiffers, change: func(o *audit.Order) {
			o.Payments[0].Fingerprint = "v1:1"
		}},
		"another scope": {class: audit.ContentDiffers, change: func(o *audit.Order) { o.Payments[0].Scope = "other" }},
		"another order's intent": {class: audit.ContentDiffers, change: func(o *audit.Order) {
			o.Payments[0].OrderID = "ORD-2"
		}},
		"two intents that succeeded": {class: audit.TwoCharges, change: func(o *audit.Order) {
			o.Payments = append(o.Payments, intent("pi_2", order.Succeeded))
		}},
		"two intents that succeeded, and no row": {class: audit.TwoCharges, change: func(o *audit.Order) {
			o.Row, o.Payments = nil, append(o.Payments, intent("pi_2", order.Processing))
		}},
		"an intent that the row does not name took the money": {class: audit.OtherCharged, change: func(o *audit.Order) {
			o.Row.Status = order.Declined
			o.Payments = []audit.Payment{declined, intent("pi_2", order.Succeeded)}
		}},
		"a paid row whose intent was canceled": {class: audit.StatusContradicts, change: func(o *audit.Order) {
			o.Payments[0].State = order.IntentCanceled
		}},
		"a paid row whose intent was never confirmed": {class: audit.StatusContradicts, change: func(o *audit.Order) {
			o.Payments[0].State = order.NeedsConfirmation
		}},
		"a canceled row whose intent succeeded": {class: audit.StatusContradicts, change: func(o *audit.Order) {
			o.Row.Status = order.Canceled
		}},
		"a refused row without an intent, one of which succeeded": {class: audit.StatusContradicts, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Intent = order.Refused, ""
		}},
		"Stripe gave more back than the row shows": {class: audit.RefundsDiffer, change: func(o *audit.Order) {
			o.Payments[0].Refunded = 5
		}},
		"a refund that the bank returned": {class: audit.RefundsDiffer, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Refunded = order.PartiallyRefunded, 5
		}},
		"a refund that failed, made again in the Dashboard": {class: audit.RefundsDiffer, change: func(o *audit.Order) {
			o.Row.Status, o.Row.Refunded, o.Payments[0].Refunded = order.PartiallyRefunded, 5, 5
			o.Row.Refunds, o.Payments[0].Refunds = []string{"re_1"}, []string{"re_2"}
		}},
		"a refund of ours beside one of others matches": {change: func(o *audit.Order) {
			o.Row.Status, o.Row.Refunded, o.Payments[0].Refunded = order.PartiallyRefunded, 5, 5
			o.Row.Refunds, o.Payments[0].Refunds = []string{"re_1"}, []string{"re_2", "re_1"}
		}},
		"a dispute that the row does not show": {class: audit.DisputeUnrecorded, change: func(o *audit.Order) {
			o.Payments[0].Disputed = true
		}},
		"a dispute whose end the row does not show": {class: audit.DisputeUnrecorded, change: func(o *audit.Order) {
			o.Payments[0].Disputed, o.Payments[0].Dispute = true, lost
			o.Row.Dispute = order.Dispute{ID: "du_1", Status: order.DisputeOpen}
		}},
		"a dispute that both sides show matches": {change: func(o *audit.Order) {
			o.Payments[0].Disputed, o.Payments[0].Dispute, o.Row.Dispute = true, lost, lost
		}},
		"a row that cannot be read": {class: audit.RowUnreadable, change: func(o *audit.Order) {
			o.Row = &audit.Row{OrderID: o.ID, Problem: "corrupt record"}
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			o := paid()
			tt.change(&o)
			r := audit.Compare(o, scope, noon())
			var class audit.Class
			bind := false
			found := tt.intent
			if len(r.Findings) > 0 {
				class, bind = r.Findings[0].Class, r.Findings[0].Bind
				found = r.Findings[0].Intent
			}
			if tt.intent != "" && found != tt.intent {
				t.Errorf("got the intent %s, want %s", found, tt.intent)
			}
			if len(r.Findings) > 1 || class != tt.class || bind != tt.bind || r.InProgress != tt.busy || r.Strays != tt.strays {
				t.Errorf("got %+v, want class %q, bind %t, in progress %t, %d strays", r, tt.class, tt.bind, tt.busy, tt.strays)
			}
		})
	}
}

func TestAnOrderMayDifferInRefundsAndDispute(t *testing.T) {
	t.Parallel()
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
