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

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
	"orderonce/domain/refund"
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

// Order is an order of the table with its events and its refunds.
type Order struct {
	order.Record

	Refunds []refund.Item // by id
	Outside int64         // given back by others
	Left    int64         // what a new refund may give back, as the row shows
}

// Records reads every order of the table with its events. It ends at the first error.
func (s *System) Records(ctx context.Context) iter.Seq2[order.Record, error] {
	return func(yield func(order.Record, error) bool) {
		for o, err := range s.Orders(ctx) {
			if !yield(o.Record, err) {
				return
			}
		}
	}
}

// Orders reads every order of the table. It decodes the attributes of
// docs/reference/row.md itself and does not use the store, so that a test compares the
// store with something else. It ends at the first error.
func (s *System) Orders(ctx context.Context) iter.Seq2[Order, error] {
	return func(yield func(Order, error) bool) {
		var o Order
		for item, err := range s.Items(ctx, s.Options.Table) {
			if err != nil {
				yield(Order{}, err)
				return
			}
			if Text(item, "sk") == registrationKey {
				continue // of an order that a client put
			}
			// A scan returns the items of a partition together.
			if id := order.ID(Text(item, "orderId")); id != o.OrderID {
				if o.OrderID != "" && !yield(o, nil) {
					return
				}
				o = Order{Record: order.Record{OrderID: id}}
			}
			if err := add(&o, item); err != nil {
				yield(Order{}, err)
				return
			}
		}
		if o.OrderID != "" {
			yield(o, nil)
		}
	}
}

// registrationKey is the sort key of what the entrance by HTTP knows of an order.
const registrationKey = "intake"

var errUnknownSortKey = errors.New("unknown sort key")

func add(r *Order, item Item) error {
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
		r.addRefunds(item)
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

// addRefunds adds the refunds of an order item, without their times.
func (o *Order) addRefunds(item Item) {
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

// refundName starts the name of a refund's attribute.
const refundName = "refund#"
