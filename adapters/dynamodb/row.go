package dynamodb

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

// The sort keys of an order's partition, whose key is orderId.
const (
	OrderRow = "order"  // the order; it never expires, or an old message could be charged again
	EventRow = "event#" // and six digits: one event; the history, and the outbox for the table's stream
)

// eventRetention is the minimum lifetime of an event. DynamoDB may delete expired items
// days later.
const eventRetention = 90 * 24 * time.Hour

// Shards spreads the waiting orders over the index, so that no partition of it takes
// every write, and the registrations over as many. It may be raised and must never be
// lowered: a reader finds only what was written under as many or fewer.
const Shards = 16

// The first key of each kind. Both have shardRun keys in turn, so that neither reaches
// the other's, however many shards there are.
const (
	OrderShards        = 0
	RegistrationShards = shardRun
	shardRun           = 16
)

// Item is an item of a table, or the values of an expression. Times are epoch
// milliseconds, except expiresAt, which is in seconds.
type Item = map[string]types.AttributeValue

// Text returns a string as an attribute.
func Text[T ~string](s T) *types.AttributeValueMemberS {
	return &types.AttributeValueMemberS{Value: string(s)}
}

// Number returns an integer as an attribute.
func Number[T ~int | ~int64 | ~uint32](n T) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

// Millis returns a time as an attribute, in epoch milliseconds.
func Millis(t time.Time) *types.AttributeValueMemberN { return Number(t.UnixMilli()) }

// OrderKey returns the key of an order item.
func OrderKey(id order.ID) Item { return Item{"orderId": Text(id), "sk": Text(OrderRow)} }

// ShardOf returns the shard, of so many, in which an order waits.
func ShardOf(id order.ID, shards uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	return h.Sum32() % shards
}

// ShardKey returns the openShard of an order's item in the index: first is OrderShards or
// RegistrationShards.
func ShardKey(first uint32, id order.ID) *types.AttributeValueMemberN {
	return Number(shardKey(first, ShardOf(id, Shards)))
}

func shardKey(first, shard uint32) uint32 { return first + shard + shard/shardRun*shardRun }

// Fields ties the fields of a struct to the attributes of an item: one function lists
// them for both directions. TextField and its like write a field, or read it and collect
// every error. An error names the attribute and not its value, which may be personal
// data.
type Fields struct {
	Item    Item
	Encodes bool
	Known   map[string]bool // unless nil gets the names that are read; statuses of a newer release are accepted
	Err     error
}

// TextField ties a text to an attribute, which is missing if the text is empty.
func TextField[T ~string](f *Fields, name string, field *T) {
	if !f.Encodes {
		*field = T(f.Text(name))
	} else if *field != "" {
		f.Item[name] = Text(*field)
	}
}

// NumberField ties an integer to an attribute.
func NumberField[T ~int | ~int64](f *Fields, name string, field *T) {
	if f.Encodes {
		f.Item[name] = Number(*field)
	} else {
		*field = T(f.Number(name))
	}
}

// TimeField ties a time to an attribute, which is missing if the time is zero.
func TimeField(f *Fields, name string, field *time.Time) {
	if !f.Encodes {
		*field = f.Time(name)
	} else if !field.IsZero() {
		f.Item[name] = Millis(*field)
	}
}

// Require adds an error for each attribute that is read and missing.
func (f *Fields) Require(names ...string) {
	for _, name := range names {
		if !f.Encodes && f.Item[name] == nil {
			f.Err = errors.Join(f.Err, fmt.Errorf("%w: %s: missing", order.ErrCorrupt, name))
		}
	}
}

// Want adds the error that an attribute is not of this kind.
func (f *Fields) Want(name, kind string) {
	f.Err = errors.Join(f.Err, fmt.Errorf("%w: %s: want %s", order.ErrCorrupt, name, kind))
}

// Text reads a string; "" if it is missing.
func (f *Fields) Text(name string) string {
	switch v := f.read(name).(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case nil:
	default:
		f.Want(name, "a string")
	}
	return ""
}

// Number reads an integer; 0 if it is missing.
func (f *Fields) Number(name string) int64 {
	value := f.read(name)
	if value == nil {
		return 0
	}
	if v, ok := value.(*types.AttributeValueMemberN); ok {
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return n
		}
	}
	f.Want(name, "an integer")
	return 0
}

// Time reads a time; the zero one if it is missing.
func (f *Fields) Time(name string) time.Time {
	if n := f.Number(name); f.Item[name] != nil {
		return time.UnixMilli(n).UTC()
	}
	return time.Time{}
}

func (f *Fields) read(name string) types.AttributeValue { //nolint:ireturn // the SDK's type
	if f.Known != nil {
		f.Known[name] = true
	}
	return f.Item[name]
}

func (f *Fields) status(name string, s *order.Status) {
	TextField(f, name, s)
	if _, err := order.ParseStatus(string(*s)); err != nil && *s != "" && !f.Encodes && f.Known == nil {
		f.Err = errors.Join(f.Err, fmt.Errorf("%s: %w", name, err))
	}
}

func (f *Fields) trace(t *order.Trace) {
	TextField(f, "traceparent", t)
	if !f.Encodes {
		*t = order.ParseTrace(string(*t)) // an invalid one is not worth an error
	}
}

func (f *Fields) dispute(d *order.Dispute) {
	TextField(f, "disputeId", &d.ID)
	TextField(f, "disputeStatus", &d.Status)
	TimeField(f, "disputedAt", &d.CreatedAt)
	if d.ID != "" {
		f.Require("disputeStatus", "disputedAt")
	}
}

// EventFields ties an event, and what it has of its order for readers of the stream.
func EventFields(f *Fields, of *order.Record, e *order.Event) {
	f.Require("seq", "from", "to", "at")
	TextField(f, "orderId", &of.OrderID)
	NumberField(f, "amount", &of.Total.Amount)
	TextField(f, "currency", &of.Total.Currency)
	f.trace(&of.Trace)
	NumberField(f, "seq", &e.Seq)
	f.status("from", &e.From)
	f.status("to", &e.To)
	TextField(f, "intentId", &e.Intent)
	TextField(f, "failure", &e.Failure)
	TimeField(f, "at", &e.At)
	f.dispute(&e.Dispute)
	TextField(f, "refundId", &e.Refund.ID)
	TextField(f, "refundStatus", &e.Refund.Status)
	if !f.Encodes || e.Refund.Status != "" {
		NumberField(f, "refundAmount", &e.Refund.Amount)
	}
}

func encodeEvent(r *order.Record, e order.Event) Item {
	f := Fields{Encodes: true, Item: Item{
		"sk": Text(fmt.Sprintf("%s%06d", EventRow, e.Seq)), "type": Text(e.Type()),
		"expiresAt": Number(e.At.Add(eventRetention).Unix()),
	}}
	EventFields(&f, r, &e)
	return f.Item
}

func decodeEvent(item Item) (e order.Event, err error) {
	f := Fields{Item: item}
	if EventFields(&f, new(order.Record), &e); f.Err != nil {
		return order.Event{}, fmt.Errorf("row %q: %w", TextOf(item, "sk"), f.Err)
	}
	return e, nil
}

// orderFields ties the attributes of the order item without its key.
func orderFields(f *Fields, r *order.Record) {
	f.Require("amount", "currency", "fingerprint", "status", "attempt", "seq", "createdAt", "updatedAt")
	NumberField(f, "amount", &r.Total.Amount)
	TextField(f, "currency", &r.Total.Currency)
	TextField(f, "fingerprint", &r.Fingerprint)
	TextField(f, "customerId", &r.CustomerID) // a recreated row has none until its next message
	f.status("status", &r.Status)
	NumberField(f, "attempt", &r.Attempt)
	NumberField(f, "seq", &r.Seq)
	TextField(f, "owner", &r.Owner)
	TimeField(f, "leaseUntil", &r.Until)
	TextField(f, "intentId", &r.Intent)
	TextField(f, "lostIntentId", &r.Suspect)
	TextField(f, "stripeMode", &r.Mode)
	TextField(f, "failure", &r.Failure)
	TextField(f, "lastError", &r.LastError)
	TimeField(f, "parkedAt", &r.ParkedAt)
	f.dispute(&r.Dispute)
	f.stock(&r.Stock)
	TimeField(f, "createdAt", &r.CreatedAt)
	TimeField(f, "updatedAt", &r.UpdatedAt)
	TimeField(f, "dueAt", &r.DueAt)
	f.trace(&r.Trace)
}

// encodeOrder returns the attributes of the order item, or none for a missing record.
func encodeOrder(r *order.Record) Item {
	if r.Status == "" {
		return nil
	}
	f := Fields{Item: make(Item, 24), Encodes: true}
	orderFields(&f, r)
	if !r.DueAt.IsZero() {
		f.Item["openShard"] = ShardKey(OrderShards, r.OrderID)
	}
	return f.Item
}

// DecodeOrder decodes an order item. It returns ErrCorrupt for an item that a Store
// cannot have written.
func DecodeOrder(item Item) (order.Record, error) {
	f, r := Fields{Item: item}, order.Record{}
	f.Require("orderId")
	TextField(&f, "orderId", &r.OrderID)
	if orderFields(&f, &r); f.Err != nil {
		return order.Record{}, fmt.Errorf("row %q: %w", OrderRow, f.Err)
	}
	return order.LoadRecord(r)
}

// AddRow adds one item of an order's partition to its record.
func AddRow(r *order.Record, item Item) (err error) {
	switch sk := TextOf(item, "sk"); {
	case sk == OrderRow:
		events := r.Events
		*r, err = DecodeOrder(item)
		r.Events = events
	case strings.HasPrefix(sk, EventRow):
		var e order.Event
		e, err = decodeEvent(item)
		r.Events = append(r.Events, e)
	}
	return err // a later release may add other kinds of items
}

// TextOf returns a string attribute of an item, or "".
func TextOf(i Item, name string) string {
	if s, ok := i[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
