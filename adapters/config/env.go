// Package config reads a program's environment, hides its secrets, and configures its
// HTTP and AWS clients. It refuses to know whether the program is a Lambda function,
// which services it calls and why.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/caarlos0/env/v11"
)

// URL is the http or https URL of a service.
type URL string

// UnmarshalText returns an error unless text is an http or https URL with a host. It
// refuses a queue's name, for example, where the queue's URL should be.
func (u *URL) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return fmt.Errorf("not a URL: %q: want http:// or https:// and a host", text)
	}
	*u = URL(text)
	return nil
}

// Error reports everything that is wrong with an environment, so that one deployment
// shows it all: one problem for each invalid variable, in the order of the struct's
// fields, such as `TIMEOUT: want a duration such as "30s", got "fast"`. It shows no
// secret.
type Error struct{ Problems []string }

// Error returns one line for each problem.
func (e *Error) Error() string {
	return "invalid environment:\n  " + strings.Join(e.Problems, "\n  ")
}

// Read returns a T with its fields set from variables of the form NAME=value, by the tags
// of github.com/caarlos0/env: `env:"NAME"` with the options required and notEmpty, and
// envDefault. A tag `want:"..."` describes a valid value in errors. A method Problems()
// []string of T reports what no single variable shows, in the form "NAME, NAME: want
// ...".
//
// The error is an [*Error]. It shows no value of a composite type, which may hold a
// [Secret]. What looks like one of Stripe's keys is refused in a variable of any other
// type.
//
//nolint:ireturn // T is the caller's struct
func Read[T any](environ []string) (T, error) {
	variables := env.ToMap(environ)
	var config, zero T
	err := env.ParseWithOptions(&config, env.Options{Environment: variables})
	var problems []string
	if err != nil || slices.ContainsFunc(environ, holdsKey) {
		problems = invalidFields(reflect.TypeFor[T](), variables)
		if err != nil && len(problems) == 0 { // the library's own error could contain a secret
			problems = []string{fmt.Sprintf("%T: a field cannot be read from variables", zero)}
		}
	}
	if checked, ok := any(config).(interface{ Problems() []string }); ok {
		problems = append(problems, withoutConsequences(checked.Problems(), problems)...)
	}
	if len(problems) > 0 {
		return zero, &Error{problems}
	}
	return config, nil
}

// withoutConsequences returns the problems of several variables, without those that name
// a variable which is invalid by itself.
func withoutConsequences(several, single []string) []string {
	return slices.DeleteFunc(several, func(problem string) bool {
		names, _, _ := strings.Cut(problem, ":")
		return slices.ContainsFunc(single, func(s string) bool {
			name, _, _ := strings.Cut(s, ":")
			return slices.Contains(strings.Split(names, ", "), name)
		})
	})
}

// invalidFields parses each variable again, in a struct of its own. The library's errors
// name fields instead of variables, and show values.
func invalidFields(config reflect.Type, variables map[string]string) []string {
	var problems []string
	for field := range config.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case !field.IsExported():
		case name != "":
			problems = append(problems, invalidField(field, variables, name)...)
		case field.Type.Kind() == reflect.Struct:
			problems = append(problems, invalidFields(field.Type, variables)...)
		}
	}
	return problems
}

func invalidField(field reflect.StructField, variables map[string]string, name string) []string {
	alone := reflect.New(reflect.StructOf([]reflect.StructField{field}))
	err := env.ParseWithOptions(alone.Interface(), env.Options{Environment: variables})
	value, set := variables[name]
	misplaced := holdsKey(value) && !isComposite(field.Type.Kind())
	if err == nil && !misplaced {
		return nil
	}
	got := "missing"
	switch {
	case !set:
	case misplaced:
		got = "what looks like a key: " + redacted
	case errors.Is(err, env.EmptyVarError{}):
		got = "empty"
	case isComposite(field.Type.Kind()):
		got = redacted
	default:
		got = fmt.Sprintf("%q", value)
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", name, describe(field), got)}
}

// holdsKey reports whether a text holds a word that starts like one of Stripe's keys or
// signing secrets. Such a value belongs into a [Secret]: anything else may be printed, by
// this package or in an error of a service.
func holdsKey(text string) bool {
	word := func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return slices.ContainsFunc(strings.FieldsFunc(text, word), func(s string) bool {
		return slices.ContainsFunc([]string{
			"sk_test_", "sk_live_", "sk_org_", "rk_test_", "rk_live_", "whsec_",
		}, func(mark string) bool { return strings.HasPrefix(s, mark) })
	})
}

func isComposite(k reflect.Kind) bool {
	switch k { //nolint:exhaustive // values of the other kinds contain no other value
	case reflect.Struct, reflect.Pointer, reflect.Interface, reflect.Array, reflect.Slice, reflect.Map:
		return true
	}
	return false
}

func describe(field reflect.StructField) string {
	if want := field.Tag.Get("want"); want != "" {
		return want
	}
	switch reflect.Zero(field.Type).Interface().(type) {
	case time.Duration:
		return `a duration such as "30s"`
	case URL:
		return "a URL"
	case Secret:
		return "a secret"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case int:
		return "an integer"
	}
	return "a value of type " + field.Type.String()
}
