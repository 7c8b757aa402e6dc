package invariants

import (
	"cmp"
	"maps"
	"slices"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// unpublished returns the events that are not on the bus, arrived there before an earlier
// one of their order, or differ from the table's.
func (b *Books) unpublished(broken report) {
	published := map[order.ID]int{}
	for _, e := range b.Bus {
		rows := b.Orders[e.OrderID].Events
		switch known := published[e.OrderID]; {
		case e.Seq > known+1:
			broken("published out of order: order %s: event %d before event %d", e.OrderID, e.Seq, known+1)
		case e.Seq < 1 || e.Seq > len(rows), e.From != rows[e.Seq-1].From || e.To != rows[e.Seq-1].To:
			broken("event mismatch: order %s: event %d on the bus is %s -> %s", e.OrderID, e.Seq, e.From, e.To)
		case e.Seq == known+1:
			published[e.OrderID]++
		}
	}
	for id, o := range b.Orders {
		if n := published[id]; n < len(o.Events) {
			broken("not published: order %s has %d events, %d are on the bus", id, len(o.Events), n)
		}
	}
}

// unbalancedStock compares the stock with what came in, with the rows that hold some, and
// with the orders that Stripe charged.
func (b *Books) unbalancedStock(broken report) {
	held, charged, ordered := order.Quantities{}, order.Quantities{}, b.ordered()
	for id, o := range b.Orders {
		want := ordered[content{id, o.Fingerprint}]
		if o.Stock != nil && !maps.Equal(o.Stock, want) {
			broken("wrong stock: order %s holds %v, its lines have %v", id, o.Stock, want)
		}
		if o.Stock != nil && !mayBePaid(o) {
			broken("stock leaked: order %s is %s and holds %v", id, o.Status, o.Stock)
		}
		sum(held, o.Stock)
		if len(b.Charges[id]) > 0 {
			sum(charged, want)
		}
	}
	for sku, delivered := range b.Delivered {
		got := b.Stock[sku]
		want := order.Stock{
			SKU: sku, Available: delivered - held[sku] - charged[sku], Reserved: held[sku], Sold: charged[sku],
		}
		if got != want || got.Available < 0 {
			broken("stock mismatch: %+v, want %+v by the rows and Stripe's ledger", got, want)
		}
	}
}

// content is what was ordered under an id.
type content struct {
	id          order.ID
	fingerprint order.Fingerprint
}

func (b *Books) ordered() map[content]order.Quantities {
	all := map[content]order.Quantities{}
	for _, m := range b.Messages {
		if m.Invalid == nil && !m.IsRefund() {
			all[content{m.OrderID(), m.Order.Fingerprint()}] = m.Order.Quantities()
		}
	}
	return all
}

func mayBePaid(o Order) bool {
	switch o.Status {
	case order.Open, order.Declined, order.ActionRequired, order.Pending:
		return true
	case order.Refused:
		return o.Intent != ""
	case order.Paid, order.Canceled, order.OutOfStock, order.PartiallyRefunded, order.Refunded:
	}
	return false
}

func sum(total, more order.Quantities) {
	for sku, n := range more {
		total[sku] += n
	}
}

func (b *Books) wrongReceipts(broken report) {
	sent := map[Email]int{}
	for _, e := range b.Mail {
		sent[e]++
		if o := b.Orders[e.OrderID]; !o.Status.Charged() {
			broken("receipt of an unpaid order: order %s is %s", e.OrderID, o.Status)
		}
	}
	for e, n := range sent {
		if n > 1 && !b.AtLeastOnce {
			broken("double e-mail: receipt %s of order %s was sent %d times", e.Key, e.OrderID, n)
		}
	}
	for id, o := range b.Orders {
		has := slices.ContainsFunc(b.Receipts[id], func(i receipt.Item) bool { return i.Key == receipt.Paid })
		if o.Status.Charged() && !has && b.DeadEvents == 0 {
			broken("no receipt: order %s is %s", id, o.Status)
		}
		for _, i := range b.Receipts[id] {
			b.wrongReceipt(i, sent[Email{id, i.Key}], broken)
		}
	}
}

// wrongReceipt compares a receipt with the number of its e-mails and with the list.
func (b *Books) wrongReceipt(i receipt.Item, sent int, broken report) {
	switch i.Status {
	case receipt.Sent, receipt.Delivered, receipt.Bounced:
		if sent == 0 && i.Failure != receipt.ResolvedByOperator {
			broken("wrong receipt: %s of order %s is %s, and no e-mail was sent", i.Key, i.OrderID, i.Status)
		}
	case receipt.Failed:
		if sent > 0 && i.Message == "" && i.Failure != receipt.ResolvedByOperator {
			broken("wrong receipt: %s of order %s failed, and an e-mail was sent", i.Key, i.OrderID)
		}
	case receipt.Sending:
		broken("receipt not ended: %s of order %s is sending, and its message is gone", i.Key, i.OrderID)
	case receipt.Doubtful:
		if !slices.Contains(b.Doubts, i) {
			broken("doubt not listed: %s of order %s", i.Key, i.OrderID)
		}
	}
}

// wrongAnswers returns the requests whose answer contradicts an earlier one, or the row.
func (b *Books) wrongAnswers(broken report) {
	accepted, settled := map[order.ID]order.Fingerprint{}, map[order.ID]string{}
	for _, r := range b.Requests {
		id, of := r.Order.ID(), r.Order.Fingerprint()
		first, known := accepted[id]
		switch {
		case !r.Accepted && known && first == of:
			broken("answer withdrawn: order %s was accepted, then refused as a conflict", id)
		case !r.Accepted:
			if b.Orders[id].Fingerprint == of {
				broken("conflict lost: order %s was refused as a conflict, and its row has that content", id)
			}
		case known && first != of:
			broken("conflict accepted: order %s was accepted with two contents", id)
		case settled[id] != "" && !isSettled(r.Status):
			broken("earlier state: order %s was %s, then %s", id, settled[id], r.Status)
		default:
			accepted[id] = of
			if isSettled(r.Status) {
				settled[id] = cmp.Or(settled[id], r.Status)
			}
		}
	}
	for id, of := range accepted {
		if o, found := b.Orders[id]; found && o.Fingerprint != of {
			broken("conflict accepted: order %s was accepted, and its row has other content", id)
		} else if !found && !b.parked(id) {
			broken("request lost: order %s was accepted, and has neither a row nor a dead letter", id)
		}
	}
}

func isSettled(status string) bool {
	return status != "received" && status != "not_sent" && status != string(order.Open)
}

// parked reports whether a message of an order is a dead letter.
func (b *Books) parked(id order.ID) bool {
	for _, m := range b.Messages {
		if _, parked := b.Parked[m.ID]; parked && m.OrderID() == id {
			return true
		}
	}
	return false
}
