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
		f := dynamodb.Fields{Item: dynamodb.Item{}, Encodes: true}
		refundFields(&f, &i)
		item[refundName+string(i.ID)] = &types.AttributeValueMemberM{Value: f.Item}
	}
	if !a.Due.IsZero() {
		item["openShard"] = dynamodb.ShardKey(dynamodb.OrderShards, a.OrderID)
		item["dueAt"] = dynamodb.Millis(a.Due)
	}
	return item
}

// Decode returns the account of an order item: the order with its refunds.
func Decode(item dynamodb.Item) (refund.Account, error) {
	r, err := dynamodb.DecodeOrder(item)
	if err != nil {
		return refund.Account{}, err
	}
	f := dynamodb.Fields{Item: item}
	a := refund.Account{
		OrderID: r.OrderID, Status: r.Status, Charged: r.Total, Intent: r.Intent, Seq: r.Seq, Trace: r.Trace,
		Outside: f.Number("refundedOutside"), UpdatedAt: r.UpdatedAt, Due: r.DueAt,
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if id, is := strings.CutPrefix(name, refundName); is {
			a.Items = append(a.Items, decodeRefund(&f, name, refund.ID(id)))
		}
	}
	if item["refundable"] != nil && f.Number("refundable") != a.Left() {
		f.Want("refundable", fmt.Sprintf("%d, which the refunds leave", a.Left()))
	}
	return a, f.Err
}

func refundFields(f *dynamodb.Fields, i *refund.Item) {
	f.Require("amount", "status", "fingerprint", "attempt", "keySeq", "createdAt", "updatedAt")
	dynamodb.NumberField(f, "amount", &i.Amount)
	dynamodb.TextField(f, "reason", &i.Reason)
	dynamodb.TextField(f, "status", &i.Status)
	dynamodb.TextField(f, "fingerprint", &i.Fingerprint)
	dynamodb.TextField(f, "owner", &i.Owner)
	dynamodb.TimeField(f, "leaseUntil", &i.Until)
	dynamodb.NumberField(f, "attempt", &i.Attempt)
	dynamodb.NumberField(f, "keySeq", &i.KeySeq)
	dynamodb.TimeField(f, "sentAt", &i.SentAt)
	dynamodb.TextField(f, "stripeRefundId", &i.Refund)
	dynamodb.TextField(f, "failure", &i.Failure)
	dynamodb.TextField(f, "lastError", &i.LastError)
	dynamodb.TimeField(f, "createdAt", &i.CreatedAt)
	dynamodb.TimeField(f, "updatedAt", &i.UpdatedAt)
}

func decodeRefund(of *dynamodb.Fields, name string, id refund.ID) refund.Item {
	m, ok := of.Item[name].(*types.AttributeValueMemberM)
	if !ok {
		of.Want(refundName+"...", "a map")
		return refund.Item{}
	}
	f, i := dynamodb.Fields{Item: m.Value}, refund.Item{ID: id}
	refundFields(&f, &i)
	_, err := refund.ParseStatus(string(i.Status))
	of.Err = errors.Join(of.Err, cmp.Or(f.Err, err))
	return i
}
