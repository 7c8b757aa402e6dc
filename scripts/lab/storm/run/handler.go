// Package run runs one handler of the order queue through a storm: its binary in many
// processes, which are killed at random, over services with injected faults, with
// duplicate, late and invalid messages. Then it compares the messages with Stripe's
// charges, the table and the queues. It does not know how a handler works.
package run

import (
	"context"
	"iter"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Handler is a Lambda function that consumes the order queue, and how to read its table.
type Handler struct {
	Name    string
	Version string // of what others wrote; "" for none
	Does    string // what it does, in a few words
	Fails   string // where it fails; "" for the product
	// FIFO gives the handler a FIFO queue, with content-based deduplication.
	FIFO bool
	// Build builds the program and returns its path.
	Build func(ctx context.Context, dir string) (path string, err error)
	// Program builds a package of the product, such as functions/intake, and returns the
	// path: the functions beside that of the order queue, and the operator's tool, which
	// audits the storm at its end. Nil means that the handler has neither.
	Program func(ctx context.Context, pkg string) (path string, err error)
	// Options changes the system that the handler runs in. Nil changes nothing.
	Options func(*system.Options)
	// Prepare is called before the first message. Nil does nothing.
	Prepare func(context.Context, *system.System) error
	// Kill kills a process that the handler has beside the function of the order queue, and
	// returns how many it killed. Nil means that there is none.
	Kill func() int
	// Rows reads the handler's table. Nil means that the handler is the product.
	Rows func(context.Context, *system.System) iter.Seq2[Row, error]
}

// Row is the row of an order at the end.
type Row struct {
	OrderID string
	Settled bool         // no work is left
	Status  order.Status // if it is settled
	Amount  int64        // 0 if the row has none
	// Order is the product's row, for the invariants; nil for another handler.
	Order *invariants.Order
}

func productRows(ctx context.Context, s *system.System) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for o, err := range s.Orders(ctx) {
			row := Row{
				OrderID: string(o.OrderID),
				Settled: o.Status != order.Open,
				Status:  o.Status,
				Amount:  o.Total.Amount,
				Order:   &o,
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
