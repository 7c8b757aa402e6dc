package system

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

func (s *System) startEvents(ctx context.Context) error {
	if s.Webhook == nil {
		return nil
	}
	s.Events = &stripetest.Webhooks{
		Server: s.Stripe, URL: s.API.URL + "/stripe/webhook", Secret: webhookSecret,
		Deliveries: s.Options.Deliveries, Now: time.Now, Observe: s.Options.ObserveWebhook,
	}
	s.background(ctx, func(ctx context.Context) error {
		s.Events.Run(ctx)
		return nil
	})
	return nil
}

// Heard waits until the webhook function has answered every event that is due.
func (s *System) Heard(ctx context.Context) error {
	return Until(ctx, soon, func() (bool, error) { return s.Events == nil || s.Events.Idle(), nil })
}

// Look makes every waiting order due, as if a day had passed, and invokes the function of
// the schedule once.
func (s *System) Look(ctx context.Context) error {
	for item, err := range s.waiting(ctx) {
		if err != nil {
			return err
		}
		// One that has been settled since the index was read stays out of it.
		if err := s.update(ctx, item, "SET dueAt = :value", "attribute_exists(dueAt)", nil, madeDue); err != nil {
			return err
		}
	}
	_, err := s.Reconcile.Invoke(ctx, []byte(`{}`))
	return err
}

// madeDue is the due time that Look sets.
const madeDue = 1

// LookAll is Look until the function has looked at every waiting order. Nothing may fail
// and no order may begin to wait meanwhile.
func (s *System) LookAll(ctx context.Context) error {
	err := s.Look(ctx)
	for before := math.MaxInt; err == nil; {
		due := 0
		for item, err := range s.waiting(ctx) {
			if err != nil {
				return err
			}
			if Number(item, "dueAt") == madeDue {
				due++
			}
		}
		switch {
		case due == 0:
			return nil
		case due >= before:
			return fmt.Errorf("reconcile: %d orders stay due", due)
		}
		before = due
		_, err = s.Reconcile.Invoke(ctx, []byte(`{}`))
	}
	return err
}

// SkipLeases lets the time pass for which open refunds are leased: the clocks of the
// queue and of Stripe move ahead, and the leases in the table move back, because the
// functions use this machine's clock. Before that, it waits until the webhook function
// has answered every event, which leaves a leased refund to its worker.
func (s *System) SkipLeases(ctx context.Context) error {
	if err := s.Heard(ctx); err != nil {
		return err
	}
	if err := s.PassRefundLeases(ctx); err != nil {
		return err
	}
	s.Advance(order.MaxLease)
	return nil
}

// PassRefundLeases moves the end of the lease of every open refund back by the longest
// lease. It is what the functions would see if their clock had moved forward by it, which
// Advance cannot do: they use this machine's.
//
// In production a request for a refund is executed or lost long before the lease of its
// sender ends. So no message may be under way and no request at Stripe, or this makes
// doubles that cannot happen there.
func (s *System) PassRefundLeases(ctx context.Context) error {
	for item, err := range s.waiting(ctx) {
		if err != nil {
			return err
		}
		out, err := s.Client().GetItem(ctx, &sdk.GetItemInput{
			TableName: &s.Options.Table, Key: keyOf(item), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return fmt.Errorf("load order %q: %w", Text(item, "orderId"), err)
		}
		for name, value := range out.Item {
			m, isMap := value.(*types.AttributeValueMemberM)
			if !isMap || m.Value["leaseUntil"] == nil {
				continue
			}
			// A webhook may have just ended the lease.
			if err := s.update(ctx, item, "SET #r.leaseUntil = #r.leaseUntil - :value",
				"attribute_exists(#r.leaseUntil)", map[string]string{"#r": name}, order.MaxLease.Milliseconds(),
			); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *System) update(
	ctx context.Context, item Item, change, condition string, names map[string]string, value int64,
) error {
	_, err := s.Client().UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &s.Options.Table, Key: keyOf(item), UpdateExpression: &change, ConditionExpression: &condition,
		ExpressionAttributeNames: names, ExpressionAttributeValues: Item{
			":value": &types.AttributeValueMemberN{Value: strconv.FormatInt(value, 10)},
		},
	})
	if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !failed {
		return fmt.Errorf("update order %q: %w", Text(item, "orderId"), err)
	}
	return nil
}

func keyOf(item Item) Item { return Item{"orderId": item["orderId"], "sk": item["sk"]} }

// waiting reads the keys in the index of the orders that wait, past the proxy. The index
// also has registrations by HTTP, at which the function of the schedule does not look.
func (s *System) waiting(ctx context.Context) iter.Seq2[Item, error] {
	index := sdk.ScanInput{TableName: &s.Options.Table, IndexName: aws.String("open")}
	return func(yield func(Item, error) bool) {
		for item, err := range s.scan(ctx, &index) {
			if (err != nil || Text(item, "sk") != registrationKey) && !yield(item, err) {
				return
			}
		}
	}
}
