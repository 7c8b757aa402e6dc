package attack

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/incidents"
)

const (
	day        = 24 * time.Hour
	keysExpire = 25 * time.Hour // longer than Stripe keeps idempotency keys
	frozenFor  = 10 * time.Second

	prepared  = string(stripetest.Create)
	confirmed = string(stripetest.Confirm)
)

type action = func(ctx context.Context) (console.Result, error)

// Attacks returns the attacks in the order in which a page shows them.
func (a *Attacker) Attacks() []console.Group {
	return []console.Group{
		{Name: "Post", Attacks: a.posts()},
		{Name: "Crashes", Attacks: a.crashes()},
		{Name: "Lost answers and outages", Attacks: a.outages()},
		{Name: "Cards", Attacks: a.decisions()},
		{Name: "Time and operators", Attacks: a.times()},
		{Name: "Two things at once", Attacks: a.pairs()},
	}
}

func of(name, title, expect string, do action) console.Attack {
	return console.Attack{Name: name, Title: title, Expect: expect, Do: do}
}

func (a *Attacker) posts() []console.Attack {
	return []console.Attack{
		of("post", "Post an order", "One charge, one row, one event, one e-mail.", a.post("posted", once)),
		of("twice", "Post it twice",
			"Two messages, one charge. The second is acknowledged as a duplicate.", a.post("posted twice", twice)),
		of("ten", "Post ten, 30 % twice", "13 messages, ten charges.",
			func(context.Context) (console.Result, error) {
				return a.postMany(10, 3, "ten orders posted, three of them twice")
			}),
		of("conflict", "Same id, another amount",
			"One of the two is charged, the other is parked: conflict.",
			a.post("posted with two different amounts", conflicting)),
		of("malformed", "Malformed message", "Parked with a reason. Nobody is charged.",
			a.post("posted with a field that no order has", malformed)),
		of("again", "Deliver the last message again",
			"Acknowledged as a duplicate, as if it were new: nobody is charged again.", a.again),
	}
}

func (a *Attacker) crashes() []console.Attack {
	return []console.Attack{
		of("kill-after-yes", "Kill right after Stripe's yes",
			"Charged, and no row says so. The next delivery reads the bound intent: one charge.",
			a.trapped("its instance will be killed right after Stripe has charged it", a.killsAt(confirmed))),
		of("kill-now", "Kill an instance now",
			"Its messages come back after the visibility timeout. One charge.", a.killNow),
		of("freeze", "Freeze an instance for 10 s",
			"Another one takes the order over. When the first wakes up, it changes nothing.",
			a.trapped("its instance will be frozen for 10 s after Stripe has charged it", a.freezes)),
	}
}

func (a *Attacker) outages() []console.Attack {
	return []console.Attack{
		of("lose-stripe-before", "Lose a request to Stripe",
			"Stripe never sees the confirm. The next attempt sends it: one charge.",
			a.trapped("its confirm will never arrive at Stripe", a.losesConfirm(stripetest.LoseRequest))),
		of("lose-stripe-after", "Lose Stripe's yes",
			"Charged, but the answer is lost. The next attempt reads the intent: one charge.",
			a.trapped("Stripe's yes to its confirm will be lost", a.losesConfirm(stripetest.LoseResponse))),
		of("lose-dynamodb-before", "Lose a write to DynamoDB",
			"The outcome is not recorded. The write is repeated: one event.",
			a.trapped("the write of its outcome will not arrive at DynamoDB",
				a.losesOutcome(dynamodbtest.LoseBefore))),
		of("lose-dynamodb-after", "Lose DynamoDB's answer",
			"The outcome is recorded, but the answer is lost. The repeated write finds it: one event.",
			a.trapped("DynamoDB's answer to its outcome will be lost", a.losesOutcome(dynamodbtest.LoseAfter))),
		of("stripe-down", "Stripe is down for 20 s",
			"The orders wait in the queue, with growing delays. Each is charged once.",
			a.fails(outage{text: "Stripe is down", stripe: stripetest.Unavailable}, 20*time.Second, 3)),
		of("throttle", "Throttle DynamoDB for 10 s",
			"Calls are repeated, orders take longer. Each is charged once.",
			a.fails(outage{text: "DynamoDB throttles every second call", throttled: true}, 10*time.Second, 5)),
	}
}

func (a *Attacker) decisions() []console.Attack {
	const card, days = "a card that needs its customer", "a payment that takes days"
	clears := func(m *stripetest.Machine, now time.Time, intent string) error {
		return m.Settle(now, intent, true)
	}
	return []console.Attack{
		of("declined", "A card that is declined",
			"No charge. The row says declined, then canceled: its stock is free for others.",
			a.post("posted with a card that is declined", paying(incidents.Declines))),
		of("action", "A card that needs its customer", "The row waits in action_required. No charge yet.",
			a.post("posted with "+card, paying(incidents.Asks))),
		of("authenticate", "Authenticate as the customer",
			"Stripe's webhook settles the waiting order: one charge.",
			a.decides(order.ActionRequired, card, "authenticated", (*stripetest.Machine).CustomerPays)),
		of("days", "A payment that takes days",
			"The row waits in pending. No charge until the bank has decided.",
			a.post("posted with "+days, paying(incidents.Takes))),
		of("clear", "The bank clears it", "Stripe's webhook settles the pending order: one charge.",
			a.decides(order.Pending, days, "cleared", clears)),
	}
}

func (a *Attacker) times() []console.Attack {
	return []console.Attack{
		of("jump-25h", "25 hours pass", "Stripe forgets idempotency keys. No order needs one.",
			func(ctx context.Context) (console.Result, error) {
				const text = "25 hours have passed for the queue and for Stripe, which forgot its idempotency keys"
				return console.Result{Text: text}, a.jump(ctx, keysExpire)
			}),
		of("jump-20d", "20 days pass",
			"Queues forget messages after 7 and 14 days. The rows stay, and a late message charges nobody.",
			a.jumpWeeks),
		of("redrive", "Redrive the dead letters",
			"Each is processed again, and parked again if nothing has changed.", a.redrive),
		of("rollout", "Roll out a new version",
			"Busy instances finish, new ones run the new version. No order notices.", a.rollOut),
	}
}

// pairs are the sequences that guards need. Each is about one order that it posts itself,
// so that it needs no luck.
func (a *Attacker) pairs() []console.Attack {
	return []console.Attack{
		of("kill-25h", "Kill after the yes, then 25 hours pass",
			"The next delivery comes when Stripe has forgotten the keys: one charge all the same.",
			a.trapped("its instance will be killed after the charge, then 25 hours pass", a.killsAndWaits)),
		of("lose-bind-25h", "Lose the bind, then 25 hours pass",
			"No money moves before the row names the intent. A later attempt charges once.",
			a.trapped("the writes that bind its intent are lost, then 25 hours pass",
				a.losesWrites(watch.Bind, a.dayPasses))),
		of("lose-finish", "Lose every write of the outcome",
			"The message is not deleted before the outcome is recorded. One charge, and the row says so.",
			a.trapped("every write of its outcome is lost until its delivery ends",
				a.losesWrites(watch.Finish, func(context.Context, string) {}))),
		of("kill-after-finish", "Kill right after the outcome is written",
			"The next delivery is a duplicate. Status and event were written together.",
			a.trapped("its instance will be killed right after the write of its outcome",
				a.killsAt(string(watch.Finish)))),
		of("again-kill", "Deliver twice at once, kill the first",
			"The second delivery finds the lease and comes again later: one charge.",
			a.trapped("its message comes twice at once, and the first instance is killed", a.repeatsAndKills)),
		of("malformed-unparked", "Malformed while nothing can be parked",
			"The message stays in the queue until the dead-letter queue has it.", a.malformedUnparked),
	}
}

// Act is a console.Act.
func (a *Attacker) Act(ctx context.Context, name, value string) (console.Result, error) {
	switch name {
	case console.ActGuard:
		return a.deployWithout(ctx, value)
	case console.ActStorm:
		return a.setStorm(value)
	case console.ActSlow:
		return a.setPace(value == "true")
	}
	for _, g := range a.Attacks() {
		for _, attack := range g.Attacks {
			if attack.Name != name {
				continue
			}
			did, err := attack.Do(ctx)
			if err != nil {
				return console.Result{}, fmt.Errorf("%s: %w", strings.ToLower(attack.Title), err)
			}
			a.watch.Say(watch.Attack, did.Text)
			return did, nil
		}
	}
	return console.Result{}, fmt.Errorf("attack %q: %w", name, console.ErrUnknown)
}

// again delivers the message that was processed last once more, as SQS may, although it
// was deleted.
func (a *Attacker) again(context.Context) (console.Result, error) {
	a.mu.Lock()
	m, s := a.last, a.system
	a.mu.Unlock()
	if m.ID == "" {
		return console.Result{}, fmt.Errorf("%w: no message was processed yet: post an order", console.ErrNotNow)
	}
	m.Receives++
	a.later(func(ctx context.Context) {
		_, _ = s.Invoke(ctx, m) // the function logs what it did
	})
	return console.Result{Text: "You: the message that was processed last is delivered again"}, nil
}

func (a *Attacker) decides(
	of order.Status, needs, did string, decide func(m *stripetest.Machine, now time.Time, intent string) error,
) action {
	return func(context.Context) (console.Result, error) {
		o, ok := a.watch.Find(func(o watch.Order) bool { return o.Status == string(of) })
		if !ok {
			return console.Result{}, fmt.Errorf("%w: no order is %s: post one with %s", console.ErrNotNow, of, needs)
		}
		s := a.target()
		var err error
		s.Stripe.Machine(func(m *stripetest.Machine) { err = decide(m, s.Stripe.Now(), o.Intent) })
		if err != nil {
			return console.Result{}, fmt.Errorf("%w: %w", console.ErrNotNow, err)
		}
		a.watch.Enter(o.ID, watch.Entry{Kind: watch.Message, From: watch.You, To: watch.Stripe, Text: did})
		return console.Result{Text: "The payment of " + o.ID + " was " + did, Order: o.ID}, nil
	}
}

// trap prepares what happens to an order that is posted next.
type trap = func(id string)

// trapped is an attack that posts an order after a trap was set for it.
func (a *Attacker) trapped(what string, set trap) action {
	return func(context.Context) (console.Result, error) {
		c := a.next()
		set(c.id)
		return a.postOf(c, "posted; "+what, once(c))
	}
}

func instanceOf(order string) func(payload []byte) bool {
	return func(payload []byte) bool { return strings.Contains(string(payload), fmt.Sprintf(`\"%s\"`, order)) }
}

func (a *Attacker) killsAt(at string) trap {
	return func(id string) { a.after(id, at, func() { a.target().Kill(instanceOf(id)) }) }
}

// killNow kills the busy instances. If there are none, it posts an order and kills its
// instance after the first call to Stripe.
func (a *Attacker) killNow(ctx context.Context) (console.Result, error) {
	if n := a.target().Kill(nil); n > 0 {
		return console.Result{Text: fmt.Sprintf("You: busy instances killed: %d", n)}, nil
	}
	const what = "its instance, because none was busy, will be killed at prepare"
	return a.trapped(what, a.killsAt(prepared))(ctx)
}

func (a *Attacker) freezes(id string) {
	a.after(id, confirmed, func() {
		if a.target().Freeze(frozenFor, instanceOf(id)) == 0 {
			a.watch.Say(watch.Plain, id+": not frozen: this works on Linux only")
		}
	})
}

func (a *Attacker) losesConfirm(kind stripetest.FaultKind) trap {
	return func(id string) {
		a.target().Stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: id})
	}
}

func (a *Attacker) losesOutcome(kind dynamodbtest.Kind) trap {
	return func(id string) {
		a.target().Proxy.Fail(dynamodbtest.Fault{
			Kind: kind, Operation: "TransactWriteItems", Times: 1,
			Match: func(body []byte) bool { return isStep(body, id, watch.Finish) },
		})
	}
}

func isStep(request []byte, id string, step watch.Step) bool {
	order, is := watch.StepOf(request)
	return order == id && is == step
}

// losesWrites loses the writes of a step of an order, until its first delivery has ended.
// Then it calls then, in the background.
func (a *Attacker) losesWrites(step watch.Step, then func(ctx context.Context, id string)) trap {
	return func(id string) {
		var over atomic.Bool
		a.target().Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Match: func(body []byte) bool {
			return !over.Load() && isStep(body, id, step)
		}})
		a.after(id, deliveryEnds, func() {
			over.Store(true)
			a.later(func(ctx context.Context) { then(ctx, id) })
		})
	}
}

func (a *Attacker) killsAndWaits(id string) {
	a.after(id, confirmed, func() {
		a.target().Kill(instanceOf(id))
		a.later(func(ctx context.Context) {
			if wait(ctx, time.Second) { // so that a visitor sees it
				a.dayPasses(ctx, id)
			}
		})
	})
}

// repeatsAndKills delivers an order's message a second time while an instance works on
// it, and kills that instance when the second one has answered the queue.
func (a *Attacker) repeatsAndKills(id string) {
	a.after(id, prepared, func() {
		ended, s := make(chan struct{}), a.target()
		a.after(id, deliveryEnds, func() { close(ended) })
		s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
			messages, _ := m.Messages(now, s.OrderQueue()) // the queue exists
			for _, message := range messages {
				if orderOf(message.Body) == id {
					_ = m.ChangeVisibility(now, s.OrderQueue(), message.Handle, 0)
				}
			}
		})
		limit := time.NewTimer(time.Second)
		defer limit.Stop()
		select {
		case <-ended:
		case <-limit.C:
		}
		a.target().Kill(instanceOf(id))
	})
}

func (a *Attacker) malformedUnparked(context.Context) (console.Result, error) {
	const many = 100
	c, queue := a.next(), a.target().SQS
	queue.Fail("SendMessage", many, sqstest.CodeServiceUnavailable)
	a.after(c.id, deliveryEnds, queue.Heal)
	return a.postOf(c, "posted, malformed, while the dead-letter queue accepts nothing", malformed(c))
}

func (a *Attacker) redrive(context.Context) (console.Result, error) {
	moved, err := a.target().Redrive()
	if err == nil && moved == 0 {
		err = fmt.Errorf("%w: there are no dead letters: post a malformed message", console.ErrNotNow)
	}
	return console.Result{Text: fmt.Sprintf("You: dead letters moved back to the queue: %d", moved)}, err
}

// jump moves the clocks of the queue and of Stripe, and then lets the function of the
// schedule look at every order that waits, as it would have in that time.
func (a *Attacker) jump(ctx context.Context, t time.Duration) error {
	s := a.target()
	s.Advance(t)
	s.Stripe.Machine(func(m *stripetest.Machine) { m.PruneKeys(s.Stripe.Now()) })
	return s.Look(ctx)
}

func (a *Attacker) dayPasses(ctx context.Context, id string) {
	if a.jump(ctx, keysExpire) == nil {
		a.watch.Say(watch.Attack, "25 hours have passed; Stripe has forgotten the keys of "+id)
	}
}

// jumpWeeks moves the clocks in steps, each after the queue had time to deliver: a
// message that waits for weeks is delivered or parked before its queue forgets it.
func (a *Attacker) jumpWeeks(ctx context.Context) (console.Result, error) {
	const steps = 4
	for range steps {
		limited, cancel := context.WithTimeout(ctx, 2*visibility)
		err := a.target().Drained(limited)
		over := limited.Err() != nil // what still waits is delivered after the jump
		cancel()
		if err != nil && !over {
			return console.Result{}, err
		}
		if err := a.jump(ctx, 20*day/steps); err != nil {
			return console.Result{}, err
		}
	}
	return console.Result{Text: "20 days have passed for the queues and for Stripe"}, nil
}
