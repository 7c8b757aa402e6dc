package system

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
)

// Item is an item of a table.
type Item = map[string]types.AttributeValue

// Text returns an item's string attribute, or "".
func Text(i Item, name string) string {
	v, _ := i[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// Number returns an item's integer attribute, or 0.
func Number(i Item, name string) int64 {
	v, _ := i[name].(*types.AttributeValueMemberN)
	if v == nil {
		return 0
	}
	n, _ := strconv.ParseInt(v.Value, 10, 64)
	return n
}

// Items reads a whole table, page by page, past the proxy. It ends at the first error.
func (s *System) Items(ctx context.Context, table string) iter.Seq2[Item, error] {
	return s.scan(ctx, &sdk.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
}

func (s *System) scan(ctx context.Context, all *sdk.ScanInput) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		pages := sdk.NewScanPaginator(s.Client(), all)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(nil, fmt.Errorf("scan table %q: %w", *all.TableName, err))
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Orders reads every order of the table. It decodes the attributes of
// docs/reference/row.md itself and does not use the store, so that a test compares the
// store with something else. It ends at the first error.
func (s *System) Orders(ctx context.Context) iter.Seq2[invariants.Order, error] {
	return func(yield func(invariants.Order, error) bool) {
		var o invariants.Order
		posted := func() bool { return o.Status != "" || len(o.Events) > 0 } // a client's request alone is none
		for item, err := range s.Items(ctx, s.Options.Table) {
			// A scan returns the items of a partition together.
			id := order.ID(Text(item, "orderId"))
			if err == nil && id != o.OrderID {
				if posted() && !yield(o, nil) {
					return
				}
				o = invariants.Order{Record: order.Record{OrderID: id}}
			}
			if err == nil {
				err = add(&o, item)
			}
			if err != nil {
				yield(invariants.Order{}, err)
				return
			}
		}
		if posted() {
			yield(o, nil)
		}
	}
}

// Order reads one order as Orders does. It returns order.ErrNotFound.
func (s *System) Order(ctx context.Context, id order.ID) (o invariants.Order, err error) {
	o.OrderID = id
	// No order has a page of events.
	out, err := s.Client().Query(ctx, &sdk.QueryInput{
		TableName: &s.Options.Table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: Item{":id": &types.AttributeValueMemberS{Value: string(id)}},
	})
	if err != nil {
		return o, fmt.Errorf("read order %q: %w", id, err)
	}
	for _, item := range out.Items {
		if err := add(&o, item); err != nil {
			return o, err
		}
	}
	if o.Status == "" {
		return o, order.ErrNotFound
	}
	return o, nil
}

// registrationKey is the sort key of what the entrance by HTTP knows of an order.
const registrationKey = "intake"

var errUnknownSortKey = errors.New("unknown sort key")

func add(r *invariants.Order, item Item) error {
	switch sk := Text(item, "sk"); {
	case sk == registrationKey: // of an order that a client put
	case sk == "order":
		r.CustomerID = Text(item, "customerId")
		r.Total = order.Money{Amount: Number(item, "amount"), Currency: order.Currency(Text(item, "currency"))}
		r.Fingerprint = order.Fingerprint(Text(item, "fingerprint"))
		r.Status = order.Status(Text(item, "status"))
		r.Attempt, r.Seq = int(Number(item, "attempt")), int(Number(item, "seq"))
		r.Owner, r.Intent = Text(item, "owner"), order.IntentID(Text(item, "intentId"))
		r.Mode = order.Mode(Text(item, "stripeMode"))
		r.Failure, r.LastError = Text(item, "failure"), Text(item, "lastError")
		r.Dispute = dispute(item)
		if item["leaseUntil"] != nil {
			r.Until = time.UnixMilli(Number(item, "leaseUntil"))
		}
		r.Stock = stock(item)
		addRefunds(r, item)
	case strings.HasPrefix(sk, "event#"):
		r.Events = append(r.Events, order.Event{
			Seq: int(Number(item, "seq")), From: order.Status(Text(item, "from")), To: order.Status(Text(item, "to")),
			Intent: order.IntentID(Text(item, "intentId")), Failure: Text(item, "failure"), Dispute: dispute(item),
			Refund: order.RefundEvent{
				ID: Text(item, "refundId"), Status: Text(item, "refundStatus"), Amount: Number(item, "refundAmount"),
			},
		})
	default:
		return fmt.Errorf("order %q: %w %q", r.OrderID, errUnknownSortKey, sk)
	}
	return nil
}

func stock(item Item) (held order.Quantities) {
	if m, is := item["stock"].(*types.AttributeValueMemberM); is {
		held = order.Quantities{}
		for sku := range m.Value {
			held[sku] = Number(m.Value, sku)
		}
	}
	return held
}

// dispute returns the dispute of an item without its time.
func dispute(item Item) order.Dispute {
	return order.Dispute{
		ID: order.DisputeID(Text(item, "disputeId")), Status: order.DisputeStatus(Text(item, "disputeStatus")),
	}
}

// addRefunds adds the refunds of an order item, without their times.
func addRefunds(o *invariants.Order, item Item) {
	o.Outside, o.Left = Number(item, "refundedOutside"), o.Total.Amount
	if item["refundable"] != nil {
		o.Left = Number(item, "refundable")
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		id, is := strings.CutPrefix(name, refundName)
		if m, ok := item[name].(*types.AttributeValueMemberM); is && ok {
			o.Refunds = append(o.Refunds, refund.Item{
				ID: refund.ID(id), Amount: Number(m.Value, "amount"), Reason: refund.Reason(Text(m.Value, "reason")),
				Status:  refund.Status(Text(m.Value, "status")),
				Refund:  refund.ProviderID(Text(m.Value, "stripeRefundId")),
				Attempt: int(Number(m.Value, "attempt")), KeySeq: int(Number(m.Value, "keySeq")),
				Failure: Text(m.Value, "failure"), LastError: Text(m.Value, "lastError"),
			})
		}
	}
}

const refundName = "refund#"
