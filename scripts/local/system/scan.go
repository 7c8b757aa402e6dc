package system

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
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
	client := sdk.NewFromConfig(s.engineConfig(s.Engine.Endpoint))
	return func(yield func(Item, error) bool) {
		pages := sdk.NewScanPaginator(client, all)
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

// Records reads every order of the table with its events. It decodes the attributes of
// docs/reference/row.md itself and does not use the store, so that a test compares the
// store with something else. It ends at the first error.
func (s *System) Records(ctx context.Context) iter.Seq2[order.Record, error] {
	return func(yield func(order.Record, error) bool) {
		var r order.Record
		for item, err := range s.Items(ctx, s.Options.Table) {
			if err != nil {
				yield(order.Record{}, err)
				return
			}
			// A scan returns the items of a partition together.
			if id := order.ID(Text(item, "orderId")); id != r.OrderID {
				if r.OrderID != "" && !yield(r, nil) {
					return
				}
				r = order.Record{OrderID: id}
			}
			if err := add(&r, item); err != nil {
				yield(order.Record{}, err)
				return
			}
		}
		if r.OrderID != "" {
			yield(r, nil)
		}
	}
}

var errUnknownSortKey = errors.New("unknown sort key")

func add(r *order.Record, item Item) error {
	switch sk := Text(item, "sk"); {
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

// dispute returns the dispute of an item without its time.
func dispute(item Item) order.Dispute {
	return order.Dispute{
		ID: order.DisputeID(Text(item, "disputeId")), Status: order.DisputeStatus(Text(item, "disputeStatus")),
	}
}
