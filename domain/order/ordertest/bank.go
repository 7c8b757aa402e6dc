package ordertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"orderonce/domain/order"
)

var _ order.Payments = (*Bank)(nil)

// The payment methods that Bank knows; every other one whose name begins with "pm_card"
// succeeds.
const (
	declinedCard   = "pm_card_chargeDeclined"
	customerCard   = "pm_card_authenticationRequired"
	processingCard = "pm_card_takesDays"
	missingCard    = "pm_missing"
)

// PaymentMethod is the payment method of a card that behaves so at the Bank.
func PaymentMethod(c Card) string {
	switch c {
	case Declines:
		return declinedCard
	case NeedsAuthentication:
		return customerCard
	case TakesDays:
		return processingCard
	case DoesNotExist:
		return missingCard
	case Pays:
	}
	return "pm_card_visa"
}

// Bank is a payment provider in a map, and the specification of one: a key does its work
// once and repeats a failure, until it is forgotten; an intent succeeds once, for ever.
// Its zero value with a Scope is ready.
type Bank struct {
	Scope order.Scope

	mu       sync.Mutex
	intents  map[order.IntentID]*account
	keys     map[order.Key]answer
	faults   map[Call][]Fault
	requests int
}

// account is an intent, the card on it and what was done with it.
type account struct {
	order.Intent

	method   string // "" after a refusal: an intent does not keep a card that failed
	declines int
}

// answer is what a key was first used for, and what came of it.
type answer struct {
	request string
	intent  order.Intent
	failed  bool
}

// Prepare makes an unconfirmed intent.
func (b *Bank) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	request := fmt.Sprint("prepare ", o.Total(), o.Payment(), o.Fingerprint())
	return b.under(ctx, Prepare, k, request, func() (order.Intent, order.ErrorKind) {
		if !strings.HasPrefix(o.Payment().Method, "pm_card") {
			return order.Intent{}, order.Refused
		}
		if b.intents == nil {
			b.intents = map[order.IntentID]*account{}
		}
		id := intentID(len(b.intents) + 1)
		b.intents[id] = &account{method: o.Payment().Method, Intent: order.Intent{
			ID: id, State: order.NeedsConfirmation, Total: o.Total(), OrderID: o.ID(), Scope: b.Scope,
			Fingerprint: o.Fingerprint(), Mode: order.TestMode,
		}}
		return b.intents[id].Intent, ""
	})
}

// Confirm charges the card on the intent, if it waits for that; any other intent is
// answered as it is.
func (b *Bank) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return b.under(ctx, Confirm, k, "confirm "+string(id), func() (order.Intent, order.ErrorKind) {
		a, known := b.intents[id]
		switch {
		case !order.ValidReference(string(id)):
			return order.Intent{}, order.Refused // no intent will ever have this id
		case !known:
			return order.Intent{}, order.Misconfigured
		}
		if a.State == order.NeedsConfirmation {
			a.charge()
		}
		return a.Intent, ""
	})
}

func (a *account) charge() {
	switch a.method {
	case declinedCard:
		a.refuse(order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"})
	case customerCard:
		a.refuse(order.Failure{Code: "authentication_required", DeclineCode: "authentication_required"})
	case processingCard:
		a.State = order.Processing
	default:
		a.State = order.Succeeded
	}
}

func (a *account) refuse(why order.Failure) {
	a.State, a.Failure, a.method = order.NeedsMethod, why, ""
	a.declines++
}

// Read is the intent as it is now. It has no key, so nothing is replayed.
func (b *Bank) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return b.under(ctx, Read, order.Key{}, "", func() (order.Intent, order.ErrorKind) {
		a, known := b.intents[id]
		if !known {
			return order.Intent{}, order.Misconfigured
		}
		return a.Intent, ""
	})
}

// Find returns every intent of an order. It does not lag.
func (b *Bank) Find(ctx context.Context, id order.ID) (found []order.Intent, err error) {
	_, err = b.under(ctx, Find, order.Key{}, "", func() (order.Intent, order.ErrorKind) {
		for i := range len(b.intents) {
			if a := b.intents[intentID(i+1)]; a.OrderID == id {
				found = append(found, a.Intent)
			}
		}
		return order.Intent{}, ""
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func intentID(n int) order.IntentID { return order.IntentID(fmt.Sprintf("pi_%d", n)) }

// under carries one request to the bank and its answer back, as far as each of them
// comes.
func (b *Bank) under(
	ctx context.Context, c Call, k order.Key, request string, effect func() (order.Intent, order.ErrorKind),
) (order.Intent, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := b.nextFault(c)
	if ctx.Err() != nil || fault == LosesRequest {
		return order.Intent{}, &order.PaymentError{Kind: order.Unknown, Err: errUnanswered}
	}
	b.requests++
	i, trouble := b.answer(fault, k, request, effect)
	switch {
	case fault == LosesResponse:
		return order.Intent{}, &order.PaymentError{Kind: order.Unknown, Err: errUnanswered}
	case trouble != "":
		return order.Intent{}, &order.PaymentError{
			Kind:      trouble,
			RequestID: fmt.Sprintf("req_%d", b.requests),
			Err:       errSaidSo,
		}
	}
	return i, nil
}

var (
	errUnanswered = errors.New("the bank did not answer")
	errSaidSo     = errors.New("the bank was told to say so, or had to")
)

// answer answers one request: from its key, or by its effect. A refusal is not kept under
// the key, because it comes before anything was done; everything later is. A repeated
// request returns the intent as it is now: what was declined then may have been paid
// since, and what was prepared may have been canceled.
func (b *Bank) answer(
	fault Fault, k order.Key, request string, effect func() (order.Intent, order.ErrorKind),
) (order.Intent, order.ErrorKind) {
	a, used := b.keys[k]
	switch {
	case fault == ReturnsUnavailable:
		return order.Intent{}, order.Unavailable
	case fault == ReturnsMisconfigured:
		return order.Intent{}, order.Misconfigured
	case used && a.request != request:
		return order.Intent{}, order.KeyReused
	case used && a.failed:
		return order.Intent{}, order.Replayed
	case used:
		return b.intents[a.intent.ID].Intent, ""
	}
	a = answer{request: request, failed: fault == StoresFailure || fault == StoresFailureAfterEffect}
	if fault != StoresFailure {
		var refused order.ErrorKind
		if a.intent, refused = effect(); refused != "" {
			return order.Intent{}, refused
		}
	}
	b.keep(k, a)
	if a.failed {
		return order.Intent{}, order.Unknown
	}
	return a.intent, ""
}

func (b *Bank) keep(k order.Key, a answer) {
	if k == (order.Key{}) {
		return
	}
	if b.keys == nil {
		b.keys = map[order.Key]answer{}
	}
	b.keys[k] = a
}

func (b *Bank) nextFault(c Call) (m Fault) {
	if waiting := b.faults[c]; len(waiting) > 0 {
		m, b.faults[c] = waiting[0], waiting[1:]
	}
	return m
}

// Fail makes the fault happen to the next such call that nothing else is waiting for.
func (b *Bank) Fail(c Call, m Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.faults == nil {
		b.faults = map[Call][]Fault{}
	}
	b.faults[c] = append(b.faults[c], m)
}

// ForgetKeys makes every key as good as new.
func (b *Bank) ForgetKeys() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = nil
}

// Charges lists the successful charges of one order, in the order of their intents.
func (b *Bank) Charges(id order.ID) (all []order.Money) {
	for _, a := range b.accounts(id) {
		if a.State == order.Succeeded {
			all = append(all, a.Total)
		}
	}
	return all
}

// Declines is how often a card of the order was tried in vain.
func (b *Bank) Declines(id order.ID) (n int) {
	for _, a := range b.accounts(id) {
		n += a.declines
	}
	return n
}

func (b *Bank) accounts(id order.ID) (all []account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range len(b.intents) {
		if a := b.intents[intentID(i+1)]; a.OrderID == id {
			all = append(all, *a)
		}
	}
	return slices.Clip(all)
}

// CustomerPays lets the customer pay an intent another way.
func (b *Bank) CustomerPays(id order.IntentID) { b.become(id, order.Succeeded) }

// Clear lets a processing intent succeed.
func (b *Bank) Clear(id order.IntentID) { b.become(id, order.Succeeded) }

// Cancel lets a person cancel an intent.
func (b *Bank) Cancel(id order.IntentID) { b.become(id, order.IntentCanceled) }

func (b *Bank) become(id order.IntentID, s order.IntentState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.intents[id]
	if a.State != order.Succeeded {
		a.State, a.Failure = s, order.Failure{}
	}
}
