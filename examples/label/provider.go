package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"orderonce/domain/order"
)

// Shipment is a shipment as the carrier shows it. A quoted one costs nothing yet.
type Shipment struct{ ID, Reference, Status string }

const quoted = "quoted"

// Carrier calls the carrier's API. It repeats no call: the queue's redelivery does.
type Carrier struct {
	Client *http.Client
	URL    string // of the shipments
	Scope  string // separates deployments that share an account
}

// Call makes one call about the shipment of m, and returns the shipment after it. Every
// error is an *order.PaymentError or an *order.MismatchError.
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
	if id := order.IntentID(s.ID); s.ID == "" || s.Reference != reference { // not ours: do not use it
		return Shipment{}, &order.MismatchError{Intent: id, Field: "reference", Got: s.Reference, Want: reference}
	}
	return s, nil
}

func failed(kind order.ErrorKind, err error) error { return &order.PaymentError{Kind: kind, Err: err} }

// kindOf says what a status means for the order.
func kindOf(method string, status int) order.ErrorKind {
	switch {
	case status == http.StatusUnprocessableEntity && method == http.MethodPost:
		return order.KindRefused
	case status == http.StatusConflict, status == http.StatusTooManyRequests,
		status == http.StatusServiceUnavailable:
		return order.KindUnavailable
	case status < http.StatusInternalServerError: // credentials, or an id that the carrier has forgotten
		return order.KindMisconfigured
	}
	return order.KindUnknown
}
