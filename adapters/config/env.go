package config

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

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
// [Secret].
//
//nolint:ireturn // T is the caller's struct
func Read[T any](environ []string) (T, error) {
	variables := env.ToMap(environ)
	var config, zero T
	err := env.ParseWithOptions(&config, env.Options{Environment: variables})
	var problems []string
	if err != nil {
		problems = invalidFields(reflect.TypeFor[T](), variables)
		if len(problems) == 0 { // the library's own error could contain a secret
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
	if err == nil {
		return nil
	}
	got := "missing"
	switch value, set := variables[name]; {
	case !set:
	case errors.Is(err, env.EmptyVarError{}):
		got = "empty"
	case isComposite(field.Type.Kind()):
		got = redacted
	default:
		got = fmt.Sprintf("%q", value)
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", name, describe(field), got)}
}

func isComposite(k reflect.Kind) bool {
	switch k { //nolint:exhaustive // values of the other kinds contain no other value
	case reflect.Struct, reflect.Pointer, reflect.Interface, reflect.Array, reflect.Slice, reflect.Map:
		return true
	}
	return false
}

// describe returns what a valid value of the field is.
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
