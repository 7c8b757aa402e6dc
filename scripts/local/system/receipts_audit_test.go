package system_test

import (
	"encoding/base64"

	"orderonce/adapters/ses/sestest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// mail adds correct receipts to the books: each charged order has one that was sent.
func (a *accounts) mail() {
	a.Receipts = map[order.ID][]receipt.Item{}
	for id, r := range a.Records {
		if r.Status.Charged() {
			a.Receipts[id] = []receipt.Item{{
				OrderID: id, Key: receipt.Paid, Status: receipt.Sent, Message: "message-1", Attempt: 1, Revision: 2,
			}}
			a.mailed(id)
		}
	}
}

// mailed adds an e-mail about an order.
func (a *accounts) mailed(id order.ID) {
	encode := base64.RawURLEncoding.EncodeToString
	a.Mail = append(a.Mail, sestest.Email{ID: "message-1", Tags: map[string]string{
		"orderonce-order": encode([]byte(id)), "orderonce-receipt": encode([]byte(receipt.Paid)),
	}})
}

// receipted changes the receipt of the order "paid" in books that have receipts.
func (a *accounts) receipted(change func(*receipt.Item)) {
	a.mail()
	change(&a.Receipts["paid"][0])
}

func wrongReceipts() []spoiled {
	status := func(s receipt.Status) func(*receipt.Item) {
		return func(i *receipt.Item) { i.Status, i.Message = s, "" }
	}
	return []spoiled{
		{"correct receipts", "", (*accounts).mail},
		{"a listed doubt", "", func(a *accounts) {
			a.receipted(status(receipt.Doubtful))
			a.Doubts = a.Receipts["paid"]
		}},
		{"a second e-mail, at least once", "", func(a *accounts) {
			a.mail()
			a.mailed("paid")
			a.AtLeastOnce = true
		}},
		{"a second e-mail", "I23", func(a *accounts) { a.mail(); a.mailed("paid") }},
		{"an e-mail about an unpaid order", "I23", func(a *accounts) { a.mail(); a.mailed("declined") }},
		{"a paid order without a receipt", "I23", func(a *accounts) { a.mail(); delete(a.Receipts, "paid") }},
		{"a receipt that is still sending", "I23", func(a *accounts) { a.receipted(status(receipt.Sending)) }},
		{"a doubt that is not listed", "I23", func(a *accounts) { a.receipted(status(receipt.Doubtful)) }},
		{"a failed receipt whose e-mail was sent", "I23", func(a *accounts) { a.receipted(status(receipt.Failed)) }},
		{"a sent receipt without an e-mail", "I23", func(a *accounts) { a.mail(); a.Mail = nil }},
	}
}
