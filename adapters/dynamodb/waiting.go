package dynamodb

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/domain/order"
)

// duePage is how many orders one page of the index has.
const duePage = 100

// Due implements settle.Waiting with one Query per shard and page of the index, each
// shard in the order of the due times. The index is eventually consistent.
//
// The shard that comes first depends on the time, so that a run which ends early leaves
// other orders than the one before.
func (s *Store) Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error] {
	return s.DueIn(ctx, 0, at)
}

// DueIn returns what is due in the Shards of the index from base on: those of the orders
// begin at 0, those of registrations at Shards.
func (s *Store) DueIn(ctx context.Context, base uint32, at time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) {
		first := ShardOf(order.ID(strconv.FormatInt(at.UnixMilli(), 10)))
		for n := range uint32(Shards) {
			shard := base + (first+n)%Shards
			pages := dynamodb.NewQueryPaginator(s.DB, &dynamodb.QueryInput{
				TableName: &s.TableName, IndexName: aws.String("open"), Limit: aws.Int32(duePage),
				KeyConditionExpression:    aws.String("openShard = :shard AND dueAt <= :at"),
				ExpressionAttributeValues: row{":shard": Number(shard), ":at": Millis(at)},
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					yield("", fmt.Errorf("query due orders: %w", err))
					return
				}
				for _, item := range page.Items {
					d := Decoder{Item: item}
					id := order.ID(d.Text("orderId"))
					if !yield(id, d.Err) || d.Err != nil {
						return
					}
				}
			}
		}
	}
}
