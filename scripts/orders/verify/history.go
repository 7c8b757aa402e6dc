package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v76"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe/dispute"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/orders/audit"
)

// The kinds of Stripe's objects, the status of a charge that took money, and the key of
// the producer's id in a refund's metadata.
const (
	intents    = "payment_intent"
	charges    = "charge"
	refunds    = "refund"
	disputes   = "dispute"
	succeeded  = "succeeded"
	metaRefund = "refundId"
)

type history struct {
	id      order.ID
	record  order.Record // with its events; Status is "" without an order item
	account refund.Account
	problem string // why an item could not be read
	books   invariants.Books
	sides   audit.Order

	moments []Moment
	changed time.Time // the last change of the row, or creation at Stripe
}

// Moment is one thing that happened to an order. No text of it is personal.
type Moment struct {
	At   time.Time `json:"at,omitzero"`
	From Source    `json:"from"`
	What string    `json:"what"`
}

func (h *history) note(from Source, at time.Time, format string, args ...any) {
	what := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	h.moments = append(h.moments, Moment{at, from, what})
	if (from == Rows || from == Stripe) && at.After(h.changed) {
		h.changed = at
	}
}

// newHistory fills the books of an order in the order of the entries.
func newHistory(id order.ID, all []entry, ordered bool) *history {
	h := &history{id: id, sides: audit.Order{ID: id}, books: invariants.Books{
		Orders:  map[order.ID]invariants.Order{},
		Charges: map[order.ID][]invariants.Charge{}, Intents: map[order.IntentID]invariants.Intent{},
		Refunds: map[order.ID][]invariants.Refund{}, Disputes: map[order.ID][]order.Dispute{},
		Bus: []invariants.Event{}, Lines: []invariants.Line{},
	}}
	objects := map[string]Object{} // listed twice, the last one counts
	for _, e := range all {
		switch {
		case e.Item != nil:
			h.addItem(e.Item.decode())
		case e.Object != nil:
			objects[e.Object.ID] = *e.Object
		case e.Event != nil:
			d := e.Event.Detail
			h.books.Bus = append(h.books.Bus, d.Event)
			h.note(Events, d.At, "event %d, %s -> %s", d.Seq, d.From, d.To)
		case e.Line != nil:
			l := e.Line
			h.books.Lines = append(h.books.Lines, *l)
			h.note(Logs, l.At, "%s %s %s %s %s delivery %d of %s",
				l.Message, l.RefundID, l.Verdict, l.Reason, l.Status, l.Delivery, l.MessageID)
		}
	}
	if !ordered {
		slices.SortStableFunc(h.books.Bus, func(a, b invariants.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	h.addObjects(objects)
	h.addRow()
	slices.SortStableFunc(h.moments, func(a, b Moment) int { return a.At.Compare(b.At) })
	return h
}

func (h *history) addItem(item dynamodb.Item) {
	known := len(h.record.Events)
	err := dynamodb.AddRow(&h.record, item)
	if err == nil && dynamodb.TextOf(item, "sk") == dynamodb.OrderRow {
		h.account, err = refundtable.Decode(item)
	}
	if err != nil {
		h.problem = err.Error()
	}
	for _, e := range h.record.Events[min(known, len(h.record.Events)):] {
		h.note(Rows, e.At, "event %d, %s, %s -> %s %s", e.Seq, e.Type(), e.From, e.To, e.Refund.ID)
	}
}

func (h *history) addRow() {
	r := &h.record
	slices.SortStableFunc(r.Events, func(a, b order.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	if h.problem != "" {
		h.sides.Row = &audit.Row{OrderID: h.id, Problem: h.problem}
		h.note(Rows, time.Time{}, "%s", h.problem)
	}
	if r.Status == "" || h.problem != "" {
		return
	}
	row := audit.NewRow(*r, h.account)
	h.sides.Row = &row
	h.books.Orders[h.id] = invariants.Order{
		Record: *r, Refunds: h.account.Items, Outside: h.account.Outside, Left: h.account.Left(),
	}
	h.note(Rows, r.UpdatedAt, "row %s, %s, seq %d, intent %q %s", r.Status, r.Total, r.Seq, r.Intent, r.Failure)
	for _, i := range h.account.Items {
		h.note(Rows, i.UpdatedAt, "refund %s %s, %d, %s", i.ID, i.Status, i.Amount, i.Refund)
	}
}

// addObjects adds Stripe's side, the intents last. One that succeeded is a charge, unless
// its charge was read.
func (h *history) addObjects(all map[string]Object) {
	rank := map[string]int{charges: 1, refunds: 2, disputes: 3, intents: 4}
	charged := map[order.IntentID]bool{}
	for _, o := range slices.SortedFunc(maps.Values(all), func(a, b Object) int {
		byKind := cmp.Compare(rank[a.Kind], rank[b.Kind])
		return cmp.Or(byKind, cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	}) {
		h.addObject(o, charged)
	}
}

func (h *history) addObject(o Object, charged map[order.IntentID]bool) {
	at, b := time.Unix(o.Created, 0).UTC(), &h.books
	total := order.Money{Amount: o.Amount, Currency: order.Currency(o.Currency)}
	charge := func(intent order.IntentID, amount int64) {
		charged[intent] = true
		total := order.Money{Amount: amount, Currency: total.Currency}
		b.Charges[h.id] = append(b.Charges[h.id], invariants.Charge{Intent: intent, Total: total})
	}
	failure := ""
	switch o.Kind {
	case charges:
		if o.Status == succeeded {
			charge(o.Of.ID, o.Captured)
		}
	case refunds:
		b.Refunds[h.id] = append(b.Refunds[h.id], invariants.Refund{
			ID: refund.ProviderID(o.ID), Of: refund.ID(o.Metadata[metaRefund]), Total: total, Status: string(o.Status),
		})
	case disputes:
		b.Disputes[h.id] = append(b.Disputes[h.id], order.Dispute{
			ID: order.DisputeID(o.ID), Status: dispute.StatusOf(stripego.DisputeStatus(o.Status)), CreatedAt: at,
		})
	case intents:
		if o.Status == succeeded && !charged[order.IntentID(o.ID)] {
			charge(order.IntentID(o.ID), o.Received)
		}
		if failure = o.Charge.Failure; o.LastError != nil {
			failure = string(o.LastError.Code)
		}
		b.Intents[order.IntentID(o.ID)] = invariants.Intent{Status: string(o.Status), Failure: failure}
		if intent, err := o.Order(); err == nil {
			intent.Failure.Code = cmp.Or(intent.Failure.Code, failure)
			h.addPayment(intent, at)
		}
	}
	h.note(Stripe, at, "%s %s %s, %s %s", o.Kind, o.ID, o.Status, total, failure)
}

// addPayment adds an intent as an audit compares it. A refund or a dispute is of the one
// that succeeded.
func (h *history) addPayment(i order.Intent, at time.Time) {
	p := audit.Payment{Intent: i, CreatedAt: at}
	if i.State == order.Succeeded {
		for _, r := range h.books.Refunds[h.id] {
			if r.Counts() {
				p.Refunded, p.Refunds = p.Refunded+r.Total.Amount, append(p.Refunds, string(r.ID))
			}
		}
		for _, d := range h.books.Disputes[h.id] {
			p.Disputed, p.Dispute = true, d
		}
	}
	h.sides.Payments = append(h.sides.Payments, p)
}
