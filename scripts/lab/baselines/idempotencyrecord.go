package baselines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// idempotencyRecord is Powertools for AWS Lambda's idempotency utility, which a patterns article recommends too: a record keyed by
// orderId goes from INPROGRESS to COMPLETED around the work, and carries its answer.
//
// It promises that the function runs once for a key while the record lives, and a time-out of the function does not block the
// key. It is enough for duplicates, also concurrent ones, within the record's life, and for deaths within the life of Stripe's
// key. It guards its record less than itself: the update to COMPLETED and the delete after an exception have no condition, so
// whoever was given up as dead can overwrite or unlock what another one holds. What was not seen as COMPLETED is repeated,
// and only Stripe's key stands between that and a second charge: the record itself cannot know about the money.
//
// The work passes the orderId to Stripe as its key, which the utility does not ask for: without it, one answer that stays
// lost is a second charge.
type idempotencyRecord struct {
	life         time.Duration // 1 h by default
	payloadCheck bool          // off by default
}

var (
	errInProgress = errors.New("an execution is in progress already")
	errPayload    = errors.New("the payload does not match the stored record")
)

func (r idempotencyRecord) handle(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	record := r.record(e, o, "INPROGRESS")
	record["in_progress_expiration"] = N(e.Deadline.UnixMilli())
	err = e.Table.PutIf(ctx, record, r.free(e.Now()))
	if refused, is := errors.AsType[*RefusedError](err); is {
		return r.answer(refused.Old, record)
	}
	if err != nil {
		return err
	}
	if err := work(ctx, e, o, o.ID); err != nil {
		return errors.Join(err, e.Table.Delete(ctx, record.id()))
	}
	// An UpdateItem there, of these attributes: it has no condition, and makes the record if it is gone, so a put is the same.
	return e.Table.Put(ctx, r.record(e, o, "COMPLETED"))
}

// free is the condition under which a record is taken.
func (r idempotencyRecord) free(now time.Time) Condition {
	return Or(
		Absent(ID),
		Less(Expiration, N(now.Unix())),
		And(Equal("status", S("INPROGRESS")), Less("in_progress_expiration", N(now.UnixMilli()))),
	)
}

// answer is for the record that refused: COMPLETED replays its answer, so the message is done.
func (r idempotencyRecord) answer(old, mine Item) error {
	switch {
	case r.payloadCheck && old["validation"] != mine["validation"]:
		return fmt.Errorf("%s: %w", mine.id(), errPayload)
	case old["status"] == S("COMPLETED"):
		return nil
	}
	return fmt.Errorf("%s: %w", mine.id(), errInProgress)
}

func (r idempotencyRecord) record(e Env, o order, status S) Item {
	item := Item{ID: S("process#" + o.ID), "status": status, Expiration: N(e.Now().Add(r.life).Unix())}
	if r.payloadCheck {
		sum := sha256.Sum256(fmt.Appendf(nil, "%+v", o))
		item["validation"] = S(hex.EncodeToString(sum[:]))
	}
	return item
}
