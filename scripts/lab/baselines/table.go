package baselines

import (
	"context"
	"errors"
	"slices"
)

// Table is a table with the partition key "id" and the time-to-live attribute "expiration". It is what the designs ask of
// DynamoDB, and no more.
type Table interface {
	// Get returns the item, or one of length 0 if there is none. It may be stale, like an eventually consistent read.
	Get(ctx context.Context, id string) (Item, error)

	// Put writes the item, whatever stands there.
	Put(ctx context.Context, item Item) error

	// PutIf writes the item if the condition holds for what stands there. It returns *RefusedError if it does not.
	PutIf(ctx context.Context, item Item, c Condition) error

	// Delete removes the item, whatever it is. It returns nil also if there is none.
	Delete(ctx context.Context, id string) error
}

// Attributes that every design's items share. They are the defaults of Powertools for AWS Lambda.
const (
	ID         = "id"         // the key, S
	Expiration = "expiration" // from when on DynamoDB may delete the item, N, in Unix seconds
)

// Item is an item of a table. Whoever gets one may keep it and must not change it.
type Item map[string]Value

var errNoID = errors.New("an item without an id")

func (i Item) id() string {
	id, _ := i[ID].(S)
	return string(id)
}

// Value is S or N.
type Value interface{ isValue() }

// S is a string attribute.
type S string

// N is a number attribute.
type N int64

func (S) isValue() {}
func (N) isValue() {}

// RefusedError is a condition that did not hold: for Old (ALL_OLD), which has length 0 if there was no item.
type RefusedError struct{ Old Item }

// Error does not repeat the item.
func (e *RefusedError) Error() string { return "the condition does not hold" }

// Condition is a condition of PutIf as data. Its zero value holds for nothing.
type Condition struct {
	kind  kind
	name  string
	value Value
	of    []Condition
}

type kind int

const (
	never kind = iota
	absent
	equal
	less
	either
	both
)

// Absent is attribute_not_exists(name).
func Absent(name string) Condition { return Condition{kind: absent, name: name} }

// Equal is name = v. It does not hold for an item without the attribute.
func Equal(name string, v Value) Condition { return Condition{kind: equal, name: name, value: v} }

// Less is name < n. It does not hold for an item without the attribute.
func Less(name string, n N) Condition { return Condition{kind: less, name: name, value: n} }

// Or holds if one of the conditions does. There must be at least one.
func Or(of ...Condition) Condition { return Condition{kind: either, of: of} }

// And holds if all the conditions do. There must be at least one.
func And(of ...Condition) Condition { return Condition{kind: both, of: of} }

// Holds reports whether the condition holds for the item that stands in the table, or for one of length 0.
func (c Condition) Holds(old Item) bool {
	fails := func(c Condition) bool { return !c.Holds(old) }
	switch c.kind {
	case absent:
		_, present := old[c.name]
		return !present
	case equal:
		return old[c.name] == c.value
	case less:
		got, isNumber := old[c.name].(N)
		limit, _ := c.value.(N)
		return isNumber && got < limit
	case either:
		return slices.ContainsFunc(c.of, func(c Condition) bool { return c.Holds(old) })
	case both:
		return !slices.ContainsFunc(c.of, fails)
	case never:
	}
	return false
}
