package run

import (
	"maps"
	"sync"
)

// Figure is something that a storm counts, in the words of its report. The failed calls
// of a fault profile have the profile's name.
type Figure string

// What became of the orders, for any handler. The first seven are errors. A charge of an
// invalid order counts as WrongAmount.
const (
	ChargedTwice   Figure = "charged twice"   // or more often
	WrongAmount    Figure = "wrong amount"    // not sent, or differs from the row or an earlier charge
	Lost           Figure = "lost"            // not settled, and no message is left
	Stuck          Figure = "stuck"           // not settled after all retries, and a message is left
	ConflictLost   Figure = "conflict lost"   // a conflicting duplicate was neither charged nor parked
	LedgerMismatch Figure = "ledger mismatch" // the row says paid and Stripe does not, or the other way round
	WrongStatus    Figure = "wrong status"    // not the result of the card
	Settled        Figure = "settled"
	Extra          Figure = "extra deliveries" // beyond one for each message sent
	Orders         Figure = "orders"           // without the invalid ones
)

// What happened beside that.
const (
	Messages      Figure = "messages of the orders"
	Deliveries    Figure = "deliveries"
	Kills         Figure = "processes killed"
	OtherKills    Figure = "killed processes of the functions beside that of the order queue"
	Failed        Figure = "failed calls"
	Redriven      Figure = "dead letters redriven"
	LostDeletes   Figure = "deletes lost"
	Parked        Figure = "messages parked with a reason"
	Webhooks      Figure = "webhooks"
	Runs          Figure = "runs of reconcile"
	SettledLater  Figure = "orders that these two settled"
	Deleted       Figure = "messages deleted after the charge"
	DynamoDBCalls Figure = "calls to DynamoDB"
	StripeCalls   Figure = "calls to Stripe"

	RefundsAsked      Figure = "refunds that were asked for"
	RefundMessages    Figure = "messages for them"
	RefundDeliveries  Figure = "deliveries of these messages"
	RefundsMade       Figure = "refunds that Stripe made"
	RefundsDoubled    Figure = "refunds that Stripe made twice"
	RefundsRefused    Figure = "refunds that Stripe refused"
	RefundsUnknown    Figure = "unknown refunds: they may have been made, so they are not repeated, and a person compares"
	RefundsExceeding  Figure = "refunds parked, because they exceed what is left of the charge"
	RefundsNotCharged Figure = "refunds parked, because the order was not charged"
	RefundKills       Figure = "processes killed with a refund in their batch"
	Canceled          Figure = "orders canceled before they were charged, or after a decline, which frees their stock"

	Put        Figure = "orders put by HTTP"
	Requests   Figure = "requests for them"
	OutOfStock Figure = "orders out of stock"
	Published  Figure = "events on the bus, with repetitions"
	Mails      Figure = "receipts that SES accepted"
	Doubts     Figure = "receipts that may have been sent, and wait for a person"

	Audited   Figure = "orders that the operator's `orders audit` compared with Stripe at the end"
	Matched   Figure = "of them match"
	Differing Figure = "of them differ"
)

// Errors returns the figures that must be 0.
func Errors() []Figure {
	return []Figure{ChargedTwice, WrongAmount, Lost, Stuck, ConflictLost, LedgerMismatch, WrongStatus}
}

// Facts returns the figures of the product, in the order of the report.
func Facts() []Figure {
	return []Figure{
		Messages, Deliveries, Kills, OtherKills, Failed, Redriven, LostDeletes, Parked, Webhooks, Runs,
		SettledLater, Deleted, DynamoDBCalls, StripeCalls, RefundsAsked, RefundMessages, RefundDeliveries,
		RefundsMade, RefundsDoubled, RefundsRefused, RefundsUnknown, RefundsExceeding, RefundsNotCharged,
		RefundKills, Canceled,
		Put, Requests, OutOfStock, Published, Mails, Doubts, Audited, Matched, Differing,
	}
}

// Figures are the figures of a storm.
type Figures map[Figure]int

// Wrong returns the number of errors.
func (f Figures) Wrong() (n int) {
	for _, name := range Errors() {
		n += f[name]
	}
	return n
}

func (f Figures) countIf(name Figure, condition bool) {
	if condition {
		f[name]++
	}
}

// tally counts during a storm. It is safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	figures Figures
}

func (t *tally) add(name Figure, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.figures[name] += n
}

func (t *tally) get(name Figure) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.figures[name]
}

func (t *tally) all() Figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.figures)
}
