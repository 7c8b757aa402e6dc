package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

var _ refund.Store = (*Refunds)(nil)

// Refunds keeps the refunds of an order as attributes of its item, so that one
// conditional write claims a refund, reserves its amount and returns the order. Each
// refund is a map under the name refund#<refundId>.
type Refunds struct {
	orders *Store
}

// NewRefunds returns the refunds of the orders of a store.
func NewRefunds(s *Store) *Refunds { return &Refunds{orders: s} }

// refundName starts the name of a refund's attribute.
const refundName = "refund#"

// accounts is the codec of what refund.Account has of the order item. What is left of the
// charge guards the sums: a claim of a refund reserves its amount without an event.
var accounts = codec[refund.Account]{
	encode: encodeAccount, decode: decodeAccount,
	guard: []string{"status", "seq", "refundable"}, sparse: []string{"refundable"},
	inner: []string{"status", "owner", "attempt", "leaseUntil", "keySeq", "sentAt"},
	quiet: []string{"updatedAt", "openShard"},
}

// Load implements refund.Store with one strongly consistent GetItem.
func (r *Refunds) Load(ctx context.Context, id order.ID) (refund.Account, error) {
	out, err := r.orders.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &r.orders.table, Key: orderKey(id), ConsistentRead: aws.Bool(true),
	})
	if err == nil && len(out.Item) == 0 {
		err = order.ErrNotFound
	}
	if err != nil {
		return refund.Account{}, wrap("load account of", id, err)
	}
	a, err := decodeAccount(out.Item)
	return a, wrap("load account of", id, err)
}

// Save implements refund.Store with one UpdateItem, or with one TransactWriteItems if the
// change has an event.
func (r *Refunds) Save(ctx context.Context, before, after refund.Account) (refund.Account, error) {
	of := order.Record{OrderID: after.OrderID, Total: after.Charged, Trace: after.Trace, Events: after.Events}
	more := r.orders.events(before.Seq, of)
	now, err := save(ctx, r.orders, accounts, orderKey(after.OrderID), before, after, more...)
	now.Events = nil
	return now, err
}

func encodeAccount(a refund.Account) row {
	item := row{
		"status": text(a.Status), "seq": number(a.Seq), "refundable": number(a.Left()),
		"updatedAt": millis(a.UpdatedAt),
	}
	if a.Outside != 0 {
		item["refundedOutside"] = number(a.Outside)
	}
	for _, i := range a.Items {
		item[refundName+string(i.ID)] = encodeRefund(i)
	}
	if !a.Due.IsZero() {
		item["openShard"], item["dueAt"] = number(shardOf(a.OrderID)), millis(a.Due)
	}
	return item
}

// decodeAccount decodes the order item with its refunds.
func decodeAccount(item row) (refund.Account, error) {
	r, err := decodeOrder(item)
	if err != nil {
		return refund.Account{}, err
	}
	d := decoder{item: item}
	a := refund.Account{
		OrderID: r.OrderID, Status: r.Status, Charged: r.Total, Intent: r.Intent, Seq: r.Seq, Trace: r.Trace,
		Outside: d.optionalNumber("refundedOutside"), UpdatedAt: r.UpdatedAt, Due: r.DueAt,
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if id, is := strings.CutPrefix(name, refundName); is {
			a.Items = append(a.Items, d.refund(name, refund.ID(id)))
		}
	}
	if item["refundable"] != nil && d.number("refundable") != a.Left() {
		d.want("refundable", fmt.Sprintf("%d, which the refunds leave", a.Left()))
	}
	return a, d.err
}

func encodeRefund(i refund.Item) *types.AttributeValueMemberM {
	m := row{
		"amount": number(i.Amount), "status": text(i.Status), "fingerprint": text(i.Fingerprint),
		"attempt": number(i.Attempt), "keySeq": number(i.KeySeq),
		"createdAt": millis(i.CreatedAt), "updatedAt": millis(i.UpdatedAt),
	}
	addTexts(m, map[string]string{
		"reason": string(i.Reason), "owner": i.Owner, "stripeRefundId": string(i.Refund), "failure": i.Failure,
		"lastError": i.LastError,
	})
	addTimes(m, map[string]time.Time{"leaseUntil": i.Until, "sentAt": i.SentAt})
	return &types.AttributeValueMemberM{Value: m}
}

// refund decodes one refund of the row.
func (d *decoder) refund(name string, id refund.ID) refund.Item {
	m, ok := d.item[name].(*types.AttributeValueMemberM)
	if !ok {
		d.want(refundName+"...", "a map")
		return refund.Item{}
	}
	in := decoder{item: m.Value}
	status, err := refund.ParseStatus(in.text("status"))
	i := refund.Item{
		ID: id, Amount: in.number("amount"), Reason: refund.Reason(in.optionalText("reason")), Status: status,
		Fingerprint: order.Fingerprint(in.text("fingerprint")), Owner: in.optionalText("owner"),
		Until: in.optionalTime("leaseUntil"), Attempt: int(in.number("attempt")), KeySeq: int(in.number("keySeq")),
		SentAt: in.optionalTime("sentAt"), Refund: refund.ProviderID(in.optionalText("stripeRefundId")),
		Failure: in.optionalText("failure"), LastError: in.optionalText("lastError"),
		CreatedAt: in.time("createdAt"), UpdatedAt: in.time("updatedAt"),
	}
	d.err = errors.Join(d.err, cmp.Or(in.err, err))
	return i
}

func (d *decoder) optionalNumber(name string) int64 {
	if d.item[name] == nil {
		return 0
	}
	return d.number(name)
}
