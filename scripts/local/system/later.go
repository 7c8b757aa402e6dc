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

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// WebhookSecret signs the local system's webhooks. It is valid nowhere.
const WebhookSecret = "whsec_pretend"

// LookRate is how many orders the function of the schedule looks at in a second, unless
// Options.Env says otherwise.
const LookRate = 200

// The timeouts of the functions that work after the charge. The function of the schedule
// keeps 7 s of its own for the last orders: a call to Stripe, and two writes.
const (
	laterStripe = 3 * time.Second
	webhookTime = 10 * time.Second
	lookTime    = 30 * time.Second
)

// webhooksAtOnce limits the processes of the webhook function, for a machine with little
// memory.
const webhooksAtOnce = 4

// startReconcile starts the function of the schedule. Only Look invokes it.
func (s *System) startReconcile(context.Context) (err error) {
	s.Reconcile, err = s.startHost(lambdatest.Options{
		Binary: s.Options.Reconcile, Timeout: lookTime, Instances: 1,
	}, s.tables(), s.stripe(laterStripe), variables{"STRIPE_RATE": strconv.Itoa(LookRate)})
	return err
}

// Look makes every waiting order due, as if a day had passed, and invokes the function of
// the schedule once.
func (s *System) Look(ctx context.Context) error {
	if err := s.makeDue(ctx); err != nil {
		return err
	}
	_, err := s.Reconcile.Invoke(ctx, []byte(`{}`))
	return err
}

// LookAll is Look until the function has looked at every waiting order. Nothing may fail
// and no order may begin to wait meanwhile.
func (s *System) LookAll(ctx context.Context) error {
	err := s.Look(ctx)
	for before := math.MaxInt; err == nil; {
		var due int
		due, err = s.due(ctx)
		switch {
		case err != nil || due == 0:
			return err
		case due >= before:
			return fmt.Errorf("reconcile: %d orders stay due", due)
		}
		before = due
		_, err = s.Reconcile.Invoke(ctx, []byte(`{}`))
	}
	return err
}

// madeDue is the due time that makeDue sets.
const madeDue = 1

// makeDue makes the orders in the index of those that wait due. One that has been settled
// since the index was read stays out of it.
func (s *System) makeDue(ctx context.Context) error {
	client := sdk.NewFromConfig(s.engineConfig(s.Engine.Endpoint))
	for item, err := range s.waiting(ctx) {
		if err != nil {
			return err
		}
		_, err = client.UpdateItem(ctx, &sdk.UpdateItemInput{
			TableName:                 &s.Options.Table,
			Key:                       Item{"orderId": item["orderId"], "sk": item["sk"]},
			ConditionExpression:       aws.String("attribute_exists(dueAt)"),
			UpdateExpression:          aws.String("SET dueAt = :due"),
			ExpressionAttributeValues: Item{":due": &types.AttributeValueMemberN{Value: strconv.Itoa(madeDue)}},
		})
		if _, settled := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !settled {
			return fmt.Errorf("make order %q due: %w", Text(item, "orderId"), err)
		}
	}
	return nil
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
	client := sdk.NewFromConfig(s.engineConfig(s.Engine.Endpoint))
	for keys, err := range s.waiting(ctx) {
		if err != nil {
			return err
		}
		key := Item{"orderId": keys["orderId"], "sk": keys["sk"]}
		out, err := client.GetItem(ctx, &sdk.GetItemInput{
			TableName: &s.Options.Table, Key: key, ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return fmt.Errorf("load order %q: %w", Text(keys, "orderId"), err)
		}
		for name, value := range out.Item {
			m, isMap := value.(*types.AttributeValueMemberM)
			if !isMap || m.Value["leaseUntil"] == nil {
				continue
			}
			if err := s.passLease(ctx, client, key, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// passLease moves the end of one refund's lease, unless a webhook has just ended the
// lease.
func (s *System) passLease(ctx context.Context, client *sdk.Client, key Item, refund string) error {
	lease := &types.AttributeValueMemberN{Value: strconv.FormatInt(order.MaxLease.Milliseconds(), 10)}
	_, err := client.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &s.Options.Table, Key: key,
		ConditionExpression:       aws.String("attribute_exists(#r.leaseUntil)"),
		UpdateExpression:          aws.String("SET #r.leaseUntil = #r.leaseUntil - :lease"),
		ExpressionAttributeNames:  map[string]string{"#r": refund},
		ExpressionAttributeValues: Item{":lease": lease},
	})
	if _, ended := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !ended {
		return fmt.Errorf("pass the lease of %s of order %q: %w", refund, Text(key, "orderId"), err)
	}
	return nil
}

// due counts the orders that makeDue has made due and that nothing has changed since.
func (s *System) due(ctx context.Context) (n int, err error) {
	for item, err := range s.waiting(ctx) {
		if err != nil {
			return 0, err
		}
		if Number(item, "dueAt") == madeDue {
			n++
		}
	}
	return n, nil
}

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

// startWebhook starts the webhook function.
func (s *System) startWebhook(context.Context) (err error) {
	s.Webhook, err = s.startHost(lambdatest.Options{
		Binary: s.Options.Webhook, Timeout: webhookTime, Instances: min(s.Options.Instances, webhooksAtOnce),
	}, s.tables(), s.stripe(laterStripe), variables{"WEBHOOK_SECRETS": WebhookSecret})
	return err
}

// startEvents sends Stripe's events to the webhook function.
func (s *System) startEvents(ctx context.Context) error {
	if s.Webhook == nil {
		return nil
	}
	s.Events = &stripetest.Webhooks{
		Server: s.Stripe, Deliveries: s.Options.Deliveries, Now: time.Now, Observe: s.Options.ObserveWebhook,
		Endpoints: []stripetest.WebhookEndpoint{
			{URL: s.API.URL + "/stripe/webhook", Secrets: []string{WebhookSecret}},
		},
	}
	s.background(ctx, func(ctx context.Context) error {
		s.Events.Run(ctx)
		return nil
	})
	return nil
}

// Heard waits until the webhook function has answered every event that is due.
func (s *System) Heard(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.Events != nil && !s.Events.Idle() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
