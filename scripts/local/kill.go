package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

// victim is an order whose function is killed while Stripe answers one of its requests.
type victim struct {
	id   order.ID
	at   stripetest.Endpoint // a refund's is CreateRefund
	lost bool                // the message is deleted at that moment, and the order's webhooks are lost
}

func (v victim) in(d *jobs.Decoder, body string) bool {
	j, err := d.Decode(body)
	return err == nil && j.OrderID() == v.id && j.IsRefund() == (v.at == stripetest.CreateRefund)
}

// killer kills the function once, when Stripe has executed a request of each of its
// victims and before the row shows it.
type killer struct {
	victims []victim
	system  atomic.Pointer[system.System]
	once    sync.Once
	killed  chan struct{} // closed at the kill

	mu            sync.Mutex
	reached, dead []victim // so far, and before the kill
}

// killWait is how long the killer waits for the next of its victims. It is shorter than
// the function waits for Stripe.
const killWait = system.StripeWaits / 2

// afterStripe holds Stripe's response to a victim until the function is killed.
func (k *killer) afterStripe(c stripetest.Call) {
	n := slices.IndexFunc(k.victims, func(v victim) bool {
		return string(v.id) == c.OrderID && v.at == c.Endpoint
	})
	if n < 0 {
		return
	}
	k.mu.Lock()
	if !slices.Contains(k.reached, k.victims[n]) {
		k.reached = append(k.reached, k.victims[n])
	}
	last := len(k.reached) == len(k.victims)
	k.mu.Unlock()
	if !last {
		select {
		case <-k.killed:
		case <-time.After(killWait):
		}
	}
	k.once.Do(k.kill)
}

func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, decoder := k.system.Load(), jobs.NewDecoder()
	s.Kill(nil)
	k.dead = slices.Clone(k.reached)
	s.Purge(func(m sqstest.Message) bool {
		return slices.ContainsFunc(k.dead, func(v victim) bool { return v.lost && v.in(decoder, m.Body) })
	})
	close(k.killed)
}

func (k *killer) deaths() []victim {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

func (k *killer) loses(e stripetest.Event) bool {
	return slices.ContainsFunc(k.victims, func(v victim) bool {
		return v.lost && string(v.id) == e.Intent.OrderID()
	})
}
