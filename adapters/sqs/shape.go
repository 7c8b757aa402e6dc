package sqs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orderonce/domain/order"
)

// checkShape returns an error unless raw is exactly one JSON object without duplicate
// fields, also in other case, and, if fields is not nil, without unknown fields.
// encoding/json keeps the last of two fields and ignores unknown ones, so a discount
// would be dropped silently and the charge be wrong.
func checkShape(raw []byte, fields func(path string) []string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return bodyError(err)
	}
	end := dec.InputOffset()
	if len(bytes.Trim(raw[end:], whitespace)) > 0 {
		return &BodyError{fmt.Sprintf("trailing data after the JSON object at byte %d", end)}
	}
	if value[0] != '{' {
		return &BodyError{"not a JSON object"} // also null, which encoding/json accepts as an empty order
	}
	w := walker{rest: value, fields: fields}
	return w.value("", 0)
}

// maxDepth bounds nesting, so that a body of brackets costs no more than its length. An
// order has three levels, an order in an event four. The message of a notification is a
// string, checked by itself.
const maxDepth = 16

const whitespace = " \t\r\n"

// walker visits every object of a JSON text that encoding/json has accepted, so it
// reports no syntax errors. json.Decoder.Token would do as well, but allocates an error
// for every token, which cost more than all other work. Paths look like "lines[]" and
// "payment".
type walker struct {
	rest   []byte
	fields func(path string) []string
}

// next returns the first byte of the next name, value or closing bracket.
func (w *walker) next() byte {
	w.rest = bytes.TrimLeft(w.rest, whitespace+",:")
	return w.rest[0]
}

func (w *walker) value(path string, depth int) error {
	if depth > maxDepth {
		return &BodyError{fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	switch w.next() {
	case '{':
		return w.object(path, depth+1)
	case '[':
		return w.list(path+"[]", depth+1)
	case '"':
		w.str()
	default: // a number, true, false or null
		w.rest = w.rest[bytes.IndexAny(w.rest, whitespace+",]}"):]
	}
	return nil
}

func (w *walker) list(path string, depth int) error {
	w.rest = w.rest[1:]
	for w.next() != ']' {
		if err := w.value(path, depth); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

func (w *walker) object(path string, depth int) error {
	w.rest = w.rest[1:]
	seen := map[string]bool{}
	for w.next() != '}' {
		var name string
		if err := json.Unmarshal(w.str(), &name); err != nil {
			return bodyError(err)
		}
		folded := fold(name)
		if seen[folded] {
			return &BodyError{fmt.Sprintf("duplicate field %s", quoteName(path, name))}
		}
		seen[folded] = true
		if err := w.checkName(path, name); err != nil {
			return err
		}
		if err := w.value(join(path, name), depth); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

// str reads a string, and returns it with its quotes.
func (w *walker) str() []byte {
	end := 1
	for ; w.rest[end] != '"'; end++ {
		if w.rest[end] == '\\' {
			end++ // the escaped character may be a quote
		}
	}
	s := w.rest[:end+1]
	w.rest = w.rest[end+1:]
	return s
}

// checkName returns an error for a field that an order does not have.
func (w *walker) checkName(path, name string) error {
	if w.fields == nil {
		return nil
	}
	known := w.fields(path)
	if slices.Contains(known, name) {
		return nil
	}
	if i := slices.IndexFunc(known, func(k string) bool { return fold(k) == fold(name) }); i >= 0 {
		return &BodyError{fmt.Sprintf("unknown field %s: want %q", quoteName(path, name), known[i])}
	}
	return &BodyError{fmt.Sprintf("unknown field %s", quoteName(path, name))}
}

// fold maps all names that encoding/json treats as equal to one name, also those with 'ſ'
// for 's' or the Kelvin sign for 'k'.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// quoteName returns a field's path for an error. A producer may send anything as a name,
// also a customer's, so only plain names are shown.
func quoteName(path, name string) string {
	full := join(path, name)
	switch plain := func(path string) bool { return order.Printable(strings.ReplaceAll(path, "[]", "")) }; {
	case plain(full):
		return strconv.Quote(full)
	case plain(path):
		return join(path, order.Quote(name))
	}
	return order.Quote(name)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
