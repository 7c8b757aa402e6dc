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

// UnmarshalText refuses what is no such URL, for example a queue's name where its URL should be.
func (a *URL) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%q is no http or https URL", text)
	}
	*a = URL(text)
	return nil
}

// Error tells everything that is wrong with an environment, so that one deployment finds it all.
type Error struct {
	// Problems are sentences, one for each variable in the order of the struct. They show no secret.
	Problems []string
}

// Error is one line for each problem.
func (e *Error) Error() string {
	return "environment:\n  " + strings.Join(e.Problems, "\n  ")
}

// Read fills a struct from variables of the form NAME=value, by the tags of github.com/caarlos0/env: `env:"NAME"` with
// the options required and notEmpty, envDefault, envPrefix. A tag `want:"..."` says in the error what a variable should hold.
// A method Problems() []string of T adds what one variable alone cannot show, in the form "NAME, NAME: want ...".
// The error is an [*Error]. Values are shown in it, except those of a [Secret] or of a type made of one.
//
//nolint:ireturn // T is the caller's struct
func Read[T any](environ []string) (T, error) {
	variables := env.ToMap(environ)
	var config, none T
	err := env.ParseWithOptions(&config, env.Options{Environment: variables})
	var problems []string
	if err != nil {
		problems = explain(reflect.TypeFor[T](), variables, "")
		if len(problems) == 0 { // the library's own words could hold a value
			problems = []string{fmt.Sprintf("%T has a field that can't be read from variables", none)}
		}
	}
	if whole, ok := any(config).(interface{ Problems() []string }); ok {
		problems = append(problems, unsaid(whole.Problems(), problems)...)
	}
	if len(problems) > 0 {
		return none, &Error{problems}
	}
	return config, nil
}

// unsaid leaves out what follows only from a variable that is a problem by itself.
func unsaid(whole, single []string) []string {
	return slices.DeleteFunc(whole, func(problem string) bool {
		names, _, _ := strings.Cut(problem, ":")
		return slices.ContainsFunc(single, func(s string) bool {
			name, _, _ := strings.Cut(s, ":")
			return slices.Contains(strings.Split(names, ", "), name)
		})
	})
}

// explain parses each variable again, in a struct of its own: the library's errors name fields, print values, and leave
// open which variable is meant where two nested structs have the same field.
func explain(config reflect.Type, variables map[string]string, prefix string) []string {
	var problems []string
	for field := range config.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case !field.IsExported():
		case name != "":
			problems = append(problems, explainOne(field, variables, prefix, prefix+name)...)
		case field.Type.Kind() == reflect.Struct:
			problems = append(problems, explain(field.Type, variables, prefix+field.Tag.Get("envPrefix"))...)
		}
	}
	return problems
}

func explainOne(field reflect.StructField, variables map[string]string, prefix, key string) []string {
	alone := reflect.New(reflect.StructOf([]reflect.StructField{field}))
	err := env.ParseWithOptions(alone.Interface(), env.Options{Environment: variables, Prefix: prefix})
	if err == nil {
		return nil
	}
	got := "missing"
	switch value, set := variables[key]; {
	case !set:
	case errors.Is(err, env.EmptyVarError{}):
		got = "empty"
	case hides(field.Type):
		got = redacted
	default:
		got = fmt.Sprintf("%q", value)
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", key, wanted(field), got)}
}

// wanted says what a variable should hold.
func wanted(field reflect.StructField) string {
	if want := field.Tag.Get("want"); want != "" {
		return want
	}
	switch reflect.New(field.Type).Interface().(type) {
	case *time.Duration:
		return `a duration such as "30s"`
	case *url.URL, *URL:
		return "a URL"
	case *Secret:
		return "a secret"
	case *string:
		return "a text"
	case *bool:
		return "true or false"
	case *int, *int8, *int16, *int32, *int64, *uint, *uint8, *uint16, *uint32, *uint64:
		return "a whole number"
	default:
		return "a value of type " + field.Type.String()
	}
}

// hides reports whether values of a type hold secrets.
func hides(t reflect.Type) bool {
	if t == reflect.TypeFor[Secret]() {
		return true
	}
	switch t.Kind() { //nolint:exhaustive // the other kinds hold nothing
	case reflect.Array, reflect.Slice, reflect.Pointer:
		return hides(t.Elem())
	case reflect.Map:
		return hides(t.Key()) || hides(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if hides(field.Type) {
				return true
			}
		}
	}
	return false
}
