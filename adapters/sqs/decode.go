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
)

// MaxBody is the largest message body that is read, in bytes. The largest order by count is a third of it.
const MaxBody = 256 << 10

// message is an order on the wire. Numbers are pointers because a missing price is not a price of zero.
type message struct {
	OrderID    string  `json:"orderId"    validate:"order_id"`
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

// BodyError is a message body that is not one JSON object of an order's shape. Problem repeats no value, because what stands in the
// wrong place may be anything, also a card number. It repeats names of fields if they are order.Printable: they may be as misplaced.
type BodyError struct{ Problem string }

// Error repeats no value.
func (e *BodyError) Error() string { return "message body: " + e.Problem }

// Decoder makes orders out of message bodies. Make one and share it: it is safe for concurrent use.
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
			panic(fmt.Sprintf("validator rule %q: %v", tag, err)) // a misspelt tag: no message can be read at all
		}
	}
	return d
}

// Decode reads one message body, including one wrapped by EventBridge or SNS. Its errors are *BodyError and
// *order.InvalidError. Both name fields and repeat of the body no more than order.Quote shows, and of the fields for personal
// and payment data nothing. Every later try fails the same.
func (d *Decoder) Decode(body string) (order.Order, error) {
	if len(body) > MaxBody {
		return order.Order{}, &BodyError{fmt.Sprintf("%d bytes, want at most %d", len(body), MaxBody)}
	}
	raw, err := unwrap(body)
	if err != nil {
		return order.Order{}, err
	}
	if err := checkShape(raw, orderFields); err != nil {
		return order.Order{}, err
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return order.Order{}, bodyError(err)
	}
	if err := d.validate.Struct(m); err != nil {
		return order.Order{}, d.explain(err)
	}
	return order.New(m.draft())
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

// orderFields lists the names that an object may have, by where it stands.
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

// unwrap returns the order inside a notification of SNS, inside an event of EventBridge, or inside an event that a rule of
// EventBridge sent on to an SNS topic; or else body itself.
func unwrap(body string) ([]byte, error) {
	raw, err := unwrapLayer([]byte(body), `"Notification"`, notified)
	if err != nil {
		return nil, err
	}
	return unwrapLayer(raw, `"detail-type"`, detailed)
}

// unwrapLayer returns what inside finds, or raw itself. Sign is what every wrapper of the kind has, so that others cost nothing.
func unwrapLayer(raw []byte, sign string, inside func(map[string]json.RawMessage) []byte) ([]byte, error) {
	if !bytes.Contains(raw, []byte(sign)) {
		return raw, nil
	}
	if err := checkShape(raw, nil); err != nil {
		return nil, err
	}
	var wrapper map[string]json.RawMessage
	if err := json.Unmarshal(raw, &wrapper); err != nil {
		return nil, bodyError(err)
	}
	ofOrder := slices.ContainsFunc(orderFields(""), func(name string) bool { return wrapper[name] != nil })
	if ofBoth := wrapper["Message"] != nil && wrapper["detail"] != nil; ofOrder || ofBoth {
		return raw, nil // an order with too many fields: unwrapping would drop some in silence
	}
	if inner := inside(wrapper); inner != nil {
		return inner, nil
	}
	return raw, nil
}

// notified is the message of an SNS notification.
func notified(wrapper map[string]json.RawMessage) []byte {
	var text string
	if string(wrapper["Type"]) != `"Notification"` || json.Unmarshal(wrapper["Message"], &text) != nil {
		return nil
	}
	return []byte(text)
}

// detailed is the detail of an EventBridge event.
func detailed(wrapper map[string]json.RawMessage) []byte {
	if wrapper["detail-type"] == nil {
		return nil
	}
	return wrapper["detail"]
}

// bodyError translates encoding/json's errors, whose own texts may quote values.
func bodyError(err error) error {
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		return &BodyError{fmt.Sprintf("%s: want %s", wrongType.Field, jsonKind(wrongType.Type))}
	case errors.As(err, &syntax):
		return &BodyError{fmt.Sprintf("not JSON: byte %d is not what JSON allows there", syntax.Offset)}
	}
	return &BodyError{"not JSON: it ends too early"}
}

// jsonKind is what a field of message has to be in JSON.
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

// rule is one validator tag: what it accepts, and that in words. The limits themselves are the domain's.
type rule struct {
	ok      func(validator.FieldLevel) bool
	want    string
	private bool // the value may be personal or payment data and is not repeated
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
		"order_id":    {ok: text(order.ValidID), want: order.IDRule},
		"customer_id": {ok: text(order.ValidCustomerID), want: order.CustomerIDRule, private: true},
		"currency":    {ok: text(order.ValidCurrency), want: order.CurrencyRule},
		"sku":         {ok: text(order.ValidSKU), want: order.SKURule},
		"reference":   {ok: text(order.ValidReference), want: order.ReferenceRule, private: true},
		"quantity":    {ok: within(1, order.MaxQuantity), want: order.QuantityRule()},
		"unit_amount": {ok: within(0, order.MaxUnitAmount), want: order.UnitAmountRule()},
		"line_count": {
			ok:   func(f validator.FieldLevel) bool { return 1 <= f.Field().Len() && f.Field().Len() <= order.MaxLines },
			want: fmt.Sprintf("1 to %d lines", order.MaxLines),
		},
	}
}

// jsonName makes the validator speak of fields as the message does.
func jsonName(f reflect.StructField) string { return f.Tag.Get("json") }

// explain turns the validator's findings into the domain's problems.
func (d *Decoder) explain(err error) error {
	var found validator.ValidationErrors
	if !errors.As(err, &found) {
		return &BodyError{"it cannot be validated"}
	}
	problems := make([]order.Problem, len(found))
	for i, f := range found {
		_, field, _ := strings.Cut(f.Namespace(), ".")
		problems[i] = order.Problem{Field: field, Want: "a value: it is missing"}
		if r, known := d.rules[f.Tag()]; known {
			problems[i].Want = r.want
			problems[i].Value = shown(r, f.Value())
		}
	}
	return &order.InvalidError{Problems: problems}
}

func shown(r rule, value any) string {
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
