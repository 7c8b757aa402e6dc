package attack

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
)

// keysExpire is longer than Stripe keeps idempotency keys.
const keysExpire = 25 * time.Hour

// dayPasses moves the clocks after something happened to an order.
func (d *Desk) dayPasses(ctx context.Context, id string) {
	if d.jump(ctx, keysExpire) == nil {
		d.watch.Say(watch.Attack, id, "25 hours have passed; Stripe has forgotten the keys of "+id)
	}
}

func (d *Desk) killThenDay(context.Context) (console.Result, error) {
	c, s := d.next(), d.target()
	d.aim(c.id, stripetest.Confirm, func() {
		d.kill(s, c.id, watch.Stripe)
		d.later(func(ctx context.Context) {
			if wait(ctx, time.Second) { // so that a visitor sees it
				d.dayPasses(ctx, c.id)
			}
		})
	})
	return d.posts(c, "posted; its instance will be killed after the charge, then 25 hours pass", c.body())
}

// losesWrites loses the writes of a step of an order, until its first delivery has ended.
// Then it calls then, in the background. Each write is repeated, and with slow steps no
// time would be left for what follows it.
func (d *Desk) losesWrites(c content, step watch.Step, then func(ctx context.Context)) {
	d.mu.Lock()
	d.fast[c.id] = true
	d.mu.Unlock()
	var over atomic.Bool
	d.target().Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Match: func(body []byte) bool {
		return !over.Load() && isStep(body, c.id, step)
	}})
	d.onEnd(c.id, func() {
		over.Store(true)
		d.mu.Lock()
		delete(d.fast, c.id)
		d.mu.Unlock()
		d.later(then)
	})
}

// isStep reports whether a request to DynamoDB is a step of an order.
func isStep(request []byte, id string, step watch.Step) bool {
	order, is := watch.StepOf(request)
	return order == id && is == step
}

func isAbout(body []byte, id string) bool { return strings.Contains(string(body), `"`+id+`"`) }

func (d *Desk) loseBindThenDay(context.Context) (console.Result, error) {
	c := d.next()
	d.losesWrites(c, watch.Bind, func(ctx context.Context) { d.dayPasses(ctx, c.id) })
	return d.posts(c, "posted; the writes that bind its intent are lost, then 25 hours pass", c.body())
}

func (d *Desk) loseFinish(context.Context) (console.Result, error) {
	c := d.next()
	d.losesWrites(c, watch.Finish, func(context.Context) {})
	return d.posts(c, "posted; every write of its outcome is lost until its delivery ends", c.body())
}

// killAfterFinish kills the instance when DynamoDB has the outcome.
func (d *Desk) killAfterFinish(context.Context) (console.Result, error) {
	c, s := d.next(), d.target()
	d.mu.Lock()
	d.written[c.id] = func() { d.kill(s, c.id, watch.DynamoDB) }
	d.mu.Unlock()
	return d.posts(c, "posted; its instance will be killed right after the write of its outcome", c.body())
}

// afterTable is called before DynamoDB's answer is sent.
func (d *Desk) afterTable(c dynamodbtest.Call) {
	id, step := watch.StepOf(c.Request)
	if step != watch.Finish {
		return
	}
	d.mu.Lock()
	act := d.written[id]
	delete(d.written, id)
	d.mu.Unlock()
	if act != nil {
		act()
	}
}

// againThenKill delivers an order's message a second time while an instance works on it,
// and kills that instance when the second one has answered the queue.
func (d *Desk) againThenKill(context.Context) (console.Result, error) {
	c, s := d.next(), d.target()
	d.aim(c.id, stripetest.Create, func() {
		ended := make(chan struct{})
		d.onEnd(c.id, func() { close(ended) })
		s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
			messages, _ := m.Messages(now, s.OrderQueue()) // the queue exists
			for _, message := range messages {
				if isAbout([]byte(message.Body), c.id) {
					_ = m.ChangeVisibility(now, s.OrderQueue(), message.Receipt, 0)
				}
			}
		})
		limit := time.NewTimer(time.Second)
		defer limit.Stop()
		select {
		case <-ended:
		case <-limit.C:
		}
		d.kill(s, c.id, watch.Stripe)
	})
	return d.posts(c, "posted; its message comes twice at once, and the first instance is killed", c.body())
}

// malformedUnparked posts a malformed message while the dead-letter queue accepts none.
func (d *Desk) malformedUnparked(context.Context) (console.Result, error) {
	c, s := d.next(), d.target()
	const many = 100
	s.SQS.Fail("SendMessage", many, sqstest.CodeServiceUnavailable)
	d.onEnd(c.id, s.SQS.Heal)
	return d.posts(c, "posted, malformed, while the dead-letter queue accepts nothing", malformed(c)...)
}
