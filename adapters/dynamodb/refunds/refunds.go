// Package refunds keeps the refunds of the orders in their table. Package refund decides
// what they mean; this package encodes them.
package refunds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

var _ refund.Store = (*Store)(nil)

// Store keeps the refunds of an order as attributes of its item, so that one
// conditional write claims a refund, reserves its amount and returns the order. Each
// refund is a map under the name refund#<refundId>.
type Store struct {
	orders *dynamodb.Store
}

// New returns the refunds of the orders of a store.
func New(s *dynamodb.Store) *Store { return &Store{orders: s} }

// refundName starts the name of a refund's attribute.
const refundName = "refund#"

// accounts returns the codec of what refund.Account has of the order item. What is left
// of the charge guards the sums: a claim of a refund reserves its amount without an
// event.
func accounts() dynamodb.Codec[refund.Account] {
	return dynamodb.Codec[refund.Account]{
		Encode: encodeAccount, Decode: Decode,
		Guards: dynamodb.Guards{
			Guard: []string{"status", "seq", "refundable"}, Sparse: []string{"refundable"},
			Inner: []string{"status", "owner", "attempt", "leaseUntil", "keySeq", "sentAt"},
			Quiet: []string{"updatedAt", "openShard"},
		},
	}
}

// Load implements refund.Store with one strongly consistent GetItem.
func (r *Store) Load(ctx context.Context, id order.ID) (refund.Account, error) {
	out, err := r.orders.DB.GetItem(ctx, &sdk.GetItemInput{
		TableName: &r.orders.TableName, Key: dynamodb.OrderKey(id), ConsistentRead: aws.Bool(true),
	})
	var a refund.Account
	switch {
	case err == nil && len(out.Item) == 0:
		err = order.ErrNotFound
	case err == nil:
		a, err = Decode(out.Item)
	}
	return a, order.About("load account of", id, err)
}

// Save implements refund.Store with one UpdateItem, or with one TransactWriteItems if the
// change has an event.
func (r *Store) Save(ctx context.Context, before, after refund.Account) (refund.Account, error) {
	of := order.Record{OrderID: after.OrderID, Total: after.Charged, Trace: after.Trace, Events: after.Events}
	there, err := dynamodb.Save(ctx, r.orders, accounts(), dynamodb.OrderKey(after.OrderID),
		encodeAccount(&before), encodeAccount(&after), r.orders.EventsSince(before.Seq, &of)...)
	if there != nil {
		return *there, err
	}
	after.Events = nil
	return after, err
}

func encodeAccount(a *refund.Account) dynamodb.Item {
	item := dynamodb.Item{
		"status": dynamodb.Text(a.Status), "seq": dynamodb.Number(a.Seq), "refundable": dynamodb.Number(a.Left()),
		"updatedAt": dynamodb.Millis(a.UpdatedAt),
	}
	if a.Outside != 0 {
		item["refundedOutside"] = dynamodb.Number(a.Outside)
	}
	for _, i := range a.Items {
		item[refundName+string(i.ID)] = encodeRefund(i)
	}
	if !a.Due.IsZero() {
		item["openShard"], item["dueAt"] = dynamodb.Number(dynamodb.ShardOf(a.OrderID)), dynamodb.Millis(a.Due)
	}
	return item
}

// Decode returns the account of an order item: the order with its refunds.
func Decode(item dynamodb.Item) (refund.Account, error) {
	r, err := dynamodb.DecodeOrder(item)
	if err != nil {
		return refund.Account{}, err
	}
	d := dynamodb.Decoder{Item: item}
	a := refund.Account{
		OrderID: r.OrderID, Status: r.Status, Charged: r.Total, Intent: r.Intent, Seq: r.Seq, Trace: r.Trace,
		Outside: d.OptionalNumber("refundedOutside"), UpdatedAt: r.UpdatedAt, Due: r.DueAt,
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if id, is := strings.CutPrefix(name, refundName); is {
			a.Items = append(a.Items, decodeRefund(&d, name, refund.ID(id)))
		}
	}
	if item["refundable"] != nil && d.Number("refundable") != a.Left() {
		d.Want("refundable", fmt.Sprintf("%d, which the refunds leave", a.Left()))
	}
	return a, d.Err
}

func encodeRefund(i refund.Item) *types.AttributeValueMemberM {
	m := dynamodb.Item{
		"amount": dynamodb.Number(i.Amount), "status": dynamodb.Text(i.Status),
		"fingerprint": dynamodb.Text(i.Fingerprint),
		"attempt":     dynamodb.Number(i.Attempt), "keySeq": dynamodb.Number(i.KeySeq),
		"createdAt": dynamodb.Millis(i.CreatedAt), "updatedAt": dynamodb.Millis(i.UpdatedAt),
	}
	dynamodb.AddTexts(m, "reason", string(i.Reason), "owner", i.Owner, "stripeRefundId", string(i.Refund),
		"failure", i.Failure, "lastError", i.LastError)
	dynamodb.AddTime(m, "leaseUntil", i.Until)
	dynamodb.AddTime(m, "sentAt", i.SentAt)
	return &types.AttributeValueMemberM{Value: m}
}

// refund decodes one refund of the row.
func decodeRefund(d *dynamodb.Decoder, name string, id refund.ID) refund.Item {
	m, ok := d.Item[name].(*types.AttributeValueMemberM)
	if !ok {
		d.Want(refundName+"...", "a map")
		return refund.Item{}
	}
	in := dynamodb.Decoder{Item: m.Value}
	status, err := refund.ParseStatus(in.Text("status"))
	i := refund.Item{
		ID: id, Amount: in.Number("amount"), Reason: refund.Reason(in.OptionalText("reason")), Status: status,
		Fingerprint: order.Fingerprint(in.Text("fingerprint")), Owner: in.OptionalText("owner"),
		Until: in.OptionalTime("leaseUntil"), Attempt: int(in.Number("attempt")),
		KeySeq: int(in.Number("keySeq")),
		SentAt: in.OptionalTime("sentAt"), Refund: refund.ProviderID(in.OptionalText("stripeRefundId")),
		Failure: in.OptionalText("failure"), LastError: in.OptionalText("lastError"),
		CreatedAt: in.Time("createdAt"), UpdatedAt: in.Time("updatedAt"),
	}
	d.Err = errors.Join(d.Err, cmp.Or(in.Err, err))
	return i
}
