package baselines

import (
	"context"
	"errors"
	"time"
)

// messageIDLife is how long a message id is remembered in the articles.
const messageIDLife = 24 * time.Hour

func messageRow(e Env, m Message, life time.Duration) Item {
	return Item{ID: S("message#" + m.ID), Expiration: N(e.Now().Add(life).Unix())}
}

// messageIDBeforeWork is from an article on exactly-once processing with SQS: a conditional put of the messageId that lives for
// 24 h; if the condition fails, the message is a duplicate and skipped; else the work.
//
// It promises 1,000 concurrent messages without a duplicate effect, for 15 ms each, and keeps that: it is enough for work that
// may be lost and must not be doubled within a day. The article warns of the price itself: work that fails, or dies, after the
// put is never done. And a redrive or a producer that sends twice brings another messageId.
func messageIDBeforeWork(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	err = e.Table.PutIf(ctx, messageRow(e, m, messageIDLife), Absent(ID))
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil // a duplicate
	}
	if err != nil {
		return err
	}
	return work(ctx, e, o, "")
}

// messageIDAfterWork is what the same article advises against lost work: is the messageId known? Else work, then put it.
//
// It promises that no message is lost, and keeps that. It is enough for work that may be done twice. Two deliveries at once,
// or a death between the work and the put, are two charges.
func messageIDAfterWork(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	seen := messageRow(e, m, messageIDLife)
	row, err := e.Table.Get(ctx, seen.id())
	if err != nil || len(row) > 0 {
		return err
	}
	if err := work(ctx, e, o, ""); err != nil {
		return err
	}
	err = e.Table.PutIf(ctx, seen, Absent(ID))
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil // a duplicate, too late
	}
	return err
}

// shortLockLife is how far ahead the lock's time to live lies.
const shortLockLife = 5 * time.Second

// shortLock is from a blog on idempotent handlers: a conditional put of the messageId with a time to live five seconds ahead.
// A failed condition writes a warning and falls through to the work.
//
// It promises that a message is handled by one consumer at a time, and keeps no part of that: the lock stops nobody. It is
// enough to see in the log how often duplicates come.
func shortLock(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	err = e.Table.PutIf(ctx, messageRow(e, m, shortLockLife), Absent(ID))
	_, refused := errors.AsType[*RefusedError](err)
	if err != nil && !refused {
		return err
	}
	if refused {
		e.warn("message " + m.ID + " is being processed already")
	}
	return work(ctx, e, o, "")
}
