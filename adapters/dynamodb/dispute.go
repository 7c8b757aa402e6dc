package dynamodb

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

var _ order.DisputeRecords = (*Store)(nil)

// A dispute keeps the claim, and the place in the index of waiting orders.
const (
	mayDispute = unchanged + sameID + " AND NOT (disputeId = :dispute AND disputeStatus = :state)"
	dispute    = "SET disputeId = :dispute, disputeStatus = :state, disputedAt = :since, seq = :next, updatedAt = :at"
)

// RecordDispute implements order.DisputeRecords with one TransactWriteItems.
func (s *Store) RecordDispute(ctx context.Context, r order.Record, d order.Dispute, at time.Time) error {
	disputed := order.Disputed(r, d, at)
	_, err := s.change(ctx, &types.Update{
		ConditionExpression: aws.String(mayDispute), UpdateExpression: aws.String(dispute),
		ExpressionAttributeNames: map[string]string{"#status": "status"},
		ExpressionAttributeValues: row{
			":from": text(r.Status), ":seq": number(r.Seq), ":intent": text(r.Intent),
			":dispute": text(d.ID), ":state": text(d.Status), ":since": millis(d.CreatedAt),
			":next": number(disputed.Seq), ":at": millis(at),
		},
	}, r, disputed.Events[len(disputed.Events)-1], func(now order.Record) bool { return d.Is(now.Dispute) })
	return wrap("record dispute of", r.OrderID, err)
}
