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

// checkShape reports whether raw is exactly one JSON object in which no object names a field twice, not even in other
// case, and, where fields is given, none that it does not list. encoding/json would keep the last of two and ignore
// the unknown: a discount that is dropped in silence is a wrong charge.
func checkShape(raw []byte, fields func(path string) []string) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return bodyError(err)
	}
	end := dec.InputOffset()
	if len(bytes.Trim(raw[end:], blanks)) > 0 {
		return &BodyError{fmt.Sprintf("something stands behind the JSON object, which ends at byte %d", end)}
	}
	if value[0] != '{' {
		return &BodyError{"want one JSON object"} // also for null, which encoding/json would take for an order without fields
	}
	w := walker{rest: value, fields: fields}
	return w.value("", 0)
}

// maxDepth bounds nesting, so that a body of brackets costs no more than its length. An order has three levels, an
// order in an event four; what a notification carries is a text, and is looked at by itself.
const maxDepth = 16

const blanks = " \t\r\n"

// walker visits every object of a JSON text that encoding/json found to be valid, so it looks for no mistakes.
// It is here because json.Decoder's Token makes and drops an error at every token, which cost more than all else.
// Paths look like "lines[]" and "payment".
type walker struct {
	rest   []byte
	fields func(path string) []string
}

// next is the first byte of the next name, value or closing bracket.
func (w *walker) next() byte {
	w.rest = bytes.TrimLeft(w.rest, blanks+",:")
	return w.rest[0]
}

func (w *walker) value(path string, depth int) error {
	if depth > maxDepth {
		return &BodyError{fmt.Sprintf("nested more than %d deep", maxDepth)}
	}
	switch w.next() {
	case '{':
		return w.object(path, depth+1)
	case '[':
		return w.list(path+"[]", depth+1)
	case '"':
		w.text()
	default: // a number, true, false or null
		w.rest = w.rest[bytes.IndexAny(w.rest, blanks+",]}"):]
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
		if err := json.Unmarshal(w.text(), &name); err != nil {
			return bodyError(err)
		}
		folded := fold(name)
		if seen[folded] {
			return &BodyError{fmt.Sprintf("field %s stands twice in one object", shownName(path, name))}
		}
		seen[folded] = true
		if err := w.known(path, name); err != nil {
			return err
		}
		if err := w.value(join(path, name), depth); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

// text reads a string with its quotes.
func (w *walker) text() []byte {
	end := 1
	for ; w.rest[end] != '"'; end++ {
		if w.rest[end] == '\\' {
			end++ // what it escapes may be a quote
		}
	}
	s := w.rest[:end+1]
	w.rest = w.rest[end+1:]
	return s
}

func (w *walker) known(path, name string) error {
	if w.fields == nil {
		return nil
	}
	known := w.fields(path)
	if slices.Contains(known, name) {
		return nil
	}
	if i := slices.IndexFunc(known, func(k string) bool { return fold(k) == fold(name) }); i >= 0 {
		return &BodyError{fmt.Sprintf("field %s: write it %q", shownName(path, name), known[i])}
	}
	return &BodyError{fmt.Sprintf("unknown field %s: an order has none of that name", shownName(path, name))}
}

// fold maps names that encoding/json takes for the same to one, also those with 'ſ' for 's' and the Kelvin sign for 'k'.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// shownName is a field for messages to people. Names come from strangers too, and may be a customer's.
func shownName(path, name string) string {
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
