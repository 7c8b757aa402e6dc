package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

var (
	_ refund.Claims  = (*Refunds)(nil)
	_ refund.Records = (*Refunds)(nil)
)

// Refunds keeps the refunds of an order as attributes of its item, so that one
// conditional write claims a refund, reserves its amount and returns the order. Each
// refund is a map under the name refund#<refundId>.
type Refunds struct{ *Store }

// refundName starts the name of a refund's attribute.
const refundName = "refund#"

// The conditions and updates of refunds. An order without refunds has no refundable: all
// of its amount is.
const (
	mayBeginRefund = "#status IN (:paid, :partially, :refunded) AND attribute_not_exists(#r) AND" +
		" (refundable >= :amount OR (attribute_not_exists(refundable) AND amount >= :amount)) AND" +
		" (attribute_not_exists(refunds) OR refunds < :max)"
	beginRefund = "SET #r = :item, refundable = if_not_exists(refundable, amount) - :amount, updatedAt = :now," +
		" openShard = :shard, dueAt = :due ADD refunds :one"
	inCurrency      = " AND currency = :currency"
	mayResumeRefund = "#r.#status = :open AND #r.fingerprint = :fingerprint AND" +
		" (attribute_not_exists(#r.leaseUntil) OR #r.leaseUntil < :now OR #r.leaseUntil > :latest)"
	resumeRefund = "SET #r.#owner = :owner, #r.leaseUntil = :until, #r.attempt = #r.attempt + :one, #r.updatedAt = :now"
	refundHeld   = "#r.#owner = :owner AND #r.#status = :open"
	markRefund   = "SET #r.sentAt = if_not_exists(#r.sentAt, :now), #r.keySeq = :keySeq"
	endRefund    = "SET #r.lastError = :why, #r.updatedAt = :at REMOVE #r.#owner, #r.leaseUntil"
	sameLeft     = "(refundable = :left OR (attribute_not_exists(refundable) AND amount = :left))"
	moveMoney    = "SET #status = :status, seq = :next, updatedAt = :at, refundable = :rest"
)

// Begin implements refund.Claims with one UpdateItem, and with a second one to take over
// an open refund.
func (s *Refunds) Begin(ctx context.Context, r refund.Request, l order.Lease) (refund.Claim, error) {
	// The row stores milliseconds.
	l.From, l.Until = l.From.Truncate(time.Millisecond), l.Until.Truncate(time.Millisecond)
	a, err := s.reserve(ctx, r, l)
	if i, known := a.Item(r.ID()); err == nil && known && i.Owner != l.Owner {
		a, err = s.resume(ctx, r, l)
	}
	if i, _ := a.Item(r.ID()); err == nil && i.Owner != l.Owner {
		err = errConcurrent
	}
	if err != nil {
		return refund.Claim{}, wrapRefund("begin", r, err)
	}
	return refund.Claim{Request: r, Lease: l, Account: a}, nil
}

// reserve claims a new refund.
func (s *Refunds) reserve(ctx context.Context, r refund.Request, l order.Lease) (refund.Account, error) {
	begun := refund.Begun(refund.Account{}, r, l)
	item, _ := begun.Item(r.ID())
	condition, values := mayBeginRefund, row{
		":paid": text(order.Paid), ":partially": text(order.PartiallyRefunded), ":refunded": text(order.Refunded),
		":amount": number(r.Amount()), ":item": encodeRefund(item), ":now": millis(l.From),
		":shard": number(shardOf(r.OrderID())), ":due": millis(begun.DueAt()),
		":max": number(refund.MaxRefunds), ":one": number(1),
	}
	if r.Currency() != "" {
		condition, values[":currency"] = condition+inCurrency, text(r.Currency())
	}
	return s.claim(ctx, r, l, condition, beginRefund, values)
}

// resume takes over an open refund whose lease has expired, whatever is left of the
// charge: it may have been made.
func (s *Refunds) resume(ctx context.Context, r refund.Request, l order.Lease) (refund.Account, error) {
	return s.claim(ctx, r, l, mayResumeRefund, resumeRefund, row{
		":open": text(refund.Open), ":fingerprint": text(r.Fingerprint()), ":owner": text(l.Owner),
		":now": millis(l.From), ":until": millis(l.Until), ":one": number(1),
		":latest": millis(l.From.Add(order.MaxLease + order.MaxSkew)),
	})
}

// claim writes a claim. It returns the current account and the error of CheckBegin: nil
// also for an open refund that may be taken over.
func (s *Refunds) claim(
	ctx context.Context, r refund.Request, l order.Lease, condition, update string, values row,
) (refund.Account, error) {
	a, err := s.updateRefund(ctx, r, condition, update, values)
	if err == nil {
		return a, nil
	}
	if a, err = refusingAccount(err); err == nil {
		err = refund.CheckBegin(a, r, l)
	}
	return a, err
}

// Mark implements refund.Claims with one UpdateItem.
func (s *Refunds) Mark(ctx context.Context, c refund.Claim, keySeq int, now time.Time) (refund.Claim, error) {
	a, err := s.updateRefund(ctx, c.Request, refundHeld, markRefund, row{
		":owner": text(c.Lease.Owner), ":open": text(refund.Open), ":keySeq": number(keySeq), ":now": millis(now),
	})
	if err != nil {
		return refund.Claim{}, wrapRefund("mark", c.Request, claimError(err))
	}
	c.Account = a
	return c, nil
}

// Release implements refund.Claims with one UpdateItem.
func (s *Refunds) Release(ctx context.Context, c refund.Claim, why order.Reason, at time.Time) error {
	change := endRefund
	if i, _ := c.Account.Item(c.Request.ID()); i.SentAt.IsZero() {
		change += ", #r.sentAt"
	}
	_, err := s.updateRefund(ctx, c.Request, refundHeld, change, row{
		":owner": text(c.Lease.Owner), ":open": text(refund.Open), ":why": text(why), ":at": millis(at),
	})
	return wrapRefund("release", c.Request, claimError(err))
}

// Finish implements refund.Claims with one TransactWriteItems, and one more for each
// other refund of the order that was settled at the same moment.
func (s *Refunds) Finish(ctx context.Context, c refund.Claim, o refund.Outcome, at time.Time) error {
	id := c.Request.ID()
	err := s.settle(ctx, c.Account, func(a refund.Account) (refund.Change, error) {
		i, _ := a.Item(id)
		switch {
		case i.Status == o.Status && i.Refund == o.Refund:
			return refund.Change{}, errRecorded
		case i.Owner != c.Lease.Owner || i.Status != refund.Open:
			return refund.Change{}, order.ErrClaimLost
		}
		return refund.Settled(a, id, o, at)
	}, id, c.Lease.Owner)
	return wrapRefund("finish", c.Request, err)
}

var errRecorded = errors.New("the outcome is recorded already")

// settle writes the change that decide finds, until the order stays as decide saw it.
func (s *Refunds) settle(
	ctx context.Context, a refund.Account, decide func(refund.Account) (refund.Change, error),
	id refund.ID, owner string,
) error {
	for {
		change, err := decide(a)
		if errors.Is(err, errRecorded) {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.apply(ctx, change, id, owner)
		if _, refused := Refused(err); !refused {
			return err
		}
		before := a
		if a, err = refusingAccount(err); err != nil {
			return err
		}
		if _, err = decide(a); err == nil && a.Seq == before.Seq && a.Left() == before.Left() {
			return errConcurrent
		}
	}
}

// Account implements refund.Records with one strongly consistent GetItem.
func (s *Refunds) Account(ctx context.Context, id order.ID) (refund.Account, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: orderKey(id), ConsistentRead: aws.Bool(true),
	})
	if err == nil && len(out.Item) == 0 {
		err = order.ErrNotFound
	}
	if err != nil {
		return refund.Account{}, wrap("load account of", id, err)
	}
	a, err := decodeAccount(out.Item)
	return a, wrap("load account of", id, err)
}

// Apply implements refund.Records with one TransactWriteItems, and one more for each
// refund that was begun at the same moment.
func (s *Refunds) Apply(ctx context.Context, c refund.Change) error {
	err := s.settle(ctx, c.Before, c.Rebase, refund.ID(c.Event.Refund.ID), "")
	if errors.Is(err, order.ErrNotFound) {
		err = order.ErrStale
	}
	return wrap("record a refund of", c.Before.OrderID, err)
}

// apply writes a change of one refund, or of what others gave back if id is "", with its
// event. It is guarded by the refund's owner unless that is "", by the order's seq, and
// by what is left of the charge. Begin reserves without a new seq, and a change that did
// not see it would take the order out of the index of those that wait.
func (s *Refunds) apply(ctx context.Context, c refund.Change, id refund.ID, owner string) error {
	names := aliases()
	delete(names, "#owner")
	condition, set := "seq = :seq AND "+sameLeft, moveMoney
	values := row{
		":seq": number(c.Before.Seq), ":next": number(c.After.Seq), ":status": text(c.After.Status),
		":at": millis(c.Event.At), ":left": number(c.Before.Left()), ":rest": number(c.After.Left()),
	}
	if id == "" {
		set += ", refundedOutside = :outside"
		values[":outside"] = number(c.After.Outside)
	} else {
		item, _ := c.After.Item(id)
		set += ", #r = :item"
		names["#r"], values[":item"] = refundName+string(id), encodeRefund(item)
	}
	if owner != "" {
		condition += " AND " + refundHeld
		names["#owner"], values[":owner"], values[":open"] = "owner", text(owner), text(refund.Open)
	}
	if due := c.After.DueAt(); due.IsZero() {
		set += " REMOVE openShard, dueAt"
	} else {
		set += ", openShard = :shard, dueAt = :due"
		values[":shard"], values[":due"] = number(shardOf(c.Before.OrderID)), millis(due)
	}
	record := order.Record{OrderID: c.Before.OrderID, Total: c.Before.Charged, Trace: c.Before.Trace}
	return s.transact(ctx, &types.Update{
		ConditionExpression: &condition, UpdateExpression: &set,
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}, record, c.Event)
}

// updateRefund updates one refund and returns the order's account.
func (s *Refunds) updateRefund(
	ctx context.Context, r refund.Request, condition, update string, values row,
) (refund.Account, error) {
	names := map[string]string{"#r": refundName + string(r.ID())}
	item, err := s.updateNamed(ctx, r.OrderID(), condition, update, values, names)
	if err != nil {
		return refund.Account{}, err
	}
	return decodeAccount(item)
}

// refusingAccount returns the account of the row that refused a write, order.ErrNotFound
// if the row does not exist, or err if no condition failed.
func refusingAccount(err error) (refund.Account, error) {
	refusing, refused := Refused(err)
	switch {
	case !refused:
		return refund.Account{}, err
	case len(refusing) == 0:
		return refund.Account{}, order.ErrNotFound
	}
	return decodeAccount(refusing)
}

// decodeAccount decodes the order item with its refunds.
func decodeAccount(item row) (refund.Account, error) {
	r, err := decodeOrder(item)
	if err != nil {
		return refund.Account{}, err
	}
	d := decoder{item: item}
	a := refund.Account{
		OrderID: r.OrderID, Status: r.Status, Charged: r.Total, Intent: r.Intent, Seq: r.Seq, Trace: r.Trace,
		Outside: d.optionalNumber("refundedOutside"),
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if id, is := strings.CutPrefix(name, refundName); is {
			a.Items = append(a.Items, d.refund(name, refund.ID(id)))
		}
	}
	if item["refundable"] != nil && d.number("refundable") != a.Left() {
		d.want("refundable", fmt.Sprintf("%d, which the refunds leave", a.Left()))
	}
	return a, d.err
}

func encodeRefund(i refund.Item) *types.AttributeValueMemberM {
	m := row{
		"amount": number(i.Amount), "status": text(i.Status), "fingerprint": text(i.Fingerprint),
		"attempt": number(i.Attempt), "keySeq": number(i.KeySeq),
		"createdAt": millis(i.CreatedAt), "updatedAt": millis(i.UpdatedAt),
	}
	addTexts(m, map[string]string{
		"reason": string(i.Reason), "owner": i.Owner, "stripeRefundId": string(i.Refund), "failure": i.Failure,
		"lastError": i.LastError,
	})
	for name, t := range map[string]time.Time{"leaseUntil": i.Until, "sentAt": i.SentAt} {
		if !t.IsZero() {
			m[name] = millis(t)
		}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// refund decodes one refund of the row.
func (d *decoder) refund(name string, id refund.ID) refund.Item {
	m, ok := d.item[name].(*types.AttributeValueMemberM)
	if !ok {
		d.want(refundName+"...", "a map")
		return refund.Item{}
	}
	in := decoder{item: m.Value}
	status, err := refund.ParseStatus(in.text("status"))
	i := refund.Item{
		ID: id, Amount: in.number("amount"), Reason: refund.Reason(in.optionalText("reason")), Status: status,
		Fingerprint: order.Fingerprint(in.text("fingerprint")), Owner: in.optionalText("owner"),
		Until: in.optionalTime("leaseUntil"), Attempt: int(in.number("attempt")), KeySeq: int(in.number("keySeq")),
		SentAt: in.optionalTime("sentAt"), Refund: refund.ProviderID(in.optionalText("stripeRefundId")),
		Failure: in.optionalText("failure"), LastError: in.optionalText("lastError"),
		CreatedAt: in.time("createdAt"), UpdatedAt: in.time("updatedAt"),
	}
	d.err = errors.Join(d.err, cmp.Or(in.err, err))
	return i
}

func (d *decoder) optionalNumber(name string) int64 {
	if d.item[name] == nil {
		return 0
	}
	return d.number(name)
}

func wrapRefund(verb string, r refund.Request, err error) error {
	return wrap(verb+" refund "+string(r.ID())+" of", r.OrderID(), err)
}
