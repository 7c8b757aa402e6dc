// Package deadletters reads and empties the dead-letter queue. It pages the queue without
// losing a message, finds out what a message's row and Stripe say, judges what to do with
// the message, and redrives or deletes it. It does not depend on the command line, and it
// reads no clock.
//
// Queue receives and sends, Sources reads the facts, and Judge is a pure function from
// the facts to a verdict. docs/guides/operate.md explains the verdicts.
package deadletters

import (
	"context"
	"strings"
	"time"
)

// Filter selects messages. A zero field selects every message.
type Filter struct {
	Reasons []string // as shown: Unnamed for a message without a reason
	// Query is an order id, or the id or the first id of a message.
	Query string
	// Before and After bound the time at which the message was first sent.
	Before, After time.Time
}

// Matches reports whether the filter selects m.
func (f Filter) Matches(m Message) bool {
	switch {
	case len(f.Reasons) > 0 && !contains(f.Reasons, m.ReasonShown()),
		f.Query != "" && !contains([]string{string(m.OrderID()), m.ID, m.FirstID}, f.Query),
		!f.Before.IsZero() && !m.FirstSent.Before(f.Before),
		!f.After.IsZero() && !m.FirstSent.After(f.After):
		return false
	}
	return true
}

func contains(all []string, s string) bool {
	for _, one := range all {
		if strings.EqualFold(one, s) {
			return true
		}
	}
	return false
}

// Letter is a message with what is known about it.
type Letter struct {
	Message
	Facts
	Verdict
}

// Judge calls visit with the verdict on every message of the queue that is wanted, each
// once, and looks at no more than limit messages. See Queue.Each.
func (s Sources) Judge(
	ctx context.Context, q *Queue, limit int, wanted func(Message) bool, visit Visit[Letter],
) (Pages, error) {
	return q.Each(ctx, limit, func(ctx context.Context, m Message) (gone bool, err error) {
		if !wanted(m) {
			return false, nil
		}
		facts := s.Facts(ctx, m)
		return visit(ctx, Letter{Message: m, Facts: facts, Verdict: Judge(m, facts)})
	})
}
