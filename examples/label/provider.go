package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"orderonce/domain/order"
)

const (
	made    = "quoted"
	confirm = "/buy"
)

// Object is what the provider makes, as it shows it.
type Object struct{ ID, Reference, Status string }

// Provider calls the provider's API. It repeats no call: the queue's redelivery does.
type Provider struct {
	Client *http.Client
	URL    string // of the objects
	Scope  string // separates deployments that share an account
}

// reference is the order's, the same in every attempt.
func (p Provider) reference(m message) string {
	return p.Scope + "/" + string(m.OrderID) + "/" + m.content()
}

// Call makes one call. Its errors are *order.PaymentError and *order.MismatchError.
func (p Provider) Call(ctx context.Context, m message, method, path string) (o Object, err error) {
	reference, body := p.reference(m), []byte(nil)
	if method == "POST" && path == "" {
		fields := map[string]string{"reference": reference, "address_id": m.AddressID}
		body, _ = json.Marshal(fields)
	}
	request, err := http.NewRequestWithContext(ctx, method, p.URL+path, bytes.NewReader(body))
	if err != nil {
		return o, failed(order.KindMisconfigured, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.Client.Do(request)
	if err != nil {
		return o, failed(order.KindUnknown, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusMultipleChoices {
		return o, failed(kindOf(method, response.StatusCode), errors.New(method+" "+path+": "+response.Status))
	}
	if err := json.NewDecoder(response.Body).Decode(&o); err != nil {
		return Object{}, failed(order.KindUnknown, err)
	}
	if o.ID == "" || o.Reference != reference { // not ours: do not use it
		return Object{}, &order.MismatchError{Field: "reference", Got: o.Reference, Want: reference}
	}
	return o, nil
}

func failed(kind order.ErrorKind, err error) error { return &order.PaymentError{Kind: kind, Err: err} }

// kindOf says what an answer excludes.
func kindOf(method string, status int) order.ErrorKind {
	switch {
	case status == http.StatusUnprocessableEntity && method == http.MethodPost:
		return order.KindRefused
	case status == 409, status == 429, status == 503:
		return order.KindUnavailable
	case status < http.StatusInternalServerError: // credentials, or an id that it has forgotten
		return order.KindMisconfigured
	}
	return order.KindUnknown
}
