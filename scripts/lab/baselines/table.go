package baselines

import (
	"context"
	"errors"
	"slices"
)

// Table is a table with the partition key "id" and the time-to-live attribute
// "expiration": what the baselines need of DynamoDB.
type Table interface {
	// Get returns the item, or one of length 0 if there is none. It may be stale, like an
	// eventually consistent read.
	Get(ctx context.Context, id string) (Item, error)

	// Put writes the item and replaces an existing one.
	Put(ctx context.Context, item Item) error

	// PutIf writes the item if the condition holds for the existing item, and otherwise
	// returns *ConditionFailedError.
	PutIf(ctx context.Context, item Item, c Condition) error

	// Delete removes the item. It returns nil if there is none.
	Delete(ctx context.Context, id string) error
}

// Attributes of every item. The names are the defaults of Powertools for AWS Lambda.
const (
	ID         = "id"         // the key, S
	Expiration = "expiration" // when DynamoDB may delete the item, N, in Unix seconds
)

// Item is an item of a table. Callers must not modify an item that Get returned.
type Item map[string]Value

var errNoID = errors.New("item has no id")

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

// ConditionFailedError is a failed condition of PutIf.
type ConditionFailedError struct {
	Old Item // the existing item (ALL_OLD); length 0 if there was none
}

// Error does not contain the item.
func (e *ConditionFailedError) Error() string { return "condition failed" }

// Condition is a condition of PutIf. The zero value never holds.
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

// Absent returns attribute_not_exists(name).
func Absent(name string) Condition { return Condition{kind: absent, name: name} }

// Equal returns name = v. It does not hold for an item without the attribute.
func Equal(name string, v Value) Condition { return Condition{kind: equal, name: name, value: v} }

// Less returns name < n. It does not hold for an item without the attribute.
func Less(name string, n N) Condition { return Condition{kind: less, name: name, value: n} }

// Or holds if at least one of the conditions holds. It needs at least one condition.
func Or(of ...Condition) Condition { return Condition{kind: either, of: of} }

// And holds if all conditions hold. It needs at least one condition.
func And(of ...Condition) Condition { return Condition{kind: both, of: of} }

// Holds reports whether the condition holds for the existing item; length 0 means that
// there is none.
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
