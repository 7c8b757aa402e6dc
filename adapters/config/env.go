// Package config reads a program's environment, hides its secrets, and configures its
// HTTP and AWS clients. It refuses to know whether the program is a Lambda function,
// which services it calls and why.
package config

import (
	"cmp"
	"encoding"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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

// Read returns a T whose fields, and those of structs in it, have the values of variables
// of the form NAME=value. A tag `env:"NAME"` names a field's variable; with the option
// notEmpty it must be set, and `envDefault` is the value of one that is missing or empty.
// A tag `want:"..."` describes a valid value in errors. A method Problems() []string of T
// reports what no single variable shows, in the form "NAME, NAME: want ...".
//
// The error is an [*Error]. It shows no value of a struct type, which may hold a
// [Secret]. What looks like one of Stripe's keys is refused in a variable of any other
// type.
//
//nolint:ireturn // T is the caller's struct
func Read[T any](environ []string) (T, error) {
	var config, zero T
	r := reader{variables: map[string]string{}}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		r.variables[name] = value
	}
	r.read(reflect.ValueOf(&config).Elem())
	problems := r.problems
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

// reader reads variables, and collects what is wrong with each.
type reader struct {
	variables map[string]string
	problems  []string
}

// read sets the fields of a struct, and of structs in it.
func (r *reader) read(config reflect.Value) {
	for field, value := range config.Fields() {
		if name, option, _ := strings.Cut(field.Tag.Get("env"), ","); name != "" {
			r.set(value, field, name, option == "notEmpty")
		} else if field.Type.Kind() == reflect.Struct && field.IsExported() {
			r.read(value)
		}
	}
}

func (r *reader) set(value reflect.Value, field reflect.StructField, name string, required bool) {
	given, set := r.variables[name]
	text, isStruct := cmp.Or(given, field.Tag.Get("envDefault")), field.Type.Kind() == reflect.Struct
	var got string
	switch {
	case text == "" && !required:
		return
	case !set && text == "":
		got = "missing"
	case text == "":
		got = "empty"
	case key.MatchString(text) && !isStruct:
		got = "what looks like a key: " + redacted
	case parse(value, text) == nil:
		return
	case isStruct:
		got = redacted
	default:
		got = strconv.Quote(text)
	}
	want := cmp.Or(field.Tag.Get("want"), wants[field.Type], "a value of type "+field.Type.String())
	r.problems = append(r.problems, fmt.Sprintf("%s: want %s, got %s", name, want, got))
}

// parse sets a value to what a text says. It panics if no environment has its type.
func parse(value reflect.Value, text string) (err error) {
	switch to := value.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		return to.UnmarshalText([]byte(text))
	case *time.Duration:
		*to, err = time.ParseDuration(text)
	case *int:
		*to, err = strconv.Atoi(text)
	case *bool:
		*to, err = strconv.ParseBool(text)
	default:
		value.SetString(text)
	}
	return err
}

// key matches a word that starts like one of Stripe's keys or signing secrets. Such a
// value belongs into a [Secret]: anything else may be printed, by this package or in an
// error of a service.
var key = regexp.MustCompile(`\b(sk_(test|live|org)|rk_(test|live)|whsec)_`)

// wants describes valid values of types whose fields need no description of their own.
var wants = map[reflect.Type]string{ //nolint:gochecknoglobals // a constant
	reflect.TypeFor[time.Duration](): `a duration such as "30s"`,
	reflect.TypeFor[URL]():           "a URL",
	reflect.TypeFor[Secret]():        "a secret",
	reflect.TypeFor[string]():        "a string",
	reflect.TypeFor[bool]():          "true or false",
	reflect.TypeFor[int]():           "an integer",
}
