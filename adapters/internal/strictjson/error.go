package strictjson

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"orderonce/domain/order"
)

// Error is a body that is not the object that is wanted. Problem names the field or the
// byte. It contains no value, which may be a misplaced card number, and only names of
// fields that are order.Printable.
type Error struct {
	Problem string
	Newer   bool // a newer release may know the field or the type that this one does not
	syntax  bool
}

// Error names the problem of the body.
func (e *Error) Error() string { return "message body: " + e.Problem }

// Is makes a body that is not JSON at all ErrSyntax, and Newer order.ErrUnknownVersion.
func (e *Error) Is(target error) bool {
	return target == ErrSyntax && e.syntax || target == order.ErrUnknownVersion && e.Newer
}

// ErrSyntax is what the errors of a body are that is not one JSON value.
var ErrSyntax = errors.New("not JSON")

// translate replaces an error of jsontext, whose text may contain values.
func (r *reader) translate(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return &Error{Problem: "duplicate field " + quote(syntax.JSONPointer)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{syntax: true, Problem: "truncated JSON"}
	case errors.As(err, &syntax):
		return &Error{syntax: true, Problem: fmt.Sprintf("invalid JSON at byte %d", syntax.ByteOffset+1)}
	}
	return err
}

// wrongType returns the error of the next value.
func (r *reader) wrongType(s *shape) error {
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	return r.want(s)
}

// want returns the error of the value that was read last.
func (r *reader) want(s *shape) error {
	return &Error{Problem: path(r.StackPointer()) + ": want " + map[jsontext.Kind]string{
		'"': "a string", '[': "a list", '{': "an object",
		'0': "an integer of at most 64 bits, without a fraction, an exponent or quotes",
	}[s.token]}
}

// unknown returns the error of a field that the object does not have.
func (r *reader) unknown(s *shape) error {
	problem := "unknown field " + quote(r.StackPointer())
	similar := func(name string) bool { return strings.EqualFold(name, string(r.name)) }
	if i := slices.IndexFunc(s.names, similar); i >= 0 {
		return &Error{Problem: fmt.Sprintf("%s: want %q", problem, s.names[i])}
	}
	return &Error{Problem: problem, Newer: true}
}

// path returns a pointer such as /lines/0/sku as lines[0].sku.
func path(p jsontext.Pointer) string {
	var all strings.Builder
	for name := range p.Tokens() {
		if _, err := strconv.ParseUint(name, 10, 16); err == nil {
			all.WriteString("[" + name + "]")
			continue
		}
		if all.Len() > 0 {
			all.WriteByte('.')
		}
		all.WriteString(name)
	}
	return all.String()
}

// quote returns a field's path for an error. A producer may send anything as a name,
// also a customer's, so only plain names are shown.
func quote(p jsontext.Pointer) string {
	name, parent := p.LastToken(), path(p.Parent())
	indexes := strings.NewReplacer("[", "", "]", "")
	plain := func(path string) bool { return order.Printable(indexes.Replace(path)) }
	switch {
	case parent == "" && plain(name):
		return strconv.Quote(name)
	case plain(parent + "." + name):
		return strconv.Quote(parent + "." + name)
	case parent != "" && plain(parent):
		return parent + "." + order.Quote(name)
	}
	return order.Quote(name)
}
