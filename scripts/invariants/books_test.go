package invariants_test

import (
	"fmt"
	"slices"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
)

const (
	apiKey = "sk_test_pretend"
	shirt  = "TSHIRT-M"
)

type books struct{ invariants.Books }

// correct returns books without a broken invariant: one order was paid, delivered again
// and sent with different content, one was declined, one needs its customer, one was
// pending for days and then paid, half of one went back, and one message is not an order.
// Every part is there.
func correct() *books {
	b := &books{invariants.Books{
		Parked: map[string]invariants.DeadLetter{}, Orders: map[order.ID]invariants.Order{},
		Charges: map[order.ID][]invariants.Charge{}, Intents: map[order.IntentID]invariants.Intent{},
		Refunds: map[order.ID][]invariants.Refund{}, Disputes: map[order.ID][]order.Dispute{},
		Secrets: []string{apiKey}, Log: `{"order_id":"paid","verdict":"done","reason":"settled"}` + "\n",
	}}
	b.post("first", body("paid"))
	b.post("again", body("paid"))
	b.post("other", strings.Replace(body("paid"), "1999", "2999", 1))
	b.post("refusal", body("declined"))
	b.post("question", body("waiting"))
	b.post("return", body("late"))
	b.post("sale", body("half"))
	b.post("junk", "{")
	b.park("other", order.ReasonConflict)
	b.park("junk", order.ReasonInvalid)
	b.settle("paid", order.Paid)
	b.settle("declined", order.Declined)
	b.settle("waiting", order.ActionRequired)
	b.settle("late", order.Pending, order.Paid)
	b.settle("half", order.Paid)
	for _, id := range []order.ID{"paid", "late", "half"} {
		b.charge(id)
	}
	b.refund("R", refund.Succeeded)
	b.record()
	return b
}

// record fills in the parts that follow from the rows: bus, stock, receipts and requests.
func (b *books) record() {
	b.Bus, b.Mail, b.Doubts, b.Requests = nil, nil, nil, []invariants.Request{}
	b.Receipts = map[order.ID][]receipt.Item{}
	b.Delivered = map[string]int64{shirt: 100}
	stock := order.Stock{SKU: shirt}
	for id, o := range b.Orders {
		for _, e := range o.Events {
			b.Bus = append(b.Bus, invariants.Event{OrderID: id, Seq: e.Seq, From: e.From, To: e.To})
		}
		if len(b.Charges[id]) > 0 {
			stock.Sold += 2
		} else {
			stock.Reserved += 2
			b.change(id, func(o *invariants.Order) { o.Stock = order.Quantities{shirt: 2} })
		}
		if o.Status.Charged() {
			b.Receipts[id] = []receipt.Item{{OrderID: id, Key: receipt.Paid, Status: receipt.Sent, Message: "m", Revision: 2}}
			b.mail(id)
		}
	}
	stock.Available = 100 - stock.Sold - stock.Reserved
	b.Stock = map[string]order.Stock{shirt: stock}
	b.put("late", "received")
	b.put("late", "pending")
	b.put("late", "paid")
}

func body(id string) string {
	return fmt.Sprintf(`{"orderId":%q,"customerId":"CUST-%s","currency":"usd",`+
		`"lines":[{"sku":%q,"quantity":2,"unitAmount":1999}],"payment":{"customer":"cus_Test","method":"pm_card_visa"}}`, id, id, shirt)
}

func refundBody(id string, amount int64) string {
	return fmt.Sprintf(`{"type":"refund","orderId":"half","refundId":%q,"amount":%d,"reason":"duplicate"}`, id, amount)
}

func (b *books) post(messageID, body string) {
	b.Messages = append(b.Messages, invariants.NewMessage(jobs.NewDecoder(), body, messageID))
}

func (b *books) park(messageID string, reason order.Reason) {
	b.Parked[messageID] = invariants.DeadLetter{Reason: reason}
}

// ordered returns the first content that was posted for an order.
func (b *books) ordered(id order.ID) order.Order {
	return b.Messages[slices.IndexFunc(b.Messages, func(m invariants.Message) bool { return m.Order.ID() == id })].Order
}

// settle writes the row of an order, its events, and the final state of its intent.
func (b *books) settle(id order.ID, path ...order.Status) {
	o := b.ordered(id)
	r := invariants.Order{Left: o.Total().Amount, Record: order.Record{
		OrderID: id, Total: o.Total(), Fingerprint: o.Fingerprint(), Intent: order.IntentID("pi_" + id), Status: order.Open,
	}}
	for _, next := range path {
		r.Seq++
		r.Events = append(r.Events, order.Event{Seq: r.Seq, From: r.Status, To: next})
		r.Status = next
	}
	b.Orders[id] = r
	switch path[0] { //nolint:exhaustive // the books have no other outcomes
	case order.Paid:
		b.intent(id, "succeeded", "")
	case order.Declined:
		b.intent(id, "requires_payment_method", "card_declined")
	case order.ActionRequired:
		b.intent(id, "requires_payment_method", "authentication_required")
	}
}

// paidBy adds a paid order of a customer, to books without other parts.
func (b *books) paidBy(id order.ID, customer string) {
	b.post(string(id), strings.Replace(body(string(id)), "CUST-"+string(id), customer, 1))
	b.settle(id, order.Paid)
	b.charge(id)
	b.record()
}

func (b *books) intent(id order.ID, status, failure string) {
	b.Intents[order.IntentID("pi_"+id)] = invariants.Intent{Status: status, Failure: failure}
}

func (b *books) charge(id order.ID) {
	o := b.Orders[id]
	b.Charges[id] = append(b.Charges[id], invariants.Charge{Intent: o.Intent, Total: o.Total})
}

func (b *books) change(id order.ID, how func(*invariants.Order)) {
	o := b.Orders[id]
	o.Refunds, o.Events = slices.Clone(o.Refunds), slices.Clone(o.Events)
	how(&o)
	b.Orders[id] = o
}

// reopen makes a row one that was claimed and not settled.
func (b *books) reopen(id order.ID) {
	b.change(id, func(o *invariants.Order) { o.Status, o.Seq, o.Events = order.Open, 0, nil })
	b.record()
}

// dispute adds the latest state of a dispute to the row of "paid" and at Stripe.
func (b *books) dispute(s order.DisputeStatus) {
	b.change("paid", func(o *invariants.Order) {
		o.Seq++
		o.Dispute = order.Dispute{ID: "du_1", Status: s}
		o.Events = append(o.Events, order.Event{Seq: o.Seq, From: o.Status, To: o.Status, Dispute: o.Dispute})
	})
	b.Disputes["paid"] = []order.Dispute{{ID: "du_1", Status: s}}
	b.record()
}

const half = 1999

// refund posts a refund of half of the order "half", and records its status in the row,
// in the events and at Stripe.
func (b *books) refund(of refund.ID, s refund.Status) {
	b.post("refund "+string(of), refundBody(string(of), half))
	made := s != refund.Refused && s != refund.Unknown
	b.change("half", func(o *invariants.Order) {
		i := refund.Item{ID: of, Amount: half, Reason: refund.Duplicate, Status: s}
		if made {
			i.Refund = refund.ProviderID("re_" + of)
		}
		o.Refunds = append(o.Refunds, i)
	})
	if made {
		b.made(of, half, string(s))
	}
	b.refunded(order.RefundEvent{ID: string(of), Status: string(s), Amount: half})
}

func (b *books) made(of refund.ID, amount int64, status string) {
	b.Refunds["half"] = append(b.Refunds["half"], invariants.Refund{
		ID: refund.ProviderID("re_" + of), Of: of, Status: status,
		Total: order.Money{Amount: amount, Currency: "usd"},
	})
}

// refunded adds an event of a refund, and the status that follows from what went back.
func (b *books) refunded(e order.RefundEvent) {
	b.change("half", func(o *invariants.Order) {
		back, held := o.Outside, int64(0)
		for _, i := range o.Refunds {
			if i.Status.Counts() {
				back += i.Amount
			} else if i.Status == refund.Unknown {
				held += i.Amount
			}
		}
		to := order.PartiallyRefunded
		switch {
		case back == 0:
			to = order.Paid
		case back >= o.Total.Amount:
			to = order.Refunded
		}
		o.Seq++
		o.Events = append(o.Events, order.Event{Seq: o.Seq, From: o.Status, To: to, Refund: e})
		o.Status, o.Left = to, o.Total.Amount-back-held
	})
	b.record()
}

func (b *books) item(how func(*refund.Item)) {
	b.change("half", func(o *invariants.Order) { how(&o.Refunds[0]) })
}

// bankReturns records that the bank returned the refund "R".
func (b *books) bankReturns() {
	b.Refunds["half"][0].Status = "failed"
	b.item(func(i *refund.Item) { i.Status = refund.Failed })
	b.refunded(order.RefundEvent{ID: "R", Status: string(refund.Failed), Amount: half})
}

func (b *books) mail(id order.ID) {
	b.Mail = append(b.Mail, invariants.Email{OrderID: id, Key: receipt.Paid})
}

func (b *books) receipt(s receipt.Status) {
	b.Receipts["paid"][0].Status, b.Receipts["paid"][0].Message = s, ""
}

// put adds a request with the content of an order that was posted, and its answer: a
// status, or "" for a conflict.
func (b *books) put(id order.ID, status string) {
	b.Requests = append(b.Requests, invariants.Request{Order: b.ordered(id), Accepted: status != "", Status: status})
}
