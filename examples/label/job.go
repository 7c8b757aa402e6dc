// Command label is a Lambda function that buys one shipment label for each order, and
// never a second one. It is the example of docs/guides/adapt.md: a job of kind a, because
// the carrier makes a shipment first and sells its label by a second call.
//
//	a new order:    begin, quote, bind, buy, finish
//	after a crash:  begin, read,        buy, finish
package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// Job buys labels. It has no state of its own: two Jobs may work on one order at once.
type Job struct {
	Table   Table
	Carrier Carrier
}

// message says which order to send to which of the carrier's addresses.
type message struct {
	OrderID   order.ID `json:"orderId"`
	AddressID string   `json:"addressId"`
}

// Task implements sqs.Handler.Decode.
func (j Job) Task(body string) (sqs.Task, error) {
	var m message
	err := json.Unmarshal([]byte(body), &m)
	if err != nil || !order.ValidID(string(m.OrderID)) || !strings.HasPrefix(m.AddressID, "adr_") {
		return sqs.Task{}, errors.New("want JSON with an orderId, and an addressId that starts with adr_")
	}
	run := func(ctx context.Context, _ sqs.Delivery, l order.Lease) order.Result { return j.process(ctx, m, l) }
	return sqs.Task{ID: m.OrderID, Run: run}, nil
}

// process makes one attempt to buy the label and to record it.
func (j Job) process(ctx context.Context, m message, l order.Lease) order.Result {
	bound, err := j.Table.Begin(ctx, m, l)
	if err != nil {
		return order.ResultOf(err)
	}
	s, err := j.buy(ctx, m, bound, l)
	if err == nil {
		err = j.Table.Finish(ctx, m, s, l)
	}
	r := order.ResultOf(err)
	if err != nil {
		// Release, so that the next attempt need not wait for the lease to expire. Park only
		// if Release succeeded: that proves that no other attempt has the order.
		if lost := j.Table.Release(ctx, m, l); lost != nil && r.Verdict == order.Park {
			r = order.ResultOf(lost)
		}
	}
	r.Intent, r.Takeover = order.IntentID(s.ID), bound != ""
	return r
}

// buy buys the shipment that is bound to the order. If none is bound, it binds a new one.
func (j Job) buy(ctx context.Context, m message, bound string, l order.Lease) (s Shipment, err error) {
	if bound != "" {
		s, err = j.Carrier.Call(ctx, m, "GET", "/"+bound)
	} else if s, err = j.Carrier.Call(ctx, m, "POST", ""); err == nil {
		err = j.Table.Bind(ctx, m, s, l)
	}
	if err != nil || s.Status != quoted {
		return s, err
	}
	after, err := j.Carrier.Call(ctx, m, "POST", "/"+s.ID+"/buy")
	if order.KindOf(err) == order.KindRefused { // perhaps because a frozen attempt has just bought it
		if now, readErr := j.Carrier.Call(ctx, m, "GET", "/"+s.ID); readErr != nil || now.Status != quoted {
			return now, readErr
		}
	}
	if err == nil && after.Status == quoted {
		err = failed(order.KindUnknown, errors.New("still quoted after the call to buy"))
	}
	return after, err
}
