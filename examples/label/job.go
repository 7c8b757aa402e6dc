// Command label is a Lambda function that buys one shipment label for each order, and
// never a second one. It is the example of docs/guides/adapt.md: a job of kind a, because
// the carrier makes a shipment first and sells its label by a second call.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// Job buys labels. It has no state of its own: two Jobs may work on one order at once.
type Job struct {
	Client  *sdk.Client
	Table   string
	Carrier Carrier
}

type message struct {
	OrderID   order.ID `json:"orderId"`
	AddressID string   `json:"addressId"` // the carrier's id of it
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
	bound, err := j.begin(ctx, m, l)
	if err != nil {
		return order.ResultOf(err)
	}
	s, err := j.buy(ctx, m, bound, l)
	if err == nil {
		_, err = j.write(ctx, m, s, l, mayFinish, finish)
	}
	r := order.ResultOf(err)
	if err != nil {
		// Park only if the claim could be released: that proves that it was still ours.
		if _, lost := j.write(ctx, m, s, l, claimed, release); lost != nil && r.Verdict == order.Park {
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
		_, err = j.write(ctx, m, s, l, mayBind, bind)
	}
	if err != nil || s.Status != "quoted" {
		return s, err
	}
	after, err := j.Carrier.Call(ctx, m, "POST", "/"+s.ID+"/buy")
	if order.KindOf(err) == order.KindRefused { // perhaps because a frozen attempt has just bought it
		if now, readErr := j.Carrier.Call(ctx, m, "GET", "/"+s.ID); readErr != nil || now.Status != "quoted" {
			return now, readErr
		}
	}
	if err == nil && after.Status == "quoted" {
		err = failed(order.KindUnknown, errors.New("still quoted after the call to buy"))
	}
	return after, err
}

// Shipment is a shipment as the carrier shows it. A quoted one costs nothing yet.
type Shipment struct{ ID, Reference, Status string }

// Carrier calls the carrier's API. It repeats no call: the queue's redelivery does.
type Carrier struct {
	Client *http.Client
	URL    string // of the shipments
	Scope  string // separates deployments that share an account
}

// Call makes one call. Its errors are *order.PaymentError and *order.MismatchError.
func (c Carrier) Call(ctx context.Context, m message, method, path string) (s Shipment, err error) {
	reference, body := c.Scope+"/"+string(m.OrderID)+"/"+m.AddressID, []byte(nil)
	if path == "" { // a new shipment
		body, _ = json.Marshal(map[string]string{"reference": reference, "address_id": m.AddressID})
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return s, failed(order.KindMisconfigured, err)
	}
	response, err := c.Client.Do(request)
	if err != nil {
		return s, failed(order.KindUnknown, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusMultipleChoices {
		return s, failed(kindOf(method, response.StatusCode), errors.New(method+" "+path+": "+response.Status))
	}
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		return Shipment{}, failed(order.KindUnknown, err)
	}
	if s.ID == "" || s.Reference != reference { // not ours: do not use it
		return Shipment{}, &order.MismatchError{Field: "reference", Got: s.Reference, Want: reference}
	}
	return s, nil
}

func failed(kind order.ErrorKind, err error) error { return &order.PaymentError{Kind: kind, Err: err} }

func kindOf(method string, status int) order.ErrorKind {
	switch {
	case status == http.StatusUnprocessableEntity && method == http.MethodPost:
		return order.KindRefused
	case status == 409, status == 429, status == 503:
		return order.KindUnavailable
	case status < http.StatusInternalServerError: // credentials, or an id that the carrier has forgotten
		return order.KindMisconfigured
	}
	return order.KindUnknown
}
