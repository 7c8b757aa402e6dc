package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// killer kills the function once, when Stripe has charged its orders and before a row
// says so. The message of the lost order is deleted at that moment, and its webhooks are
// lost.
type killer struct {
	orders []order.ID // whose function is killed
	lost   order.ID   // one of them, or ""
	system atomic.Pointer[system.System]
	killed chan struct{} // closed at the kill

	mu               sync.Mutex
	charged, victims []order.ID // so far, and before the kill
}

// killWait is how long the killer waits for the next of its orders. It is shorter than
// the function waits for Stripe.
const killWait = system.StripeWaits / 2

// newKiller returns a killer of two orders, those of them that are in the waves. The
// second one is lost.
func newKiller(waves [][]string, kill, lose order.ID) *killer {
	decoder, k := sqs.NewDecoder(), &killer{killed: make(chan struct{})}
	for _, body := range slices.Concat(waves...) {
		o, err := decoder.Decode(body)
		if err != nil || o.ID() != kill && o.ID() != lose || slices.Contains(k.orders, o.ID()) {
			continue
		}
		k.orders = append(k.orders, o.ID())
		if o.ID() == lose {
			k.lost = lose
		}
	}
	return k
}

// afterStripe holds Stripe's response to the confirmation of an order until the function
// is killed.
func (k *killer) afterStripe(c stripetest.Call) {
	id := order.ID(c.OrderID)
	if c.Endpoint != stripetest.Confirm || !slices.Contains(k.orders, id) {
		return
	}
	if k.charge(id) {
		k.kill()
		return
	}
	timeout := time.NewTimer(killWait)
	defer timeout.Stop()
	select {
	case <-k.killed:
	case <-timeout.C:
		k.kill()
	}
}

// charge notes the charge of an order and reports whether it is the last one.
func (k *killer) charge(id order.ID) (last bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.charged, id) {
		k.charged = append(k.charged, id)
	}
	return len(k.charged) == len(k.orders)
}

// kill kills the function unless it was killed before.
func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.killed:
		return
	default:
	}
	s, decoder := k.system.Load(), sqs.NewDecoder()
	s.Function.Kill(nil)
	k.victims = slices.Clone(k.charged)
	if slices.Contains(k.victims, k.lost) {
		s.Purge(func(m sqstest.Message) bool {
			o, err := decoder.Decode(m.Body)
			return err == nil && o.ID() == k.lost
		})
	}
	close(k.killed)
}

// dead returns the orders that were charged before the kill, and the one of them whose
// message was deleted, or "".
func (k *killer) dead() (victims []order.ID, lost order.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.victims, k.lost) {
		lost = k.lost
	}
	return k.victims, lost
}

// deliveries loses the webhooks of the lost order, see stripetest.Webhooks.
func (k *killer) deliveries(e stripetest.Event) []time.Duration {
	if order.ID(e.Intent.OrderID()) == k.lost {
		return nil
	}
	return []time.Duration{0}
}
