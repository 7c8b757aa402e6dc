package system_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// halfRefunded returns correct books in which half of the order "paid" went back.
func halfRefunded() *accounts {
	a := correct()
	a.Accounts = map[order.ID]refund.Account{}
	a.Refunds = map[order.ID][]stripetest.Refund{}
	for id, r := range a.Records {
		a.Accounts[id] = refund.Account{OrderID: id, Status: r.Status, Charged: r.Total, Intent: r.Intent}
	}
	a.refund("R", refund.Succeeded)
	return a
}

// refund posts a refund of half of the order "paid", and records its status in the row,
// in the events and at Stripe.
func (a *accounts) refund(of refund.ID, s refund.Status) {
	const id = "paid"
	amount := a.Accounts[id].Charged.Amount / 2
	a.post("refund "+string(of), fmt.Sprintf(
		`{"type":"refund","orderId":%q,"refundId":%q,"amount":%d,"reason":"duplicate"}`, id, of, amount,
	))
	if s != refund.Refused && s != refund.Unknown {
		a.made(of, amount, stripetest.RefundStatus(s))
	}
	a.account(func(account *refund.Account) {
		account.Items = append(account.Items, refund.Item{
			ID: of, Amount: amount, Status: s, Refund: refund.ProviderID("re_" + of),
		})
	})
	a.refundEvent(order.RefundEvent{ID: string(of), Status: string(s), Amount: amount})
}

// made adds a refund to Stripe's list.
func (a *accounts) made(of refund.ID, amount int64, s stripetest.RefundStatus) {
	r := stripetest.Refund{
		ID: "re_" + string(of), Amount: amount, Currency: "usd", Status: s, Metadata: map[string]string{},
	}
	if of != "" {
		r.Metadata["refundId"] = string(of)
	}
	a.Refunds["paid"] = append(a.Refunds["paid"], r)
}

// account changes the account of the order "paid".
func (a *accounts) account(change func(*refund.Account)) {
	account := a.Accounts["paid"]
	account.Items = slices.Clone(account.Items)
	change(&account)
	a.Accounts["paid"] = account
}

// item changes the refund "R" in the row.
func (a *accounts) item(change func(*refund.Item)) {
	a.account(func(account *refund.Account) { change(&account.Items[0]) })
}

// refundEvent adds an event of a refund, and the status that follows from what went back.
func (a *accounts) refundEvent(e order.RefundEvent) {
	charged, back := a.Accounts["paid"].Charged.Amount, a.Accounts["paid"].Refunded()
	to := order.PartiallyRefunded
	switch {
	case back == 0:
		to = order.Paid
	case back >= charged:
		to = order.Refunded
	}
	a.row("paid", func(r *order.Record) {
		r.Seq++
		r.Events = append(slices.Clone(r.Events), order.Event{Seq: r.Seq, From: r.Status, To: to, Refund: e})
		r.Status = to
	})
	a.account(func(account *refund.Account) { account.Status = to })
}

// bankReturns records that the bank returned the refund "R".
func (a *accounts) bankReturns() {
	a.Refunds["paid"][0].Status = stripetest.RefundFailed
	a.item(func(i *refund.Item) { i.Status = refund.Failed })
	a.refundEvent(order.RefundEvent{ID: "R", Status: string(refund.Failed), Amount: a.Accounts["paid"].Items[0].Amount})
}

func wrongRefunds() []spoiled {
	return []spoiled{
		{"half of an order went back", "", func(*accounts) {}},
		{"all of an order went back, half of it later", "", func(a *accounts) { a.refund("S", refund.Pending) }},
		{"the bank returned a refund", "", (*accounts).bankReturns},
		{"a refund is refused", "", func(a *accounts) { a.refund("S", refund.Refused) }},
		{"an unknown refund is parked", "", func(a *accounts) {
			a.refund("S", refund.Unknown)
			a.park("refund S", refund.ReasonUnknown)
		}},
		{"others gave half back", "", func(a *accounts) {
			amount := a.Accounts["paid"].Charged.Amount / 2
			a.made("", amount, stripetest.RefundSucceeded)
			a.account(func(account *refund.Account) { account.Outside = amount })
			a.refundEvent(order.RefundEvent{Status: order.RefundedOutside, Amount: amount})
		}},
		{"more than is left is parked", "", func(a *accounts) {
			a.post("refund X", `{"type":"refund","orderId":"paid","refundId":"X","amount":1,"reason":"duplicate"}`)
			a.park("refund X", refund.ReasonExceeds)
		}},

		{"a refund is made twice", "I18 I19", func(a *accounts) {
			a.made("R", a.Accounts["paid"].Items[0].Amount, stripetest.RefundSucceeded)
		}},
		{"a refund is made twice, and the row counts both", "I18 I20", func(a *accounts) {
			amount := a.Accounts["paid"].Items[0].Amount
			a.made("R", amount, stripetest.RefundSucceeded)
			a.account(func(account *refund.Account) { account.Outside, account.Status = amount, order.Refunded })
		}},
		{"more went back than was charged", "I19 I20", func(a *accounts) {
			amount := a.Accounts["paid"].Charged.Amount
			a.made("", amount, stripetest.RefundSucceeded)
			a.account(func(account *refund.Account) { account.Outside, account.Status = amount, order.Refunded })
		}},
		{"others gave money back, and the row does not show it", "I19", func(a *accounts) {
			a.made("", 1, stripetest.RefundSucceeded)
		}},
		{"a row shows money that nobody gave back", "I19 I20", func(a *accounts) {
			a.account(func(account *refund.Account) { account.Outside = 1 })
		}},
		{"a partially refunded order is called refunded", "I19", func(a *accounts) {
			a.account(func(account *refund.Account) { account.Status = order.Refunded })
		}},
		{"a refund in the row is not at Stripe", "I4 I19", func(a *accounts) { a.Refunds = nil }},
		{"a refund at Stripe has another amount", "I4 I19", func(a *accounts) { a.Refunds["paid"][0].Amount++ }},
		{"a refund at Stripe has another currency", "I4", func(a *accounts) { a.Refunds["paid"][0].Currency = "eur" }},
		{"a row names a refund that others made", "I4", func(a *accounts) {
			delete(a.Refunds["paid"][0].Metadata, "refundId")
		}},
		{"a refund at Stripe is not in the row", "I4 I19", func(a *accounts) {
			a.made("S", 1, stripetest.RefundSucceeded)
		}},
		{"an order without a row is refunded", "I4", func(a *accounts) {
			a.Refunds["unknown"] = []stripetest.Refund{{Status: stripetest.RefundPending, Metadata: map[string]string{"refundId": "R"}}}
		}},
		{"a refund is succeeded, and Stripe has it pending", "I20", func(a *accounts) {
			a.Refunds["paid"][0].Status = stripetest.RefundPending
		}},
		{"a refund is failed, and the bank did not return it", "I19 I20", func(a *accounts) {
			a.bankReturns()
			a.Refunds["paid"][0].Status = stripetest.RefundSucceeded
		}},
		{"a failed refund was made again", "I19 I20", func(a *accounts) {
			a.bankReturns()
			a.made("R", 1, stripetest.RefundSucceeded)
		}},
		{"a refused refund was made", "I19 I20", func(a *accounts) {
			a.refund("S", refund.Refused)
			a.made("S", 1, stripetest.RefundSucceeded)
		}},
		{"the event of a refund says another status", "I20", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Events[1].Refund.Status = string(refund.Pending) })
		}},
		{"the event of a refund says another amount", "I20", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Events[1].Refund.Amount++ })
		}},
		{"the event of a refund makes the order refunded", "I7 I20", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Events[1].To = order.Refunded })
		}},
		{"the event of a refund is missing", "I7 I8 I20", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Events = r.Events[:1] })
		}},
		{"a refund is left open", "I3 I19 I20 I21", func(a *accounts) {
			a.item(func(i *refund.Item) { i.Status = refund.Open })
		}},
		{"the message of a refund is lost", "I3", func(a *accounts) {
			a.post("refund X", `{"type":"refund","orderId":"paid","refundId":"X","amount":1,"reason":"duplicate"}`)
		}},
	}
}

func TestAuditOfRefunds(t *testing.T) {
	t.Parallel()
	for _, tt := range wrongRefunds() {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			a := halfRefunded()
			tt.by(a)
			if got := strings.Join(brokenIDs(a.Audit()), " "); got != tt.want {
				t.Errorf("broken: %q, want %q\n%+v", got, tt.want, a.Audit())
			}
		})
	}
}
