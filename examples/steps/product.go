package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	domain "orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// product is the protocol of package domain/order on this stage: the same histories
// happen to the code that is deployed, but for its table and its queue.
func product(d *delivery, m message) verdict {
	o, err := domain.New(domain.Draft{
		ID: m.Order.ID, CustomerID: "C-1", Currency: "usd",
		Lines:   []domain.Line{{SKU: "SHIRT", Quantity: 1, UnitAmount: m.Order.Amount}},
		Payment: domain.Payment{Customer: "cus_pretend", Method: m.Order.Card},
	})
	if err != nil {
		return "invalid"
	}
	const scope = "steps"
	processor := domain.Processor{
		Store: store{&d.records, d}, Payments: charge.New(stripe.Options{Scope: scope, Exchange: d.exchange}),
		Scope: scope, Now: func() time.Time { return d.now }, ConfirmTime: time.Second,
	}
	until := domain.Lease{Owner: d.name, From: d.now, Until: d.now.Add(lease)}
	switch r := processor.Process(context.Background(), o, d.now, until); r.Verdict {
	case domain.Done:
		return done
	case domain.Park:
		return verdict(r.Reason)
	case domain.Redeliver: // the handler of the queue parks the last delivery, with the reason
	}
	return again
}

// store shows what is written, and keeps the status for the history's outcome.
type store struct {
	*ordertest.Memory

	d *delivery
}

// Save implements order.Store.
func (s store) Save(ctx context.Context, before, after domain.Record) (domain.Record, error) {
	if s.d.meetsChange() {
		s.d.print("table", "save "+string(after.OrderID)+": refused, it has changed")
		saved, _ := s.Peek(after.OrderID)
		return saved, domain.ErrStale
	}
	saved, err := s.Memory.Save(ctx, before, after)
	r := row{Status: string(saved.Status), Owner: saved.Owner, Intent: string(saved.Intent)}
	if errors.Is(err, domain.ErrStale) {
		s.d.print("table", "save "+string(after.OrderID)+": refused, it is "+r.String())
		return saved, err
	}
	s.d.print("table", "save "+string(after.OrderID)+": "+r.String())
	s.d.table[string(after.OrderID)] = r
	s.d.recorded(r.Status)
	return saved, err
}

// exchange is the way to Stripe.
func (d *delivery) exchange(_ context.Context, r stripe.Request) (stripe.Response, error) {
	what, confirms := strings.TrimPrefix(r.Path, "/v1/payment_intents"), strings.HasSuffix(r.Path, "/confirm")
	if confirms {
		d.at("before the charge")
		defer d.at("after the charge")
	}
	got := d.call(strings.TrimSpace(r.Method+" "+what), r.Method, r.Path, r.Key, r.Params)
	if got.Lost {
		return stripe.Response{}, stripetest.ErrLost
	}
	header := http.Header{"Request-Id": {got.RequestID.String()}}
	if got.Replayed() {
		header.Set("Idempotent-Replayed", "true")
	}
	return stripe.Response{Status: got.Status, Header: header, Body: got.Body()}, nil
}
