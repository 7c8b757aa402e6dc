package invariants_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
)

// TestTheListIsTheOneOfTheDesign compares ids and claims with docs/design.md, where a
// claim may go on after a colon, a semicolon or a comma.
func TestTheListIsTheOneOfTheDesign(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	rows := regexp.MustCompile(`(?m)^\| (I\d+) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1)
	for n, i := range invariants.All() {
		got = append(got, i.ID+" "+i.Claim)
		if n < len(rows) {
			row := rows[n][1] + " " + rows[n][2]
			if rest, begins := strings.CutPrefix(row, got[n]); begins && (rest == "" || strings.ContainsAny(rest[:1], ":;,")) {
				row = got[n]
			}
			want = append(want, row)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(rows) != len(got) {
		t.Errorf("docs/design.md has %d invariants; - page, + list:\n%s", len(rows), diff)
	}
}

// mistake is a mistake of a system, and the invariants that it breaks.
type mistake struct {
	claim, want string
	by          func(*books)
}

func TestAudit(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range slices.Concat(
		none(), charges(), messages(), rows(), refunds(), waiting(), logs(), lines(), published(), stock(), receipts(), requests(),
	) {
		for id := range strings.FieldsSeq(tt.want) {
			seen[id] = true
		}
		t.Run(tt.claim, func(t *testing.T) {
			b := correct()
			tt.by(b)
			var broken []string
			for _, r := range b.Check() {
				if len(r.Broken) > 0 {
					broken = append(broken, r.ID)
				}
			}
			if got := strings.Join(broken, " "); got != tt.want {
				t.Errorf("broken: %q, want %q\n%+v", got, tt.want, b.Check())
			}
		})
	}
	for _, i := range invariants.All() {
		if i.Checked() != seen[i.ID] {
			t.Errorf("%s: is checked: %t, a case breaks it: %t", i.ID, i.Checked(), seen[i.ID])
		}
	}
}

func TestShowPrintsFiveViolationsOfAnInvariant(t *testing.T) {
	var b strings.Builder
	broken := invariants.Show(&b, []invariants.Result{
		{ID: "I1", Claim: "at most one", Broken: strings.Split("ABCDEFG", "")},
		{ID: "I2", Claim: "the amount"},
		{ID: "I13", Claim: "no card", Broken: []string{"the log holds it"}},
	})
	if got := strings.Join(broken, " "); got != "I1 I13" {
		t.Errorf("got broken %q, want I1 I13", got)
	}
	want := strings.ReplaceAll(`
Invariants (docs/design.md):
  BROKEN I1   at most one
  _A
  _B
  _C
  _D
  _E
  _and 2 more
  ok     I2   the amount
  BROKEN I13  no card
  _the log holds it
`, "_", "            ")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func none() []mistake {
	return []mistake{
		{"correct books", "", func(*books) {}},
		{"nothing but rows and Stripe", "", func(b *books) {
			b.Bus, b.Stock, b.Receipts, b.Requests, b.Disputes = nil, nil, nil, nil, nil
		}},
		{"a paid order is disputed and the dispute is lost", "", func(b *books) {
			b.dispute(order.DisputeOpen)
			b.dispute(order.DisputeLost)
		}},
		{"an open row whose message is parked with a reason", "", func(b *books) {
			b.reopen("declined")
			b.intent("declined", "requires_confirmation", "")
			b.park("refusal", order.ReasonRefused)
		}},
		{"a customer id is part of a logged word", "", func(b *books) {
			b.paidBy("short", "me")
			b.Log += `{"level":"INFO","message":"order","order_id":"short"}` + "\n"
		}},
		{"a customer id is also an order id or a word of every log line", "", func(b *books) {
			b.paidBy("same", "order")
			b.paidBy("other-id", "same")
			b.Log += `{"level":"INFO","message":"order","order_id":"same"}` + "\n"
		}},
		{"events are published twice", "", func(b *books) { b.Bus = append(b.Bus, b.Bus...) }},
		{"the customer has begun to authenticate", "", func(b *books) { b.intent("waiting", "processing", "authentication_required") }},
		{"the customer pays after a decline", "", func(b *books) {
			b.settle("declined", order.Declined, order.Paid)
			b.charge("declined")
			b.record()
		}},
		{"an unknown refund is parked", "", func(b *books) {
			b.refund("S", refund.Unknown)
			b.park("refund S", refund.ReasonUnknown)
			b.Ended = true
		}},
		{"others gave half back", "", func(b *books) {
			b.made("", half, "succeeded")
			b.change("half", func(o *invariants.Order) { o.Outside = half })
			b.refunded(order.RefundEvent{Status: order.RefundedOutside, Amount: half})
		}},
		{"a failed refund was canceled at Stripe, and another one failed", "", func(b *books) {
			b.bankReturns()
			b.Refunds["half"][0].Status = "canceled"
			b.made("R", half, "failed")
		}},
		{"more than is left is parked", "", func(b *books) {
			b.post("refund X", refundBody("X", half+1))
			b.park("refund X", refund.ReasonExceeds)
			b.Ended = true
		}},
		{"a doubt is listed", "", func(b *books) {
			b.receipt(receipt.Doubtful)
			b.Doubts = b.Receipts["paid"]
		}},
		{"an e-mail is sent twice, at least once", "", func(b *books) {
			b.mail("paid")
			b.AtLeastOnce = true
		}},
	}
}

func charges() []mistake {
	paid := func(how func(*invariants.Charge)) func(*books) {
		return func(b *books) { how(&b.Charges["paid"][0]) }
	}
	return []mistake{
		{"an order is charged twice", "I1", func(b *books) { b.charge("paid") }},
		{"another amount is charged", "I2", paid(func(c *invariants.Charge) { c.Total.Amount++ })},
		{"another currency is charged", "I2", paid(func(c *invariants.Charge) { c.Total.Currency = "eur" })},
		{"a row is paid and the ledger is empty", "I4 I22", func(b *books) { delete(b.Charges, "paid") }},
		{"a declined order is charged", "I4 I22", func(b *books) { b.charge("declined") }},
		{"an intent that the row does not name is charged", "I4", paid(func(c *invariants.Charge) { c.Intent = "pi_stray" })},
		{"an order without a row is charged", "I2 I4", func(b *books) {
			b.Charges["unknown"] = []invariants.Charge{{Total: order.Money{Amount: 1, Currency: "usd"}}}
		}},
		{"a row has a dispute that Stripe closed", "I4", func(b *books) {
			b.dispute(order.DisputeOpen)
			b.Disputes["paid"][0].Status = order.DisputeWon
		}},
		{"a row has a dispute that Stripe has not", "I4", func(b *books) {
			b.dispute(order.DisputeOpen)
			delete(b.Disputes, "paid")
		}},
	}
}

func messages() []mistake {
	return []mistake{
		{"a message is lost and there is no row", "I3", func(b *books) {
			delete(b.Orders, "declined")
			b.record()
		}},
		{"an order is open after every fault", "I11", func(b *books) {
			b.reopen("declined")
			b.intent("declined", "requires_confirmation", "")
			b.park("refusal", order.ReasonRefused)
			b.Ended = true
		}},
		{"an invalid message is lost", "I3", func(b *books) { delete(b.Parked, "junk") }},
		{"a message is parked without a reason", "I3", func(b *books) { b.park("junk", "") }},
		{"a message is left", "I3", func(b *books) { b.Left++ }},
		{"different content is acknowledged", "I9", func(b *books) { delete(b.Parked, "other") }},
		{"different content is parked for another reason", "I9", func(b *books) { b.park("other", order.ReasonRefused) }},
		{"the message of a refund is lost", "I3", func(b *books) { b.post("refund X", refundBody("X", 1)) }},
		{"a refund of other content is acknowledged", "I9", func(b *books) { b.post("refund X", refundBody("R", 1)) }},
		{"a refund that fits is parked as too much", "I3", func(b *books) {
			b.post("refund X", refundBody("X", 1))
			b.park("refund X", refund.ReasonExceeds)
			b.Ended = true
		}},
		{"the message of a refund that was made is parked", "I3", func(b *books) {
			b.park("refund R", refund.ReasonUnknown)
			b.Ended = true
		}},
	}
}

func rows() []mistake {
	late := func(how func(*invariants.Order)) func(*books) {
		return func(b *books) {
			b.change("late", how)
			b.record()
		}
	}
	return []mistake{
		{"an invalid transition", "I7", late(func(o *invariants.Order) {
			o.Events[1].From, o.Events[0].To = order.Canceled, order.Canceled
		})},
		{"an event does not begin where the one before it ended", "I7", late(func(o *invariants.Order) {
			o.Events[1].From = order.Declined
		})},
		{"a row's status is not that of its last event", "I7", func(b *books) {
			b.change("waiting", func(o *invariants.Order) { o.Status = order.Pending })
		}},
		{"the last event is missing", "I7 I8", late(func(o *invariants.Order) { o.Events = o.Events[:1] })},
		{"an event is missing that the status does not show", "I8", late(func(o *invariants.Order) { o.Seq++ })},
		{"an event is there twice", "I7 I8 I16", late(func(o *invariants.Order) { o.Events = append(o.Events, o.Events[0]) })},
		{"the events have a gap", "I8 I16", late(func(o *invariants.Order) { o.Events[1].Seq++ })},
		{"a declined order's intent succeeded", "I15 I17", func(b *books) { b.intent("declined", "succeeded", "card_declined") }},
		{"a declined order's intent was not declined", "I15", func(b *books) { b.intent("declined", "requires_confirmation", "") }},
		{"a declined order's intent needs authentication", "I15", func(b *books) {
			b.intent("declined", "requires_payment_method", "authentication_required")
		}},
	}
}

func refunds() []mistake {
	row := func(how func(*invariants.Order)) func(*books) {
		return func(b *books) { b.change("half", how) }
	}
	return []mistake{
		{"a refund is made twice", "I18 I19", func(b *books) { b.made("R", half, "succeeded") }},
		{"more went back than was charged", "I19", func(b *books) {
			b.made("", 2*half, "succeeded")
			b.change("half", func(o *invariants.Order) { o.Outside = 2 * half })
			b.refunded(order.RefundEvent{Status: order.RefundedOutside, Amount: 2 * half})
		}},
		{"others gave money back, and the row does not show it", "I19", func(b *books) { b.made("", 1, "succeeded") }},
		{"a row shows money that nobody gave back", "I19 I20", row(func(o *invariants.Order) { o.Outside, o.Left = 1, o.Left-1 })},
		{"a row reserves what nobody asked for", "I19", row(func(o *invariants.Order) { o.Left-- })},
		{"a partially refunded order is called refunded", "I7 I19", row(func(o *invariants.Order) { o.Status = order.Refunded })},
		{"an order without a row is refunded", "I4 I19", func(b *books) {
			b.Refunds["unknown"] = []invariants.Refund{{Of: "R", Status: "pending"}}
		}},
		{"a refund in the row is not at Stripe", "I4 I19", func(b *books) { b.Refunds = nil }},
		{"a refund at Stripe has another amount", "I4 I19", func(b *books) { b.Refunds["half"][0].Total.Amount++ }},
		{"a refund at Stripe has another currency", "I4", func(b *books) { b.Refunds["half"][0].Total.Currency = "eur" }},
		{"a row names a refund that others made", "I4", func(b *books) { b.Refunds["half"][0].Of = "" }},
		{"a refund is succeeded, and Stripe has it pending", "I20", func(b *books) { b.Refunds["half"][0].Status = "pending" }},
		{"a refund is failed, and the bank did not return it", "I19 I20", func(b *books) {
			b.bankReturns()
			b.Refunds["half"][0].Status = "succeeded"
		}},
		{"a refused refund was made", "I19 I20", func(b *books) {
			b.refund("S", refund.Refused)
			b.made("S", 1, "succeeded")
		}},
		{"the event of a refund says another status", "I20", row(func(o *invariants.Order) {
			o.Events[1].Refund.Status = string(refund.Pending)
		})},
		{"the event of a refund says another amount", "I20", row(func(o *invariants.Order) { o.Events[1].Refund.Amount++ })},
		{"the event of a refund repeats its status", "I20", func(b *books) {
			b.refunded(order.RefundEvent{ID: "R", Status: string(refund.Succeeded), Amount: half})
		}},
		{"the event of a refund makes the order refunded", "I7 I16 I20", row(func(o *invariants.Order) {
			o.Events[1].To = order.Refunded
		})},
		{"a refund is left open", "I3 I4 I19 I20 I21", func(b *books) { b.item(func(i *refund.Item) { i.Status = refund.Open }) }},
		{"an open refund's message is parked after every fault", "I11", func(b *books) {
			b.refund("S", refund.Unknown)
			b.change("half", func(o *invariants.Order) {
				o.Refunds[1].Status, o.Events, o.Seq = refund.Open, o.Events[:2], 2
			})
			b.record()
			b.park("refund S", order.ReasonUnavailable)
			b.Ended = true
		}},
		{"the message of an unknown refund is acknowledged", "I21", func(b *books) { b.refund("S", refund.Unknown) }},
	}
}

func waiting() []mistake {
	return []mistake{
		{"an order needs authentication and Stripe shows it paid", "I17", func(b *books) { b.intent("waiting", "succeeded", "") }},
		{"an order needs authentication and Stripe shows it canceled", "I17", func(b *books) { b.intent("waiting", "canceled", "") }},
		{"an order needs authentication and Stripe shows it declined", "I17", func(b *books) {
			b.intent("waiting", "requires_payment_method", "card_declined")
		}},
		{"an order is open, its message parked, and Stripe shows it pending", "I17", func(b *books) {
			b.reopen("declined")
			b.intent("declined", "processing", "")
			b.park("refusal", order.ReasonUnknown)
		}},
		{"an order is open, its message parked, and Stripe waits for authentication", "I17", func(b *books) {
			b.reopen("waiting")
			b.park("question", order.ReasonUnknown)
		}},
	}
}

func logs() []mistake {
	line := func(text string) func(*books) { return func(b *books) { b.Log += text + "\n" } }
	return []mistake{
		{"the log holds the API key", "I13", line(`{"error":"` + apiKey + `"}`)},
		{"a line that is not JSON holds the API key", "I13", line("panic: key " + apiKey)},
		{"the log holds a payer", "I13", line(`{"error":"cus_Test"}`)},
		{"the log holds a payment method", "I13", line(`{"error":"pm_card_visa"}`)},
		{"the log holds a customer in a sentence", "I13", line(`{"error":"customer 'CUST-paid', who paid"}`)},
		{"the log holds a customer at any depth", "I13", line(`{"order":{"notes":["CUST-paid"]}}`)},
		{"the log holds a customer whose id JSON escapes", "I13", func(b *books) {
			b.paidBy("quoted", `O\"Brien`)
			line(`{"error":"no customer O\"Brien"}`)(b)
		}},
	}
}

func lines() []mistake {
	add := func(lines ...invariants.Line) func(*books) {
		return func(b *books) { b.Lines = append(b.Lines, lines...) }
	}
	of := func(id, verdict, reason, status string) invariants.Line {
		return invariants.Line{
			Message: "order", OrderID: id, MessageID: verdict + id, Delivery: 1, Verdict: verdict, Reason: reason, Status: status,
		}
	}
	refundLine := func(id, refundID string) invariants.Line {
		return invariants.Line{Message: "refund", OrderID: id, RefundID: refundID, MessageID: "r", Verdict: "done", Reason: "settled"}
	}
	again := of("paid", "done", "settled", "paid")
	again.Delivery = 2
	open := func(parked bool) func(*books) {
		return func(b *books) {
			b.change("half", func(o *invariants.Order) {
				o.Left--
				o.Refunds = append(o.Refunds, refund.Item{ID: "R-2", Amount: 1, Status: refund.Open})
			})
			if l := refundLine("half", "R-2"); parked {
				l.Verdict = "park"
				add(l)(b)
			}
		}
	}
	parked, acked := of("paid", "park", "conflict", ""), of("paid", "done", "duplicate", "paid")
	acked.MessageID = parked.MessageID
	return []mistake{
		{"an order was settled, and a duplicate and a refund were acknowledged", "", add(of("late", "done", "settled", "pending"),
			of("late", "done", "duplicate", "paid"), of("ghost", "redeliver", "store_unavailable", ""), refundLine("half", "R"))},
		{"a message of no row was acknowledged", "I5", add(of("ghost", "done", "settled", "paid"))},
		{"a message of an open order was acknowledged", "I3 I5 I17", func(b *books) {
			b.reopen("declined")
			add(of("declined", "done", "duplicate", "declined"))(b)
		}},
		{"a message was acknowledged with a status that the order never had", "I5", add(of("paid", "done", "settled", "declined"))},
		{"a message of an unknown refund was acknowledged", "I5", add(refundLine("half", "R-2"))},
		{"a refund is open, and nobody knows its message", "I21", open(false)},
		{"a refund is open, and its message was parked", "", open(true)},
		{"two deliveries settled one order", "I8", add(of("paid", "done", "settled", "paid"), again)},
		{"a conflict was redelivered", "I9", add(of("paid", "redeliver", "conflict", ""))},
		{"a conflict was parked, and its message acknowledged", "I9", add(parked, acked)},
	}
}

func TestLeak(t *testing.T) {
	for text, want := range map[string]bool{
		`{"error":"key sk_test_pretend"}`: true, "panic: whsec_1": true, "AKIAIOSFODNN7EXAMPLE": true, `"cus_9s6XKzk"`: true,
		"a.b@example.com": true, "4242 4242 4242 4242": true, "card_declined 00000000-4242-4242-8242-424242424242": false,
		`{"order_id":"4242424242424242","error":"order 4242424242424242"}`: false,
	} {
		if got := invariants.Leak(text, invariants.Line{OrderID: "4242424242424242"}); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

func published() []mistake {
	// bus changes the events of the order that was pending, and then paid.
	bus := func(how func(pending, paid invariants.Event) []invariants.Event) func(*books) {
		return func(b *books) {
			at := slices.IndexFunc(b.Bus, func(e invariants.Event) bool { return e.OrderID == "late" })
			b.Bus = slices.Replace(b.Bus, at, at+2, how(b.Bus[at], b.Bus[at+1])...)
		}
	}
	return []mistake{
		{"the last event is not on the bus", "I16", bus(func(pending, _ invariants.Event) []invariants.Event {
			return []invariants.Event{pending}
		})},
		{"two events are on the bus in the wrong order", "I16", bus(func(pending, paid invariants.Event) []invariants.Event {
			return []invariants.Event{paid, pending, paid}
		})},
		{"another status is on the bus", "I16", bus(func(pending, paid invariants.Event) []invariants.Event {
			paid.To = order.Declined
			return []invariants.Event{pending, paid}
		})},
		{"a repeated event differs", "I16", bus(func(pending, paid invariants.Event) []invariants.Event {
			other := pending
			other.From = order.Refused
			return []invariants.Event{pending, paid, other}
		})},
		{"an event without a number is on the bus", "I16", bus(func(pending, paid invariants.Event) []invariants.Event {
			return []invariants.Event{{OrderID: "late"}, pending, paid}
		})},
		{"an event without a row is on the bus", "I16", func(b *books) {
			b.Bus = append(b.Bus, invariants.Event{OrderID: "unknown", Seq: 1, From: order.Open, To: order.Paid})
		}},
	}
}

func stock() []mistake {
	shirts := func(how func(*order.Stock)) func(*books) {
		return func(b *books) {
			s := b.Stock[shirt]
			how(&s)
			b.Stock[shirt] = s
		}
	}
	holds := func(id order.ID, quantities order.Quantities) func(*books) {
		return func(b *books) { b.change(id, func(o *invariants.Order) { o.Stock = quantities }) }
	}
	return []mistake{
		{"a shirt was lost", "I22", shirts(func(s *order.Stock) { s.Available-- })},
		{"a shirt was sold twice", "I22", shirts(func(s *order.Stock) { s.Sold, s.Available = s.Sold+1, s.Available-1 })},
		{"an order without stock was charged", "I22", shirts(func(s *order.Stock) { s.Sold, s.Available = s.Sold-2, s.Available+2 })},
		{"more was reserved than there is", "I22", func(b *books) {
			b.Delivered[shirt] -= 95
			shirts(func(s *order.Stock) { s.Available -= 95 })(b)
		}},
		{"an order holds other stock than its lines", "I22", holds("declined", order.Quantities{shirt: 3})},
		{"an order that waits holds nothing", "I22", holds("waiting", nil)},
		{"a paid order still holds stock", "I22", func(b *books) {
			holds("paid", order.Quantities{shirt: 2})(b)
			shirts(func(s *order.Stock) { s.Reserved, s.Available = s.Reserved+2, s.Available-2 })(b)
		}},
	}
}

func receipts() []mistake {
	return []mistake{
		{"a second e-mail", "I23", func(b *books) { b.mail("paid") }},
		{"an e-mail about an unpaid order", "I23", func(b *books) { b.mail("declined") }},
		{"a paid order without a receipt", "I23", func(b *books) { delete(b.Receipts, "paid") }},
		{"a receipt that is still sending", "I23", func(b *books) { b.receipt(receipt.Sending) }},
		{"a doubt that is not listed", "I23", func(b *books) { b.receipt(receipt.Doubtful) }},
		{"a failed receipt whose e-mail was sent", "I23", func(b *books) { b.receipt(receipt.Failed) }},
		{"a sent receipt without an e-mail", "I23", func(b *books) { b.Mail = nil }},
	}
}

func requests() []mistake {
	other := func(b *books, accepted bool) {
		of := b.Messages[slices.IndexFunc(b.Messages, func(m invariants.Message) bool { return m.ID == "other" })]
		b.Requests = append(b.Requests, invariants.Request{Order: of.Order, Accepted: accepted, Status: "received"})
	}
	return []mistake{
		{"other content is refused", "", func(b *books) { b.put("paid", "paid"); other(b, false) }},
		{"other content is accepted", "I24", func(b *books) { b.put("paid", "paid"); other(b, true) }},
		{"only other content is accepted", "I24", func(b *books) { other(b, true) }},
		{"the same content is a conflict later", "I24", func(b *books) { b.put("late", "") }},
		{"the content of the row was a conflict", "I24", func(b *books) { b.put("paid", "") }},
		{"a paid order is open again", "I24", func(b *books) { b.put("late", "open") }},
		{"an accepted order is gone", "I24", func(b *books) {
			b.post("gone", body("gone"))
			b.Messages, b.Requests = b.Messages[:len(b.Messages)-1], []invariants.Request{{
				Order: b.Messages[len(b.Messages)-1].Order, Accepted: true, Status: "received",
			}}
		}},
		{"an accepted order is a dead letter", "", func(b *books) {
			b.post("gone", body("gone"))
			b.park("gone", order.ReasonRecordLost)
			b.put("gone", "received")
		}},
	}
}
