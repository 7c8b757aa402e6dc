package baselines

import (
	"context"
	"maps"
	"time"
)

// Table is what the baselines need of DynamoDB: a table with the partition key "id" and
// the time-to-live attribute "expiration".
type Table interface {
	// Get returns the item, or one without an ID if there is none. It may be stale, like
	// an eventually consistent read.
	Get(ctx context.Context, id string) (Item, error)

	// Put writes the item if the condition holds for the existing one, and otherwise
	// returns that one.
	Put(ctx context.Context, item Item, c Condition) (refusing Item, err error)

	// Delete removes the item. It returns nil if there is none.
	Delete(ctx context.Context, id string) error
}

// ID is the name of the key attribute.
const ID = "id"

// Item is an item of a table. A field with its zero value is absent.
type Item struct {
	ID         string
	Status     Status
	Amount     int64
	Validation string // a hash of the payload
	Intent     string // the id of the PaymentIntent that the order is bound to
	Expiration int64  // when DynamoDB may delete the item, in Unix seconds
	Deadline   int64  // of the attempt in progress, in Unix milliseconds
}

func (i Item) expired(now time.Time) bool { return i.Expiration > 0 && i.Expiration < now.Unix() }

// Condition is a condition of Put. The zero Condition always holds.
type Condition struct {
	New bool // there is no item
	// FreeAt, if set, also lets a New item replace an idempotency record that expired
	// before then, or whose attempt is in progress and passed its deadline.
	FreeAt time.Time
	// Open, unless New is set, holds if the existing item has no status.
	Open bool
}

func (c Condition) holds(old Item) bool {
	switch {
	case !c.New:
		return !c.Open || old.Status == ""
	case old.ID == "":
		return true
	case c.FreeAt.IsZero():
		return false
	}
	return old.expired(c.FreeAt) || old.Status == inProgress && old.Deadline < c.FreeAt.UnixMilli()
}

var _ Table = Map{}

// Map is a Table in memory, for one goroutine at a time.
type Map map[string]Item

// Get implements Table. It is strongly consistent.
func (m Map) Get(_ context.Context, id string) (Item, error) { return m[id], nil }

// Put implements Table.
func (m Map) Put(_ context.Context, item Item, c Condition) (refusing Item, err error) {
	if old := m[item.ID]; !c.holds(old) {
		return old, nil
	}
	m[item.ID] = item
	return Item{}, nil
}

// Delete implements Table.
func (m Map) Delete(_ context.Context, id string) error {
	delete(m, id)
	return nil
}

// Expire deletes every item whose time to live has passed. Until then they stay readable,
// because DynamoDB may delete them days late. Tests cover both cases.
func (m Map) Expire(now time.Time) {
	maps.DeleteFunc(m, func(_ string, i Item) bool { return i.expired(now) })
}
