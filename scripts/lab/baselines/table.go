package baselines

import (
	"context"
	"errors"
	"time"
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

// Condition is a condition of PutIf: there is no item. If FreeAt is set, the condition
// also holds for an idempotency record that expired before then, or whose attempt is in
// progress and passed its deadline.
type Condition struct{ FreeAt time.Time }

// holds reports whether the condition holds for the existing item.
func (c Condition) holds(old Item) bool {
	switch deadline, inProgress := old[progressExpiration].(N); {
	case len(old) == 0:
		return true
	case c.FreeAt.IsZero():
		return false
	case inProgress && old["status"] == S("INPROGRESS") && deadline < N(c.FreeAt.UnixMilli()):
		return true
	}
	return old.expired(c.FreeAt)
}

// expired reports whether the item's time to live ended before now.
func (i Item) expired(now time.Time) bool {
	at, expires := i[Expiration].(N)
	return expires && at < N(now.Unix())
}

const progressExpiration = "in_progress_expiration" // N, in Unix milliseconds
