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
// every write.
const Shards = 16

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

// ShardOf returns the shard of the index in which an order waits.
func ShardOf(id order.ID) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	return h.Sum32() % Shards
}

// encodeEvent returns an event item of a record. Its type, amount, currency and trace are
// for readers of the stream, who do not have the order item.
func encodeEvent(r *order.Record, e order.Event) Item {
	item := Item{
		"orderId": Text(r.OrderID), "sk": Text(fmt.Sprintf("%s%06d", EventRow, e.Seq)),
		"type": Text(e.Type()), "seq": Number(e.Seq), "from": Text(e.From), "to": Text(e.To),
		"amount": Number(r.Total.Amount), "currency": Text(r.Total.Currency),
		"at": Millis(e.At), "expiresAt": Number(e.At.Add(eventRetention).Unix()),
	}
	AddTexts(item,
		"intentId", string(e.Intent), "failure", e.Failure, "traceparent", string(r.Trace),
		"disputeId", string(e.Dispute.ID), "disputeStatus", string(e.Dispute.Status),
		"refundId", e.Refund.ID, "refundStatus", e.Refund.Status)
	AddTime(item, "disputedAt", e.Dispute.CreatedAt)
	if e.Refund.Status != "" {
		item["refundAmount"] = Number(e.Refund.Amount)
	}
	return item
}

// AddTexts adds the texts that are not empty, each after its name.
func AddTexts(item Item, texts ...string) {
	for ; len(texts) > 1; texts = texts[2:] {
		if name, value := texts[0], texts[1]; value != "" {
			item[name] = Text(value)
		}
	}
}

// AddTime adds a time that is not zero.
func AddTime(item Item, name string, t time.Time) {
	if !t.IsZero() {
		item[name] = Millis(t)
	}
}

func decodeEvent(item Item) (order.Event, error) {
	d := Decoder{Item: item}
	if e := d.Event(); d.Err == nil {
		return e, nil
	}
	return order.Event{}, fmt.Errorf("row %q: %w", TextOf(item, "sk"), d.Err)
}

// Event reads the attributes of an event item.
func (d *Decoder) Event() order.Event {
	return order.Event{
		Seq: int(d.Number("seq")), From: d.status("from"), To: d.status("to"),
		Intent: order.IntentID(d.OptionalText("intentId")), Failure: d.OptionalText("failure"),
		Dispute: d.dispute(), At: d.Time("at"), Refund: order.RefundEvent{
			ID: d.OptionalText("refundId"), Status: d.OptionalText("refundStatus"),
			Amount: d.OptionalNumber("refundAmount"),
		},
	}
}

// encodeOrder returns the attributes of the order item, or none for a missing record.
func encodeOrder(r *order.Record) Item {
	if r.Status == "" {
		return nil
	}
	item := make(Item, 24)
	item["amount"], item["currency"] = Number(r.Total.Amount), Text(r.Total.Currency)
	item["attempt"], item["seq"] = Number(r.Attempt), Number(r.Seq)
	AddTexts(item,
		"status", string(r.Status), "fingerprint", string(r.Fingerprint), "customerId", r.CustomerID,
		"owner", r.Owner, "intentId", string(r.Intent), "lostIntentId", string(r.Suspect),
		"stripeMode", string(r.Mode), "failure", r.Failure, "lastError", r.LastError,
		"disputeId", string(r.Dispute.ID), "disputeStatus", string(r.Dispute.Status), "traceparent", string(r.Trace))
	AddTime(item, "leaseUntil", r.Until)
	AddTime(item, "parkedAt", r.ParkedAt)
	AddTime(item, "disputedAt", r.Dispute.CreatedAt)
	AddTime(item, "createdAt", r.CreatedAt)
	AddTime(item, "updatedAt", r.UpdatedAt)
	AddTime(item, "dueAt", r.DueAt)
	if !r.DueAt.IsZero() {
		item["openShard"] = Number(ShardOf(r.OrderID))
	}
	if len(r.Stock) > 0 {
		item["stock"] = encodeStock(r.Stock)
	}
	return item
}

// DecodeOrder decodes an order item. It returns ErrCorrupt for an item that a Store
// cannot have written.
func DecodeOrder(item Item) (order.Record, error) {
	d := Decoder{Item: item}
	r := order.Record{
		OrderID:     order.ID(d.Text("orderId")),
		CustomerID:  d.OptionalText("customerId"), // a recreated row has none until its next message
		Total:       order.Money{Amount: d.Number("amount"), Currency: order.Currency(d.Text("currency"))},
		Fingerprint: order.Fingerprint(d.Text("fingerprint")),
		Status:      d.status("status"),
		Owner:       d.OptionalText("owner"),
		Attempt:     int(d.Number("attempt")),
		Until:       d.OptionalTime("leaseUntil"),
		Intent:      order.IntentID(d.OptionalText("intentId")),
		Suspect:     order.IntentID(d.OptionalText("lostIntentId")),
		Mode:        order.Mode(d.OptionalText("stripeMode")),
		Failure:     d.OptionalText("failure"),
		LastError:   d.OptionalText("lastError"),
		ParkedAt:    d.OptionalTime("parkedAt"),
		Dispute:     d.dispute(),
		Stock:       d.quantities("stock"),
		Seq:         int(d.Number("seq")),
		CreatedAt:   d.Time("createdAt"),
		UpdatedAt:   d.Time("updatedAt"),
		DueAt:       d.OptionalTime("dueAt"),
		Trace:       order.ParseTrace(d.OptionalText("traceparent")),
	}
	if d.Err != nil {
		return order.Record{}, fmt.Errorf("row %q: %w", OrderRow, d.Err)
	}
	return order.LoadRecord(r)
}

// AddRow adds one item of an order's partition to its record.
func AddRow(r *order.Record, item Item) error {
	switch sk := TextOf(item, "sk"); {
	case sk == OrderRow:
		decoded, err := DecodeOrder(item)
		decoded.Events = r.Events
		*r = decoded
		return err
	case strings.HasPrefix(sk, EventRow):
		e, err := decodeEvent(item)
		r.Events = append(r.Events, e)
		return err
	}
	return nil // a later release may add other kinds of items
}

// TextOf returns a string attribute of an item, or "".
func TextOf(i Item, name string) string {
	if s, ok := i[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// Decoder reads attributes and collects every error. An error names the attribute and not
// its value, which may be personal data.
type Decoder struct {
	Item  Item
	Newer bool // accept the statuses of a newer release
	Err   error
}

// Text reads a string.
func (d *Decoder) Text(name string) string {
	if v, ok := d.Item[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	d.Want(name, "a string")
	return ""
}

// Number reads an integer.
func (d *Decoder) Number(name string) int64 {
	if v, ok := d.Item[name].(*types.AttributeValueMemberN); ok {
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return n
		}
	}
	d.Want(name, "an integer")
	return 0
}

func (d *Decoder) status(name string) order.Status {
	text := d.Text(name)
	s, err := order.ParseStatus(text)
	if d.Newer {
		return order.Status(text)
	}
	if err != nil && text != "" {
		d.Err = errors.Join(d.Err, fmt.Errorf("%s: %w", name, err))
	}
	return s
}

func (d *Decoder) dispute() order.Dispute {
	if d.Item["disputeId"] == nil {
		return order.Dispute{}
	}
	return order.Dispute{
		ID: order.DisputeID(d.Text("disputeId")), Status: order.DisputeStatus(d.Text("disputeStatus")),
		CreatedAt: d.Time("disputedAt"),
	}
}

// Time reads a time.
func (d *Decoder) Time(name string) time.Time { return time.UnixMilli(d.Number(name)).UTC() }

// OptionalText reads a string that may be missing.
func (d *Decoder) OptionalText(name string) string {
	if d.Item[name] == nil {
		return ""
	}
	return d.Text(name)
}

// OptionalTime reads a time that may be missing.
func (d *Decoder) OptionalTime(name string) time.Time {
	if d.Item[name] == nil {
		return time.Time{}
	}
	return d.Time(name)
}

// Want adds the error that an attribute is not of this kind.
func (d *Decoder) Want(name, kind string) {
	d.Err = errors.Join(d.Err, fmt.Errorf("%w: %s: want %s", order.ErrCorrupt, name, kind))
}

// OptionalNumber reads an attribute that may be missing.
func (d *Decoder) OptionalNumber(name string) int64 {
	if d.Item[name] == nil {
		return 0
	}
	return d.Number(name)
}
