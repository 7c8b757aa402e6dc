package refundtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

var _ refund.Provider = (*Bank)(nil)

type (
	// Call names a call, as the doubles of orders do.
	Call = ordertest.Call
	// Interceptor acts in place of a call, as those of the doubles of orders.
	Interceptor = ordertest.Interceptor
)

// The calls that a Processor makes. To the store, all but Load are a Save.
const (
	Load            = ordertest.Load
	Begin           = ordertest.Begin
	Mark       Call = "mark"
	Finish          = ordertest.Finish
	Release         = ordertest.Release
	Read            = ordertest.Read
	ReadRefund Call = "read_refund"
	Create     Call = "create"
)

// maxIdle is how long after its last Read a session may create a refund.
const maxIdle = 30 * time.Second

// Bank is a provider in memory, and the specification of one. It gives back money of the
// intents of an ordertest.Bank, never more than was charged. A key has one effect and
// replays a stored failure while the bank remembers it.
type Bank struct {
	Intents *ordertest.Bank
	Now     func() time.Time
	KeyLife time.Duration // 0 forgets every key at once
	Takes   bool          // a refund is pending until Settle
	Lag     time.Duration // how long the list misses a new refund, and the new status of another
	Keeps   bool          // a key keeps a refusal too

	mu       sync.Mutex
	refunds  []entry
	keys     map[string]stored
	faults   map[Call][]ordertest.Fault
	disputed map[order.IntentID]bool
	late     []func() // failed requests that Complete executes; nil once it has
}

type entry struct {
	refund.Refund

	at      time.Time
	was     refund.Refund // before its last change
	changed time.Time     // of its last change; zero if it never changed
}

// listed returns the refund as a list shows it that lags. found is false if the list
// misses it.
func (e entry) listed(now time.Time, lag time.Duration) (r refund.Refund, found bool) {
	if !e.changed.IsZero() && now.Sub(e.changed) < lag {
		return e.was, now.Sub(e.at) >= lag
	}
	return e.Refund, now.Sub(e.at) >= lag
}

type stored struct {
	order   refund.CreateParams
	id      refund.ProviderID // "" of a stored failure or refusal
	failed  bool
	refused error
	at      time.Time
}

// Open returns a session.
//
//nolint:ireturn // as the port
func (b *Bank) Open(context.Context) refund.Session { return &session{bank: b} }

type session struct {
	bank   *Bank
	readAt time.Time
	open   bool
}

func (s *session) Close() { s.open = false }

func (s *session) Read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	b := s.bank
	intent, err := b.Intents.Read(ctx, id)
	if err != nil {
		return refund.Ledger{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.fail(Read); err != nil {
		s.open = false
		return refund.Ledger{}, err
	}
	s.open, s.readAt = true, b.Now()
	l := refund.Ledger{Intent: intent, Disputed: b.disputed[id], Now: b.Now()}
	if intent.State == order.Succeeded {
		l.Charged = intent.Total.Amount
	}
	for _, e := range b.refunds {
		if r, found := e.listed(b.Now(), b.Lag); e.Intent == id && found {
			l.Refunds = append(l.Refunds, r)
		}
	}
	return l, nil
}

func (s *session) ReadRefund(_ context.Context, id refund.ProviderID) (refund.Refund, error) {
	s.bank.mu.Lock()
	defer s.bank.mu.Unlock()
	if err := s.bank.fail(ReadRefund); err != nil {
		return refund.Refund{}, err
	}
	if r := s.bank.byID(id); r.ID != "" {
		return r, nil
	}
	return refund.Refund{}, failed(order.KindMisconfigured)
}

func (s *session) Create(ctx context.Context, o refund.CreateParams) (refund.Refund, error) {
	b := s.bank
	intent, err := b.Intents.Read(ctx, o.Intent)
	if err != nil {
		return refund.Refund{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := b.next(Create)
	if !s.open || b.Now().Sub(s.readAt) > maxIdle {
		return refund.Refund{}, &order.PaymentError{Kind: order.KindUnavailable, Err: errNotSent}
	}
	s.open = !fault.Lost()
	switch fault { //nolint:exhaustive // create knows the others
	case ordertest.ReturnsUnavailable, ordertest.ReturnsMisconfigured:
		return refund.Refund{}, failed(fault.Kind())
	case ordertest.LosesRequest:
		b.late = append(b.late, func() { _, _ = b.create(o, intent, "") })
		return refund.Refund{}, failed(order.KindUnknown)
	}
	r, err := b.create(o, intent, fault)
	if fault == ordertest.LosesResponse {
		return refund.Refund{}, failed(order.KindUnknown)
	}
	return r, err
}

var (
	errNotSent  = errors.New("not sent: the connection of the last read is gone")
	errRejected = errors.New("the bank rejected the call, or a fault was injected")
)

func failed(k order.ErrorKind) error { return &order.PaymentError{Kind: k, Err: errRejected} }

func (b *Bank) create(
	o refund.CreateParams, intent order.Intent, fault ordertest.Fault,
) (refund.Refund, error) {
	if k, used := b.keys[o.Key]; used && b.Now().Sub(k.at) < b.KeyLife {
		switch {
		case k.order != o:
			return refund.Refund{}, failed(order.KindKeyReused)
		case k.failed:
			return refund.Refund{}, failed(order.KindReplayed)
		case k.refused != nil:
			return refund.Refund{}, k.refused
		}
		return b.byID(k.id), nil
	}
	if fault == ordertest.StoresFailure {
		b.store(o, stored{failed: true})
		b.late = append(b.late, func() { _, _ = b.effect(o, intent) })
		return refund.Refund{}, failed(order.KindUnknown)
	}
	r, err := b.effect(o, intent)
	if err != nil {
		if b.Keeps {
			b.store(o, stored{refused: err})
		}
		return refund.Refund{}, err
	}
	hidden := fault == ordertest.StoresFailureAfterEffect
	b.store(o, stored{id: r.ID, failed: hidden})
	if hidden {
		return refund.Refund{}, failed(order.KindUnknown)
	}
	return r, nil
}

// effect makes the refund unless more would go back than was charged.
func (b *Bank) effect(o refund.CreateParams, intent order.Intent) (refund.Refund, error) {
	left := intent.Total.Amount
	for _, e := range b.refunds {
		if e.Intent == o.Intent && e.Status.Counts() {
			left -= e.Total.Amount
		}
	}
	code := ""
	switch {
	case b.disputed[o.Intent]:
		code = "charge_disputed"
	case o.Amount%intent.Total.Currency.Step() != 0:
		code = "invalid_charge_amount_no_decimal_compatible"
	case left == 0:
		code = "charge_already_refunded"
	case left < o.Amount:
		code = "amount_too_large"
	}
	if code != "" || intent.State != order.Succeeded {
		return refund.Refund{}, &order.PaymentError{Kind: order.KindRefused, Code: code, Err: errRejected}
	}
	r := refund.Refund{
		ID: refund.ProviderID(fmt.Sprintf("re_%d", len(b.refunds)+1)), Status: refund.Succeeded, Intent: o.Intent,
		Total: order.Money{Amount: o.Amount, Currency: intent.Total.Currency}, Reason: o.Reason,
		OrderID: o.OrderID, Scope: intent.Scope, For: o.ID,
	}
	if b.Takes {
		r.Status = refund.Pending
	}
	b.refunds = append(b.refunds, entry{Refund: r, at: b.Now()})
	return r, nil
}

func (b *Bank) store(o refund.CreateParams, s stored) {
	if b.keys == nil {
		b.keys = map[string]stored{}
	}
	s.order, s.at = o, b.Now()
	b.keys[o.Key] = s
}

func (b *Bank) byID(id refund.ProviderID) (r refund.Refund) {
	for _, e := range b.refunds {
		if e.ID == id {
			r = e.Refund
		}
	}
	return r
}

// Fail injects the fault into the next call of this kind.
func (b *Bank) Fail(c Call, f ordertest.Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.faults == nil {
		b.faults = map[Call][]ordertest.Fault{}
	}
	b.faults[c] = append(b.faults[c], f)
}

func (b *Bank) next(c Call) (f ordertest.Fault) {
	if waiting := b.faults[c]; len(waiting) > 0 {
		f, b.faults[c] = waiting[0], waiting[1:]
	}
	return f
}

func (b *Bank) fail(c Call) error {
	if f := b.next(c); f != "" {
		return failed(f.Kind())
	}
	return nil
}

// Complete executes the requests that were lost, or answered with a failure, before their
// effect, as the network and the provider may do days later.
func (b *Bank) Complete() {
	for n := range b.Late() {
		b.CompleteOne(n)
	}
}

// Late returns how many requests were lost, or answered with a failure, before their
// effect.
func (b *Bank) Late() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.late)
}

// CompleteOne executes the nth of them, from 0, unless it was executed before.
func (b *Bank) CompleteOne(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if execute := b.late[n]; execute != nil {
		b.late[n] = nil
		execute()
	}
}

// Settle settles every pending refund: succeeded, or failed.
func (b *Bank) Settle(s refund.Status) {
	b.change(func(r refund.Refund) bool { return r.Status == refund.Pending }, s)
}

// Return returns the money of every succeeded refund to the account: it failed.
func (b *Bank) Return() {
	b.change(func(r refund.Refund) bool { return r.Status == refund.Succeeded }, refund.Failed)
}

// Set sets the status of one refund, as the customer's bank does.
func (b *Bank) Set(id refund.ProviderID, to refund.Status) {
	b.change(func(r refund.Refund) bool { return r.ID == id }, to)
}

func (b *Bank) change(which func(refund.Refund) bool, to refund.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range b.refunds {
		if e := &b.refunds[n]; which(e.Refund) {
			e.was, e.changed = e.Refund, b.Now()
			if e.Status = to; to == refund.Failed {
				e.Failure = "lost_or_stolen_card"
			}
		}
	}
}

// Dispute disputes the charge of an intent.
func (b *Bank) Dispute(id order.IntentID) { b.dispute(id, true) }

// WinDispute ends the dispute of a charge.
func (b *Bank) WinDispute(id order.IntentID) { b.dispute(id, false) }

func (b *Bank) dispute(id order.IntentID, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.disputed == nil {
		b.disputed = map[order.IntentID]bool{}
	}
	b.disputed[id] = open
}

// InDashboard gives money back without the product.
func (b *Bank) InDashboard(id order.IntentID, amount order.Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refunds = append(b.refunds, entry{at: b.Now(), Refund: refund.Refund{
		ID: refund.ProviderID(fmt.Sprintf("re_%d", len(b.refunds)+1)), Status: refund.Succeeded,
		Intent: id, Total: amount,
	}})
}

// Refunds returns every refund, oldest first.
func (b *Bank) Refunds() (all []refund.Refund) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.refunds {
		all = append(all, e.Refund)
	}
	return all
}
