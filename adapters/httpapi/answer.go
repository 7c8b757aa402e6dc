package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"orderonce/adapters/internal/strictjson"
	"orderonce/domain/intake"
	"orderonce/domain/order"
)

// The results of a request. Each is a value of the metric Intake, and of the member
// "code" of a problem.
const (
	resultReceived        = "received"               // 202: the order was sent to the queue
	resultRepeated        = "repeated"               // 200 or 202: a worker has claimed the order before
	resultFound           = "found"                  // 200: GET
	resultMalformed       = "malformed"              // 400: not JSON
	resultNoKey           = "no_key"                 // 400: POST without a valid Idempotency-Key
	resultUnauthenticated = "unauthenticated"        // 401
	resultForbidden       = "forbidden"              // 403
	resultNotFound        = "not_found"              // 404
	resultConflict        = "conflict"               // 409
	resultTooLarge        = "too_large"              // 413
	resultMediaType       = "unsupported_media_type" // 415
	resultInvalid         = "invalid"                // 422: not an order
	resultUnavailable     = "unavailable"            // 503: the table or the queue did not answer
)

// The details of problems.
var (
	errMalformed   = errors.New("want one JSON value as the body")
	errNoKey       = errors.New("want a header Idempotency-Key of 1 to 255 printable characters without blanks")
	errTooLarge    = fmt.Errorf("want a body of at most %d bytes", strictjson.MaxBody)
	errMediaType   = errors.New("want a body of application/json")
	errInvalid     = errors.New("the body is not an order")
	errUnavailable = errors.New("the table or the queue did not answer: send the same request again")
)

// The seconds after which a client should ask again.
const (
	retryAccepted    = "2"
	retryUnavailable = "5"
)

// answer is the response to a request, and what is reported of it.
type answer struct {
	status               int
	result               string
	body                 any
	location, retryAfter string   // "" for none
	orderID              order.ID // "" if the request has none
	err                  error    // for the log
}

// write writes the response. Nobody may store it: it is one caller's, and it changes.
func (a answer) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json")
	if _, is := a.body.(problemDetails); is {
		header.Set("Content-Type", "application/problem+json")
	}
	if a.location != "" {
		header.Set("Location", a.location)
	}
	if a.retryAfter != "" {
		header.Set("Retry-After", a.retryAfter)
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // strings and integers always encode; a client may have left
}

// problemDetails is an error in the form of RFC 9457. Its type is about:blank, so the
// title is that of the status.
type problemDetails struct {
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Code   string         `json:"code"`
	Detail string         `json:"detail"`
	Errors []fieldProblem `json:"errors,omitempty"`
}

// fieldProblem is what is wrong with one field. Pointer is a JSON Pointer as a URI
// fragment.
type fieldProblem struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// problem returns an answer whose detail is the text of err.
func problem(status int, result string, err error, fields ...fieldProblem) answer {
	return answer{status: status, result: result, err: err, body: problemDetails{
		Title: http.StatusText(status), Status: status, Code: result, Detail: err.Error(), Errors: fields,
	}}
}

// invalid returns the answer to a body that is not an order, with every problem.
func invalid(err error) answer {
	fields := []fieldProblem{{Pointer: "#", Detail: err.Error()}}
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		fields = nil
		for _, p := range invalid.Problems {
			detail := "want " + p.Want
			if p.Value != "" {
				detail += ", got " + p.Value
			}
			fields = append(fields, fieldProblem{Pointer: pointer(p.Field), Detail: detail})
		}
	}
	a := problem(http.StatusUnprocessableEntity, resultInvalid, errInvalid, fields...)
	a.err = err
	return a
}

// pointer returns the JSON Pointer of a field such as "lines[2].quantity". The total is
// not a field: its lines are.
func pointer(field string) string {
	if field == "total" {
		return "#/lines"
	}
	return "#/" + strings.NewReplacer("[", "/", "]", "", ".", "/").Replace(field)
}

// representation is an order as clients see it: without payment data and without what
// only operators need.
type representation struct {
	OrderID  order.ID       `json:"orderId"`
	Status   string         `json:"status"`
	Amount   int64          `json:"amount"`
	Currency order.Currency `json:"currency"`
	Failure  string         `json:"failure,omitempty"`
	History  []change       `json:"history"`
}

// change is one event of an order.
type change struct {
	Seq    int          `json:"seq"`
	Type   string       `json:"type"`
	From   order.Status `json:"from"`
	Status order.Status `json:"status"`
	At     time.Time    `json:"at"`
	Reason string       `json:"reason,omitempty"`
}

func represent(v intake.View) representation {
	out := representation{
		OrderID: v.OrderID, Status: v.Status(), Amount: v.Total.Amount, Currency: v.Total.Currency,
		Failure: v.Record.Failure, History: make([]change, len(v.Record.Events)),
	}
	for i, e := range v.Record.Events {
		out.History[i] = change{
			Seq: e.Seq, Type: e.Type(), From: e.From, Status: e.To, At: e.At.UTC(), Reason: e.Failure,
		}
	}
	return out
}
