// Package strictjson reads the body of a message or of a request: one JSON object, in
// one pass. It refuses duplicate and unknown fields, trailing data, invalid UTF-8, and a
// body that is too large, too deep or has too long a list. It does not know which values
// a field may have.
//
// encoding/json keeps the last of two fields, matches names in any case and ignores
// unknown ones, so a discount would be dropped silently and the charge be wrong.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxBody is the largest body that is read, in bytes. An order with all its lines takes
// a third of it.
const MaxBody = 256 << 10

const (
	// maxDepth bounds nesting. An order has three levels, an order in an event four.
	maxDepth = 16
	// maxElements bounds lists, because an element of two bytes may take a hundred in
	// memory.
	maxElements = 1000
)

// Decoder reads objects into structs of type T, by the names in their json tags. Fields
// may be of type string, int, int64, a struct, a slice of these, or a pointer to one of
// these, which a missing field leaves nil. null is read like a missing field, unless the
// field has the tag null:"refused". It is safe for concurrent use.
type Decoder[T any] struct {
	shape *shape
}

// New returns a decoder.
func New[T any]() Decoder[T] { return Decoder[T]{shapeOf(reflect.TypeFor[T]())} }

// Decode reads a body. It returns an *Error if the body is not such an object.
//
//nolint:ireturn // T is a struct
func (d Decoder[T]) Decode(body []byte) (T, error) {
	var to T
	err := readObject(body, false, func(r *reader) error {
		return r.object(reflect.ValueOf(&to).Elem(), d.shape)
	})
	return to, err
}

// Members returns the values of an object by name, as they are written in the body. After
// an error it returns those before it.
func Members(body []byte) (map[string][]byte, error) {
	members := map[string][]byte{}
	err := readObject(body, true, func(r *reader) error {
		return r.members(func(name []byte) error {
			value, err := r.skip()
			members[string(name)] = value
			return err
		})
	})
	return members, err
}

// Member returns the text of one field of an object, or "" if the object has no such
// field before its first error, or if it is not a text.
func Member(body []byte, name string) string {
	members, _ := Members(body)
	return Text(members[name])
}

// Text returns the text of a JSON string, or "" of any other value.
func Text(value []byte) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}

// reader reads one body.
type reader struct {
	*jsontext.Decoder

	body []byte
	name []byte // the last field's
}

// readObject reads a body that is one object and nothing else. Invalid UTF-8 is allowed
// in the wrappers of others.
func readObject(body []byte, invalidUTF8 bool, read func(*reader) error) error {
	if len(body) > MaxBody {
		return &Error{Problem: fmt.Sprintf("too large: %d bytes, want at most %d", len(body), MaxBody)}
	}
	tokens := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(invalidUTF8))
	r := &reader{Decoder: tokens, body: body}
	if kind := r.PeekKind(); kind != '{' && kind != jsontext.KindInvalid {
		if _, err := r.skip(); err != nil {
			return r.translate(err)
		}
		return &Error{Problem: "not a JSON object"} // also null
	}
	if err := read(r); err != nil {
		return r.translate(err)
	}
	end := r.InputOffset()
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return &Error{syntax: true, Problem: fmt.Sprintf("trailing data after the JSON object at byte %d", end)}
	}
	return nil
}

// members calls read for each field of an object. read must read the value.
func (r *reader) members(read func(name []byte) error) error {
	if _, err := r.ReadToken(); err != nil { // the brace
		return err
	}
	for r.PeekKind() == '"' {
		quoted, err := r.ReadValue()
		if err != nil {
			return err
		}
		if r.name, err = jsontext.AppendUnquote(r.name[:0], quoted); err != nil {
			return err
		}
		if err := read(r.name); err != nil {
			return err
		}
	}
	_, err := r.ReadToken() // the brace, or what is there instead
	return err
}

// skip reads a value, and returns it as it is written.
func (r *reader) skip() ([]byte, error) {
	start, outside := r.InputOffset(), r.StackDepth()
	for {
		if _, err := r.ReadToken(); err != nil {
			return nil, err
		}
		switch depth := r.StackDepth(); {
		case depth > maxDepth:
			return nil, &Error{Problem: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
		case depth == outside:
			return bytes.TrimLeft(r.body[start:r.InputOffset()], " \t\r\n:,"), nil
		}
	}
}

// value reads a value into to.
func (r *reader) value(to reflect.Value, s *shape) error {
	kind := r.PeekKind()
	if kind == 'n' && !s.notNull {
		_, err := r.ReadToken()
		return err
	}
	if s.kind == reflect.Pointer && kind != 'n' {
		to.Set(reflect.New(to.Type().Elem()))
		return r.value(to.Elem(), s.element)
	}
	if kind != s.token && kind != jsontext.KindInvalid {
		return r.wrongType(s)
	}
	switch s.kind { //nolint:exhaustive // shapeOf has no others
	case reflect.Struct:
		return r.object(to, s)
	case reflect.Slice:
		return r.list(to, s.element)
	case reflect.String:
		token, err := r.ReadToken()
		if err == nil {
			to.SetString(token.String())
		}
		return err
	}
	return r.integer(to, s)
}

// integer reads a number, which must have neither a fraction nor an exponent.
func (r *reader) integer(to reflect.Value, s *shape) error {
	digits, err := r.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return r.want(s)
	}
	to.SetInt(n)
	return nil
}

func (r *reader) object(to reflect.Value, s *shape) error {
	return r.members(func(name []byte) error {
		for i, known := range s.names {
			if known == string(name) {
				return r.value(to.Field(i), s.fields[i])
			}
		}
		return r.unknown(s)
	})
}

func (r *reader) list(to reflect.Value, element *shape) error {
	if _, err := r.ReadToken(); err != nil { // the bracket
		return err
	}
	for n := 0; r.PeekKind() != ']' && r.PeekKind() != jsontext.KindInvalid; n++ {
		if n == maxElements {
			list := path(r.StackPointer().Parent())
			return &Error{Problem: fmt.Sprintf("%s: want at most %d elements", list, maxElements)}
		}
		to.Grow(1)
		to.SetLen(n + 1)
		if err := r.value(to.Index(n), element); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

// shape is a type, with what is asked of it for every value found once.
type shape struct {
	kind    reflect.Kind
	token   jsontext.Kind // of its values
	names   []string      // of a struct
	fields  []*shape
	notNull bool   // of a field
	element *shape // of a pointer or slice
}

func shapeOf(t reflect.Type) *shape {
	s := &shape{kind: t.Kind()}
	switch s.kind { //nolint:exhaustive // the default panics
	case reflect.String:
		s.token = '"'
	case reflect.Int, reflect.Int64:
		s.kind, s.token = reflect.Int64, '0'
	case reflect.Slice:
		s.token, s.element = '[', shapeOf(t.Elem())
	case reflect.Pointer:
		s.element = shapeOf(t.Elem())
		s.token = s.element.token
	case reflect.Struct:
		s.token = '{'
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			field := shapeOf(f.Type)
			field.notNull = f.Tag.Get("null") == "refused"
			s.names, s.fields = append(s.names, name), append(s.fields, field)
		}
	default:
		panic("strictjson: type " + t.String())
	}
	return s
}
