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

// parsed is a Response whose body has been decoded and not yet interpreted.
type parsed struct {
	status    int  // 0 if the body of an error response is unreadable
	replayed  bool // the response is the one that is stored under the idempotency key
	requestID string
	date      string
	body      []byte
	intent    *paymentIntent // the body, or the intent inside an error; nil if there is none
	apiError  apiError       // the body of an error response
	err       error          // why nothing could be decoded
}

// apiError is the body of an error response (docs.stripe.com/api/errors).
type apiError struct {
	errorCodes
	Message string          `json:"message"`
	Param   string          `json:"param"`
	Intent  *expandedIntent `json:"payment_intent"`
}

var (
	errUnreadable  = errors.New("unreadable response") // the body could be anything, so no error repeats it
	errNoIntent    = errors.New("response without a PaymentIntent")
	errOtherIntent = errors.New("response with another PaymentIntent")
)

// parse decodes a response. An error response whose body is not Stripe's error object,
// such as a proxy's HTML page, is unreadable whatever its status, because Stripe did not
// send it.
func parse(r Response) parsed {
	p := parsed{
		status: r.Status, body: r.Body, requestID: r.Header.Get("Request-Id"), date: r.Header.Get("Date"),
		replayed: r.Header.Get("Idempotent-Replayed") == "true",
	}
	if r.Status >= http.StatusBadRequest {
		return p.parseError(r.Body)
	}
	if p.intent = new(paymentIntent); json.Unmarshal(r.Body, p.intent) != nil || r.Status != http.StatusOK {
		p.intent, p.err = nil, errUnreadable
	}
	return p
}

func (p parsed) parseError(b []byte) parsed {
	var body struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(b, &body) != nil || body.Error == nil {
		return parsed{err: errUnreadable}
	}
	p.apiError = *body.Error
	if p.apiError.Intent != nil {
		p.intent = &p.apiError.Intent.paymentIntent
	}
	return p
}

// outerError is the failure that the error around an intent reports: why the payment did
// not succeed. Errors other than a 402 are about the request, and those about the account
// are not about a payment either.
func (p parsed) outerError() order.Failure {
	if p.status != http.StatusPaymentRequired || isAccountError(p.apiError.Code) {
		return order.Failure{}
	}
	return p.apiError.failure()
}
