package baselines

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// parsed returns a Handler that parses the body. It returns an error for an invalid one.
func parsed(handle func(context.Context, Env, Message, order) error) Handler {
	return func(ctx context.Context, e Env, m Message) error {
		var o order
		if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
			return fmt.Errorf("parse message %q: %w", m.ID, err)
		}
		return handle(ctx, e, m, o)
	}
}

// checkThenAct handles duplicates that arrive one after the other at any age, because the
// row never expires. The put has no condition.
func checkThenAct(ctx context.Context, e Env, _ Message, o order) error {
	row, err := e.Table.Get(ctx, rowID(o.ID))
	if err != nil || row.ID != "" {
		return err
	}
	return chargeAndSave(ctx, e, o, "")
}

const messageIDLife = 24 * time.Hour

func messageItem(e Env, m Message, life time.Duration) Item {
	return Item{ID: "message#" + m.ID, Expiration: e.Now().Add(life).Unix()}
}

// messageIDBefore fits work that may be lost but not repeated within a day.
func messageIDBefore(ctx context.Context, e Env, m Message, o order) error {
	duplicate, err := e.Table.Put(ctx, messageItem(e, m, messageIDLife), Condition{New: true})
	if err != nil || duplicate.ID != "" {
		return err
	}
	return chargeAndSave(ctx, e, o, "")
}

// messageIDAfter fits work that may be repeated but not lost.
func messageIDAfter(ctx context.Context, e Env, m Message, o order) error {
	seen := messageItem(e, m, messageIDLife)
	row, err := e.Table.Get(ctx, seen.ID)
	if err != nil || row.ID != "" {
		return err
	}
	if err := chargeAndSave(ctx, e, o, ""); err != nil {
		return err
	}
	_, err = e.Table.Put(ctx, seen, Condition{New: true}) // if another delivery was faster, both have charged
	return err
}

// shortLock would log a warning if the condition fails, and charges in either case.
func shortLock(ctx context.Context, e Env, m Message, o order) error {
	if _, err := e.Table.Put(ctx, messageItem(e, m, 5*time.Second), Condition{New: true}); err != nil {
		return err
	}
	return chargeAndSave(ctx, e, o, "")
}

// stripeKey relies on Stripe, which keeps a key for at least 24 h.
func stripeKey(ctx context.Context, e Env, _ Message, o order) error {
	return chargeAndSave(ctx, e, o, o.ID)
}

// recordLife is how long an idempotency record is kept: 24 h, as long as Stripe keeps a
// key. Powertools' default is one hour.
const recordLife = 24 * time.Hour

var (
	errInProgress = errors.New("idempotency record is in progress")
	errPayload    = errors.New("payload does not match the idempotency record")
)

// idempotencyRecord follows the idempotency utility of Powertools for AWS Lambda: a
// record by orderId goes from INPROGRESS to COMPLETED around the charge. It also sends
// the orderId as Stripe's key, which the utility does not ask for.
//
// The update to COMPLETED and the delete after an error have no condition, so an attempt
// whose deadline has passed can overwrite or delete the record of another one. A record
// that is not COMPLETED does not say whether the order was charged; then only Stripe's
// key prevents a second charge.
func idempotencyRecord(ctx context.Context, e Env, _ Message, o order) error {
	record := recordItem(e, o, inProgress)
	record.Deadline = e.Deadline.UnixMilli()
	held, err := e.Table.Put(ctx, record, Condition{New: true, FreeAt: e.Now()})
	if err != nil || held.ID != "" {
		return cmp.Or(err, replay(held, record))
	}
	if err := chargeAndSave(ctx, e, o, o.ID); err != nil {
		return errors.Join(err, e.Table.Delete(ctx, record.ID))
	}
	// Powertools sends an UpdateItem of these attributes without a condition, which
	// creates a missing record. A put has the same effect.
	return e.put(ctx, recordItem(e, o, completed))
}

// replay returns nil for a COMPLETED record of the same payload: the message is a
// duplicate.
func replay(held, want Item) error {
	switch {
	case held.Validation != want.Validation:
		return fmt.Errorf("%s: %w", want.ID, errPayload)
	case held.Status != completed:
		return fmt.Errorf("%s: %w", want.ID, errInProgress)
	}
	return nil
}

func recordItem(e Env, o order, status Status) Item {
	return Item{
		ID: "process#" + o.ID, Status: status, Expiration: e.Now().Add(recordLife).Unix(), Validation: contentOf(o),
	}
}

func contentOf(o order) string {
	payload := sha256.Sum256(fmt.Appendf(nil, "%+v", o))
	return hex.EncodeToString(payload[:])
}

// fifo relies on the queue, which drops what is sent twice within five minutes and
// delivers one message of an order at a time
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html).
func fifo(ctx context.Context, e Env, _ Message, o order) error { return chargeAndSave(ctx, e, o, "") }

func bound(ctx context.Context, e Env, _ Message, o order) error { return bindSteps(ctx, e, o) }

// lookUp uses the list of the customer's intents, which is consistent; Stripe's search
// can lag by an hour in an outage. Nothing prevents a second worker from charging between
// the look-up and the charge.
func lookUp(ctx context.Context, e Env, _ Message, o order) error {
	switch status, err := e.Stripe.find(ctx, o); {
	case err != nil:
		return err
	case status != "":
		return saveRow(ctx, e, o, status)
	}
	return chargeAndSave(ctx, e, o, "")
}
