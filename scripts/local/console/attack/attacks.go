package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
)

const (
	day        = 24 * time.Hour
	keysExpire = 25 * time.Hour // longer than Stripe keeps idempotency keys
	frozenFor  = 10 * time.Second

	prepared  = string(stripetest.Create)
	confirmed = string(stripetest.Confirm)
)

// action is what an attack does.
type action func(a *Attacker, ctx context.Context) (console.Result, error)

// act is an attack and what it does.
type act struct {
	console.Attack

	do action
}

// Attacks returns the attacks in the order in which a page shows them.
func Attacks() (all []console.Attack) {
	for _, a := range acts() {
		all = append(all, a.Attack)
	}
	return all
}

func acts() []act { return slices.Concat(posts(), crashes(), outages(), decisions(), times(), pairs()) }

// of returns an attack with its name, title and expectation.
func of(group, name, title, expect string, do action) act {
	return act{console.Attack{Name: name, Title: title, Expect: expect, Group: group}, do}
}

func posts() []act {
	const group = "Post"
	return []act{
		of(group, "post", "Post an order", "One charge, one row, one event, one e-mail.", post("posted", once)),
		of(group, "twice", "Post it twice",
			"Two messages, one charge. The second is acknowledged as a duplicate.", post("posted twice", twice)),
		of(group, "ten", "Post ten, 30 % twice", "13 messages, ten charges.",
			func(a *Attacker, _ context.Context) (console.Result, error) {
				return a.postMany(10, 3, "ten orders posted, three of them twice")
			}),
		of(group, "conflict", "Same id, another amount",
			"One of the two is charged, the other is parked: conflict.",
			post("posted with two different amounts", conflicting)),
		of(group, "malformed", "Malformed message", "Parked with a reason. Nobody is charged.",
			post("posted with a field that no order has", malformed)),
		of(group, "again", "Deliver the last message again",
			"Acknowledged as a duplicate, as if it were new: nobody is charged again.", (*Attacker).again),
	}
}

func crashes() []act {
	const group = "Crashes"
	return []act{
		of(group, "kill-after-yes", "Kill right after Stripe's yes",
			"Charged, and no row says so. The next delivery reads the bound intent: one charge.",
			trapped("its instance will be killed right after Stripe has charged it",
				killsAt(confirmed))),
		of(group, "kill-now", "Kill an instance now",
			"Its messages come back after the visibility timeout. One charge.", (*Attacker).killNow),
		of(group, "freeze", "Freeze an instance for 10 s",
			"Another one takes the order over. When the first wakes up, it changes nothing.",
			trapped("its instance will be frozen for 10 s after Stripe has charged it", freezes)),
	}
}

func outages() []act {
	const group = "Lost answers and outages"
	return []act{
		of(group, "lose-stripe-before", "Lose a request to Stripe",
			"Stripe never sees the confirm. The next attempt sends it: one charge.",
			trapped("its confirm will never arrive at Stripe", losesConfirm(stripetest.LoseRequest))),
		of(group, "lose-stripe-after", "Lose Stripe's yes",
			"Charged, but the answer is lost. The next attempt reads the intent: one charge.",
			trapped("Stripe's yes to its confirm will be lost", losesConfirm(stripetest.LoseResponse))),
		of(group, "lose-dynamodb-before", "Lose a write to DynamoDB",
			"The outcome is not recorded. The write is repeated: one event.",
			trapped("the write of its outcome will not arrive at DynamoDB", losesOutcome(dynamodbtest.LoseBefore))),
		of(group, "lose-dynamodb-after", "Lose DynamoDB's answer",
			"The outcome is recorded, but the answer is lost. The repeated write finds it: one event.",
			trapped("DynamoDB's answer to its outcome will be lost", losesOutcome(dynamodbtest.LoseAfter))),
		of(group, "stripe-down", "Stripe is down for 20 s",
			"The orders wait in the queue, with growing delays. Each is charged once.",
			fails("stripe", outage{text: "Stripe is down", stripe: stripetest.Unavailable}, 20*time.Second, 3)),
		of(group, "throttle", "Throttle DynamoDB for 10 s",
			"Calls are repeated, orders take longer. Each is charged once.",
			fails("dynamodb", outage{text: "DynamoDB throttles every second call", throttled: true},
				10*time.Second, 5)),
	}
}

func decisions() []act {
	const group, card, days = "Cards", "a card that needs its customer", "a payment that takes days"
	return []act{
		of(group, "declined", "A card that is declined",
			"No charge. The row says declined, then canceled: its stock is free for others.",
			post("posted with a card that is declined", paying(declines))),
		of(group, "action", "A card that needs its customer", "The row waits in action_required. No charge yet.",
			post("posted with "+card, paying(needsUser))),
		of(group, "authenticate", "Authenticate as the customer",
			"Stripe's webhook settles the waiting order: one charge.",
			decides(order.ActionRequired, card, "authenticated", (*stripetest.Machine).CustomerPays)),
		of(group, "days", "A payment that takes days",
			"The row waits in pending. No charge until the bank has decided.", post("posted with "+days, paying(takesDays))),
		of(group, "clear", "The bank clears it", "Stripe's webhook settles the pending order: one charge.",
			decides(order.Pending, days, "cleared", func(m *stripetest.Machine, now time.Time, intent string) error {
				return m.Settle(now, intent, true)
			})),
	}
}

func times() []act {
	const group = "Time and operators"
	return []act{
		of(group, "jump-25h", "25 hours pass", "Stripe forgets idempotency keys. No order needs one.",
			func(a *Attacker, ctx context.Context) (console.Result, error) {
				const text = "25 hours have passed for the queue and for Stripe, which forgot its idempotency keys"
				return console.Result{Text: text}, a.jump(ctx, keysExpire)
			}),
		of(group, "jump-20d", "20 days pass",
			"Queues forget messages after 7 and 14 days. The rows stay, and a late message charges nobody.",
			(*Attacker).jumpWeeks),
		of(group, "redrive", "Redrive the dead letters",
			"Each is processed again, and parked again if nothing has changed.", (*Attacker).redrive),
		of(group, "rollout", "Roll out a new version",
			"Busy instances finish, new ones run the new version. No order notices.", (*Attacker).rollOut),
	}
}

// pairs are the sequences that guards need. Each is about one order that it posts itself,
// so that it needs no luck.
func pairs() []act {
	const group = "Two things at once"
	return []act{
		of(group, "kill-25h", "Kill after the yes, then 25 hours pass",
			"The next delivery comes when Stripe has forgotten the keys: one charge all the same.",
			trapped("its instance will be killed after the charge, then 25 hours pass", killsAndWaits)),
		of(group, "lose-bind-25h", "Lose the bind, then 25 hours pass",
			"No money moves before the row names the intent. A later attempt charges once.",
			trapped("the writes that bind its intent are lost, then 25 hours pass",
				losesWrites(watch.Bind, (*Attacker).dayPasses))),
		of(group, "lose-finish", "Lose every write of the outcome",
			"The message is not deleted before the outcome is recorded. One charge, and the row says so.",
			trapped("every write of its outcome is lost until its delivery ends",
				losesWrites(watch.Finish, func(*Attacker, context.Context, string) {}))),
		of(group, "kill-after-finish", "Kill right after the outcome is written",
			"The next delivery is a duplicate. Status and event were written together.",
			trapped("its instance will be killed right after the write of its outcome",
				killsAt(string(watch.Finish)))),
		of(group, "again-kill", "Deliver twice at once, kill the first",
			"The second delivery finds the lease and comes again later: one charge.",
			trapped("its message comes twice at once, and the first instance is killed", repeatsAndKills)),
		of(group, "malformed-unparked", "Malformed while nothing can be parked",
			"The message stays in the queue until the dead-letter queue has it.", (*Attacker).malformedUnparked),
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
	all := acts()
	i := slices.IndexFunc(all, func(a act) bool { return a.Name == name })
	if i < 0 {
		return console.Result{}, fmt.Errorf("attack %q: %w", name, console.ErrUnknown)
	}
	did, err := all[i].do(a, ctx)
	if err != nil {
		return console.Result{}, fmt.Errorf("%s: %w", strings.ToLower(all[i].Title), err)
	}
	a.watch.Say(watch.Attack, did.Order, did.Text)
	return did, nil
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

// decides lets somebody decide about the payment of the newest order with a status.
func decides(
	of order.Status, needs, did string, decide func(m *stripetest.Machine, now time.Time, intent string) error,
) action {
	return func(a *Attacker, _ context.Context) (console.Result, error) {
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
type trap func(a *Attacker, id string)

// trapped is an attack that posts an order after a trap was set for it.
func trapped(what string, set trap) action {
	return func(a *Attacker, _ context.Context) (console.Result, error) {
		c := a.next()
		set(a, c.id)
		return a.postOf(c, "posted; "+what, once(c))
	}
}

// instanceOf matches the instances that process an order.
func instanceOf(order string) func(payload []byte) bool {
	return func(payload []byte) bool { return strings.Contains(string(payload), fmt.Sprintf(`\"%s\"`, order)) }
}

func killsAt(at string) trap {
	return func(a *Attacker, id string) { a.after(id, at, func() { a.target().Kill(instanceOf(id)) }) }
}

// killNow kills the busy instances. If there are none, it posts an order and kills its
// instance after the first call to Stripe.
func (a *Attacker) killNow(ctx context.Context) (console.Result, error) {
	if n := a.target().Kill(nil); n > 0 {
		return console.Result{Text: fmt.Sprintf("You: busy instances killed: %d", n)}, nil
	}
	const what = "its instance, because none was busy, will be killed at prepare"
	return trapped(what, killsAt(prepared))(a, ctx)
}

func freezes(a *Attacker, id string) {
	a.after(id, confirmed, func() {
		if a.target().Freeze(frozenFor, instanceOf(id)) == 0 {
			a.watch.Say(watch.Plain, id, id+": not frozen: this works on Linux only")
		}
	})
}

func losesConfirm(kind stripetest.FaultKind) trap {
	return func(a *Attacker, id string) {
		a.target().Stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: id})
	}
}

func losesOutcome(kind dynamodbtest.Kind) trap {
	return func(a *Attacker, id string) {
		a.target().Proxy.Fail(dynamodbtest.Fault{
			Kind: kind, Operation: "TransactWriteItems", Times: 1,
			Match: func(body []byte) bool { return isStep(body, id, watch.Finish) },
		})
	}
}

// isStep reports whether a request to DynamoDB is a step of an order.
func isStep(request []byte, id string, step watch.Step) bool {
	order, is := watch.StepOf(request)
	return order == id && is == step
}

// losesWrites loses the writes of a step of an order, until its first delivery has ended.
// Then it calls then, in the background. Each write is repeated, and with slow steps no
// time would be left for what follows it.
func losesWrites(step watch.Step, then func(a *Attacker, ctx context.Context, id string)) trap {
	return func(a *Attacker, id string) {
		a.mu.Lock()
		a.fast[id] = true
		a.mu.Unlock()
		var over atomic.Bool
		a.target().Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Match: func(body []byte) bool {
			return !over.Load() && isStep(body, id, step)
		}})
		a.after(id, deliveryEnds, func() {
			over.Store(true)
			a.mu.Lock()
			delete(a.fast, id)
			a.mu.Unlock()
			a.later(func(ctx context.Context) { then(a, ctx, id) })
		})
	}
}

func killsAndWaits(a *Attacker, id string) {
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
func repeatsAndKills(a *Attacker, id string) {
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

// malformedUnparked posts a malformed message while the dead-letter queue accepts none.
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

// dayPasses moves the clocks after something happened to an order.
func (a *Attacker) dayPasses(ctx context.Context, id string) {
	if a.jump(ctx, keysExpire) == nil {
		a.watch.Say(watch.Attack, id, "25 hours have passed; Stripe has forgotten the keys of "+id)
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
