package sqs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	return w.value(0)
}

// maxDepth bounds nesting, so that a body of brackets costs no more than its length. An
// order has three levels, an order in an event four. The message of a notification is a
// string, checked by itself.
const maxDepth = 16

const whitespace = " \t\r\n"

// walker visits every object of a JSON text that encoding/json has accepted, so it
// reports no syntax errors. json.Decoder.Token would do as well, but allocates an error
// for every token, which cost more than all other work.
type walker struct {
	rest   []byte
	fields func(path string) []string
	// names lead to the value: a field's name, or listMark for an element of a list. A path
	// joined for every field would cost the length of the body for each of them.
	names []string
}

const listMark = "[]"

// path returns where the walker is, such as "lines[]" or "payment".
func (w *walker) path() string {
	return strings.TrimPrefix(strings.ReplaceAll("."+strings.Join(w.names, "."), "."+listMark, listMark), ".")
}

// next returns the first byte of the next name, value or closing bracket.
func (w *walker) next() byte {
	w.rest = bytes.TrimLeft(w.rest, whitespace+",:")
	return w.rest[0]
}

func (w *walker) value(depth int) error {
	if depth > maxDepth {
		return &BodyError{fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	switch w.next() {
	case '{':
		return w.object(depth + 1)
	case '[':
		return w.list(depth + 1)
	case '"':
		w.str()
	default: // a number, true, false or null
		w.rest = w.rest[bytes.IndexAny(w.rest, whitespace+",]}"):]
	}
	return nil
}

// inside visits the value of a field, or an element of a list.
func (w *walker) inside(name string, depth int) error {
	w.names = append(w.names, name)
	err := w.value(depth)
	w.names = w.names[:len(w.names)-1]
	return err
}

func (w *walker) list(depth int) error {
	w.rest = w.rest[1:]
	for n := 1; w.next() != ']'; n++ {
		if n > maxListed && w.fields != nil {
			return tooManyLines()
		}
		if err := w.inside(listMark, depth); err != nil {
			return err
		}
	}
	w.rest = w.rest[1:]
	return nil
}

// maxListed is how many lines of a body are read. encoding/json allocates a line, and an
// error, for each element of two bytes.
const maxListed = 10 * order.MaxLines

// tooManyLines is an error about lines, because no other field is a list.
func tooManyLines() error {
	p := order.Problem{Field: "lines", Value: fmt.Sprintf("more than %d", maxListed), Want: lineCountRule()}
	return &order.InvalidError{Of: "order", Problems: []order.Problem{p}}
}

func (w *walker) object(depth int) error {
	w.rest = w.rest[1:]
	var known []string
	if w.fields != nil {
		known = w.fields(w.path())
	}
	seen := map[string]bool{}
	for w.next() != '}' {
		name, err := unquote(w.str())
		if err != nil {
			return err
		}
		folded := fold(name)
		if seen[folded] {
			return &BodyError{fmt.Sprintf("duplicate field %s", quoteName(w.path(), name))}
		}
		seen[folded] = true
		if err := w.checkName(known, name); err != nil {
			return err
		}
		if err := w.inside(name, depth); err != nil {
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

// unquote returns the text of a JSON string. A plain one costs its length; encoding/json
// allocates a decoder.
func unquote(s []byte) (name string, err error) {
	if !bytes.ContainsFunc(s, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) {
		return string(s[1 : len(s)-1]), nil
	}
	if err := json.Unmarshal(s, &name); err != nil {
		return "", bodyError(err)
	}
	return name, nil
}

// checkName returns an error for a field that an order does not have.
func (w *walker) checkName(known []string, name string) error {
	if w.fields == nil || slices.Contains(known, name) {
		return nil
	}
	if i := slices.IndexFunc(known, func(k string) bool { return fold(k) == fold(name) }); i >= 0 {
		return &BodyError{fmt.Sprintf("unknown field %s: want %q", quoteName(w.path(), name), known[i])}
	}
	return &BodyError{fmt.Sprintf("unknown field %s", quoteName(w.path(), name))}
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
