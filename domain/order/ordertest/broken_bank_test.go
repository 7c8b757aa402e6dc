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

// bankCall is one call to a bank.
type bankCall struct {
	ctx   context.Context
	order order.Order // of Prepare
	id    order.IntentID
	key   order.Key

	pass func() (order.Intent, error) // calls the Bank
}

// brokenBank is a Bank that handles one kind of call in its own way. It adds its extra
// charges and declines to the Bank's ledger.
type brokenBank struct {
	*ordertest.Bank

	on   ordertest.Call
	do   behavior
	find func(found []order.Intent, err error) ([]order.Intent, error) // replaces do for Find

	mu        sync.Mutex
	extra     map[ledgerKey]int
	responses map[string]order.Intent
	calls     int
}

// ledgerKey counts the extra charges or declines of one order.
type ledgerKey struct {
	id  order.ID
	end order.IntentState
}

func (b *brokenBank) call(kind ordertest.Call, c *bankCall) (order.Intent, error) {
	if kind != b.on {
		return c.pass()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	return b.do(b, c)
}

func (b *brokenBank) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	c := &bankCall{ctx: ctx, order: o, key: k}
	c.pass = func() (order.Intent, error) { return b.Bank.Prepare(c.ctx, c.order, c.key) }
	return b.call(ordertest.Prepare, c)
}

func (b *brokenBank) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	c := &bankCall{ctx: ctx, id: id, key: k}
	c.pass = func() (order.Intent, error) { return b.Bank.Confirm(c.ctx, c.id, c.key) }
	return b.call(ordertest.Confirm, c)
}

func (b *brokenBank) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	c := &bankCall{ctx: ctx, id: id}
	c.pass = func() (order.Intent, error) { return b.Bank.Read(c.ctx, c.id) }
	return b.call(ordertest.Read, c)
}

func (b *brokenBank) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	found, err := b.Bank.Find(ctx, id)
	if b.find == nil {
		return found, err
	}
	return b.find(found, err)
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

// behavior handles one call in place of the Bank.
type behavior func(b *brokenBank, c *bankCall) (order.Intent, error)

// bankBug is a bank that breaks one promise.
type bankBug struct {
	breaks string // the promise, as TestPayments names it
	bug    string
	on     ordertest.Call
	do     behavior
}

// findBug is a bank whose Find breaks one promise.
type findBug struct {
	breaks, bug string
	find        func(found []order.Intent, err error) ([]order.Intent, error)
}

func brokenFinds() []findBug {
	const all = "find returns every intent of an order and of no other"
	return []findBug{
		{all, "it returns only the first", func(found []order.Intent, err error) ([]order.Intent, error) {
			return found[:min(1, len(found))], err
		}},
		{all, "it returns only unconfirmed intents", func(found []order.Intent, err error) ([]order.Intent, error) {
			return slices.DeleteFunc(found, func(i order.Intent) bool { return i.State == order.Succeeded }), err
		}},
		{all, "its intents have no fingerprint", func(found []order.Intent, err error) ([]order.Intent, error) {
			for i := range found {
				found[i].Fingerprint = ""
			}
			return found, err
		}},
		{
			"find returns nothing for an order that was never prepared", "it returns a neighbor's intent",
			func([]order.Intent, error) ([]order.Intent, error) { return []order.Intent{{ID: "pi_1"}}, nil },
		},
		{
			"a failed find returns no intents", "the error is dropped",
			func(found []order.Intent, _ error) ([]order.Intent, error) { return found, nil },
		},
	}
}

// changeResponse changes the returned intent.
func changeResponse(change func(i *order.Intent)) behavior {
	return func(_ *brokenBank, c *bankCall) (order.Intent, error) {
		i, err := c.pass()
		if err == nil {
			change(&i)
		}
		return i, err
	}
}

// changeIntent changes the intent in the bank, too.
func changeIntent(change func(i *order.Intent)) behavior {
	return func(b *brokenBank, c *bankCall) (order.Intent, error) {
		i, err := c.pass()
		if err == nil {
			b.Edit(i.ID, change)
			change(&i)
		}
		return i, err
	}
}

// replaceKind replaces one error kind by another; "" stands for every kind.
func replaceKind(one, another order.ErrorKind) behavior {
	return func(_ *brokenBank, c *bankCall) (order.Intent, error) {
		i, err := c.pass()
		if e, ok := errors.AsType[*order.PaymentError](err); ok && (e.Kind == one || one == "") {
			e.Kind = another
		}
		return i, err
	}
}

// setRequestID sets the request id of every error.
func setRequestID(requestID string) behavior {
	return func(_ *brokenBank, c *bankCall) (order.Intent, error) {
		i, err := c.pass()
		if e, ok := errors.AsType[*order.PaymentError](err); ok {
			e.RequestID = requestID
		}
		return i, err
	}
}

// replayBy returns the first response with the same name.
func replayBy(name func(c *bankCall) string) behavior {
	return func(b *brokenBank, c *bankCall) (order.Intent, error) {
		if i, known := b.responses[name(c)]; known {
			return i, nil
		}
		i, err := c.pass()
		if err == nil {
			b.responses[name(c)] = i
		}
		return i, err
	}
}

func byKey(c *bankCall) string    { return c.key.String() }
func byIntent(c *bankCall) string { return string(c.id) }
func byOrder(c *bankCall) string  { return string(c.order.ID()) }

// ignoreKey uses another key for each call.
func ignoreKey(b *brokenBank, c *bankCall) (order.Intent, error) {
	c.key = order.PrepareAgainKey(b.Scope, c.order.ID(), b.calls)
	return c.pass()
}

// repeatEffect charges or declines again if an intent is confirmed that is in state end
// already.
func repeatEffect(end order.IntentState) behavior {
	return func(b *brokenBank, c *bankCall) (order.Intent, error) {
		before, _ := b.Bank.Read(c.ctx, c.id)
		i, err := c.pass()
		if before.State == end {
			b.extra[ledgerKey{before.OrderID, end}]++
		}
		return i, err
	}
}

func succeeds(i *order.Intent) { i.State, i.Failure = order.Succeeded, order.Failure{} }

func brokenPrepares() []bankBug {
	return []bankBug{
		{
			"prepare moves no money",
			"it charges at once", ordertest.Prepare, func(b *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				b.Edit(i.ID, succeeds)
				return i, err
			},
		},
		{
			"prepare moves no money",
			"the intent has another order id",
			ordertest.Prepare,
			changeResponse(func(i *order.Intent) { i.OrderID = "ORD-2" }),
		},
		{
			"prepare moves no money",
			"the intent has another scope",
			ordertest.Prepare,
			changeResponse(func(i *order.Intent) { i.Scope = "" }),
		},
		{
			"prepare moves no money",
			"the intent has another amount",
			ordertest.Prepare,
			changeResponse(func(i *order.Intent) { i.Total.Amount++ }),
		},
		{"prepare moves no money", "read returns it as charged", ordertest.Read, changeResponse(succeeds)},
		{"prepare twice under one key creates one intent", "each call creates one", ordertest.Prepare, ignoreKey},
		{
			"prepare under an expired key creates another intent",
			"the first one is returned for ever",
			ordertest.Prepare,
			replayBy(byOrder),
		},
		{
			"prepare again returns a canceled intent in its current state",
			"its old state is returned",
			ordertest.Prepare,
			replayBy(byKey),
		},
		{
			"prepare with different content under one key is KeyReused",
			"the first intent is returned",
			ordertest.Prepare,
			replayBy(byKey),
		},
		{
			"prepare with different content under one key is KeyReused",
			"it is rejected",
			ordertest.Prepare,
			replaceKind(order.KindKeyReused, order.KindRefused),
		},
		{
			"prepare with different content under one key is KeyReused",
			"a prepare key can confirm", ordertest.Confirm,
			replaceKind(order.KindKeyReused, order.KindReplayed),
		},
		{
			"prepare with different content under one key is KeyReused",
			"it returns an intent with the error", ordertest.Prepare,
			func(_ *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				if err != nil {
					i.ID = "pi_1"
				}
				return i, err
			},
		},
		{
			"prepare with an unknown card is Refused",
			"it is Unknown",
			ordertest.Prepare,
			replaceKind(order.KindRefused, order.KindUnknown),
		},
		{
			"prepare with an unknown card is Refused", "the error contains the card", ordertest.Prepare,
			func(_ *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				if e, ok := errors.AsType[*order.PaymentError](err); ok {
					e.Err = errors.New("no such card: " + c.order.Payment().Method)
				}
				return i, err
			},
		},
		{
			"fifty concurrent prepares under one key create one intent",
			"each call creates one", ordertest.Prepare, ignoreKey,
		},
		{
			"fifty concurrent prepares under one key create one intent",
			"the second one is Refused", ordertest.Prepare,
			func(b *brokenBank, c *bankCall) (order.Intent, error) {
				if b.calls > 1 {
					return order.Intent{}, &order.PaymentError{Kind: order.KindRefused}
				}
				return c.pass()
			},
		},
	}
}

func brokenConfirms() []bankBug {
	const (
		once    = "an intent is charged once under any key"
		decline = "a decline is an intent and its card is not charged again"
		days    = "an intent that takes days is pending, then paid"
		named   = "confirm charges the method that prepare named and no other"
	)
	chargesAgain := repeatEffect(order.Succeeded)
	return []bankBug{
		{once, "each confirm charges", ordertest.Confirm, chargesAgain},
		{
			once,
			"another amount is charged",
			ordertest.Confirm,
			func(b *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				b.Edit(i.ID, func(i *order.Intent) { i.Total.Amount++ })
				return i, err
			},
		},
		{
			once,
			"read returns a charged intent as unconfirmed",
			ordertest.Read,
			changeResponse(func(i *order.Intent) { i.State = order.NeedsConfirmation }),
		},
		{
			once,
			"confirm of a charged intent is Refused",
			ordertest.Confirm,
			func(b *brokenBank, c *bankCall) (order.Intent, error) {
				if before, _ := b.Bank.Read(c.ctx, c.id); before.State == order.Succeeded {
					return order.Intent{}, &order.PaymentError{Kind: order.KindRefused}
				}
				return c.pass()
			},
		},
		{
			"fifty concurrent confirms under fifty keys charge once", "each confirm charges",
			ordertest.Confirm, chargesAgain,
		},
		{
			"fifty concurrent confirms under one key charge once", "each confirm charges", ordertest.Confirm,
			chargesAgain,
		},
		{
			decline,
			"a decline is an error",
			ordertest.Confirm,
			func(_ *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				if i.State == order.NeedsMethod {
					return order.Intent{}, &order.PaymentError{Kind: order.KindRefused}
				}
				return i, err
			},
		},
		{decline, "each confirm charges the card", ordertest.Confirm, repeatEffect(order.NeedsMethod)},
		{decline, "read returns it as unconfirmed", ordertest.Read, changeResponse(func(i *order.Intent) {
			i.State, i.Failure = order.NeedsConfirmation, order.Failure{}
		})},
		{
			decline,
			"the reason is missing",
			ordertest.Confirm,
			changeResponse(func(i *order.Intent) { i.Failure = order.Failure{} }),
		},
		{
			"a customer can pay a declined intent",
			"a key replays its first response", ordertest.Confirm, replayBy(byKey),
		},
		{
			"a customer can pay a declined intent",
			"a declined intent stays declined",
			ordertest.Confirm,
			replayBy(byIntent),
		},
		{
			"a customer can pay a declined intent",
			"read returns the old state",
			ordertest.Read,
			changeResponse(func(i *order.Intent) {
				i.State = order.NeedsMethod
			}),
		},
		{
			"an intent that needs authentication is not declined", "it is declined", ordertest.Confirm,
			changeResponse(func(i *order.Intent) { i.Failure = order.Failure{Code: "card_declined"} }),
		},
		{
			days,
			"read returns the old state",
			ordertest.Read,
			changeResponse(func(i *order.Intent) { i.State = order.Processing }),
		},
		{days, "it is returned as paid", ordertest.Confirm, changeResponse(succeeds)},
		{days, "a key replays its first response", ordertest.Confirm, replayBy(byKey)},
		{"a canceled intent is not charged", "it is charged", ordertest.Confirm, changeIntent(succeeds)},
		{
			"a canceled intent is not charged",
			"read returns it as unconfirmed",
			ordertest.Read,
			changeResponse(func(i *order.Intent) {
				i.State = order.NeedsConfirmation
			}),
		},
		{"two intents are independent", "a key returns the other intent", ordertest.Confirm, replayBy(byKey)},
		{named, "a declined card succeeds", ordertest.Confirm, changeIntent(func(i *order.Intent) {
			if i.State == order.NeedsMethod {
				succeeds(i)
			}
		})},
		{
			named,
			"every confirm charges the first card",
			ordertest.Confirm,
			func(b *brokenBank, c *bankCall) (order.Intent, error) {
				first, known := b.responses["first"]
				i, err := c.pass()
				if !known {
					b.responses["first"] = i
					return i, err
				}
				i.State, i.Failure = first.State, first.Failure
				return i, err
			},
		},
	}
}

func brokenFailures() []bankBug {
	const (
		unknown     = "an unknown intent is Misconfigured"
		request     = "an error has a request id if and only if the provider responded"
		unavailable = "a call that was Unavailable succeeds later under the same key"
		lost        = "a retry under the same key after a lost response charges once"
		stored      = "a stored failure is replayed under its key and no other"
		hides       = "a stored failure may hide a charge"
		canceled    = "a canceled context is Unknown"
	)
	ignoreContext := func(_ *brokenBank, c *bankCall) (order.Intent, error) {
		c.ctx = context.WithoutCancel(c.ctx)
		return c.pass()
	}
	unconfirmed := changeResponse(func(i *order.Intent) { i.State = order.NeedsConfirmation })
	return []bankBug{
		{unknown, "confirm is Refused", ordertest.Confirm, replaceKind(order.KindMisconfigured, order.KindRefused)},
		{unknown, "read is Refused", ordertest.Read, replaceKind(order.KindMisconfigured, order.KindRefused)},
		{
			"confirm of an invalid intent id is Refused", "it is Misconfigured", ordertest.Confirm,
			replaceKind(order.KindRefused, order.KindMisconfigured),
		},
		{request, "a lost call has a request id", ordertest.Confirm, setRequestID("req_1")},
		{request, "confirm has none", ordertest.Confirm, setRequestID("")},
		{request, "prepare has none", ordertest.Prepare, setRequestID("")},
		{request, "read has none", ordertest.Read, setRequestID("")},
		{
			unavailable,
			"the call had an effect",
			ordertest.Confirm,
			func(_ *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				if e, ok := errors.AsType[*order.PaymentError](err); ok && e.Kind == order.KindUnavailable {
					_, _ = c.pass()
				}
				return i, err
			},
		},
		{unavailable, "it is Unknown", ordertest.Confirm, replaceKind(order.KindUnavailable, order.KindUnknown)},
		{
			unavailable,
			"a lost read is Misconfigured",
			ordertest.Read,
			replaceKind(order.KindUnknown, order.KindMisconfigured),
		},
		{lost, "it is Unavailable", ordertest.Confirm, replaceKind(order.KindUnknown, order.KindUnavailable)},
		{lost, "each confirm charges", ordertest.Confirm, repeatEffect(order.Succeeded)},
		{
			"read shows a charge whose response was lost",
			"read returns it as unconfirmed", ordertest.Read, unconfirmed,
		},
		{stored, "it is Unknown again", ordertest.Confirm, replaceKind(order.KindReplayed, order.KindUnknown)},
		{
			stored,
			"it is replayed under every key",
			ordertest.Prepare,
			func(b *brokenBank, c *bankCall) (order.Intent, error) {
				i, err := c.pass()
				if b.calls > 2 {
					return order.Intent{}, &order.PaymentError{Kind: order.KindReplayed}
				}
				return i, err
			},
		},
		{hides, "it is Unavailable", ordertest.Confirm, replaceKind(order.KindReplayed, order.KindUnavailable)},
		{hides, "read returns it as unconfirmed", ordertest.Read, unconfirmed},
		{canceled, "prepare ignores it", ordertest.Prepare, ignoreContext},
		{canceled, "confirm ignores it", ordertest.Confirm, ignoreContext},
		{canceled, "read ignores it", ordertest.Read, ignoreContext},
		{canceled, "it is Unavailable", ordertest.Confirm, replaceKind("", order.KindUnavailable)},
	}
}

func TestEveryBrokenBankFailsItsPromise(t *testing.T) {
	t.Parallel()
	var broken []string
	bank := func() *brokenBank {
		return &brokenBank{
			Bank:  &ordertest.Bank{Scope: "test"},
			extra: map[ledgerKey]int{}, responses: map[string]order.Intent{},
		}
	}
	for _, b := range brokenFinds() {
		broken = append(broken, b.breaks)
		p := findPromise(t, ordertest.PaymentPromises(), b.breaks)
		t.Run(b.breaks+" - "+b.bug, func(t *testing.T) {
			t.Parallel()
			wrong := bank()
			wrong.find = b.find
			if got := runPromise(t, p, wrong.underTest()); !got.Failed() {
				t.Error("got no failure, want the promise to fail")
			}
		})
	}
	for _, b := range slices.Concat(brokenPrepares(), brokenConfirms(), brokenFailures()) {
		broken = append(broken, b.breaks)
		p := findPromise(t, ordertest.PaymentPromises(), b.breaks)
		t.Run(b.breaks+" - "+b.bug, func(t *testing.T) {
			t.Parallel()
			wrong, right := bank(), bank()
			wrong.on, wrong.do = b.on, b.do
			if got := runPromise(t, p, wrong.underTest()); !got.Failed() {
				t.Error("got no failure, want the promise to fail")
			}
			if got := runPromise(t, p, right.underTest()); got.Failed() {
				t.Errorf("without the bug: got failure %s, want none", got)
			}
		})
	}
	if missing := uncovered(ordertest.PaymentPromises(), broken); len(missing) > 0 {
		t.Errorf("no broken double for the promises %q", missing)
	}
}
