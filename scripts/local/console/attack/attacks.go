package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system"
)

// act is an attack and what it does.
type act struct {
	console.Attack

	do func(d *Desk, ctx context.Context) (console.Result, error)
}

// The groups.
const (
	posting  = "Post"
	cards    = "Cards"
	crashes  = "Crashes"
	network  = "Lost answers and outages"
	times    = "Time and operators"
	composed = "Two things at once"
)

// Attacks returns the attacks in the order in which a page shows them.
func Attacks() []console.Attack {
	var all []console.Attack
	for _, a := range acts() {
		all = append(all, a.Attack)
	}
	return all
}

func acts() []act { return slices.Concat(single(), composedActs()) }

func of(name, group, title, expect string, do func(*Desk, context.Context) (console.Result, error)) act {
	return act{console.Attack{Name: name, Title: title, Expect: expect, Group: group}, do}
}

// single are the attacks of one thing.
func single() []act {
	return []act{
		of("post", posting, "Post an order",
			"One charge, one row, one event, one e-mail.", posts("posted", once)),
		of("twice", posting, "Post it twice",
			"Two messages, one charge. The second is acknowledged as a duplicate.", posts("posted twice", twice)),
		of("ten", posting, "Post ten, 30 % twice",
			"13 messages, ten charges.", (*Desk).ten),
		of("conflict", posting, "Same id, another amount",
			"One of the two is charged, the other is parked: conflict.",
			posts("posted with two different amounts", conflicting)),
		of("malformed", posting, "Malformed message",
			"Parked with a reason. Nobody is charged.", posts("posted with a field that no order has", malformed)),
		of("again", posting, "Deliver the last message again",
			"Acknowledged as a duplicate, as if it were new: nobody is charged again.", (*Desk).again),

		of("kill-after-yes", crashes, "Kill right after Stripe's yes",
			"Charged, and no row says so. The next delivery reads the bound intent: one charge.", (*Desk).killAfterYes),
		of("kill-now", crashes, "Kill an instance now",
			"Its messages come back after the visibility timeout. One charge.", (*Desk).killNow),
		of("freeze", crashes, "Freeze an instance for 10 s",
			"Another one takes the order over. When the first wakes up, it changes nothing.", (*Desk).freeze),

		of("lose-stripe-before", network, "Lose a request to Stripe",
			"Stripe never sees the confirm. The next attempt sends it: one charge.", (*Desk).loseRequest),
		of("lose-stripe-after", network, "Lose Stripe's yes",
			"Charged, but the answer is lost. The next attempt reads the intent: one charge.", (*Desk).loseResponse),
		of("lose-dynamodb-before", network, "Lose a write to DynamoDB",
			"The outcome is not recorded. The write is repeated: one event.", (*Desk).loseWrite),
		of("lose-dynamodb-after", network, "Lose DynamoDB's answer",
			"The outcome is recorded, but the answer is lost. The repeated write finds it: one event.", (*Desk).loseWritten),
		of("stripe-down", network, "Stripe is down for 20 s",
			"The orders wait in the queue, with growing delays. Each is charged once.", (*Desk).stripeDown),
		of("throttle", network, "Throttle DynamoDB for 10 s",
			"Calls are repeated, orders take longer. Each is charged once.", (*Desk).throttle),

		of("declined", cards, "A card that is declined",
			"No charge. The row says declined, then canceled: its stock is free for others.",
			posts("posted with a card that is declined", paying(declines))),
		of("action", cards, "A card that needs its customer",
			"The row waits in action_required. No charge yet.",
			posts("posted with a card that needs its customer", paying(needsUser))),
		of("authenticate", cards, "Authenticate as the customer",
			"Stripe's webhook settles the waiting order: one charge.", (*Desk).authenticate),
		of(BankTakesDays, cards, "A payment that takes days",
			"The row waits in pending. No charge until the bank has decided.",
			posts("posted with a payment that takes days", paying(takesDays))),
		of("clear", cards, "The bank clears it",
			"Stripe's webhook settles the pending order: one charge.", (*Desk).clear),

		of("jump-25h", times, "25 hours pass",
			"Stripe forgets idempotency keys. No order needs one.", (*Desk).jumpDay),
		of("jump-20d", times, "20 days pass",
			"Queues forget messages after 7 and 14 days. The rows stay, and a late message charges nobody.", (*Desk).jumpWeeks),
		of("redrive", times, "Redrive the dead letters",
			"Each is processed again, and parked again if nothing has changed.", (*Desk).redrive),
		of("rollout", times, "Roll out a new version",
			"Busy instances finish, new ones run the new version. No order notices.", (*Desk).rollOut),
	}
}

// composedActs are sequences that guards need.
func composedActs() []act {
	return []act{
		of(KillAndWait, composed, "Kill after the yes, then 25 hours pass",
			"The next delivery comes when Stripe has forgotten the keys: one charge all the same.", (*Desk).killThenDay),
		of(LoseBindAndWait, composed, "Lose the bind, then 25 hours pass",
			"No money moves before the row names the intent. A later attempt charges once.", (*Desk).loseBindThenDay),
		of(LoseFinish, composed, "Lose every write of the outcome",
			"The message is not deleted before the outcome is recorded. One charge, and the row says so.", (*Desk).loseFinish),
		of(KillAfterFinish, composed, "Kill right after the outcome is written",
			"The next delivery is a duplicate. Status and event were written together.", (*Desk).killAfterFinish),
		of(AgainAndKill, composed, "Deliver twice at once, kill the first",
			"The second delivery finds the lease and comes again later: one charge.", (*Desk).againThenKill),
		of(MalformedUnparked, composed, "Malformed while nothing can be parked",
			"The message stays in the queue until the dead-letter queue has it.", (*Desk).malformedUnparked),
	}
}

// Attack implements console.Actions. The error wraps console.ErrNotNow if the system has
// nothing that the attack could be done to.
func (d *Desk) Attack(ctx context.Context, name string) (console.Result, error) {
	all := acts()
	i := slices.IndexFunc(all, func(a act) bool { return a.Name == name })
	if i < 0 {
		return console.Result{}, fmt.Errorf("attack %q: unknown", name)
	}
	did, err := all[i].do(d, ctx)
	if err != nil {
		return console.Result{}, fmt.Errorf("%s: %w", strings.ToLower(all[i].Title), err)
	}
	d.watch.Say(watch.Attack, did.Order, did.Text)
	return did, nil
}

func (d *Desk) target() *system.System {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.system
}

// posts posts the messages of one order, and says so.
func (d *Desk) posts(c content, text string, bodies ...string) (console.Result, error) {
	return console.Result{Text: "You: " + c.id + " " + text, Order: c.id}, d.post(bodies...)
}

// posts is an attack that posts messages with the content of a new order.
func posts(text string, bodies func(content) []string) func(*Desk, context.Context) (console.Result, error) {
	return func(d *Desk, _ context.Context) (console.Result, error) {
		c := d.next()
		return d.posts(c, text, bodies(c)...)
	}
}

func (d *Desk) ten(context.Context) (console.Result, error) {
	var bodies []string
	var last content
	for n := range 10 {
		last = d.next()
		bodies = append(bodies, last.body())
		if n%3 == 0 && n > 0 {
			bodies = append(bodies, last.body())
		}
	}
	return console.Result{Text: "You: ten orders posted, three of them twice", Order: last.id}, d.post(bodies...)
}

// again delivers the message that was processed last once more, as SQS may, although it
// was deleted.
func (d *Desk) again(context.Context) (console.Result, error) {
	d.mu.Lock()
	m := d.last
	d.mu.Unlock()
	if m.ID == "" {
		return console.Result{}, fmt.Errorf("%w: no message was processed yet: post an order", console.ErrNotNow)
	}
	m.Receives++
	s := d.target()
	d.later(func(ctx context.Context) {
		_, _ = s.Invoke(ctx, m) // the function logs what it did
	})
	return console.Result{Text: "You: the message that was processed last is delivered again"}, nil
}

// authenticate lets the customer of the newest waiting order pay.
func (d *Desk) authenticate(context.Context) (console.Result, error) {
	return d.decide(order.ActionRequired, "a card that needs its customer", "authenticated",
		func(m *stripetest.Machine, now time.Time, intent string) error { return m.CustomerPays(now, intent) })
}

// clear lets the bank clear the newest pending order.
func (d *Desk) clear(context.Context) (console.Result, error) {
	return d.decide(order.Pending, "a payment that takes days", "cleared",
		func(m *stripetest.Machine, now time.Time, intent string) error { return m.Settle(now, intent, true) })
}

// decide lets somebody decide about the payment of the newest order with a status.
func (d *Desk) decide(
	of order.Status, needs, did string, act func(m *stripetest.Machine, now time.Time, intent string) error,
) (console.Result, error) {
	o, ok := d.watch.Find(func(o watch.Order) bool { return o.Status == string(of) })
	if !ok {
		return console.Result{}, fmt.Errorf("%w: no order is %s: post one with %s", console.ErrNotNow, of, needs)
	}
	s := d.target()
	var err error
	s.Stripe.Machine(func(m *stripetest.Machine) { err = act(m, s.Stripe.Now(), o.Intent) })
	if err != nil {
		return console.Result{}, fmt.Errorf("%w: %w", console.ErrNotNow, err)
	}
	d.watch.Enter(o.ID, watch.Entry{Kind: watch.Message, From: watch.You, To: watch.Stripe, Text: did})
	return console.Result{Text: "The payment of " + o.ID + " was " + did, Order: o.ID}, nil
}

// aim makes something happen after a call of an order to Stripe, before the answer.
func (d *Desk) aim(id string, at stripetest.Endpoint, act func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.victims[id] = victim{at: at, act: func(stripetest.Call) { act() }}
}

func (d *Desk) killAfterYes(context.Context) (console.Result, error) {
	c, s := d.next(), d.target()
	d.aim(c.id, stripetest.Confirm, func() { d.kill(s, c.id, watch.Stripe) })
	return d.posts(c, "posted; its instance will be killed right after Stripe has charged it", c.body())
}

// kill kills the instances that process an order, before they get the answer of a
// service.
func (d *Desk) kill(s *system.System, id, service string) {
	d.watch.Undelivered(id, service)
	s.Kill(instanceOf(id))
}

// killNow kills the busy instances. If there are none, it posts an order and kills its
// instance after the first call to Stripe.
func (d *Desk) killNow(context.Context) (console.Result, error) {
	s := d.target()
	if n := s.Kill(nil); n > 0 {
		return console.Result{Text: fmt.Sprintf("You: busy instances killed: %d", n)}, nil
	}
	c := d.next()
	d.aim(c.id, stripetest.Create, func() { d.kill(s, c.id, watch.Stripe) })
	return d.posts(c, "posted, because no instance was busy; its instance will be killed at prepare", c.body())
}

const frozenFor = 10 * time.Second

func (d *Desk) freeze(context.Context) (console.Result, error) {
	c, s := d.next(), d.target()
	d.aim(c.id, stripetest.Confirm, func() {
		if s.Freeze(frozenFor, instanceOf(c.id)) == 0 {
			d.watch.Say(watch.Plain, c.id, c.id+": not frozen: this works on Linux only")
		}
	})
	return d.posts(c, "posted; its instance will be frozen for 10 s after Stripe has charged it", c.body())
}

// loses posts an order whose confirm fails.
func (d *Desk) loses(kind stripetest.FaultKind, text string) (console.Result, error) {
	c := d.next()
	d.target().Stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: c.id})
	return d.posts(c, text, c.body())
}

func (d *Desk) loseRequest(context.Context) (console.Result, error) {
	return d.loses(stripetest.LoseRequest, "posted; its confirm will never arrive at Stripe")
}

func (d *Desk) loseResponse(context.Context) (console.Result, error) {
	return d.loses(stripetest.LoseResponse, "posted; Stripe's yes to its confirm will be lost")
}

// losesWrite posts an order whose outcome is written over a broken connection.
func (d *Desk) losesWrite(kind dynamodbtest.Kind, text string) (console.Result, error) {
	c := d.next()
	d.target().Proxy.Fail(dynamodbtest.Fault{
		Kind: kind, Operation: "TransactWriteItems", Times: 1,
		Match: func(body []byte) bool { return isStep(body, c.id, watch.Finish) },
	})
	return d.posts(c, text, c.body())
}

func (d *Desk) loseWrite(context.Context) (console.Result, error) {
	return d.losesWrite(dynamodbtest.LoseBefore, "posted; the write of its outcome will not arrive at DynamoDB")
}

func (d *Desk) loseWritten(context.Context) (console.Result, error) {
	return d.losesWrite(dynamodbtest.LoseAfter, "posted; DynamoDB's answer to its outcome will be lost")
}

func (d *Desk) stripeDown(context.Context) (console.Result, error) {
	d.fail("stripe", outage{text: "Stripe is down", stripe: stripetest.Unavailable}, 20*time.Second)
	return d.orders(3, "Stripe is down for 20 s; three orders posted")
}

func (d *Desk) throttle(context.Context) (console.Result, error) {
	d.fail("dynamodb", outage{text: "DynamoDB throttles every second call", throttled: true}, 10*time.Second)
	return d.orders(5, "DynamoDB throttles every second call for 10 s; five orders posted")
}

// orders posts some orders.
func (d *Desk) orders(n int, text string) (console.Result, error) {
	bodies := make([]string, n)
	var last content
	for i := range bodies {
		last = d.next()
		bodies[i] = last.body()
	}
	return console.Result{Text: "You: " + text, Order: last.id}, d.post(bodies...)
}

func (d *Desk) redrive(context.Context) (console.Result, error) {
	moved, err := d.target().Redrive()
	if err == nil && moved == 0 {
		err = fmt.Errorf("%w: there are no dead letters: post a malformed message", console.ErrNotNow)
	}
	return console.Result{Text: fmt.Sprintf("You: dead letters moved back to the queue: %d", moved)}, err
}
