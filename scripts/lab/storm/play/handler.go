// Package play runs one handler of the order queue through a storm: its real binary in many processes, which are killed at any
// moment, over services that fail in every way that they can, with messages that come twice, late, or are none. Then it
// compares what was sent with what Stripe has charged, what the table says and what is left in the queues, and
// counts. It refuses to know how a handler works; it starts a program and reads the books.
package play

import (
	"context"
	"iter"

	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// Handler is a program that consumes the order queue as a Lambda function, and how to read its table.
type Handler struct {
	Name  string
	Does  string // what it does, in a few words
	Fails string // where it fails; "" for the product
	// Build makes the program and a second version of it, and returns their paths. The version is rolled out in the middle.
	Build func(ctx context.Context, dir string) (binary, next string, err error)
	// Options change the system that the handler runs in. Nil changes nothing.
	Options func(*system.Options)
	// Prepare is called once the system is up, before the first message. Nil does nothing.
	Prepare func(context.Context, *system.System) error
	// Rows reads the handler's table. Nil reads ours.
	Rows func(context.Context, *system.System) iter.Seq2[Row, error]
}

// Row is what a table says of one order at the end.
type Row struct {
	OrderID string
	Settled bool         // no more work is due
	Status  order.Status // the last word, if it is settled
	Amount  int64        // what was claimed; 0 if the table does not say
	// Record is ours, for the invariants; nil for another handler.
	Record *order.Record
}

func ourRows(ctx context.Context, s *system.System) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for r, err := range s.Records(ctx) {
			row := Row{OrderID: string(r.OrderID), Settled: r.Status != order.Open, Status: r.Status, Amount: r.Total.Amount, Record: &r}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
