// Package deadletters reads and empties the dead-letter queues. It pages them without
// losing a message, finds out what a message's row and Stripe say, decides about what to
// do with the message, and redrives or deletes it. It does not depend on the command
// line, and it reads no clock.
//
// Queue receives and sends, Sources reads the facts, and Decide is a pure function from
// the facts to a verdict. docs/guides/operate.md explains the verdicts.
package deadletters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
)

// Filter selects messages. A zero field selects every message.
type Filter struct {
	Reasons []string // as shown: Unnamed for a message without a reason
	// Query is an order id, or the id or the first id of a message.
	Query string
	// Before and After bound the time at which the message was first sent.
	Before, After time.Time
	Fields        []Field         // each must match
	IDs           map[string]bool // of messages; nil: all
}

// Field is a value in a message's body, such as lines.unitAmount=240000.
type Field struct {
	path  []string
	value string

	any   bool // whatever the value
	Found bool // a message that Filter.Matches read has a field of this name
}

// UnmarshalText reads a field as a person types it: names with dots in between, =, and
// the value.
func (f *Field) UnmarshalText(text []byte) error {
	path, value, found := strings.Cut(string(text), "=")
	if !found || path == "" {
		return fmt.Errorf("%s: want NAME=VALUE, such as lines.unitAmount=1999", order.Quote(string(text)))
	}
	*f = Field{path: strings.Split(path, "."), value: value}
	return nil
}

// Name returns the names with dots in between.
func (f Field) Name() string { return strings.Join(f.path, ".") }

// in reports whether JSON text has the field: the body, or a string in it that is JSON
// itself, such as the Message of an SNS notification.
func (f Field) in(text string) bool {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	return decoder.Decode(&value) == nil && f.of(value)
}

// of reports whether a value has the field. One element of an array must have it. The
// value is compared as JSON has it, a string without its quotes.
func (f Field) of(value any) bool {
	if len(f.path) == 0 && f.any {
		return true
	}
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, f.of)
	case map[string]any:
		if len(f.path) == 0 {
			return false
		}
		inner, has := v[f.path[0]]
		f.path = f.path[1:]
		return has && f.of(inner)
	case string:
		return len(f.path) == 0 && v == f.value || len(f.path) > 0 && f.in(v)
	case nil:
		return len(f.path) == 0 && f.value == "null"
	}
	return len(f.path) == 0 && fmt.Sprint(value) == f.value
}

// Matches reports whether the filter selects m.
func (f Filter) Matches(m Message) bool {
	fields := true
	for i, one := range f.Fields {
		fields = one.in(m.Body) && fields
		one.any = true
		f.Fields[i].Found = one.Found || one.in(m.Body)
	}
	switch {
	case !fields, f.IDs != nil && !f.IDs[m.ID],
		len(f.Reasons) > 0 && !contains(f.Reasons, m.ReasonShown()),
		f.Query != "" && !contains([]string{string(m.OrderID()), m.ID, m.FirstID}, f.Query),
		!f.Before.IsZero() && !m.FirstSent.Before(f.Before),
		!f.After.IsZero() && !m.FirstSent.After(f.After):
		return false
	}
	return true
}

func contains(all []string, s string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return strings.EqualFold(one, s) })
}

// Letter is a message with what is known about it.
type Letter struct {
	Message
	Facts
	Verdict
}

// Kept returns why a message is not deleted by force, or "". A newer release may read it,
// and it is not saved. Or only the message or a cancel settles its order: a bound intent
// can still be charged or was charged, or the next message charges the refused order.
func (l Letter) Kept(saved bool) string {
	switch {
	case !saved && errors.Is(l.Invalid, order.ErrUnknownVersion):
		return "a newer release may read it: add --save FILE"
	case l.Invalid != nil || !l.mayBeCharged():
		return ""
	case l.Row.Intent == "":
		return fmt.Sprintf("it stays refused, and another message may charge it: "+
			"orders cancel %s, then discard", l.OrderID())
	}
	return fmt.Sprintf("%s may still be charged: orders cancel %s, then discard", l.Row.Intent, l.OrderID())
}

func (l Letter) mayBeCharged() bool {
	if l.Row.Status != order.Refused && (l.Row.Status != order.Open || l.Row.Intent == "") {
		return false
	}
	if same, known := l.Row.Fingerprint.Matches(l.Job.Order); known && !same {
		return false // the row is that of another message
	}
	return !slices.ContainsFunc(l.Intents, func(i order.Intent) bool { return i.State == order.IntentCanceled })
}

// Letter returns a message with the facts and the verdict on it.
func (s Sources) Letter(ctx context.Context, m Message) Letter {
	facts := s.Facts(ctx, m)
	return Letter{Message: m, Facts: facts, Verdict: Decide(m, facts)}
}
