package ordertest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

const (
	prepare = ordertest.Prepare
	confirm = ordertest.Confirm
	read    = ordertest.Read
	find    = ordertest.Find
	cancel  = ordertest.Cancel
)

// bankCall is one call to a bank with its arguments and results.
type bankCall struct {
	ctx   context.Context
	bank  *brokenBank
	order order.Order // of Prepare
	id    order.IntentID
	key   order.Key

	before order.Intent   // of Confirm: the intent before the call
	intent order.Intent   // the result
	found  []order.Intent // the result of Find

	pass func() error // calls the Bank
}

// brokenBank is a Bank with a bug. It adds its extra charges and declines to the Bank's
// ledger.
type brokenBank struct {
	*ordertest.Bank
	bankBug

	mu        sync.Mutex
	extra     map[ledgerKey]int
	responses map[string]order.Intent
	calls     int
}

// bankBug handles one kind of call in place of the Bank.
type bankBug struct {
	on ordertest.Call
	do func(c *bankCall) error
}

// ledgerKey counts the extra charges or declines of one order.
type ledgerKey struct {
	id  order.ID
	end order.IntentState
}

func (b *brokenBank) call(
	kind ordertest.Call, c *bankCall, pass func() (order.Intent, error),
) (order.Intent, error) {
	c.bank = b
	c.pass = func() (err error) {
		c.intent, err = pass()
		return err
	}
	if kind != b.on {
		return pass()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if kind == confirm {
		c.before, _ = b.Bank.Read(c.ctx, c.id)
	}
	err := b.do(c)
	return c.intent, err
}

func (b *brokenBank) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	c := &bankCall{ctx: ctx, order: o, key: k}
	return b.call(prepare, c, func() (order.Intent, error) { return b.Bank.Prepare(c.ctx, c.order, c.key) })
}

func (b *brokenBank) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	c := &bankCall{ctx: ctx, id: id, key: k}
	return b.call(confirm, c, func() (order.Intent, error) { return b.Bank.Confirm(c.ctx, c.id, c.key) })
}

func (b *brokenBank) CancelIntent(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	c := &bankCall{ctx: ctx, id: id, key: k}
	return b.call(cancel, c, func() (order.Intent, error) { return b.Bank.CancelIntent(c.ctx, c.id, c.key) })
}

func (b *brokenBank) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	c := &bankCall{ctx: ctx, id: id}
	return b.call(read, c, func() (order.Intent, error) { return b.Bank.Read(c.ctx, c.id) })
}

func (b *brokenBank) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	c := &bankCall{ctx: ctx}
	_, err := b.call(find, c, func() (i order.Intent, err error) {
		c.found, err = b.Bank.Find(ctx, id)
		return i, err
	})
	return c.found, err
}

// underTest includes the extra charges and declines.
func (b *brokenBank) underTest() ordertest.PaymentsUnderTest {
	u := underTest(b.Bank, b)
	u.Charges = func(id order.ID) []order.Money {
		all := b.Charges(id)
		for range b.extra[ledgerKey{id, order.Succeeded}] {
			all = append(all, all[0])
		}
		return all
	}
	u.Declines = func(id order.ID) int { return b.Declines(id) + b.extra[ledgerKey{id, order.NeedsMethod}] }
	return u
}

// changeResponse changes the returned intent.
func changeResponse(on ordertest.Call, change func(i *order.Intent)) bankBug {
	return bankBug{on, func(c *bankCall) error {
		err := c.pass()
		if err == nil {
			change(&c.intent)
		}
		return err
	}}
}

// changeLedger changes the intent in the bank, but not in the response.
func changeLedger(on ordertest.Call, change func(i *order.Intent)) bankBug {
	return bankBug{on, func(c *bankCall) error {
		err := c.pass()
		c.bank.Edit(c.intent.ID, change)
		return err
	}}
}

// changeIntent changes the intent in the bank and in the response.
func changeIntent(on ordertest.Call, change func(i *order.Intent)) bankBug {
	return bankBug{on, func(c *bankCall) error {
		err := c.pass()
		c.bank.Edit(c.intent.ID, change)
		change(&c.intent)
		return err
	}}
}

// changePaymentError changes every error.
func changePaymentError(on ordertest.Call, change func(c *bankCall, e *order.PaymentError)) bankBug {
	return bankBug{on, func(c *bankCall) error {
		err := c.pass()
		if e, ok := errors.AsType[*order.PaymentError](err); ok {
			change(c, e)
		}
		return err
	}}
}

// replaceKind replaces one error kind by another; "" means every kind.
func replaceKind(on ordertest.Call, one, another order.ErrorKind) bankBug {
	return changePaymentError(on, func(_ *bankCall, e *order.PaymentError) {
		if e.Kind == one || one == "" {
			e.Kind = another
		}
	})
}

// setRequestID sets the request id of every error.
func setRequestID(on ordertest.Call, id string) bankBug {
	return changePaymentError(on, func(_ *bankCall, e *order.PaymentError) { e.RequestID = id })
}

// failIf returns an error of this kind, after the call, if when holds.
func failIf(on ordertest.Call, kind order.ErrorKind, when func(c *bankCall) bool) bankBug {
	return bankBug{on, func(c *bankCall) error {
		if err := c.pass(); !when(c) {
			return err
		}
		c.intent = order.Intent{}
		return &order.PaymentError{Kind: kind}
	}}
}

// replayBy returns the first response with the same name.
func replayBy(on ordertest.Call, name func(c *bankCall) string) bankBug {
	return bankBug{on, func(c *bankCall) error {
		responses, name := c.bank.responses, name(c)
		if i, known := responses[name]; known {
			c.intent = i
			return nil
		}
		err := c.pass()
		if err == nil {
			responses[name] = c.intent
		}
		return err
	}}
}

func byKey(c *bankCall) string    { return c.key.String() }
func byIntent(c *bankCall) string { return string(c.id) }
func byOrder(c *bankCall) string  { return string(c.order.ID()) }

// ignoreKey uses another key for each Prepare.
func ignoreKey() bankBug {
	return bankBug{prepare, func(c *bankCall) error {
		c.key = order.PrepareAgainKey(c.bank.Scope, c.order.ID(), c.bank.calls)
		return c.pass()
	}}
}

// ignoreContext continues after the end of the context.
func ignoreContext(on ordertest.Call) bankBug {
	return bankBug{on, func(c *bankCall) error {
		c.ctx = context.WithoutCancel(c.ctx)
		return c.pass()
	}}
}

// repeatEffect charges or declines again if an intent is confirmed that is in state end
// already.
func repeatEffect(end order.IntentState) bankBug {
	return bankBug{confirm, func(c *bankCall) error {
		if c.before.State == end {
			c.bank.extra[ledgerKey{c.before.OrderID, end}]++
		}
		return c.pass()
	}}
}

func addOne(i *order.Intent)      { i.Total.Amount++ }
func loseFailure(i *order.Intent) { i.Failure = order.Failure{} }
func succeed(i *order.Intent)     { i.State, i.Failure = order.Succeeded, order.Failure{} }
func unconfirm(i *order.Intent)   { i.State, i.Failure = order.NeedsConfirmation, order.Failure{} }

// bankBugs are the bugs that break a promise of TestPayments, by promise and by name.
type bankBugs map[string]map[string]bankBug

func findBugs() bankBugs {
	return bankBugs{
		"find returns every intent of an order and of no other": {
			"it returns only the first": {find, func(c *bankCall) error {
				err := c.pass()
				c.found = c.found[:min(1, len(c.found))]
				return err
			}},
			"it returns only unconfirmed intents": {find, func(c *bankCall) error {
				err := c.pass()
				c.found = slices.DeleteFunc(c.found, func(i order.Intent) bool { return i.State == order.Succeeded })
				return err
			}},
			"its intents have no fingerprint": {find, func(c *bankCall) error {
				err := c.pass()
				for i := range c.found {
					c.found[i].Fingerprint = ""
				}
				return err
			}},
		},
		"find returns nothing for an order that was never prepared": {
			"it returns a neighbor's intent": {find, func(c *bankCall) error {
				c.found = []order.Intent{{ID: "pi_1"}}
				return nil
			}},
		},
		"a failed find returns no intents": {
			"the error is dropped": {find, func(c *bankCall) error {
				_ = c.pass()
				return nil
			}},
		},
	}
}

func prepareBugs() bankBugs {
	return bankBugs{
		"prepare moves no money": {
			"it charges at once":              changeLedger(prepare, succeed),
			"the intent has another order id": changeResponse(prepare, func(i *order.Intent) { i.OrderID = "ORD-2" }),
			"the intent has another scope":    changeResponse(prepare, func(i *order.Intent) { i.Scope = "" }),
			"the intent has another amount":   changeResponse(prepare, addOne),
			"read returns it as charged":      changeResponse(read, succeed),
		},
		"prepare twice under one key creates one intent": {
			"each call creates one": ignoreKey(),
		},
		"prepare under an expired key creates another intent": {
			"the first one is returned for ever": replayBy(prepare, byOrder),
		},
		"prepare again returns a canceled intent in its current state": {
			"its old state is returned": replayBy(prepare, byKey),
		},
		"prepare with different content under one key is KeyReused": {
			"the first intent is returned": replayBy(prepare, byKey),
			"it is rejected":               replaceKind(prepare, order.KindKeyReused, order.KindRefused),
			"a prepare key can confirm":    replaceKind(confirm, order.KindKeyReused, order.KindReplayed),
			"it returns an intent with the error": {prepare, func(c *bankCall) error {
				err := c.pass()
				if err != nil {
					c.intent.ID = "pi_1"
				}
				return err
			}},
		},
		"prepare with an unknown card is Refused": {
			"it is Unknown": replaceKind(prepare, order.KindRefused, order.KindUnknown),
			"the error contains the card": changePaymentError(prepare, func(c *bankCall, e *order.PaymentError) {
				e.Err = errors.New("no such card: " + c.order.Payment().Method)
			}),
		},
		"fifty concurrent prepares under one key create one intent": {
			"each call creates one": ignoreKey(),
			"the second one is Refused": failIf(prepare, order.KindRefused, func(c *bankCall) bool {
				return c.bank.calls > 1
			}),
		},
	}
}

func confirmBugs() bankBugs {
	chargesAgain := repeatEffect(order.Succeeded)
	return bankBugs{
		"an intent is charged once under any key": {
			"each confirm charges":                         chargesAgain,
			"another amount is charged":                    changeLedger(confirm, addOne),
			"read returns a charged intent as unconfirmed": changeResponse(read, unconfirm),
			"confirm of a charged intent is Refused": failIf(confirm, order.KindRefused, func(c *bankCall) bool {
				return c.before.State == order.Succeeded
			}),
		},
		"fifty concurrent confirms under fifty keys charge once": {"each confirm charges": chargesAgain},
		"fifty concurrent confirms under one key charge once":    {"each confirm charges": chargesAgain},
		"a decline is an intent and its card is not charged again": {
			"a decline is an error": failIf(confirm, order.KindRefused, func(c *bankCall) bool {
				return c.intent.State == order.NeedsMethod
			}),
			"each confirm charges the card":  repeatEffect(order.NeedsMethod),
			"read returns it as unconfirmed": changeResponse(read, unconfirm),
			"the reason is missing":          changeResponse(confirm, loseFailure),
		},
		"a customer can pay a declined intent": {
			"a key replays its first response": replayBy(confirm, byKey),
			"a declined intent stays declined": replayBy(confirm, byIntent),
			"read returns the old state": changeResponse(read, func(i *order.Intent) {
				i.State = order.NeedsMethod
			}),
		},
		"an intent that needs authentication is not declined": {
			"it is declined": changeResponse(confirm, func(i *order.Intent) {
				i.Failure = order.Failure{Code: "card_declined"}
			}),
		},
		"an intent that takes days is pending, then paid": {
			"read returns the old state": changeResponse(read, func(i *order.Intent) {
				i.State = order.Processing
			}),
			"it is returned as paid":           changeResponse(confirm, succeed),
			"a key replays its first response": replayBy(confirm, byKey),
		},
		"a canceled intent is not charged": {
			"it is charged":                  changeIntent(confirm, succeed),
			"read returns it as unconfirmed": changeResponse(read, unconfirm),
		},
		"two intents are independent": {
			"a key returns the other intent": replayBy(confirm, byKey),
		},
		"confirm charges the method that prepare named and no other": {
			"a declined card succeeds": changeIntent(confirm, func(i *order.Intent) {
				if i.State == order.NeedsMethod {
					succeed(i)
				}
			}),
			"every confirm charges the first card": {confirm, func(c *bankCall) error {
				err := c.pass()
				if first, known := c.bank.responses["first"]; known {
					c.intent.State, c.intent.Failure = first.State, first.Failure
				} else {
					c.bank.responses["first"] = c.intent
				}
				return err
			}},
		},
	}
}

func cancelBugs() bankBugs {
	return bankBugs{
		"a canceled intent is never confirmed": {
			"the response alone says so": changeLedger(cancel, unconfirm),
			"the response is older":      changeResponse(cancel, unconfirm),
		},
		"cancel of a declined intent cancels it": {
			"it stays declined": changeIntent(cancel, func(i *order.Intent) {
				i.State, i.Failure = order.NeedsMethod, order.Failure{Code: "card_declined"}
			}),
		},
		"cancel of an intent that succeeded returns it as it is": {
			"it is canceled": changeIntent(cancel, func(i *order.Intent) { i.State = order.IntentCanceled }),
			"it is refused":  failIf(cancel, order.KindRefused, func(c *bankCall) bool { return c.intent.State == order.Succeeded }),
		},
		"cancel of a canceled intent returns it": {
			"it is refused": failIf(cancel, order.KindRefused, func(c *bankCall) bool { return c.bank.calls > 1 }),
			"it succeeds": {cancel, func(c *bankCall) error {
				err := c.pass()
				if c.bank.calls > 1 {
					succeed(&c.intent)
				}
				return err
			}},
		},
		"cancel of an unknown or invalid intent is an error": {
			"an unknown one is Refused":       replaceKind(cancel, order.KindMisconfigured, order.KindRefused),
			"an invalid one is Misconfigured": replaceKind(cancel, order.KindRefused, order.KindMisconfigured),
		},
		"a cancellation whose response was lost is Unknown and happened": {
			"it is Unavailable": replaceKind(cancel, order.KindUnknown, order.KindUnavailable),
			"it is undone":      changePaymentError(cancel, func(c *bankCall, _ *order.PaymentError) { c.bank.Edit(c.id, unconfirm) }),
		},
	}
}

func failureBugs() bankBugs {
	return bankBugs{
		"an unknown intent is Misconfigured": {
			"confirm is Refused": replaceKind(confirm, order.KindMisconfigured, order.KindRefused),
			"read is Refused":    replaceKind(read, order.KindMisconfigured, order.KindRefused),
		},
		"confirm of an invalid intent id is Refused": {
			"it is Misconfigured": replaceKind(confirm, order.KindRefused, order.KindMisconfigured),
		},
		"an error has a request id if and only if the provider responded": {
			"a lost call has a request id": setRequestID(confirm, "req_1"),
			"confirm has none":             setRequestID(confirm, ""),
			"prepare has none":             setRequestID(prepare, ""),
			"read has none":                setRequestID(read, ""),
		},
		"a call that was Unavailable succeeds later under the same key": {
			"the call had an effect": changePaymentError(confirm, func(c *bankCall, e *order.PaymentError) {
				if e.Kind == order.KindUnavailable {
					_, _ = c.bank.Bank.Confirm(c.ctx, c.id, c.key)
				}
			}),
			"it is Unknown":                replaceKind(confirm, order.KindUnavailable, order.KindUnknown),
			"a lost read is Misconfigured": replaceKind(read, order.KindUnknown, order.KindMisconfigured),
		},
		"a retry under the same key after a lost response charges once": {
			"it is Unavailable":    replaceKind(confirm, order.KindUnknown, order.KindUnavailable),
			"each confirm charges": repeatEffect(order.Succeeded),
		},
		"read shows a charge whose response was lost": {
			"read returns it as unconfirmed": changeResponse(read, unconfirm),
		},
		"a stored failure is replayed under its key and no other": {
			"it is Unknown again": replaceKind(confirm, order.KindReplayed, order.KindUnknown),
			"it is replayed under every key": failIf(prepare, order.KindReplayed, func(c *bankCall) bool {
				return c.bank.calls > 2
			}),
		},
		"a stored failure may hide a charge": {
			"it is Unavailable":              replaceKind(confirm, order.KindReplayed, order.KindUnavailable),
			"read returns it as unconfirmed": changeResponse(read, unconfirm),
		},
		"a canceled context is Unknown": {
			"prepare ignores it": ignoreContext(prepare),
			"confirm ignores it": ignoreContext(confirm),
			"read ignores it":    ignoreContext(read),
			"it is Unavailable":  replaceKind(confirm, "", order.KindUnavailable),
		},
	}
}

func TestEveryBrokenBankFailsItsPromise(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	bank := func(bug bankBug) ordertest.PaymentsUnderTest {
		b := &brokenBank{
			Bank: &ordertest.Bank{Scope: "test"}, bankBug: bug,
			extra: map[ledgerKey]int{}, responses: map[string]order.Intent{},
		}
		return b.underTest()
	}
	for _, bugs := range []bankBugs{findBugs(), prepareBugs(), confirmBugs(), cancelBugs(), failureBugs()} {
		for promise, byName := range bugs {
			covered[promise] = true
			for name, bug := range byName {
				t.Run(promise+" - "+name, func(t *testing.T) {
					t.Parallel()
					testBug(t, ordertest.PaymentPromises(), promise, bank(bug), bank(bankBug{}))
				})
			}
		}
	}
	if missing := uncovered(ordertest.PaymentPromises(), covered); len(missing) > 0 {
		t.Errorf("no broken double for the promises %q", missing)
	}
}
