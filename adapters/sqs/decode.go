package sqs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// MaxBody is the largest message body that is decoded, in bytes. An order with all its
// lines takes a third of it.
const MaxBody = 256 << 10

// message is an order in JSON. Numbers are pointers, because a missing price is not a
// price of zero.
type message struct {
	OrderID    string  `json:"orderId"    validate:"new_order_id"`
	CustomerID string  `json:"customerId" validate:"customer_id"`
	Currency   string  `json:"currency"   validate:"currency"`
	Lines      []line  `json:"lines"      validate:"line_count,dive"`
	Payment    payment `json:"payment"`
}

type line struct {
	SKU        string `json:"sku"        validate:"sku"`
	Quantity   *int64 `json:"quantity"   validate:"required,quantity"`
	UnitAmount *int64 `json:"unitAmount" validate:"required,unit_amount"`
}

type payment struct {
	Customer string `json:"customer" validate:"reference"`
	Method   string `json:"method"   validate:"reference"`
}

// BodyError is a message body that is not a JSON object with the fields of an order or of
// a refund. Problem contains no value, which may be a misplaced card number, and only
// names of fields that are order.Printable.
type BodyError struct{ Problem string }

// Error names the problem of the body.
func (e *BodyError) Error() string { return "message body: " + e.Problem }

// Decoder decodes and validates orders and refunds in JSON. It is safe for concurrent
// use, and expensive to create, so share one.
type Decoder struct {
	validate *validator.Validate
	rules    map[string]rule
}

// NewDecoder returns a decoder.
func NewDecoder() *Decoder {
	d := &Decoder{validate: validator.New(validator.WithRequiredStructEnabled()), rules: rules()}
	d.validate.RegisterTagNameFunc(jsonName)
	for tag, r := range d.rules {
		if err := d.validate.RegisterValidation(tag, r.holds); err != nil {
			panic(fmt.Sprintf("validator tag %q: %v", tag, err)) // a mistake in rules()
		}
	}
	return d
}

// Decode decodes an order, for tools that handle orders alone; a queue uses DecodeJob. It
// returns a *BodyError or an *order.InvalidError. Both name fields. They contain no more
// of the body than order.Quote allows, and nothing of fields with personal or payment
// data.
func (d *Decoder) Decode(body string) (order.Order, error) {
	job, err := d.DecodeJob(body)
	if err == nil && job.IsRefund() {
		return order.Order{}, &BodyError{"a refund: want an order"}
	}
	return job.Order, err
}

func (d *Decoder) order(raw []byte, fields func(path string) []string) (order.Order, error) {
	m, err := parse[message](d, raw, fields)
	if err != nil {
		return order.Order{}, err
	}
	return order.New(m.draft())
}

// parse decodes and validates a JSON object with these fields. M is a struct and not a
// pointer to one, for which the validator would allocate more.
//
//nolint:ireturn // M is a struct
func parse[M message | refundMessage](
	d *Decoder, raw []byte, fields func(path string) []string,
) (m M, err error) {
	if m, err = unmarshal[M](raw, fields); err == nil {
		err = d.check(m)
	}
	return m, err
}

//nolint:ireturn // M is a struct
func unmarshal[M message | refundMessage](raw []byte, fields func(path string) []string) (m M, err error) {
	if err := checkShape(raw, fields); err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, bodyError(err)
	}
	return m, nil
}

// check validates a message.
func (d *Decoder) check(m any) error {
	if err := d.validate.Struct(m); err != nil {
		return d.invalid(err)
	}
	return nil
}

func (m message) draft() order.Draft {
	lines := make([]order.Line, len(m.Lines))
	for i, l := range m.Lines {
		lines[i] = order.Line{SKU: l.SKU, Quantity: *l.Quantity, UnitAmount: *l.UnitAmount}
	}
	return order.Draft{
		ID: m.OrderID, CustomerID: m.CustomerID, Currency: m.Currency, Lines: lines,
		Payment: order.Payment{Customer: m.Payment.Customer, Method: m.Payment.Method},
	}
}

// orderFields returns the allowed fields of the object at a path.
func orderFields(path string) []string {
	switch path {
	case "":
		return []string{"orderId", "customerId", "currency", "lines", "payment"}
	case "lines[]":
		return []string{"sku", "quantity", "unitAmount"}
	case "payment":
		return []string{"customer", "method"}
	}
	return nil
}

// unwrap returns the message in an SNS notification, in an EventBridge event, or in an
// event in a notification. It returns any other body unchanged.
func unwrap(body string) ([]byte, error) {
	if err := checkSize(body); err != nil {
		return nil, err
	}
	raw := []byte(body)
	wrapper, err := wrapperOf(raw)
	if message := notificationMessage(wrapper); message != nil {
		raw = message
		wrapper, err = wrapperOf(raw)
	}
	if detail := eventDetail(wrapper); detail != nil {
		raw = detail
	}
	return raw, err
}

func checkSize(body string) error {
	if len(body) > MaxBody {
		return &BodyError{fmt.Sprintf("too large: %d bytes, want at most %d", len(body), MaxBody)}
	}
	return nil
}

// wrapperOf returns the fields of a notification or of an event, or none. A body without
// the marker of either is neither, and is not parsed.
func wrapperOf(raw []byte) (wrapper map[string]json.RawMessage, err error) {
	if !bytes.Contains(raw, []byte(`"Notification"`)) && !bytes.Contains(raw, []byte(`"detail-type"`)) {
		return wrapper, nil
	}
	if err := checkShape(raw, nil); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &wrapper); err != nil {
		return nil, bodyError(err)
	}
	// With fields of a message or of both wrappers, unwrapping would drop some of them
	// silently.
	fields := slices.Concat(orderFields(""), refundFields(""))
	ofMessage := slices.ContainsFunc(fields, func(name string) bool { return wrapper[name] != nil })
	if ofBoth := wrapper["Message"] != nil && wrapper["detail"] != nil; ofMessage || ofBoth {
		clear(wrapper)
	}
	return wrapper, nil
}

// notificationMessage returns the message of an SNS notification, or nil.
func notificationMessage(wrapper map[string]json.RawMessage) []byte {
	var text string
	if string(wrapper["Type"]) != `"Notification"` || json.Unmarshal(wrapper["Message"], &text) != nil {
		return nil
	}
	return []byte(text)
}

// eventDetail returns the detail of an EventBridge event, or nil.
func eventDetail(wrapper map[string]json.RawMessage) []byte {
	if wrapper["detail-type"] == nil {
		return nil
	}
	return wrapper["detail"]
}

// bodyError replaces an error of encoding/json, whose text may contain values.
func bodyError(err error) error {
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		return &BodyError{fmt.Sprintf("%s: want %s", wrongType.Field, jsonKind(wrongType.Type))}
	case errors.As(err, &syntax):
		return &BodyError{fmt.Sprintf("invalid JSON at byte %d", syntax.Offset)}
	}
	return &BodyError{"truncated JSON"}
}

// jsonKind returns the JSON type of a Go type of message, for an error.
func jsonKind(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[int64](), reflect.TypeFor[*int64]():
		return "an integer of at most 64 bits, without a fraction, an exponent or quotes"
	case reflect.TypeFor[string]():
		return "a string"
	case reflect.TypeFor[[]line](), reflect.TypeFor[line]():
		return "a list of lines"
	}
	return "an object"
}

// rule is one validator tag. The limits themselves are the domain's.
type rule struct {
	ok      func(validator.FieldLevel) bool
	want    string // the rule in words
	private bool   // the value may be personal or payment data and is never shown
}

func (r rule) holds(f validator.FieldLevel) bool { return r.ok(f) }

func rules() map[string]rule {
	text := func(valid func(string) bool) func(validator.FieldLevel) bool {
		return func(f validator.FieldLevel) bool { return valid(f.Field().String()) }
	}
	within := func(low, high int64) func(validator.FieldLevel) bool {
		return func(f validator.FieldLevel) bool { return low <= f.Field().Int() && f.Field().Int() <= high }
	}
	return map[string]rule{
		"new_order_id": {ok: text(order.ValidNewID), want: order.NewIDRule},
		"order_id":     {ok: text(order.ValidID), want: order.IDRule},
		"customer_id":  {ok: text(order.ValidCustomerID), want: order.CustomerIDRule, private: true},
		"currency":     {ok: text(order.ValidCurrency), want: order.CurrencyRule},
		"sku":          {ok: text(order.ValidSKU), want: order.SKURule},
		"reference":    {ok: text(order.ValidReference), want: order.ReferenceRule, private: true},
		"quantity":     {ok: within(1, order.MaxQuantity), want: order.QuantityRule()},
		"unit_amount":  {ok: within(0, order.MaxUnitAmount), want: order.UnitAmountRule()},
		"line_count": {
			ok: func(f validator.FieldLevel) bool {
				return 1 <= f.Field().Len() && f.Field().Len() <= order.MaxLines
			},
			want: lineCountRule(),
		},
		"refund_amount": {ok: within(1, refund.MaxAmount), want: refund.AmountRule()},
		"refund_reason": {ok: text(refund.ValidReason), want: refund.ReasonRule},
	}
}

func lineCountRule() string { return fmt.Sprintf("1 to %d lines", order.MaxLines) }

// jsonName makes the validator use the names of JSON in its errors.
func jsonName(f reflect.StructField) string { return f.Tag.Get("json") }

// invalid translates errors of the validator.
func (d *Decoder) invalid(err error) error {
	var found validator.ValidationErrors
	if !errors.As(err, &found) {
		return &BodyError{"validation failed"}
	}
	problems := make([]order.Problem, len(found))
	for i, f := range found {
		_, field, _ := strings.Cut(f.Namespace(), ".")
		problems[i] = order.Problem{Field: field, Want: "a number: missing field"}
		if r, known := d.rules[f.Tag()]; known {
			problems[i].Want = r.want
			problems[i].Value = quoteValue(r, f.Value())
		}
	}
	return &order.InvalidError{Of: "order", Problems: problems}
}

// quoteValue returns what an error may contain of a value.
func quoteValue(r rule, value any) string {
	switch v := value.(type) {
	case string:
		if !r.private {
			return order.Quote(v)
		}
	case int64:
		return order.QuoteInt(v)
	case []line:
		return strconv.Itoa(len(v))
	}
	return ""
}
