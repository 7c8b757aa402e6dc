// Package validate checks the wire format of messages: what is lost in a draft of the
// domain, such as whether a price is there. Which values are valid is the domain's to
// say.
package validate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"

	"orderonce/domain/order"
)

// Validator checks the tags "validate" of structs. It is safe for concurrent use, and
// expensive to create, so share one.
type Validator struct{ validate *validator.Validate }

// New returns a validator, whose errors have the names of JSON.
func New() Validator {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string { return f.Tag.Get("json") })
	return Validator{v}
}

// Message returns err with the fields that m lacks, a struct. err is the domain's error
// of m, in which a missing number is one that is not valid.
func (v Validator) Message(of string, m any, err error) error {
	var missing validator.ValidationErrors
	if found := v.validate.Struct(m); found == nil {
		return err
	} else if !errors.As(found, &missing) {
		return fmt.Errorf("validate %s: %w", of, found)
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
	return &order.InvalidError{Of: of, Problems: all}
}
