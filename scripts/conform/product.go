package main

import (
	"fmt"
	"time"

	"orderonce/adapters/eventbridge"
	"orderonce/adapters/sqs"
	intakequeue "orderonce/adapters/sqs/intake"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// ours is the source of the rules of this file: they call the services through the
// adapters of the product, as contract_test.go does for Stripe. make smoke does so for
// e-mails, which need a deployment's address and configuration set.
const ours = "adapters of this project"

// product is an order that nobody pays.
func product(r *Run, id string) (o order.Order, draft order.Draft) {
	draft = order.Draft{
		ID: id, CustomerID: "conform", Currency: "usd", Lines: []order.Line{{SKU: "TEE", Quantity: 2, UnitAmount: 1999}},
		Payment: order.Payment{Customer: "cus_pretend", Method: "pm_card_visa"},
	}
	o, err := order.New(draft)
	r.Must(err)
	return o, draft
}

// sqsProduct sends an order to queues, and makes one visible again.
func sqsProduct(s sqsRun) {
	for _, name := range []string{"q", "q.fifo"} {
		url := s.queue(name, timeout, "600")
		sender, queue := intakequeue.NewSender(s.Config, url), sqs.NewQueue(s.Config, url, url)
		o, draft := product(s.Run, "A.b-C_d-"+name)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		s.Must(sender.Send(s.Context, o, s.Now(), trace))
		got := s.take(url, orders.Encode(draft)+":1")[0]
		s.Want("trace", *got.MessageAttributes[sqs.AttrTrace].StringValue, trace)
		decoded, err := orders.NewDecoder().Decode(*got.Body)
		s.Want("decoded", fmt.Sprint(s.did(err), " ", decoded.Fingerprint()), fmt.Sprint(ok, " ", o.Fingerprint()))
		again := []sqs.Delay{{MessageID: *got.MessageId, ReceiptHandle: *got.ReceiptHandle}}
		s.Want("made visible", s.did(queue.ChangeVisibility(s.Context, again)), ok)
		s.take(url, orders.Encode(draft)+":2")
	}
}

// busProduct puts every kind of change at once.
func busProduct(r *Run, _ putter) {
	var all []outbox.Event
	for i, to := range []order.Status{order.ActionRequired, order.Declined, order.Canceled, order.Paid} {
		all = append(all, outbox.Event{
			OrderID: "CONFORM", Total: order.Money{Amount: 3998, Currency: "usd"},
			Event: order.Event{Seq: i + 1, From: order.Open, To: to, At: start().Add(time.Duration(i) * time.Second)},
		})
	}
	refused, err := eventbridge.New(r.Config, "default", "conform").Put(r.Context, all)
	if r.Want("refused", len(refused), 0); len(refused) == 0 {
		r.Must(err)
	}
}
