package system_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// accounts builds books.
type accounts struct{ system.Books }

// correct returns books without a broken invariant: one order was paid, delivered again
// and sent with different content, one was declined, one needs its customer, one was
// pending for days and then paid, and one message is not an order.
func correct() *accounts {
	a := &accounts{system.Books{
		Records: map[order.ID]order.Record{}, Charges: map[order.ID][]stripetest.Charge{},
		Intents: map[string]stripetest.Intent{}, Parked: map[string]sqstest.Message{},
		Logged: `{"order_id":"paid","verdict":"done","reason":"settled"}` + "\n",
	}}
	a.post("first", body("paid"))
	a.post("again", body("paid"))
	a.post("other", otherContent(body("paid")))
	a.post("refusal", bodyWith("declined", "pm_card_chargeDeclined"))
	a.post("question", body("waiting"))
	a.post("return", body("late"))
	a.post("junk", "{")
	a.park("other", order.ReasonConflict)
	a.park("junk", order.ReasonInvalid)
	a.settle("paid", order.Paid)
	a.settle("declined", order.Declined)
	a.settle("waiting", order.ActionRequired)
	a.settle("late", order.Pending, order.Paid)
	a.charge("paid", nil)
	a.charge("late", nil)
	return a
}

// publish puts every event of the rows on the bus.
func (a *accounts) publish() {
	a.Publishes = true
	for _, id := range slices.Sorted(maps.Keys(a.Records)) {
		for _, e := range a.Records[id].Events {
			a.Bus = append(a.Bus, system.BusEvent{OrderID: id, Seq: e.Seq, From: e.From, Status: e.To})
		}
	}
}

func otherContent(body string) string { return strings.Replace(body, "1999", "2999", 1) }

func (a *accounts) post(messageID, body string) {
	a.Posted = append(a.Posted, system.NewPosted(jobs.NewDecoder(), body, messageID))
}

// paidBy adds a paid order of a customer.
func (a *accounts) paidBy(id order.ID, customer string) {
	a.post(string(id), strings.Replace(body(string(id)), "CUST-"+string(id), customer, 1))
	a.settle(id, order.Paid)
	a.charge(id, nil)
}

func (a *accounts) park(messageID string, reason order.Reason) {
	a.Parked[messageID] = sqstest.Message{
		Attributes: map[string]sqstest.Attribute{sqs.AttrReason: sqstest.Text(string(reason))},
	}
}

// settle writes the row of an order, its events, and the final state of its intent.
func (a *accounts) settle(id order.ID, path ...order.Status) {
	at := slices.IndexFunc(a.Posted, func(p system.Posted) bool { return p.Order.ID() == id })
	o, intent := a.Posted[at].Order, "pi_"+string(id)
	r := order.Record{
		OrderID: id, Total: o.Total(), Fingerprint: o.Fingerprint(), Intent: order.IntentID(intent), Status: order.Open,
	}
	for _, next := range path {
		r.Seq++
		r.Events = append(r.Events, order.Event{Seq: r.Seq, From: r.Status, To: next})
		r.Status = next
	}
	a.Records[id] = r
	switch path[0] { //nolint:exhaustive // the books have no other outcomes
	case order.Paid:
		a.Intents[intent] = stripetest.Intent{Status: stripetest.StatusSucceeded}
	case order.Declined:
		a.refuse(intent, "card_declined")
	case order.ActionRequired:
		a.refuse(intent, "authentication_required")
	}
}

func (a *accounts) refuse(intent, code string) {
	a.Intents[intent] = stripetest.Intent{
		Status: stripetest.StatusRequiresPaymentMethod, LastError: &stripetest.Error{Code: code},
	}
}

// intent sets the status of an order's intent.
func (a *accounts) intent(id order.ID, s stripetest.Status) {
	a.Intents["pi_"+string(id)] = stripetest.Intent{Status: s}
}

// charge adds a correct charge to the ledger, apart from a change.
func (a *accounts) charge(id order.ID, change func(*stripetest.Charge)) {
	r := a.Records[id]
	c := stripetest.Charge{
		OrderID: string(id), Intent: string(r.Intent), Outcome: stripetest.Charged,
		Amount: r.Total.Amount, Currency: string(r.Total.Currency),
	}
	if change != nil {
		change(&c)
	}
	a.Charges[id] = append(a.Charges[id], c)
}

// recharge replaces the charges of an order by a changed one.
func (a *accounts) recharge(id order.ID, change func(*stripetest.Charge)) {
	delete(a.Charges, id)
	a.charge(id, change)
}

// row changes the row of an order.
func (a *accounts) row(id order.ID, change func(*order.Record)) {
	r := a.Records[id]
	change(&r)
	a.Records[id] = r
}

// dispute adds a dispute to the row of an order.
func (a *accounts) dispute(id order.ID, s order.DisputeStatus) {
	a.Records[id] = order.Disputed(a.Records[id], order.Dispute{ID: "du_1", Status: s}, time.Unix(0, 0))
}

// reopen makes a row one that was claimed and not settled.
func (a *accounts) reopen(id order.ID) {
	a.row(id, func(r *order.Record) { r.Status, r.Seq, r.Events = order.Open, 0, nil })
}

// spoiled is a mistake of a system, and the invariants that it breaks.
type spoiled struct {
	claim, want string
	by          func(*accounts)
}

func mistakes() []spoiled {
	return slices.Concat(
		wrongCharges(), lostMessages(), wrongRows(), wrongStatusesAndLogs(), wronglyPublished(), leftWaiting(),
		unbalancedStock(),
		wrongReceipts(),
	)
}

func TestAudit(t *testing.T) {
	t.Parallel()
	for _, tt := range append(nothingWrong(), mistakes()...) {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			a := correct()
			tt.by(a)
			if got := strings.Join(brokenIDs(a.Audit()), " "); got != tt.want {
				t.Errorf("broken: %q, want %q\n%+v", got, tt.want, a.Audit())
			}
		})
	}
}

// TestEveryCheckCanFail requires a case in which each check of Audit fails.
func TestEveryCheckCanFail(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tt := range append(mistakes(), wrongRefunds()...) {
		for id := range strings.FieldsSeq(tt.want) {
			seen[id] = true
		}
	}
	a := halfRefunded()
	a.publish()
	a.track()
	a.mail()
	for _, c := range a.Audit() {
		if !seen[c.ID] {
			t.Errorf("no case breaks %s", c.ID)
		}
	}
}

func TestShowPrintsFiveViolationsOfACheck(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	broken := system.Show(&b, []system.Check{
		{ID: "I1", Claim: "at most one", Broken: []string{"order A", "order B", "order C", "order D", "order E", "order F", "order G"}},
		{ID: "I2", Claim: "the amount"},
		{ID: "I13", Claim: "no card", Broken: []string{"the log holds it"}},
	})
	if got := strings.Join(broken, " "); got != "I1 I13" {
		t.Errorf("got broken %q, want I1 I13", got)
	}
	const want = `
Invariants (docs/design.md):
  BROKEN I1   at most one
              order A
              order B
              order C
              order D
              order E
              and 2 more
  ok     I2   the amount
  BROKEN I13  no card
              the log holds it
`
	if diff := cmp.Diff(b.String(), want); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
}

func brokenIDs(checks []system.Check) (ids []string) {
	for _, c := range checks {
		if len(c.Broken) > 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func leftWaiting() []spoiled {
	return []spoiled{
		{"an order needs authentication and Stripe shows it paid", "I17", func(a *accounts) {
			a.intent("waiting", stripetest.StatusSucceeded)
		}},
		{"an order needs authentication and Stripe shows it canceled", "I17", func(a *accounts) {
			a.intent("waiting", stripetest.StatusCanceled)
		}},
		{"an order needs authentication and Stripe shows it declined", "I17", func(a *accounts) {
			a.refuse("pi_waiting", "card_declined")
		}},
		{"an order is pending and Stripe shows it declined", "I17", func(a *accounts) {
			a.settle("declined", order.Pending)
		}},
		{"an order is open, its message parked, and Stripe shows it pending", "I17", func(a *accounts) {
			a.reopen("declined")
			a.intent("declined", stripetest.StatusProcessing)
			a.park("refusal", order.ReasonUnknown)
		}},
		{"an order is open, its message parked, and Stripe waits for authentication", "I17", func(a *accounts) {
			a.reopen("waiting")
			a.park("question", order.ReasonUnknown)
		}},
	}
}

func wronglyPublished() []spoiled {
	// bus changes the events of the order that was pending, and then paid.
	bus := func(change func(pending, paid system.BusEvent) []system.BusEvent) func(*accounts) {
		return func(a *accounts) {
			a.publish()
			at := slices.IndexFunc(a.Bus, func(e system.BusEvent) bool { return e.OrderID == "late" })
			a.Bus = slices.Replace(a.Bus, at, at+2, change(a.Bus[at], a.Bus[at+1])...)
		}
	}
	return []spoiled{
		{"the last event is not on the bus", "I16", bus(func(pending, _ system.BusEvent) []system.BusEvent {
			return []system.BusEvent{pending}
		})},
		{"two events are on the bus in the wrong order", "I16", bus(func(pending, paid system.BusEvent) []system.BusEvent {
			return []system.BusEvent{paid, pending, paid}
		})},
		{"another status is on the bus", "I16", bus(func(pending, paid system.BusEvent) []system.BusEvent {
			paid.Status = order.Declined
			return []system.BusEvent{pending, paid}
		})},
		{"a repeated event differs", "I16", bus(func(pending, paid system.BusEvent) []system.BusEvent {
			other := pending
			other.From = order.Refused
			return []system.BusEvent{pending, paid, other}
		})},
		{"an event without a number is on the bus", "I16", bus(func(pending, paid system.BusEvent) []system.BusEvent {
			return []system.BusEvent{{OrderID: "late"}, pending, paid}
		})},
		{"an event without a row is on the bus", "I16", func(a *accounts) {
			a.publish()
			a.Bus = append(a.Bus, system.BusEvent{OrderID: "unknown", Seq: 1, From: order.Open, Status: order.Paid})
		}},
	}
}

func nothingWrong() []spoiled {
	return []spoiled{
		{"a paid order is disputed and the dispute is lost", "", func(a *accounts) {
			a.dispute("paid", order.DisputeOpen)
			a.dispute("paid", order.DisputeLost)
		}},
		{"correct books break nothing", "", func(*accounts) {}},
		{"an open row whose message is parked with a reason breaks nothing", "", func(a *accounts) {
			a.reopen("declined")
			a.intent("declined", stripetest.StatusRequiresConfirmation)
			a.park("refusal", order.ReasonRefused)
		}},
		{"a customer id that is part of a logged word breaks nothing", "", func(a *accounts) {
			a.paidBy("short", "me")
			a.Logged += `{"level":"INFO","message":"order","order_id":"short"}` + "\n"
		}},
		{"a customer id that is also an order id or a word of every log line breaks nothing", "", func(a *accounts) {
			a.paidBy("same", "order")
			a.paidBy("other-id", "same")
			a.Logged += `{"level":"INFO","message":"order","order_id":"same"}` + "\n"
		}},
		{"events that are published twice break nothing", "", func(a *accounts) {
			a.publish()
			a.Bus = append(a.Bus, a.Bus...)
		}},
		{"an order whose customer has begun to authenticate breaks nothing", "", func(a *accounts) {
			a.intent("waiting", stripetest.StatusProcessing)
		}},
		{"an order that the customer pays after a decline breaks nothing", "", func(a *accounts) {
			a.settle("declined", order.Declined, order.Paid)
			a.charge("declined", nil)
		}},
	}
}

func wrongCharges() []spoiled {
	return []spoiled{
		{"an order is charged twice", "I1", func(a *accounts) { a.charge("paid", nil) }},
		{"another amount is charged", "I2", func(a *accounts) {
			a.recharge("paid", func(c *stripetest.Charge) { c.Amount++ })
		}},
		{"another currency is charged", "I2", func(a *accounts) {
			a.recharge("paid", func(c *stripetest.Charge) { c.Currency = "eur" })
		}},
		{"a row is paid and the ledger is empty", "I4", func(a *accounts) { delete(a.Charges, "paid") }},
		{"a row is paid late and the ledger is empty", "I4", func(a *accounts) { delete(a.Charges, "late") }},
		{"a declined order is charged", "I4", func(a *accounts) { a.charge("declined", nil) }},
		{"an open order is charged and its message parked", "I4 I17", func(a *accounts) {
			a.reopen("paid")
			a.park("first", order.ReasonRefused)
			a.park("again", order.ReasonRefused)
		}},
		{"an order is charged through an intent that its row is not bound to", "I4", func(a *accounts) {
			a.recharge("paid", func(c *stripetest.Charge) { c.Intent = "pi_stray" })
		}},
		{"an order without a row is charged", "I2 I4", func(a *accounts) {
			a.charge("unknown", func(c *stripetest.Charge) { c.Amount, c.Currency = 1, "usd" })
		}},
	}
}

func lostMessages() []spoiled {
	return []spoiled{
		{"a message is lost and there is no row", "I3", func(a *accounts) { delete(a.Records, "declined") }},
		{"a message is lost and its row is open", "I3 I17", func(a *accounts) { a.reopen("declined") }},
		{"an invalid message is lost", "I3", func(a *accounts) { delete(a.Parked, "junk") }},
		{"a message is parked without a reason", "I3", func(a *accounts) { a.park("junk", "") }},
		{"a message waits", "I3", func(a *accounts) { a.Left.Visible++ }},
		{"a message is in flight", "I3", func(a *accounts) { a.Left.InFlight++ }},
		{"different content is acknowledged", "I9", func(a *accounts) { delete(a.Parked, "other") }},
		{"different content is parked for another reason", "I9", func(a *accounts) { a.park("other", order.ReasonRefused) }},
	}
}

func wrongRows() []spoiled {
	return []spoiled{
		{"an invalid transition", "I7", func(a *accounts) {
			a.row("late", func(r *order.Record) { r.Events[1].From, r.Events[0].To = order.Canceled, order.Canceled })
		}},
		{"a dispute changes the status", "I7", func(a *accounts) {
			a.dispute("waiting", order.DisputeOpen)
			a.row("waiting", func(r *order.Record) { r.Events[1].To = order.Declined })
		}},
		{"the event of a dispute is missing", "I8", func(a *accounts) {
			a.dispute("paid", order.DisputeOpen)
			a.row("paid", func(r *order.Record) { r.Events = r.Events[:1] })
		}},
		{"an event does not begin where the one before it ended", "I7", func(a *accounts) {
			a.row("late", func(r *order.Record) {
				r.Status, r.Events[1].From, r.Events[1].To = order.Paid, order.Declined, order.Paid
			})
		}},
		{"a row's status is not that of its last event", "I7", func(a *accounts) {
			a.row("waiting", func(r *order.Record) { r.Status = order.Pending })
		}},
		{"the last event is missing", "I7 I8", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Events = nil })
		}},
		{"an event is missing that the row's status does not show", "I8", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Seq++ })
		}},
		{"an event is there twice", "I7 I8", func(a *accounts) {
			a.row("paid", func(r *order.Record) { r.Events = append(r.Events, r.Events[0]) })
		}},
		{"an event is one more than the row counts", "I8", func(a *accounts) {
			a.row("late", func(r *order.Record) { r.Seq-- })
		}},
		{"the events have a gap", "I8", func(a *accounts) {
			a.row("late", func(r *order.Record) { r.Events[1].Seq++ })
		}},
	}
}

func wrongStatusesAndLogs() []spoiled {
	logs := func(secret string) func(*accounts) {
		return func(a *accounts) { a.Logged += `{"error":"` + secret + `"}` + "\n" }
	}
	return []spoiled{
		{"the log holds the API key", "I13", logs(system.PretendKey)},
		{"the log holds a customer", "I13", logs("CUST-paid")},
		{"the log holds a payer", "I13", logs("cus_Test")},
		{"the log holds a payment method", "I13", logs("pm_card_visa")},
		{"the log holds a customer in a sentence", "I13", logs("customer 'CUST-paid', who paid")},
		{"the log holds a customer at any depth", "I13", func(a *accounts) {
			a.Logged += `{"order":{"notes":["CUST-paid"]}}` + "\n"
		}},
		{"the log holds a customer whose id JSON escapes", "I13", func(a *accounts) {
			a.paidBy("quoted", `O\"Brien`)
			logs(`no customer O\"Brien`)(a)
		}},
		{"a line that is not JSON holds the API key", "I13", func(a *accounts) {
			a.Logged += "panic: key " + system.PretendKey + "\n"
		}},
		{"an order is declined and its intent succeeded", "I15 I17", func(a *accounts) {
			a.intent("declined", stripetest.StatusSucceeded)
		}},
		{"an order is declined and its intent was not", "I15", func(a *accounts) {
			a.intent("declined", stripetest.StatusRequiresConfirmation)
		}},
		{"an order is declined and its intent only needs authentication", "I15", func(a *accounts) {
			a.refuse("pi_declined", "authentication_required")
		}},
	}
}
