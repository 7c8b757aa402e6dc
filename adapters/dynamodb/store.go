// Package dynamodb stores orders and their refunds in a DynamoDB table, and receipts in
// another. Every write is
// one conditional call, so a refused write leaves nothing behind. Packages order and
// refund decide what a row means and which transitions are valid; this package compares,
// writes and reports. It does not read the clock, generate owners or log.
//
// store.go has the calls, row.go the items, stock.go the option that reserves goods,
// retry.go the retries and the meaning of failed calls.
package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// Store is a table of orders. It is safe for concurrent use. It stores times in
// milliseconds.
type Store struct {
	client *dynamodb.Client
	table  string
	stock  string // the stock table; "": goods are not reserved
}

// New returns a Store for the named table. cfg provides region, credentials, endpoint and
// HTTP client; retries are this package's own. No call outlives its context.
func New(cfg aws.Config, table string) *Store {
	return &Store{client: NewClient(cfg), table: table}
}

// NewClient returns the client that the stores of this package use: with short delays
// between the retries, because the queue's redelivery is the retry that lasts. A job with
// a table of its own uses it too.
func NewClient(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = retryer()
		o.RetryMaxAttempts = 0 // otherwise a number in cfg would overrule the retryer's
	})
}

// The conditions. An order without a claim has no leaseUntil. mayBegin is
// order.CheckClaim as an expression, and CheckClaim explains each refusal.
const (
	mayBegin = "attribute_not_exists(orderId) OR (#status = :open AND fingerprint = :fingerprint AND" +
		" (attribute_not_exists(leaseUntil) OR leaseUntil < :now OR leaseUntil > :latest))"
	claimed   = "#owner = :owner AND #status = :open"
	mayBind   = claimed + " AND (attribute_not_exists(intentId) OR intentId = :intent)"
	unchanged = "#status = :from AND seq = :seq AND "
	sameID    = "intentId = :intent"
	noID      = "attribute_not_exists(intentId)"
	absent    = "attribute_not_exists(orderId)"
	// mayRecreate is order.CheckRestore as an expression.
	mayRecreate = absent + " OR (#status = :open AND fingerprint = :fingerprint" +
		" AND attribute_not_exists(intentId) AND (attribute_not_exists(leaseUntil) OR leaseUntil < :at OR leaseUntil > :latest))"
)

// The updates. begin keeps the createdAt, seq, intentId and lastError of earlier
// attempts. bind and release keep dueAt, because each change of it writes the index
// twice.
const (
	begin = "SET #status = :open, fingerprint = :fingerprint, customerId = :customer, amount = :amount, currency = :currency," +
		" #owner = :owner, leaseUntil = :until, attempt = if_not_exists(attempt, :zero) + :one, seq = if_not_exists(seq, :zero)," +
		" createdAt = if_not_exists(createdAt, :now), updatedAt = :now, openShard = :shard, dueAt = :due"
	noteTrace = ", traceparent = if_not_exists(traceparent, :trace)"
	unpark    = " REMOVE parkedAt"
	bind      = "SET intentId = :intent, stripeMode = :mode, updatedAt = :at REMOVE lostIntentId"
	recreate  = "SET #status = :open, fingerprint = :fingerprint, amount = :amount, currency = :currency, intentId = :intent," +
		" stripeMode = :mode, attempt = if_not_exists(attempt, :one), seq = if_not_exists(seq, :seq)," +
		" createdAt = if_not_exists(createdAt, :at), updatedAt = :at, openShard = :shard, dueAt = :due" +
		endClaim + ", lostIntentId"
	// A refused order has no claim. The attempt distinguishes two refusals of one seq.
	mayReopen = "#status = :refused AND fingerprint = :fingerprint AND seq = :seq AND attempt = :attempt"
	reopen    = "SET #status = :open, customerId = :customer, #owner = :owner, leaseUntil = :until," +
		" attempt = attempt + :one, seq = :next, updatedAt = :now, openShard = :shard, dueAt = :due REMOVE failure, parkedAt"
	release     = "SET lastError = :why, updatedAt = :at"
	noteSuspect = ", lostIntentId = :suspect"
	endClaim    = " REMOVE #owner, leaseUntil"
	park        = "SET lastError = :why, parkedAt = :at, updatedAt = :at"
)

// mayPark requires that the order is not settled and that the row has the content of the
// message.
const mayPark = "#status IN (:open, :refused) AND fingerprint = :fingerprint"

var errConcurrent = errors.New("concurrent update of the row")

// aliases returns the placeholders for attribute names that are reserved words, for
// expressions that use both.
func aliases() map[string]string { return map[string]string{"#status": "status", "#owner": "owner"} }

// Begin implements order.Claims with one UpdateItem. A refusal returns the row that
// refused, so a duplicate costs one write and no read. WithStock changes the write of a
// new order.
func (s *Store) Begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	// Truncate as the row does: otherwise CheckClaim and the condition could disagree by a
	// millisecond.
	l.From, l.Until = l.From.Truncate(time.Millisecond), l.Until.Truncate(time.Millisecond)
	begin := s.begin
	if s.stock != "" {
		begin = s.beginWithStock
	}
	c, err := begin(ctx, o, l)
	if err != nil {
		return order.Claim{}, wrap("begin", o.ID(), err)
	}
	return c, nil
}

// begin claims the order and reserves nothing.
func (s *Store) begin(ctx context.Context, o order.Order, l order.Lease) (order.Claim, error) {
	r, err := s.take(ctx, o, l, o.Fingerprint())
	switch {
	case err != nil || r.Owner == l.Owner:
	case r.Status == order.Refused:
		r, err = s.reopen(ctx, o, l, r)
	default: // the row allows the claim, so an older release wrote the fingerprint
		r, err = s.take(ctx, o, l, r.Fingerprint)
	}
	if err == nil && r.Owner != l.Owner {
		err = errConcurrent
	}
	return order.NewClaim(r, o, l), err
}

// take claims a row that is missing, or free with the expected fingerprint. It returns
// the current row and the error of CheckClaim. If the response to our own write was lost
// and the SDK repeated the write, the row that refuses carries our own owner, and
// CheckClaim returns nil.
func (s *Store) take(
	ctx context.Context, o order.Order, l order.Lease, expected order.Fingerprint,
) (order.Record, error) {
	set, values := beginUpdate(o, l, expected)
	values[":latest"] = millis(l.From.Add(order.MaxLease + order.MaxSkew))
	item, err := s.update(ctx, o.ID(), mayBegin, set+unpark, values)
	if err == nil {
		return decodeOrder(item)
	}
	r, err := refusingOrder(err)
	if err == nil {
		err = order.CheckClaim(r, o, l)
	}
	return r, err
}

// beginUpdate returns the update of a claim, without unpark, and its values.
func beginUpdate(o order.Order, l order.Lease, f order.Fingerprint) (set string, values row) {
	set, values = begin, row{
		":open": text(order.Open), ":fingerprint": text(f), ":customer": text(o.CustomerID()),
		":amount": number(o.Total().Amount), ":currency": text(o.Total().Currency),
		":owner": text(l.Owner), ":now": millis(l.From), ":until": millis(l.Until),
		":shard": number(shardOf(o.ID())), ":due": millis(dueAt(order.Open, nil, l.From)),
		":zero": number(0), ":one": number(1),
	}
	if l.Trace != "" {
		set += noteTrace
		values[":trace"] = text(l.Trace)
	}
	return set, values
}

// reopen claims a refused order with one TransactWriteItems, which writes the row and the
// event of its transition. It returns what take returns.
func (s *Store) reopen(
	ctx context.Context, o order.Order, l order.Lease, refused order.Record,
) (order.Record, error) {
	r := order.Reopened(refused, l)
	r.Owner, r.Until, r.Attempt = l.Owner, l.Until, r.Attempt+1
	err := s.transact(ctx, &types.Update{
		ConditionExpression: aws.String(mayReopen), UpdateExpression: aws.String(reopen),
		ExpressionAttributeValues: row{
			":refused": text(order.Refused), ":fingerprint": text(r.Fingerprint), ":seq": number(refused.Seq),
			":attempt": number(refused.Attempt), ":open": text(order.Open), ":customer": text(o.CustomerID()),
			":owner": text(l.Owner), ":now": millis(l.From), ":until": millis(l.Until), ":next": number(r.Seq),
			":shard": number(shardOf(r.OrderID)), ":due": millis(dueAt(order.Open, nil, l.From)), ":one": number(1),
		},
	}, r, r.Events[len(r.Events)-1])
	if err == nil {
		return r, nil
	}
	now, err := refusingOrder(err)
	switch {
	case errors.Is(err, order.ErrNotFound):
		err = errConcurrent
	case err == nil:
		err = order.CheckClaim(now, o, l)
	}
	return now, err
}

// transact updates the order item, puts the event of its change and makes the further
// writes, all or none.
func (s *Store) transact(
	ctx context.Context, u *types.Update, r order.Record, e order.Event, more ...types.TransactWriteItem,
) error {
	event := types.TransactWriteItem{Put: &types.Put{
		TableName: &s.table, Item: encodeEvent(r, e), ConditionExpression: aws.String(absent),
	}}
	return s.transactRow(ctx, u, r.OrderID, append([]types.TransactWriteItem{event}, more...)...)
}

// transactRow updates the order item and makes the further writes, all or none.
func (s *Store) transactRow(
	ctx context.Context, u *types.Update, id order.ID, more ...types.TransactWriteItem,
) error {
	u.TableName, u.Key = &s.table, orderKey(id)
	if u.ExpressionAttributeNames == nil {
		u.ExpressionAttributeNames = aliases()
	}
	u.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: append([]types.TransactWriteItem{{Update: u}}, more...),
	})
	return err
}

// Bind implements order.Claims with one UpdateItem. Repeating it is safe, because the
// condition allows the same id.
func (s *Store) Bind(ctx context.Context, c order.Claim, i order.Intent, at time.Time) error {
	_, err := s.update(ctx, c.Order.ID(), mayBind, bind, row{
		":owner": text(c.Lease.Owner), ":open": text(order.Open),
		":intent": text(i.ID), ":mode": text(i.Mode), ":at": millis(at),
	})
	return wrap("bind", c.Order.ID(), claimError(err))
}

// Release implements order.Claims with one UpdateItem. If the response was lost and the
// SDK repeats the write, it returns ErrClaimLost: the claim has ended, as intended.
func (s *Store) Release(ctx context.Context, c order.Claim, why order.Reason, at time.Time) error {
	set, values := release, row{
		":owner": text(c.Lease.Owner), ":open": text(order.Open), ":why": text(why), ":at": millis(at),
	}
	if c.Suspect != "" {
		set += noteSuspect
		values[":suspect"] = text(c.Suspect)
	}
	_, err := s.update(ctx, c.Order.ID(), claimed, set+endClaim, values)
	return wrap("release", c.Order.ID(), claimError(err))
}

// Finish implements order.Claims with one TransactWriteItems, which writes the row and
// the event.
func (s *Store) Finish(ctx context.Context, c order.Claim, o order.Outcome, at time.Time) error {
	if err := order.Open.Transition(o.Status); err != nil {
		return wrap("finish", c.Order.ID(), err)
	}
	// The seq of an open order is 0, unless it was refused before, or restored with
	// events.
	seen := order.Record{
		OrderID: c.Order.ID(), Total: c.Order.Total(), Status: order.Open, Intent: o.Intent, Trace: c.Trace,
		Stock: c.Stock,
	}
	now, err := s.move(ctx, seen, o, at, c.Lease.Owner)
	if errors.Is(err, order.ErrStale) && now.Owner == c.Lease.Owner && now.Seq != seen.Seq {
		_, err = s.move(ctx, now, o, at, c.Lease.Owner)
	}
	if errors.Is(err, order.ErrStale) {
		err = order.ErrClaimLost
	}
	return wrap("finish", c.Order.ID(), err)
}

// Settle implements order.Records with one TransactWriteItems. Only an invalid transition
// costs a read, which finds out whether the row already has this status.
func (s *Store) Settle(ctx context.Context, r order.Record, o order.Outcome, at time.Time) error {
	err := r.Status.Transition(o.Status)
	if err == nil && r.Intent != o.Intent {
		err = order.ErrStale
	}
	if err == nil {
		_, err = s.move(ctx, r, o, at, "")
		return wrap("settle", r.OrderID, err)
	}
	now, loadErr := s.Load(ctx, r.OrderID)
	switch {
	case loadErr == nil && hasOutcome(now, o):
		return nil
	case loadErr == nil || errors.Is(loadErr, order.ErrNotFound):
		return wrap("settle", r.OrderID, err)
	}
	return wrap("settle", r.OrderID, loadErr)
}

// Park implements order.Records with one UpdateItem.
func (s *Store) Park(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
	_, err := s.update(ctx, o.ID(), mayPark, park, row{
		":open": text(order.Open), ":refused": text(order.Refused), ":fingerprint": text(o.Fingerprint()),
		":why": text(why), ":at": millis(at),
	})
	if _, refused := Refused(err); refused {
		return nil
	}
	return wrap("park", o.ID(), err)
}

// Load implements order.Records with one strongly consistent Query. Events may be missing
// after their retention.
func (s *Store) Load(ctx context.Context, id order.ID) (order.Record, error) {
	r, err := s.query(ctx, id)
	if err == nil && r.OrderID == "" {
		err = order.ErrNotFound
	}
	if err != nil {
		return order.Record{}, wrap("load", id, err)
	}
	return r, nil
}

// query reads an order and its events. The record has no id if the order item is missing.
func (s *Store) query(ctx context.Context, id order.ID) (order.Record, error) {
	var r order.Record
	err := s.eachItem(ctx, id, func(item row) error { return addRow(&r, item) })
	return r, err
}

// eachItem reads the whole partition of an order. It ends at the first error.
func (s *Store) eachItem(ctx context.Context, id order.ID, add func(item row) error) error {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		KeyConditionExpression:    aws.String("orderId = :id"),
		ExpressionAttributeValues: row{":id": text(id)},
		ConsistentRead:            aws.Bool(true), // decisions about money rest on it
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := add(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// Recreate implements order.Records with a Query and one UpdateItem. It continues
// after the last event item that still exists, so that the order's next event does not
// overwrite one of them.
func (s *Store) Recreate(ctx context.Context, lost order.Record, at time.Time) error {
	at = at.Truncate(time.Millisecond) // as the row stores times, see Begin
	there, err := s.query(ctx, lost.OrderID)
	if err != nil {
		return wrap("recreate", lost.OrderID, err)
	}
	seq := 0
	for _, e := range there.Events {
		seq = max(seq, e.Seq)
	}
	_, err = s.update(ctx, lost.OrderID, mayRecreate, recreate, row{
		":open": text(order.Open), ":fingerprint": text(lost.Fingerprint), ":amount": number(lost.Total.Amount),
		":currency": text(lost.Total.Currency), ":intent": text(lost.Intent), ":mode": text(lost.Mode),
		":one": number(1), ":seq": number(seq), ":at": millis(at),
		":latest": millis(at.Add(order.MaxLease + order.MaxSkew)),
		":shard":  number(shardOf(lost.OrderID)), ":due": millis(dueAt(order.Open, nil, at)),
	})
	if _, refused := Refused(err); refused {
		var now order.Record
		if now, err = refusingOrder(err); err == nil {
			err = order.CheckRestore(now, lost, at)
		}
		if err == nil && now.Intent != lost.Intent {
			err = errConcurrent
		}
	}
	return wrap("recreate", lost.OrderID, err)
}

// move writes one transition and its event, if the row still has the status, seq and
// intent of r, and the owner unless it is "". It returns nil if the row already has the
// outcome, otherwise ErrStale and the current row.
func (s *Store) move(
	ctx context.Context, r order.Record, o order.Outcome, at time.Time, owner string,
) (order.Record, error) {
	e := order.Event{Seq: r.Seq + 1, From: r.Status, To: o.Status, Intent: o.Intent, Failure: o.Failure, At: at}
	moved := func(now order.Record) bool { return hasOutcome(now, o) }
	u := moveUpdate(r, e, owner)
	effects, err := s.stockEffects(u, r, e)
	if err != nil {
		return order.Record{}, err
	}
	now, err := s.change(ctx, u, r, e, moved, effects...)
	return now, stockError(err, r.Stock)
}

// change writes a change of a row and its event. If the row refuses it, change returns
// the current row, with nil if it has the change already, otherwise ErrStale.
//
// The client request token is the SDK's, which its retries repeat. A token made of order
// and seq would refuse another attempt's change for ten minutes.
func (s *Store) change(
	ctx context.Context, u *types.Update, r order.Record, e order.Event, has func(now order.Record) bool,
	more ...types.TransactWriteItem,
) (order.Record, error) {
	err := s.transact(ctx, u, r, e, more...)
	if err == nil {
		return order.Record{}, nil
	}
	now, err := refusingOrder(err)
	if errors.Is(err, order.ErrNotFound) || err == nil && !has(now) {
		err = order.ErrStale
	}
	return now, err
}

func hasOutcome(r order.Record, o order.Outcome) bool {
	return r.Status == o.Status && r.Intent == o.Intent
}

// moveUpdate ends any claim on the order, and keeps the order in the index of waiting
// orders only while it waits.
func moveUpdate(r order.Record, e order.Event, owner string) *types.Update {
	condition := unchanged
	set, remove := "SET #status = :to, seq = :next, updatedAt = :at", " REMOVE #owner, leaseUntil, parkedAt"
	values := row{
		":from": text(e.From), ":to": text(e.To), ":seq": number(r.Seq), ":next": number(e.Seq), ":at": millis(e.At),
	}
	if e.Intent == "" && e.To.MayLackIntent() {
		condition += noID
	} else {
		condition += sameID
		values[":intent"] = text(e.Intent)
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
	held := r.Stock
	if order.StockEffectOf(e.To, e.Intent) != order.StockKept {
		held = nil
	}
	if due := dueAt(e.To, held, e.At); !due.IsZero() {
		set += ", openShard = :shard, dueAt = :due"
		values[":shard"], values[":due"] = number(shardOf(r.OrderID)), millis(due)
	} else {
		remove += ", openShard, dueAt"
	}
	return &types.Update{
		ConditionExpression: &condition, UpdateExpression: aws.String(set + remove),
		ExpressionAttributeValues: values,
	}
}

// update changes the order item and returns it as it is afterwards.
func (s *Store) update(ctx context.Context, id order.ID, condition, change string, values row) (row, error) {
	return s.updateNamed(ctx, id, condition, change, values, map[string]string{})
}

// updateNamed is update with further names. DynamoDB refuses a name that no expression
// uses.
func (s *Store) updateNamed(
	ctx context.Context, id order.ID, condition, change string, values row, names map[string]string,
) (row, error) {
	for alias, name := range aliases() {
		if strings.Contains(condition+change, alias) {
			names[alias] = name
		}
	}
	if len(names) == 0 {
		names = nil // DynamoDB refuses an empty map
	}
	return Update(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: orderKey(id), ConditionExpression: &condition, UpdateExpression: &change,
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
}

// claimError turns a failed condition of a write that needs our claim into ErrClaimLost.
func claimError(err error) error {
	if _, refused := Refused(err); refused {
		return order.ErrClaimLost
	}
	return err
}

func wrap(verb string, id order.ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s order %q: %w", verb, id, err)
}
