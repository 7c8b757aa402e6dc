package invariants

import (
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
)

// Books are what a system at rest has written down. A nil field of a part that may be
// missing, from Bus on, means that nothing is known of it.
type Books struct {
	Messages []Message
	Parked   map[string]DeadLetter // by the message's first id
	Left     int                   // messages in the queues of orders and refunds

	Orders   map[order.ID]Order           // of the table
	Charges  map[order.ID][]Charge        // of Stripe's ledger, those that succeeded
	Intents  map[order.IntentID]Intent    // of Stripe, as are the next two
	Refunds  map[order.ID][]Refund        //
	Disputes map[order.ID][]order.Dispute // oldest first
	Log      string                       // of the functions, in lines
	Secrets  []string                     // that no line may hold, beside what the messages have
	Ended    bool                         // faults are over and dead letters were redriven: nothing may be open

	Bus   []Event // in the order of their acceptance
	Lines []Line  // of the log, about single messages, in their order

	Stock     map[string]order.Stock // by SKU
	Delivered map[string]int64       // how much of each SKU came in

	Receipts    map[order.ID][]receipt.Item
	Mail        []Email
	Doubts      []receipt.Item // that the operator's list shows
	DeadEvents  int            // dead letters of the receipt queue
	AtLeastOnce bool           // an e-mail whose result is unknown is sent again

	Requests []Request // to put an order by HTTP, oldest first
}

// Message is a message that was sent. Invalid is why it asks for nothing; Job is zero
// then.
type Message struct {
	jobs.Job

	ID, Body string
	Invalid  error
}

// NewMessage decodes a body as a function does.
func NewMessage(d *jobs.Decoder, body, id string) Message {
	j, err := d.Decode(body)
	return Message{Job: j, Body: body, ID: id, Invalid: err}
}

// DeadLetter is a message in the dead-letter queue.
type DeadLetter struct {
	Reason order.Reason // "" if the function did not park it
	Detail string
}

// Order is an order of the table with all that belongs to it.
type Order struct {
	order.Record

	Refunds []refund.Item // by id
	Outside int64         // given back by others
	Left    int64         // what a new refund may give back, as the row shows
}

// Refund returns the refund with this id.
func (o Order) Refund(id refund.ID) (i refund.Item, found bool) {
	return refund.Account{Items: o.Refunds}.Item(id)
}

// Charge is a successful charge.
type Charge struct {
	Intent order.IntentID
	Total  order.Money
}

// Intent is a PaymentIntent in Stripe's words.
type Intent struct {
	Status  string // such as "succeeded"
	Failure string // code of its last error, or ""
}

// Refund is a refund in Stripe's words.
type Refund struct {
	ID     refund.ProviderID
	Of     refund.ID // the producer's id; "" if others made it
	Total  order.Money
	Status string // such as "pending"
}

// Event is an event on the bus (docs/reference/events.md).
type Event struct {
	OrderID order.ID     `json:"orderId"`
	Seq     int          `json:"seq"`
	From    order.Status `json:"from"`
	To      order.Status `json:"status"`
}

// Email is an e-mail that was sent, as its tags name it.
type Email struct {
	OrderID order.ID
	Key     receipt.Key
}

// Request is a request to put an order, and its answer.
type Request struct {
	Order    order.Order
	Accepted bool   // false: refused as a conflict
	Status   string // of the order, if it was accepted
}

// Made returns how many refunds of Stripe count for a refund id of an order.
func (b *Books) Made(id order.ID, of refund.ID) (n int) {
	for _, r := range b.Refunds[id] {
		if r.Of == of && r.Counts() {
			n++
		}
	}
	return n
}

// Counts reports whether a refund took money from its charge.
func (r Refund) Counts() bool { return r.called() != refund.Failed }

// called returns what an order has to call the refund.
func (r Refund) called() refund.Status {
	switch r.Status {
	case "succeeded":
		return refund.Succeeded
	case "failed", "canceled":
		return refund.Failed
	}
	return refund.Pending
}

// Published returns how many events of each order are on the bus, in order and without
// the repetitions.
func (b *Books) Published() map[order.ID]int {
	published := map[order.ID]int{}
	for _, e := range b.Bus {
		if e.Seq == published[e.OrderID]+1 {
			published[e.OrderID]++
		}
	}
	return published
}
