package dynamodb

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Row is one order of a scan, without its events. Err is why it could not be decoded; the
// record has only its id then.
type Row struct {
	order.Record

	Account refund.Account
	Err     error
}

// Page is one page of a scan: what DynamoDB read in one call, at most 1 MB. Next
// continues the scan after it; "" after the last page.
type Page struct {
	Rows []Row
	Next string
}

// Scan reads every order of the table, with its refunds, in pages of one call each. after
// is "", or the Next of a page with which an earlier Scan ended. It ends at the first
// error.
//
// The reads are eventually consistent, which costs half: 128 read units a page, for the
// event items too. Load a row before you decide anything about it.
func (r *Refunds) Scan(ctx context.Context, after string) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for {
			page, err := r.scanPage(ctx, after)
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			after = page.Next
		}
	}
}

func (r *Refunds) scanPage(ctx context.Context, after string) (Page, error) {
	start, err := decodeCursor(after)
	if err != nil {
		return Page{}, err
	}
	out, err := r.orders.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &r.orders.table, ExclusiveStartKey: start,
		FilterExpression:          aws.String("sk = :order"),
		ExpressionAttributeValues: row{":order": text(orderRow)},
	})
	if err != nil {
		return Page{}, fmt.Errorf("scan the table after %q: %w", after, err)
	}
	page := Page{Rows: make([]Row, 0, len(out.Items))}
	for _, item := range out.Items {
		page.Rows = append(page.Rows, decodeRow(item))
	}
	if len(out.LastEvaluatedKey) > 0 {
		page.Next = encodeCursor(out.LastEvaluatedKey)
	}
	return page, nil
}

func decodeRow(item row) Row {
	r := Row{}
	if r.Record, r.Err = decodeOrder(item); r.Err == nil {
		r.Account, r.Err = decodeAccount(item)
	}
	if r.Err != nil {
		d := decoder{item: item}
		r.Record = order.Record{OrderID: order.ID(d.optionalText("orderId"))}
	}
	return r
}

// encodeCursor returns the key of an item as a string. An order id has no slash.
func encodeCursor(key row) string {
	d := decoder{item: key}
	return d.optionalText("orderId") + "/" + sortKey(key)
}

func decodeCursor(cursor string) (row, error) {
	if cursor == "" {
		return nil, nil //nolint:nilnil // no key: the scan starts at the beginning
	}
	id, sk, found := strings.Cut(cursor, "/")
	if !found {
		return nil, fmt.Errorf("scan position %q: want orderId/sk", cursor)
	}
	return row{"orderId": text(id), "sk": text(sk)}, nil
}

// RaiseSeq sets the order's seq to that of its last event, if it is lower: its row was
// put back from a backup, and the next event would collide with one that exists. It
// returns order.ErrNotFound if the row does not exist, and order.ErrStale if the row
// changed at the same moment.
func (s *Store) RaiseSeq(ctx context.Context, id order.ID) error {
	r, err := s.Load(ctx, id)
	if err != nil {
		return err
	}
	seq := r.Seq
	for _, e := range r.Events {
		seq = max(seq, e.Seq)
	}
	if seq == r.Seq {
		return nil
	}
	raised := r
	raised.Seq, raised.Events = seq, nil
	_, err = s.Save(ctx, r, raised)
	return wrap("raise seq of", id, err)
}
