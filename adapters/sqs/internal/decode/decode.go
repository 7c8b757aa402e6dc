// Package decode reads one type of message: its JSON, and what a draft of the domain
// cannot show, such as whether a price is there. Which values are valid is the domain's
// to say.
package decode

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// Message is a message in JSON, a struct, for a T of the domain. Its tags "validate" name
// the fields that must be there.
type Message[T any] interface {
	// Kind returns the field "type", or what a message without one is.
	Kind() string
	// Domain returns the T, or the domain's error of it, in which a missing number is one
	// that is not valid.
	Domain() (T, error)
}

// Decoder decodes and validates messages. It is safe for concurrent use, and expensive to
// create, so share one.
type Decoder[M Message[T], T any] struct {
	json     strictjson.Decoder[M]
	validate *validator.Validate
	kind     string
	other    func(kind string) error
}

// New returns a decoder of messages of a kind. other returns the error of a message of
// another kind.
func New[M Message[T], T any](kind string, other func(kind string) error) *Decoder[M, T] {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("json") })
	return &Decoder[M, T]{json: strictjson.New[M](), validate: v, kind: kind, other: other}
}

// Decode decodes a message. Its errors are those of Read and Of. EventBridge or SNS may
// have wrapped the message.
//
//nolint:ireturn // T is a struct
func (d *Decoder[M, T]) Decode(body string) (none T, _ error) {
	raw := []byte(body)
	if err := sqs.Unwrap(&raw); err != nil {
		return none, err
	}
	m, err := d.Read(raw)
	if err != nil {
		return none, err
	}
	return d.Of(m)
}

// Read reads the JSON of a message that is not wrapped. It returns a body error, which
// says what is wrong with the JSON. It names fields, and contains no more of the body
// than order.Quote allows, and nothing of fields with personal or payment data.
//
//nolint:ireturn // M is a struct
func (d *Decoder[M, T]) Read(raw []byte) (M, error) {
	m, err := d.json.Decode(raw)
	kind := m.Kind()
	if err != nil { // of an unknown field, for example, that another kind has
		var none M
		if text := strictjson.Member(raw, "type"); text != "" {
			kind = text
		} else if kind = none.Kind(); errors.Is(err, strictjson.ErrSyntax) {
			kind = d.kind
		}
	}
	if kind != d.kind {
		err = d.other(kind)
	}
	return m, err
}

// Of returns what a message asks for, or an *order.InvalidError with every field that is
// missing or not valid.
//
//nolint:ireturn // T is a struct
func (d *Decoder[M, T]) Of(m M) (T, error) {
	result, err := m.Domain()
	if err = d.missing(m, err); err != nil {
		result = *new(T)
	}
	return result, err
}

// missing returns the domain's error with the fields that the message lacks.
func (d *Decoder[M, T]) missing(m M, err error) error {
	var missing validator.ValidationErrors
	if found := d.validate.Struct(m); found == nil {
		return err
	} else if !errors.As(found, &missing) {
		return fmt.Errorf("validate %s: %w", d.kind, found)
	}
	var all []order.Problem
	for _, f := range missing {
		_, field, _ := strings.Cut(f.Namespace(), ".")
		want := "a number: missing field"
		if f.Tag() == "min" {
			want = "at least one character, or no field"
		}
		all = append(all, order.Problem{Field: field, Want: want})
	}
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		all = append(all, slices.DeleteFunc(invalid.Problems, func(p order.Problem) bool {
			return slices.ContainsFunc(all, func(m order.Problem) bool { return m.Field == p.Field })
		})...)
	}
	return &order.InvalidError{Of: d.kind, Problems: all}
}

// Number returns a number, or one that is not valid if it is missing.
func Number(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
