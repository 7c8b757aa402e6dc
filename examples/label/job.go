// Command label is a Lambda function that does its job once for each order. In
// docs/guides/adapt.md it is of kind a:
// an object is made first and takes effect by a second call, at most once.
//
// The job is to buy a shipment label. The carrier quotes a shipment first, which costs
// nothing, and sells its label by a second call.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// Job does the work. It has no state of its own: two Jobs may work on one order at once.
type Job struct {
	Table    Table
	Provider Provider
}

type message struct {
	OrderID order.ID `json:"orderId"`

	AddressID string `json:"addressId"` // the carrier's id of it
}

// valid reports whether the job can ever be done.
func (m message) valid() bool { return strings.HasPrefix(m.AddressID, "adr_") }

// content is all that the message asks for. Other content under one id is a conflict.
func (m message) content() string { return m.AddressID }

// Task implements sqs.Handler.Decode.
func (j Job) Task(body string) (sqs.Task, error) {
	var m message
	if err := json.Unmarshal([]byte(body), &m); err != nil || !order.ValidID(string(m.OrderID)) || !m.valid() {
		return sqs.Task{}, errors.New("want JSON with an orderId, and with valid fields beside it")
	}
	run := func(ctx context.Context, _ sqs.Delivery, l order.Lease) order.Result { return j.process(ctx, m, l) }
	return sqs.Task{ID: m.OrderID, Run: run}, nil
}

// process makes one attempt to do the job and to record it.
func (j Job) process(ctx context.Context, m message, l order.Lease) order.Result {
	row, err := j.Table.begin(ctx, m, l)
	if err != nil {
		return order.ResultOf(err)
	}
	o, err := j.effect(ctx, m, row, l)
	if err == nil {
		_, err = j.Table.write(ctx, m, o, l, mayFinish, finish)
	}
	r := order.ResultOf(err)
	if err != nil {
		// Park only if the claim could be released: that proves that it was still ours.
		if _, lost := j.Table.write(ctx, m, o, l, claimed, release); lost != nil && r.Verdict == order.Park {
			r = order.ResultOf(lost)
		}
	}
	r.Intent = order.IntentID(o.ID)
	return r
}

// effect confirms the object that is bound to the order. If none is, it binds a new one.
func (j Job) effect(ctx context.Context, m message, row dynamodb.Item, l order.Lease) (o Object, err error) {
	if bound := dynamodb.TextOf(row, "bound"); bound != "" {
		o, err = j.Provider.Call(ctx, m, "GET", "/"+bound)
	} else if o, err = j.Provider.Call(ctx, m, "POST", ""); err == nil {
		_, err = j.Table.write(ctx, m, o, l, mayBind, bind)
	}
	if err != nil || o.Status != made {
		return o, err
	}
	after, err := j.Provider.Call(ctx, m, "POST", "/"+o.ID+confirm)
	if order.KindOf(err) == order.KindRefused { // perhaps because a frozen attempt has just confirmed it
		if now, readErr := j.Provider.Call(ctx, m, "GET", "/"+o.ID); readErr != nil || now.Status != made {
			return now, readErr
		}
	}
	if err == nil && after.Status == made {
		err = failed(order.KindUnknown, errors.New("no effect after the call to confirm"))
	}
	return after, err
}
