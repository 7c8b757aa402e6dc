// Package salvage brings orders back from a damaged table: those that a restored table
// lacks, or has in an older state, whole with their events and registrations. It decides
// with a pure function over the items of both tables. It moves neither money nor stock,
// and does not ask Stripe: an audit does, afterwards.
package salvage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// NoRow is the status of an order without a row. One that was put by HTTP has none yet.
const NoRow order.Status = "registered"

// Found is an order of the damaged table that differs in the restored one.
type Found struct {
	ID     order.ID
	Status order.Status // in the damaged table
	Why    string       // why it is left alone; "" if it is brought back
	puts   []types.Put  // by sort key: events, registration, row
}

func (f Found) differs() bool { return f.Why != "" || len(f.puts) > 0 }

// ErrChanged means that the restored table changed since it was compared.
var ErrChanged = errors.New("it changed meanwhile: run the command again")

// Tables are a damaged table and the restored one.
type Tables struct {
	Damaged, Restored *dynamodb.Store
	Now               func() time.Time
	Wait              func(context.Context) error // before each page of the scan
	Progress          func(read int)
}

// Differing scans the damaged table and yields the orders that differ in the restored
// one. It ends at the first error.
func (t Tables) Differing(ctx context.Context) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		pages := sdk.NewScanPaginator(t.Damaged.DB, &sdk.ScanInput{
			TableName: &t.Damaged.TableName, ConsistentRead: aws.Bool(true),
			FilterExpression:          aws.String("NOT begins_with(sk, :event)"),
			ExpressionAttributeValues: dynamodb.Item{":event": dynamodb.Text(dynamodb.EventRow)},
		})
		read, last := 0, order.ID("")
		for pages.HasMorePages() {
			err := t.Wait(ctx)
			var page *sdk.ScanOutput
			var ids []order.ID
			if err == nil {
				page, err = pages.NextPage(ctx)
			}
			if err == nil {
				ids, err = t.differing(ctx, page.Items)
			}
			for _, id := range slices.Compact(ids) {
				if id == last || err != nil {
					continue
				}
				var f Found
				if f, err = t.Compare(ctx, id); err == nil && f.differs() && !yield(f, nil) {
					return
				}
				last = id
			}
			if err != nil {
				yield(Found{}, fmt.Errorf("compare table %s with %s: %w", t.Damaged.TableName, t.Restored.TableName, err))
				return
			}
			read += len(page.Items)
			t.Progress(read)
		}
	}
}

// readers is how many items are read at once.
const readers = 16

// differing returns the orders of the items that the restored table has not as they are.
func (t Tables) differing(ctx context.Context, items []dynamodb.Item) (ids []order.ID, err error) {
	differ, errs := make([]bool, len(items)), make([]error, len(items))
	var all sync.WaitGroup
	for first := range readers {
		all.Go(func() {
			for n := first; n < len(items); n += readers {
				out, err := t.Restored.DB.GetItem(ctx, &sdk.GetItemInput{
					TableName: &t.Restored.TableName, ConsistentRead: aws.Bool(true),
					Key: dynamodb.Item{"orderId": items[n]["orderId"], "sk": items[n]["sk"]},
				})
				if errs[n] = err; err == nil {
					differ[n] = !same(items[n], out.Item)
				}
			}
		})
	}
	all.Wait()
	for n, item := range items {
		if differ[n] {
			ids = append(ids, order.ID(dynamodb.TextOf(item, "orderId")))
		}
	}
	return ids, errors.Join(errs...)
}

// same reports whether two items are equal, whenever they are to be looked at.
func same(a, b dynamodb.Item) bool {
	plain := func(item dynamodb.Item) dynamodb.Item {
		item = maps.Clone(item)
		delete(item, "dueAt")
		delete(item, "openShard")
		return item
	}
	return len(a) > 0 == (len(b) > 0) && reflect.DeepEqual(plain(a), plain(b))
}

// Compare compares one order, strongly consistent.
func (t Tables) Compare(ctx context.Context, id order.ID) (Found, error) {
	var sides [2]map[string]dynamodb.Item
	for n, s := range []*dynamodb.Store{t.Damaged, t.Restored} {
		sides[n] = map[string]dynamodb.Item{}
		for item, err := range s.Partition(ctx, id) {
			if err != nil {
				return Found{}, order.About("compare", id, err)
			}
			sides[n][dynamodb.TextOf(item, "sk")] = item
		}
	}
	return decide(id, sides[0], sides[1], t.Now()), nil
}

// Bring compares an order again and writes what the restored table lacks, if its row is
// still as it was compared: all or none of it, apart from the oldest events of an order
// with more than 99. It returns ErrChanged.
func (t Tables) Bring(ctx context.Context, id order.ID) (Found, error) {
	f, err := t.Compare(ctx, id)
	if err != nil || f.Why != "" {
		return f, err
	}
	for part := range slices.Chunk(f.puts, 100) {
		var writes []types.TransactWriteItem
		for _, p := range part {
			p.TableName = &t.Restored.TableName
			writes = append(writes, types.TransactWriteItem{Put: &p})
		}
		_, err := t.Restored.DB.TransactWriteItems(ctx, &sdk.TransactWriteItemsInput{TransactItems: writes})
		if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
			return f, fmt.Errorf("%w (%s)", ErrChanged, aws.ToString(canceled.Message))
		}
		if err != nil {
			return f, order.About("bring back", id, err)
		}
	}
	return f, nil
}

// state is an order as one table has it.
type state struct {
	order.Record // Status "" without a row

	refunds refund.Account
}

func decode(items map[string]dynamodb.Item) (s state, err error) {
	for _, sk := range slices.Sorted(maps.Keys(items)) { // the events before the row
		if err = cmp.Or(err, dynamodb.AddRow(&s.Record, items[sk])); sk == dynamodb.OrderRow && err == nil {
			s.refunds, err = refundtable.Decode(items[sk])
		}
	}
	return s, err
}

// decide decides about an order from its items in the damaged table and in the restored
// one, by sort key.
func decide(id order.ID, damaged, restored map[string]dynamodb.Item, now time.Time) Found {
	lost, err := decode(damaged)
	f := Found{ID: id, Status: cmp.Or(lost.Status, NoRow)}
	if err != nil {
		f.Why = "corrupt in the damaged table: " + err.Error()
		return f
	}
	here, err := decode(restored)
	replace := lost.Status != "" && (here.Status == "" || lost.newer(&here) || blank(&here) && !blank(&lost))
	switch {
	case err != nil:
		f.Why = "corrupt in the restored table: " + err.Error()
	case lost.contradicts() != "":
		f.Why = "edited in the damaged table: " + lost.contradicts()
	case replace && order.LeaseRunning(here.Until, now):
		f.Why = "a worker holds it: stop processing, and run the command again in 15 minutes"
	case replace:
		f.Why = f.put(damaged, restored, "")
	case lost.Status == "" || lost.agrees(&here): // there may be a registration
		f.Why = f.put(damaged, restored, dynamodb.OrderRow)
	case lost.UpdatedAt.Equal(here.UpdatedAt):
		f.Why = fmt.Sprintf("edited by hand: %s there, %s here, with the same times", &lost, &here)
	default:
		f.Why = fmt.Sprintf("changed in the restored table since: %s there, %s here", &lost, &here)
	}
	return f
}

// contradicts returns how the row differs from its last event, or "".
func (s *state) contradicts() string {
	if n := len(s.Events); s.Status != "" && n > 0 {
		if e := s.Events[n-1]; e.Seq > s.Seq || e.Seq == s.Seq && e.To != s.Status {
			return fmt.Sprintf("its row says %s after %d events, event %d says %s", s.Status, s.Seq, e.Seq, e.To)
		}
	}
	return ""
}

// newer reports whether the order went on from the state that is here.
func (s *state) newer(here *state) bool {
	return s.Fingerprint == here.Fingerprint && s.Total == here.Total && s.CreatedAt.Equal(here.CreatedAt) &&
		(here.Intent == "" || here.Intent == s.Intent) && here.Suspect == "" && s.Attempt >= here.Attempt &&
		(s.Seq > here.Seq || s.Seq == here.Seq && s.UpdatedAt.After(here.UpdatedAt))
}

// blank reports whether the row says only that the order exists: nothing was charged,
// and nothing is held.
func blank(s *state) bool {
	return s.Status == order.Open && s.Intent == "" && s.Suspect == "" && s.Stock == nil && s.Seq == 0
}

// agrees reports whether two states of an order have the same effects.
func (s *state) agrees(here *state) bool {
	return s.Status == here.Status && s.Fingerprint == here.Fingerprint && s.Total == here.Total &&
		s.Intent == here.Intent && maps.Equal(s.Stock, here.Stock) && s.Dispute.Is(here.Dispute) &&
		s.refunds.Refunded() == here.refunds.Refunded() && s.refunds.Left() == here.refunds.Left()
}

// String returns the state for a person.
func (s *state) String() string {
	return string(s.Status) + " " + cmp.Or(string(s.Intent), "without a PaymentIntent")
}

// put adds the writes of what the restored table lacks: with its row and events, or its
// registration alone if it keeps the row. It returns which item prevents that, or "".
func (f *Found) put(damaged, restored map[string]dynamodb.Item, keeps string) (conflict string) {
	for sk, item := range damaged {
		there := restored[sk]
		put := types.Put{Item: item, ConditionExpression: aws.String(dynamodb.Absent)}
		switch {
		case keeps != "" && (sk == keeps || strings.HasPrefix(sk, dynamodb.EventRow)),
			there != nil && same(item, there):
			continue
		case sk == dynamodb.OrderRow && there != nil:
			put.ConditionExpression, put.ExpressionAttributeNames, put.ExpressionAttributeValues = unchanged(there)
		case there != nil:
			return fmt.Sprintf("changed in the restored table since: its item %s differs", sk)
		}
		f.puts = append(f.puts, put)
	}
	slices.SortFunc(f.puts, func(a, b types.Put) int { // the row comes last
		return cmp.Compare(dynamodb.TextOf(a.Item, "sk"), dynamodb.TextOf(b.Item, "sk"))
	})
	return ""
}

// unchanged returns the condition that a row is as it was compared, by attributes of
// which every write changes one.
func unchanged(row dynamodb.Item) (condition *string, names map[string]string, values dynamodb.Item) {
	var parts []string
	names, values = map[string]string{}, dynamodb.Item{}
	for _, name := range []string{"status", "seq", "updatedAt", "attempt", "owner", "intentId", "refundable"} {
		names["#"+name] = name
		if row[name] == nil {
			parts = append(parts, "attribute_not_exists(#"+name+")")
			continue
		}
		parts, values[":"+name] = append(parts, "#"+name+" = :"+name), row[name]
	}
	return aws.String(strings.Join(parts, " AND ")), names, values
}
