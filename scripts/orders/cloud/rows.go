package cloud

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
	"orderonce/scripts/orders/shell"
)

// Rows scans the table, at most so many pages of 1 MB in a second, or as many as there
// are if rate is 0. It yields each order, and of one that cannot be decoded the id and
// the error. An error without an id ends it.
func (c TableEnv) Rows(
	ctx context.Context, sh shell.Shell, cfg aws.Config, rate float64,
) iter.Seq2[order.Record, error] {
	return func(yield func(order.Record, error) bool) {
		pace, read := NewPace(rate), 0
		for page, err := range c.Refunds(cfg).Scan(ctx, "") {
			for _, row := range page.Rows {
				if !yield(row.Record, row.Err) {
					return
				}
			}
			if err == nil {
				read += len(page.Rows)
				sh.Progress("%d orders read", read)
				err = pace.Wait(ctx, 1)
			}
			if err != nil {
				yield(order.Record{}, err)
				return
			}
		}
	}
}
