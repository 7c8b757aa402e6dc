package ordertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/settle"
)

var (
	_ order.Payments  = (*Bank)(nil)
	_ order.Canceler  = (*Bank)(nil)
	_ settle.Disputes = (*Bank)(nil)
)

// The payment methods that Bank knows; every other one whose name begins with "pm_card"
// succeeds.
const (
	declinedCard       = "pm_card_chargeDeclined"
	authenticationCard = "pm_card_authenticationRequired"
	processingCard     = "pm_card_takesDays"
	missingCard        = "pm_missing"
)

// PaymentMethod returns the Bank's payment method for a kind of card.
func PaymentMethod(c Card) string {
	switch c {
	case Declines:
		return declinedCard
	case NeedsAuthentication:
		return authenticationCard
	case TakesDays:
		return processingCard
	case DoesNotExist:
		return missingCard
	case Pays:
	}
	return "pm_card_visa"
}

// Bank is a payment provider in a map, and the specification of one. A key has one effect
// and replays a stored failure until ForgetKeys. An intent succeeds at most once. A Bank
// with a Scope is ready to use.
type Bank struct {
	Scope order.Scope

	mu       sync.Mutex
	intents  map[order.IntentID]*account
	keys     map[order.Key]response
	disputes []bankDispute
	faults   map[Call][]Fault
	requests int
}

type account struct {
	order.Intent

	method   string // "" after a decline: an intent does not keep a card that failed
	declines int
}

type response struct {
	request string
	intent  order.Intent
	failed  bool
}

// Prepare creates an unconfirmed intent.
func (b *Bank) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	request := fmt.Sprint("prepare ", o.Total(), o.Payment(), o.Fingerprint())
	return b.call(ctx, Prepare, k, request, func() (order.Intent, order.ErrorKind) {
		if !strings.HasPrefix(o.Payment().Method, "pm_card") {
			return order.Intent{}, order.KindRefused
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

// Confirm charges the card of an intent that waits for it, and returns any other intent
// in its current state.
func (b *Bank) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return b.write(ctx, Confirm, id, k, func(a *account) {
		if a.State == order.NeedsConfirmation {
			a.charge()
		}
	})
}

func (a *account) charge() {
	switch a.method {
	case declinedCard:
		a.decline(order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"})
	case authenticationCard:
		a.decline(order.Failure{Code: "authentication_required", DeclineCode: "authentication_required"})
	case processingCard:
		a.State = order.Processing
	default:
		a.State = order.Succeeded
	}
}

func (a *account) decline(why order.Failure) {
	a.State, a.Failure, a.method = order.NeedsMethod, why, ""
	a.declines++
}

// CancelIntent cancels an intent that has not succeeded.
func (b *Bank) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return b.write(ctx, Cancel, id, k, func(a *account) {
		if a.State != order.Succeeded {
			a.State, a.Failure = order.IntentCanceled, order.Failure{}
		}
	})
}

// write changes a known intent under a key, and returns it.
func (b *Bank) write(
	ctx context.Context, c Call, id order.IntentID, k order.Key, change func(*account),
) (order.Intent, error) {
	return b.call(ctx, c, k, string(c)+" "+string(id), func() (order.Intent, order.ErrorKind) {
		a, known := b.intents[id]
		switch {
		case !order.ValidReference(string(id)):
			return order.Intent{}, order.KindRefused // not an intent id
		case !known:
			return order.Intent{}, order.KindMisconfigured
		}
		change(a)
		return a.Intent, ""
	})
}

// Read returns the intent in its current state. It has no key, so nothing is replayed.
func (b *Bank) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return b.call(ctx, Read, order.Key{}, "", func() (order.Intent, order.ErrorKind) {
		a, known := b.intents[id]
		if !known {
			return order.Intent{}, order.KindMisconfigured
		}
		return a.Intent, ""
	})
}

// Find returns every intent of an order. It does not lag.
func (b *Bank) Find(ctx context.Context, id order.ID) (found []order.Intent, err error) {
	_, err = b.call(ctx, Find, order.Key{}, "", func() (order.Intent, order.ErrorKind) {
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

type bankDispute struct {
	order.Dispute

	intent order.IntentID
}

// Disputes returns the disputes of an intent, newest first.
func (b *Bank) Disputes(ctx context.Context, id order.IntentID) (all []order.Dispute, err error) {
	_, err = b.call(ctx, ListDisputes, order.Key{}, "", func() (order.Intent, order.ErrorKind) {
		if _, known := b.intents[id]; !known {
			return order.Intent{}, order.KindMisconfigured
		}
		for _, d := range slices.Backward(b.disputes) {
			if d.intent == id {
				all = append(all, d.Dispute)
			}
		}
		return order.Intent{}, ""
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func intentID(n int) order.IntentID { return order.IntentID(fmt.Sprintf("pi_%d", n)) }

// call sends one request to the bank and returns its response, unless a fault loses one
// of them.
func (b *Bank) call(
	ctx context.Context, c Call, k order.Key, request string, effect func() (order.Intent, order.ErrorKind),
) (order.Intent, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := b.nextFault(c)
	if ctx.Err() != nil || fault == LosesRequest {
		return order.Intent{}, &order.PaymentError{Kind: order.KindUnknown, Err: errNoResponse}
	}
	b.requests++
	i, kind := b.respond(fault, k, request, effect)
	switch {
	case fault == LosesResponse:
		return order.Intent{}, &order.PaymentError{Kind: order.KindUnknown, Err: errNoResponse}
	case kind != "":
		id := fmt.Sprintf("req_%d", b.requests)
		return order.Intent{}, &order.PaymentError{Kind: kind, RequestID: id, Err: errRejected}
	}
	return i, nil
}

var (
	errNoResponse = errors.New("no response from the bank")
	errRejected   = errors.New("the bank rejected the call, or a fault was injected")
)

// respond returns the response to one request: the one stored under its key, or that of
// its effect. A refusal is not stored under the key, because it precedes any effect;
// every other response is. A repeated request returns the intent in its current state: an
// intent that was declined then may have been paid since, and a prepared one may have
// been canceled.
func (b *Bank) respond(
	fault Fault, k order.Key, request string, effect func() (order.Intent, order.ErrorKind),
) (order.Intent, order.ErrorKind) {
	r, used := b.keys[k]
	switch {
	case fault == ReturnsUnavailable, fault == ReturnsMisconfigured:
		return order.Intent{}, fault.Kind()
	case used && r.request != request:
		return order.Intent{}, order.KindKeyReused
	case used && r.failed:
		return order.Intent{}, order.KindReplayed
	case used:
		return b.intents[r.intent.ID].Intent, ""
	}
	r = response{request: request, failed: fault == StoresFailure || fault == StoresFailureAfterEffect}
	if fault != StoresFailure {
		var refused order.ErrorKind
		if r.intent, refused = effect(); refused != "" {
			return order.Intent{}, refused
		}
	}
	b.store(k, r)
	if r.failed {
		return order.Intent{}, order.KindUnknown
	}
	return r.intent, ""
}

func (b *Bank) store(k order.Key, r response) {
	if k == (order.Key{}) {
		return
	}
	if b.keys == nil {
		b.keys = map[order.Key]response{}
	}
	b.keys[k] = r
}

func (b *Bank) nextFault(c Call) (m Fault) {
	if waiting := b.faults[c]; len(waiting) > 0 {
		m, b.faults[c] = waiting[0], waiting[1:]
	}
	return m
}

// Fail injects the fault into the next call of this kind. Several faults apply to one
// call each, in order.
func (b *Bank) Fail(c Call, m Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.faults == nil {
		b.faults = map[Call][]Fault{}
	}
	b.faults[c] = append(b.faults[c], m)
}

// ForgetKeys expires every key.
func (b *Bank) ForgetKeys() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = nil
}

// Charges returns the successful charges of one order, in the order of their intents.
func (b *Bank) Charges(id order.ID) (all []order.Money) {
	for _, a := range b.accounts(id) {
		if a.State == order.Succeeded {
			all = append(all, a.Total)
		}
	}
	return all
}

// Declines returns how many charges of the order were declined.
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

// CustomerPays has the customer pay an intent with another payment method.
func (b *Bank) CustomerPays(id order.IntentID) { b.setState(id, order.Succeeded) }

// Clear makes a processing intent succeed.
func (b *Bank) Clear(id order.IntentID) { b.setState(id, order.Succeeded) }

// Cancel cancels an intent, as a person can at the provider.
func (b *Bank) Cancel(id order.IntentID) { b.setState(id, order.IntentCanceled) }

// SetProcessing makes the bank of the customer process the payment of an intent.
func (b *Bank) SetProcessing(id order.IntentID) { b.setState(id, order.Processing) }

func (b *Bank) setState(id order.IntentID, s order.IntentState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.intents[id]
	if a.State != order.Succeeded {
		a.State, a.Failure = s, order.Failure{}
	}
}

// Dispute disputes the charge of an intent, as its customer can at the bank. Disputes are
// a day apart.
func (b *Bank) Dispute(id order.IntentID) order.DisputeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.disputes) + 1
	d := order.Dispute{ID: order.DisputeID(fmt.Sprintf("du_%d", n)), Status: order.DisputeOpen}
	d.CreatedAt = time.Unix(0, 0).AddDate(0, 0, n)
	b.disputes = append(b.disputes, bankDispute{d, id})
	return d.ID
}

// CloseDispute sets the status of a dispute, as the bank does.
func (b *Bank) CloseDispute(id order.DisputeID, s order.DisputeStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.disputes {
		if b.disputes[i].ID == id {
			b.disputes[i].Status = s
		}
	}
}
