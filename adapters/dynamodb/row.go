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
	orderRow = "order"  // the order; it never expires, or an old message could be charged again
	eventRow = "event#" // and six digits: one event; the history, and the outbox for the table's stream
	// registrationRow is an order that a client put. It never expires, or another content
	// could be charged later.
	registrationRow = "intake"
)

// eventRetention is the minimum lifetime of an event. DynamoDB may delete expired items
// days later.
const eventRetention = 90 * 24 * time.Hour

// shards spreads the waiting orders over the index, so that no partition of it takes
// every write.
const shards = 16

// Item is an item of a table, or the values of an expression.
type Item = map[string]types.AttributeValue

// row is an item of the orders table. Times are epoch milliseconds, except expiresAt,
// which is in seconds.
type row = Item

func text[T ~string](s T) *types.AttributeValueMemberS {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number[T ~int | ~int64 | ~uint32](n T) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

func millis(t time.Time) *types.AttributeValueMemberN { return number(t.UnixMilli()) }

func orderKey(id order.ID) row { return row{"orderId": text(id), "sk": text(orderRow)} }

func shardOf(id order.ID) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	return h.Sum32() % shards
}

// encodeEvent returns an event item of a record. Its type, amount, currency and trace are
// for readers of the stream, who do not have the order item.
func encodeEvent(r order.Record, e order.Event) row {
	item := row{
		"orderId": text(r.OrderID), "sk": text(fmt.Sprintf("%s%06d", eventRow, e.Seq)),
		"type": text(e.Type()), "seq": number(e.Seq), "from": text(e.From), "to": text(e.To),
		"amount": number(r.Total.Amount), "currency": text(r.Total.Currency),
		"at": millis(e.At), "expiresAt": number(e.At.Add(eventRetention).Unix()),
	}
	addTexts(item, map[string]string{
		"intentId": string(e.Intent), "failure": e.Failure, "traceparent": string(r.Trace),
		"disputeId": string(e.Dispute.ID), "disputeStatus": string(e.Dispute.Status),
		"refundId": e.Refund.ID, "refundStatus": e.Refund.Status,
	})
	if e.Dispute.ID != "" {
		item["disputedAt"] = millis(e.Dispute.CreatedAt)
	}
	if e.Refund.Status != "" {
		item["refundAmount"] = number(e.Refund.Amount)
	}
	return item
}

// addTexts adds the texts that are not empty.
func addTexts(item row, texts map[string]string) {
	for name, value := range texts {
		if value != "" {
			item[name] = text(value)
		}
	}
}

// addTimes adds the times that are not zero.
func addTimes(item row, times map[string]time.Time) {
	for name, t := range times {
		if !t.IsZero() {
			item[name] = millis(t)
		}
	}
}

func decodeEvent(item row) (order.Event, error) {
	d := decoder{item: item}
	if e := d.event(); d.err == nil {
		return e, nil
	}
	return order.Event{}, fmt.Errorf("row %q: %w", sortKey(item), d.err)
}

func (d *decoder) event() order.Event {
	return order.Event{
		Seq: int(d.number("seq")), From: d.status("from"), To: d.status("to"),
		Intent: order.IntentID(d.optionalText("intentId")), Failure: d.optionalText("failure"),
		Dispute: d.dispute(), At: d.time("at"), Refund: order.RefundEvent{
			ID: d.optionalText("refundId"), Status: d.optionalText("refundStatus"),
			Amount: d.optionalNumber("refundAmount"),
		},
	}
}

// encodeOrder returns the attributes of the order item, or none for a missing record.
func encodeOrder(r order.Record) row {
	if r.Status == "" {
		return nil
	}
	item := row{
		"amount": number(r.Total.Amount), "currency": text(r.Total.Currency), "fingerprint": text(r.Fingerprint),
		"status": text(r.Status), "attempt": number(r.Attempt), "seq": number(r.Seq),
	}
	addTexts(item, map[string]string{
		"customerId": r.CustomerID, "owner": r.Owner, "intentId": string(r.Intent),
		"lostIntentId": string(r.Suspect), "stripeMode": string(r.Mode), "failure": r.Failure,
		"lastError": r.LastError, "disputeId": string(r.Dispute.ID), "disputeStatus": string(r.Dispute.Status),
		"traceparent": string(r.Trace),
	})
	addTimes(item, map[string]time.Time{
		"leaseUntil": r.Until, "parkedAt": r.ParkedAt, "disputedAt": r.Dispute.CreatedAt,
		"createdAt": r.CreatedAt, "updatedAt": r.UpdatedAt, "dueAt": r.DueAt,
	})
	if !r.DueAt.IsZero() {
		item["openShard"] = number(shardOf(r.OrderID))
	}
	if len(r.Stock) > 0 {
		item["stock"] = encodeGoods(r.Stock)
	}
	return item
}

// decodeOrder decodes an order item. It returns ErrCorrupt for an item that a Store
// cannot have written.
func decodeOrder(item row) (order.Record, error) {
	d := decoder{item: item}
	r := order.Record{
		OrderID:     order.ID(d.text("orderId")),
		CustomerID:  d.optionalText("customerId"), // a recreated row has none until its next message
		Total:       order.Money{Amount: d.number("amount"), Currency: order.Currency(d.text("currency"))},
		Fingerprint: order.Fingerprint(d.text("fingerprint")),
		Status:      d.status("status"),
		Owner:       d.optionalText("owner"),
		Attempt:     int(d.number("attempt")),
		Until:       d.optionalTime("leaseUntil"),
		Intent:      order.IntentID(d.optionalText("intentId")),
		Suspect:     order.IntentID(d.optionalText("lostIntentId")),
		Mode:        order.Mode(d.optionalText("stripeMode")),
		Failure:     d.optionalText("failure"),
		LastError:   d.optionalText("lastError"),
		ParkedAt:    d.optionalTime("parkedAt"),
		Dispute:     d.dispute(),
		Stock:       d.goods("stock"),
		Seq:         int(d.number("seq")),
		CreatedAt:   d.time("createdAt"),
		UpdatedAt:   d.time("updatedAt"),
		DueAt:       d.optionalTime("dueAt"),
		Trace:       order.ParseTrace(d.optionalText("traceparent")),
	}
	if d.err != nil {
		return order.Record{}, fmt.Errorf("row %q: %w", orderRow, d.err)
	}
	return order.LoadRecord(r)
}

// addRow adds one item of an order's partition to its record.
func addRow(r *order.Record, item row) error {
	switch sk := sortKey(item); {
	case sk == orderRow:
		decoded, err := decodeOrder(item)
		decoded.Events = r.Events
		*r = decoded
		return err
	case strings.HasPrefix(sk, eventRow):
		e, err := decodeEvent(item)
		r.Events = append(r.Events, e)
		return err
	}
	return nil // a later release may add other kinds of items
}

func sortKey(item row) string {
	d := decoder{item: item}
	return d.optionalText("sk")
}

// decoder reads attributes and collects every error. An error names the attribute and not
// its value, which may be personal data.
type decoder struct {
	item  row
	newer bool // accept the statuses of a newer release
	err   error
}

func (d *decoder) text(name string) string {
	if v, ok := d.item[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	d.want(name, "a string")
	return ""
}

func (d *decoder) number(name string) int64 {
	if v, ok := d.item[name].(*types.AttributeValueMemberN); ok {
		if n, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
			return n
		}
	}
	d.want(name, "an integer")
	return 0
}

func (d *decoder) status(name string) order.Status {
	text := d.text(name)
	s, err := order.ParseStatus(text)
	if d.newer {
		return order.Status(text)
	}
	if err != nil && text != "" {
		d.err = errors.Join(d.err, fmt.Errorf("%s: %w", name, err))
	}
	return s
}

func (d *decoder) dispute() order.Dispute {
	if d.item["disputeId"] == nil {
		return order.Dispute{}
	}
	return order.Dispute{
		ID: order.DisputeID(d.text("disputeId")), Status: order.DisputeStatus(d.text("disputeStatus")),
		CreatedAt: d.time("disputedAt"),
	}
}

func (d *decoder) time(name string) time.Time { return time.UnixMilli(d.number(name)).UTC() }

func (d *decoder) optionalText(name string) string {
	if d.item[name] == nil {
		return ""
	}
	return d.text(name)
}

func (d *decoder) optionalTime(name string) time.Time {
	if d.item[name] == nil {
		return time.Time{}
	}
	return d.time(name)
}

func (d *decoder) want(name, kind string) {
	d.err = errors.Join(d.err, fmt.Errorf("%w: %s: want %s", order.ErrCorrupt, name, kind))
}
