// Package dynamodb keeps orders in a DynamoDB table: it is order.Claims and order.Records. Every write is one conditional
// call, so what is refused leaves nothing behind. It refuses to know why an order is charged or when: package order
// decides what a row means and where it may go, and this package compares, writes and reports. It reads no clock,
// draws no owner and logs nothing.
//
// store.go is the calls, row.go the table's rows, retry.go what a failed call means.
package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

var (
	_ order.Claims  = (*Store)(nil)
	_ order.Records = (*Store)(nil)
)

// Store is a table of orders. It is safe for concurrent use. Its times have milliseconds.
type Store struct {
	client *dynamodb.Client
	table  string
}

// New returns the store in the named table. cfg says where the table is and how to reach it (region, credentials, HTTP
// client); how calls are retried is this package's own choice. No call outlives its context.
func New(cfg aws.Config, table string) *Store {
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = retryer()
		o.RetryMaxAttempts = 0 // otherwise a number in cfg would overrule the retryer's
	})
	return &Store{client: client, table: table}
}

// The conditions. A lease that nobody holds has no leaseUntil; the rest of mayBegin is order.CheckClaim in other words, and
// CheckClaim explains each refusal.
const (
	mayBegin = "attribute_not_exists(orderId) OR (#status = :open AND fingerprint = :fingerprint AND" +
		" (attribute_not_exists(leaseUntil) OR leaseUntil < :now OR leaseUntil > :absurd))"
	ours    = "#owner = :owner AND #status = :open"
	mayBind = ours + " AND (attribute_not_exists(intentId) OR intentId = :intent)"
	asSeen  = "#status = :from AND seq = :seq AND intentId = :intent"
	absent  = "attribute_not_exists(orderId)"
	// mayRecreate is order.CheckRestore in other words.
	mayRecreate = absent + " OR (#status = :open AND fingerprint = :fingerprint AND attribute_not_exists(intentId) AND" +
		" (attribute_not_exists(leaseUntil) OR leaseUntil < :at OR leaseUntil > :absurd))"
)

// The changes. begin keeps what an earlier attempt left: createdAt, seq, intentId and lastError. bind and release keep
// dueAt, because each change of it writes the index twice.
const (
	begin = "SET #status = :open, fingerprint = :fingerprint, customerId = :customer, amount = :amount, currency = :currency," +
		" #owner = :owner, leaseUntil = :until, attempt = if_not_exists(attempt, :zero) + :one, seq = if_not_exists(seq, :zero)," +
		" createdAt = if_not_exists(createdAt, :now), updatedAt = :now, openShard = :shard, dueAt = :due"
	bind     = "SET intentId = :intent, stripeMode = :mode, updatedAt = :at"
	recreate = "SET #status = :open, fingerprint = :fingerprint, amount = :amount, currency = :currency, intentId = :intent," +
		" stripeMode = :mode, attempt = if_not_exists(attempt, :one), seq = if_not_exists(seq, :seq)," +
		" createdAt = if_not_exists(createdAt, :at), updatedAt = :at, openShard = :shard, dueAt = :due REMOVE #owner, leaseUntil"
	release = "SET lastError = :why, updatedAt = :at REMOVE #owner, leaseUntil"
)

var errConcurrent = errors.New("concurrent update of the row")

// aliases stand for the attributes whose names are reserved words. Every order update names both.
func aliases() map[string]string { return map[string]string{"#status": "status", "#owner": "owner"} }

// Begin implements order.Claims with one UpdateItem. Whoever it refuses learns why from the row that refused, so a
// duplicate costs one write and no read.
func (s *Store) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	// As the row will hold them: otherwise CheckClaim and the condition could disagree about one millisecond.
	l.From, l.Until = l.From.Truncate(time.Millisecond), l.Until.Truncate(time.Millisecond)
	r, err := s.take(ctx, o, l, o.Fingerprint())
	if err == nil && r.Owner != l.Owner {
		// Nothing speaks against us and yet the row is not ours: an older release wrote its fingerprint.
		r, err = s.take(ctx, o, l, r.Fingerprint)
	}
	if err == nil && r.Owner != l.Owner {
		err = errConcurrent
	}
	if err != nil {
		return order.Claim{}, about("begin", o.ID(), err)
	}
	return order.NewClaim(r, o, l), nil
}

// take claims a row that is absent or free and carries the expected fingerprint. It returns the row as it is now, and
// what CheckClaim says if that is not the row we asked for. The answer to our own write may have been lost on the way and
// the write repeated by the SDK: then the row that refuses us carries our own owner, and CheckClaim finds nothing wrong.
func (s *Store) take(ctx context.Context, o order.Order, l order.Lease, expected order.Fingerprint) (order.Record, error) {
	out, err := s.update(ctx, o.ID(), &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String(mayBegin),
		UpdateExpression:    aws.String(begin),
		ReturnValues:        types.ReturnValueAllNew,
		ExpressionAttributeValues: row{
			":open": text(order.Open), ":fingerprint": text(expected), ":customer": text(o.CustomerID()),
			":amount": number(o.Total().Amount), ":currency": text(o.Total().Currency),
			":owner": text(l.Owner), ":now": moment(l.From), ":until": moment(l.Until),
			":absurd": moment(l.From.Add(order.MaxLease + order.MaxSkew)),
			":shard":  number(shardOf(o.ID())), ":due": moment(dueAt(order.Open, l.From)),
			":zero": number(0), ":one": number(1),
		},
	})
	if err == nil {
		return decodeOrder(out.Attributes)
	}
	refusing, refused := refusedBy(err)
	if !refused {
		return order.Record{}, err
	}
	r, err := decodeOrder(refusing)
	if err != nil {
		return order.Record{}, err
	}
	return r, order.CheckClaim(r, o, l)
}

// Bind implements order.Claims with one UpdateItem. Repeating it is harmless, because it allows its own id.
func (s *Store) Bind(ctx context.Context, c order.Claim, i order.Intent, at time.Time) error {
	_, err := s.update(ctx, c.Order.ID(), &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String(mayBind),
		UpdateExpression:    aws.String(bind),
		ExpressionAttributeValues: row{
			":owner": text(c.Lease.Owner), ":open": text(order.Open), ":intent": text(i.ID), ":mode": text(i.Mode), ":at": moment(at),
		},
	})
	return about("bind", c.Order.ID(), fenced(err))
}

// Release implements order.Claims with one UpdateItem. When the answer was lost and the SDK asks again, it is ErrClaimLost:
// the claim is not ours any more, as intended.
func (s *Store) Release(ctx context.Context, c order.Claim, why order.Reason, at time.Time) error {
	_, err := s.update(ctx, c.Order.ID(), &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String(ours),
		UpdateExpression:    aws.String(release),
		ExpressionAttributeValues: row{
			":owner": text(c.Lease.Owner), ":open": text(order.Open), ":why": text(why), ":at": moment(at),
		},
	})
	return about("release", c.Order.ID(), fenced(err))
}

// Finish implements order.Claims with one TransactWriteItems: the order and its event change together or not at all.
func (s *Store) Finish(ctx context.Context, c order.Claim, o order.Outcome, at time.Time) error {
	if err := order.Open.Transition(o.Status); err != nil {
		return about("finish", c.Order.ID(), err)
	}
	// An open order has made no transition, so its seq is 0, unless a repair after a restore has lifted it.
	seen := order.Record{OrderID: c.Order.ID(), Total: c.Order.Total(), Status: order.Open, Intent: o.Intent}
	now, err := s.move(ctx, seen, o, at, c.Lease.Owner)
	if errors.Is(err, order.ErrStale) && now.Owner == c.Lease.Owner && now.Seq != seen.Seq {
		_, err = s.move(ctx, now, o, at, c.Lease.Owner)
	}
	if errors.Is(err, order.ErrStale) {
		err = order.ErrClaimLost
	}
	return about("finish", c.Order.ID(), err)
}

// Settle implements order.Records with one TransactWriteItems. Only a change that nobody drew costs a read, which finds
// out whether it is made already.
func (s *Store) Settle(ctx context.Context, r order.Record, o order.Outcome, at time.Time) error {
	err := r.Status.Transition(o.Status)
	if err == nil && r.Intent != o.Intent {
		err = order.ErrStale
	}
	if err == nil {
		_, err = s.move(ctx, r, o, at, "")
		return about("settle", r.OrderID, err)
	}
	now, loadErr := s.Load(ctx, r.OrderID)
	switch {
	case loadErr == nil && says(now, o):
		return nil
	case loadErr == nil || errors.Is(loadErr, order.ErrNotFound):
		return about("settle", r.OrderID, err)
	}
	return about("settle", r.OrderID, loadErr)
}

// Load implements order.Records with one strongly consistent Query. Events older than their retention may be gone.
func (s *Store) Load(ctx context.Context, id order.ID) (order.Record, error) {
	r, err := s.query(ctx, id)
	if err == nil && r.OrderID == "" {
		err = order.ErrNotFound
	}
	if err != nil {
		return order.Record{}, about("load", id, err)
	}
	return r, nil
}

// query reads a whole partition. The record has no id if the order's own row is missing.
func (s *Store) query(ctx context.Context, id order.ID) (order.Record, error) {
	var r order.Record
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: row{":id": text(id)},
		ConsistentRead:            aws.Bool(true), // decisions about money rest on it
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return order.Record{}, err
		}
		for _, item := range page.Items {
			if err := addRow(&r, item); err != nil {
				return order.Record{}, err
			}
		}
	}
	return r, nil
}

// Recreate implements order.Records with a Query and one UpdateItem. Event rows that survived their order are counted,
// so that its next event does not take the place of one of them.
func (s *Store) Recreate(ctx context.Context, lost order.Record, at time.Time) error {
	at = at.Truncate(time.Millisecond) // as the row holds times, see Begin
	there, err := s.query(ctx, lost.OrderID)
	if err != nil {
		return about("recreate", lost.OrderID, err)
	}
	seq := 0
	for _, e := range there.Events {
		seq = max(seq, e.Seq)
	}
	_, err = s.update(ctx, lost.OrderID, &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String(mayRecreate),
		UpdateExpression:    aws.String(recreate),
		ExpressionAttributeValues: row{
			":open": text(order.Open), ":fingerprint": text(lost.Fingerprint), ":amount": number(lost.Total.Amount),
			":currency": text(lost.Total.Currency), ":intent": text(lost.Intent), ":mode": text(lost.Mode),
			":one": number(1), ":seq": number(seq), ":at": moment(at), ":absurd": moment(at.Add(order.MaxLease + order.MaxSkew)),
			":shard": number(shardOf(lost.OrderID)), ":due": moment(dueAt(order.Open, at)),
		},
	})
	if refusing, refused := refusedBy(err); refused {
		now, decodeErr := decodeOrder(refusing)
		if err = decodeErr; err == nil {
			err = order.CheckRestore(now, lost, at)
		}
		if err == nil && now.Intent != lost.Intent {
			err = errConcurrent
		}
	}
	return about("recreate", lost.OrderID, err)
}

// move writes one transition and its event, if the row still has the status, seq and intent of r, and also the owner
// unless that is "". It returns nil also if the row already says so; otherwise ErrStale and the row as it is now.
//
// The request's token is the SDK's: new for each move and the same in the SDK's retries, so that a lost answer is given
// again. A token made of order and seq would instead refuse another attempt's move for ten minutes, because its
// time differs; and it would prove nothing afterwards. The conditions hold at any age.
func (s *Store) move(ctx context.Context, r order.Record, o order.Outcome, at time.Time, owner string) (order.Record, error) {
	e := order.Event{Seq: r.Seq + 1, From: r.Status, To: o.Status, Intent: o.Intent, Failure: o.Failure, At: at}
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: s.moveUpdate(r, e, owner)},
		{Put: &types.Put{
			TableName: &s.table, Item: encodeEvent(r.OrderID, r.Total, e), ConditionExpression: aws.String(absent),
		}},
	}})
	refusing, refused := refusedBy(err)
	switch {
	case !refused:
		return order.Record{}, err
	case len(refusing) == 0: // there is no such order, or not any more
		return order.Record{}, order.ErrStale
	}
	now, err := decodeOrder(refusing)
	if err != nil || says(now, o) {
		return now, err
	}
	return now, order.ErrStale
}

func says(r order.Record, o order.Outcome) bool { return r.Status == o.Status && r.Intent == o.Intent }

// moveUpdate ends whatever claim is on the order, and keeps it in the index of waiting orders only while it waits.
func (s *Store) moveUpdate(r order.Record, e order.Event, owner string) *types.Update {
	condition := asSeen
	set, remove := "SET #status = :to, seq = :next, updatedAt = :at", " REMOVE #owner, leaseUntil"
	values := row{
		":from": text(e.From), ":to": text(e.To), ":seq": number(r.Seq), ":next": number(e.Seq),
		":intent": text(e.Intent), ":at": moment(e.At),
	}
	if owner != "" {
		condition += " AND #owner = :owner"
		values[":owner"] = text(owner)
	}
	if e.Failure != "" {
		set += ", failure = :failure"
		values[":failure"] = text(e.Failure)
	} else {
		remove += ", failure"
	}
	if due := dueAt(e.To, e.At); !due.IsZero() {
		set += ", openShard = :shard, dueAt = :due"
		values[":shard"], values[":due"] = number(shardOf(r.OrderID)), moment(due)
	} else {
		remove += ", openShard, dueAt"
	}
	return &types.Update{
		TableName: &s.table, Key: orderKey(r.OrderID),
		ConditionExpression: &condition, UpdateExpression: aws.String(set + remove),
		ExpressionAttributeNames: aliases(), ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

func (s *Store) update(ctx context.Context, id order.ID, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	in.TableName, in.Key, in.ExpressionAttributeNames = &s.table, orderKey(id), aliases()
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	return s.client.UpdateItem(ctx, in)
}

// fenced is what a failed condition means to a write that needs our claim.
func fenced(err error) error {
	if _, refused := refusedBy(err); refused {
		return order.ErrClaimLost
	}
	return err
}

func about(verb string, id order.ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}
