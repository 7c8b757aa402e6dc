package stripe

import (
	"encoding/json"
	"errors"
	"net/http"

	"orderonce/domain/order"
)

// Response is Stripe's response to a Request as it arrived. Of the headers, Request-Id,
// Idempotent-Replayed and Date are read.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// reply is a Response that is not interpreted yet.
type reply struct {
	status    int  // 0 if the body of an error response is unreadable
	replayed  bool // the response is the one that is stored under the idempotency key
	requestID string
	date      string
	body      []byte
	apiError  apiError // the body of an error response
	err       error    // why the body is not what was asked for
}

// apiError is the body of an error response (docs.stripe.com/api/errors).
type apiError struct {
	errorCodes
	Param  string          `json:"param"`
	Intent *expandedIntent `json:"payment_intent"`
}

// Errors of responses that do not show what was asked for.
var (
	ErrOtherIntent = errors.New("response with another PaymentIntent")
	ErrNotExpanded = errors.New("latest charge not expanded: got only its id")

	errUnreadable = errors.New("unreadable response") // the body could be anything, so no error repeats it
	errNoIntent   = errors.New("response without a PaymentIntent")
)

// parse reads a response. An error response whose body is not Stripe's error object, such
// as a proxy's HTML page, is unreadable whatever its status, because Stripe did not send
// it.
func parse(r Response) reply {
	p := reply{
		status: r.Status, body: r.Body, requestID: r.Header.Get("Request-Id"), date: r.Header.Get("Date"),
		replayed: r.Header.Get("Idempotent-Replayed") == "true",
	}
	if r.Status < http.StatusBadRequest {
		if r.Status != http.StatusOK {
			p.err = errUnreadable
		}
		return p
	}
	var body struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(r.Body, &body) != nil || body.Error == nil {
		return reply{err: errUnreadable}
	}
	p.apiError = *body.Error
	return p
}

// paymentIntent returns the body, or the intent inside an error.
func (p reply) paymentIntent() (*PaymentIntent, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.status != http.StatusOK && p.apiError.Intent == nil:
		return nil, errNoIntent
	case p.status != http.StatusOK:
		return &p.apiError.Intent.PaymentIntent, nil
	}
	i := new(PaymentIntent)
	if json.Unmarshal(p.body, i) != nil {
		return nil, errUnreadable
	}
	return i, nil
}

// outerError is the failure that the error around an intent reports: why the payment did
// not succeed. Errors other than a 402 are about the request, and those about the account
// are not about a payment either.
func (p reply) outerError() order.Failure {
	if p.status != http.StatusPaymentRequired || isAccountError(p.apiError.Code) {
		return order.Failure{}
	}
	return p.apiError.failure()
}
