package stripetest

import (
	"encoding/json"
	"net/http"
)

// intentJSON is a PaymentIntent, as far as it is modeled
// (docs.stripe.com/api/payment_intents/object).
type intentJSON struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	AmountReceived     int64             `json:"amount_received"`
	CancellationReason *string           `json:"cancellation_reason"`
	CaptureMethod      string            `json:"capture_method"`
	ClientSecret       string            `json:"client_secret"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	Customer           any               `json:"customer"` // Its id, or a *customerJSON if expanded.
	Description        *string           `json:"description"`
	LastPaymentError   *errorJSON        `json:"last_payment_error"`
	LatestCharge       any               `json:"latest_charge"` // Its id, or a *chargeJSON if expanded.
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	NextAction         *actionJSON       `json:"next_action"`
	PaymentMethod      *string           `json:"payment_method"`
	Status             Status            `json:"status"`
}

// errorJSON is an error (docs.stripe.com/api/errors).
type errorJSON struct {
	Code          string      `json:"code,omitempty"`
	DeclineCode   string      `json:"decline_code,omitempty"`
	Message       string      `json:"message"`
	Param         string      `json:"param,omitempty"`
	PaymentIntent *intentJSON `json:"payment_intent,omitempty"`
	PaymentMethod *methodJSON `json:"payment_method,omitempty"`
	Type          string      `json:"type"`
}

type methodJSON struct {
	ID     string `json:"id"`
	Object string `json:"object"`
}

type actionJSON struct {
	Type string   `json:"type"`
	SDK  struct{} `json:"use_stripe_sdk"`
}

// chargeJSON is a charge, as far as it is modeled (docs.stripe.com/api/charges/object).
type chargeJSON struct {
	ID             string      `json:"id"`
	Object         string      `json:"object"`
	Amount         int64       `json:"amount"`
	AmountCaptured int64       `json:"amount_captured"`
	AmountRefunded int64       `json:"amount_refunded"`
	Created        int64       `json:"created"`
	Currency       string      `json:"currency"`
	Disputed       bool        `json:"disputed"`
	FailureCode    *string     `json:"failure_code"`
	FailureMessage *string     `json:"failure_message"`
	Livemode       bool        `json:"livemode"`
	Outcome        outcomeJSON `json:"outcome"`
	Paid           bool        `json:"paid"`
	PaymentIntent  string      `json:"payment_intent"`
	Refunded       bool        `json:"refunded"` // In full.
	Refunds        *listJSON   `json:"refunds,omitempty"`
	Status         string      `json:"status"`
}

type outcomeJSON struct {
	NetworkStatus string  `json:"network_status"`
	Reason        *string `json:"reason"`
	Type          string  `json:"type"`
}

type listJSON struct {
	Object string `json:"object"`
	URL    string `json:"url"`
	More   bool   `json:"has_more"`
	Data   []any  `json:"data"`
}

// Body returns the response as JSON, or half of it if it is Garbled. Equal responses have
// equal bodies.
func (r Response) Body() []byte {
	body := []byte{}
	switch {
	case r.Error != nil:
		body = marshal(map[string]*errorJSON{"error": wireError(r.Error)})
	case r.List != nil:
		list := listJSON{Object: "list", URL: root, More: r.List.More, Data: []any{}}
		if r.List.Search { // docs.stripe.com/api/payment_intents/search
			list.Object, list.URL = "search_result", root+"/search"
		}
		for n, intent := range r.List.Intents {
			wire := wireIntent(intent)
			if n < len(r.List.Charges) && r.List.Charges[n] != nil {
				wire.LatestCharge = wireCharge(intent.LatestCharge, r.List.Charges[n])
			}
			list.Data = append(list.Data, wire)
		}
		body = marshal(list)
	case r.Disputes != nil:
		body = marshal(wireObjects(r.Disputes, disputesRoot, wireDispute))
	case r.Intent != nil:
		intent := wireIntent(r.Intent)
		if r.Customer != nil {
			intent.Customer = wireCustomer(r.Customer)
		}
		if r.Charge != nil {
			charge := wireCharge(r.Intent.LatestCharge, r.Charge)
			if r.Refunds != nil {
				charge.Refunds = wireObjects(r.Refunds, "/v1/charges/"+charge.ID+"/refunds", wireRefund)
			}
			intent.LatestCharge = charge
		}
		body = marshal(intent)
	case r.Refund != nil:
		body = marshal(wireRefund(r.Refund))
	case r.Refunds != nil:
		body = marshal(wireObjects(r.Refunds, refundsRoot, wireRefund))
	}
	if r.Garbled {
		return body[:len(body)/2]
	}
	return body
}

// marshal cannot fail: the JSON types contain only strings, numbers, and maps and slices
// of them.
func marshal(v any) []byte {
	body, _ := json.Marshal(v)
	return body
}

func wireIntent(i *Intent) *intentJSON {
	if i == nil {
		return nil
	}
	wire := &intentJSON{
		ID: i.ID, Object: "payment_intent", Amount: i.Amount, Currency: i.Currency, CaptureMethod: i.CaptureMethod,
		ClientSecret: i.ID + "_secret_pretend", Created: i.Created.Unix(), Status: i.Status, Metadata: i.Metadata,
		Customer: orNull(i.Customer), Description: orNull(i.Description),
		CancellationReason: orNull(i.CancellationReason), LatestCharge: orNull(i.LatestCharge),
		PaymentMethod: orNull(i.PaymentMethod), LastPaymentError: wireError(i.LastError),
	}
	if i.Status == StatusSucceeded {
		wire.AmountReceived = i.Amount
	}
	if i.Status == StatusRequiresAction {
		wire.NextAction = &actionJSON{Type: "use_stripe_sdk"}
	}
	return wire
}

func wireCharge(id string, c *Charge) *chargeJSON {
	wire := &chargeJSON{
		ID: id, Object: "charge", Amount: c.Amount, Created: c.At.Unix(), Currency: c.Currency,
		Disputed: c.Disputed, PaymentIntent: c.Intent, AmountCaptured: c.Amount, AmountRefunded: c.Refunded,
		Refunded:    c.Refunded == c.Amount,
		FailureCode: orNull(c.Failure.Code), FailureMessage: orNull(c.Failure.Message),
		Paid:   c.Outcome == Charged,
		Status: "succeeded", Outcome: outcomeJSON{NetworkStatus: "approved_by_network", Type: "authorized"},
	}
	if c.Outcome == Declined {
		wire.Status, wire.AmountCaptured = "failed", 0
		wire.Outcome = outcomeJSON{
			NetworkStatus: "declined_by_network", Reason: orNull(c.Failure.Reason), Type: c.Failure.Type,
		}
	}
	if c.Failure.Type == "blocked" {
		wire.Outcome.NetworkStatus = "not_sent_to_network"
	}
	return wire
}

func wireError(e *Error) *errorJSON {
	if e == nil {
		return nil
	}
	wire := &errorJSON{
		Type: e.Type, Code: e.Code, DeclineCode: e.DeclineCode, Message: e.Message, Param: e.Param,
		PaymentIntent: wireIntent(e.Intent),
	}
	if e.PaymentMethod != "" {
		wire.PaymentMethod = &methodJSON{ID: e.PaymentMethod, Object: "payment_method"}
	}
	return wire
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Header returns the headers of the response that a client may use.
func (r Response) Header() http.Header {
	header := http.Header{
		"Content-Type": {"application/json"}, "Request-Id": {r.RequestID.String()},
		"Date": {r.At.UTC().Format(http.TimeFormat)},
	}
	if r.ShouldRetry != "" {
		header["Stripe-Should-Retry"] = []string{r.ShouldRetry}
	}
	if r.Replayed() {
		header["Idempotent-Replayed"] = []string{"true"}
		header["Original-Request"] = []string{r.Original.String()}
	}
	return header
}
