package stripetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// RequestID is the number of a request. Its string is the Request-Id header.
type RequestID int

// String returns the Request-Id header, such as req_000001.
func (id RequestID) String() string { return fmt.Sprintf("req_%06d", int(id)) }

// Response is a response of the Stripe double. The intents in it are shared with the
// machine and read-only.
type Response struct {
	Status    int
	At        time.Time // The Date header.
	RequestID RequestID
	Original  RequestID // The request whose stored response this replays; 0 if this is not a replay.
	Lost      bool      // The connection breaks before the response arrives.
	Garbled   bool      // Only half of the body arrives.
	Intent    *Intent
	Refund    *Refund
	Error     *Error

	expanded object // What the request expands of the intent.
	list     object
}

// Error is the inside of Stripe's error body, and of an intent's last_payment_error.
type Error struct {
	Type, Code, DeclineCode, Message, Param string
	PaymentMethod                           string  // The declined payment method.
	Intent                                  *Intent // The intent after the error.
}

// Replayed reports whether the response is the one stored under the key (header
// Idempotent-Replayed).
func (r Response) Replayed() bool { return r.Original != 0 }

func (r Response) result() string {
	switch {
	case r.Error != nil:
		return cmp.Or(r.Error.Code, r.Error.Type)
	case r.Intent != nil:
		return string(r.Intent.Status)
	case r.Refund != nil:
		return string(r.Refund.Status)
	}
	return ""
}

// object is a JSON object of Stripe's, as far as it is modeled.
type object map[string]any

// Body returns the response as JSON, or half of it if it is Garbled. Equal responses have
// equal bodies.
func (r Response) Body() []byte {
	body := []byte{}
	switch {
	case r.Error != nil:
		body = marshal(object{"error": r.Error.wire()})
	case r.Intent != nil:
		intent := r.Intent.wire()
		maps.Copy(intent, r.expanded)
		body = marshal(intent)
	case r.Refund != nil:
		body = marshal(r.Refund.wire())
	case r.list != nil:
		body = marshal(r.list)
	}
	if r.Garbled {
		return body[:len(body)/2]
	}
	return body
}

// marshal returns an object as JSON with sorted names.
func marshal(o object) []byte {
	text, _ := json.Marshal(o) // strings, numbers, and maps and lists of them, always encode
	return text
}

// wire is the error as Stripe sends it (docs.stripe.com/api/errors).
func (e *Error) wire() object {
	o := object{"type": e.Type, "message": e.Message}
	for name, value := range map[string]string{"code": e.Code, "decline_code": e.DeclineCode, "param": e.Param} {
		if value != "" {
			o[name] = value
		}
	}
	if e.Intent != nil {
		o["payment_intent"] = e.Intent.wire()
	}
	if e.PaymentMethod != "" {
		o["payment_method"] = object{"id": e.PaymentMethod, "object": "payment_method"}
	}
	return o
}

// orNull is a string in JSON, or null if it is empty.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Header returns the headers of the response that a client may use.
func (r Response) Header() http.Header {
	header := http.Header{
		"Content-Type": {"application/json"}, "Request-Id": {r.RequestID.String()},
		"Date": {r.At.UTC().Format(http.TimeFormat)},
	}
	if r.Error != nil {
		switch r.Error.Code {
		case "lock_timeout", "idempotency_key_in_use":
			header["Stripe-Should-Retry"] = []string{"true"}
		case "payment_intent_unexpected_state":
			header["Stripe-Should-Retry"] = []string{"false"}
		}
	}
	if r.Replayed() {
		header["Idempotent-Replayed"] = []string{"true"}
		header["Original-Request"] = []string{r.Original.String()}
	}
	return header
}

// refuse is an error response of Stripe's, to a mistake of the client's unless it is a
// 5xx.
func refuse(status int, code, param, format string, args ...any) *Response {
	e := Error{Type: "invalid_request_error", Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
	if status >= 500 {
		e.Type = "api_error"
	}
	return &Response{Status: status, Error: &e}
}

func invalid(code, param, format string, args ...any) *Response {
	return refuse(400, code, param, format, args...)
}

func missing(param, kind, id string) *Response {
	return invalid("resource_missing", param, "No such %s: '%s'", kind, id)
}

func lockTimeout() *Response {
	return refuse(429, "lock_timeout", "", "Another request or Stripe process is accessing this object.")
}

func unexpectedState(intent *Intent, format string, args ...any) Response {
	r := invalid("payment_intent_unexpected_state", "", format, args...)
	r.Error.Intent = intent
	return *r
}
