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

// payment is a call to a bank on its way.
type payment struct {
	ctx   context.Context
	order order.Order // of Prepare
	id    order.IntentID
	key   order.Key

	pass func() (order.Intent, error) // what Bank does with all this
}

// till is a Bank that does one kind of call its own way, and keeps books of what it did
// to people behind the Bank's back.
type till struct {
	*ordertest.Bank

	on    ordertest.Call
	does  func(t *till, c *payment) (order.Intent, error)
	finds func(found []order.Intent, err error) ([]order.Intent, error) // instead of does for Find

	mu     sync.Mutex
	extra  map[line]int
	memory map[string]order.Intent
	calls  int
}

// line is one of the till's own books: how often an order's card was charged, or tried in
// vain.
type line struct {
	id  order.ID
	end order.IntentState
}

func (t *till) call(kind ordertest.Call, c *payment) (order.Intent, error) {
	if kind != t.on {
		return c.pass()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	return t.does(t, c)
}

func (t *till) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	c := &payment{ctx: ctx, order: o, key: k}
	c.pass = func() (order.Intent, error) { return t.Bank.Prepare(c.ctx, c.order, c.key) }
	return t.call(ordertest.Prepare, c)
}

func (t *till) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	c := &payment{ctx: ctx, id: id, key: k}
	c.pass = func() (order.Intent, error) { return t.Bank.Confirm(c.ctx, c.id, c.key) }
	return t.call(ordertest.Confirm, c)
}

func (t *till) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	c := &payment{ctx: ctx, id: id}
	c.pass = func() (order.Intent, error) { return t.Bank.Read(c.ctx, c.id) }
	return t.call(ordertest.Read, c)
}

func (t *till) Find(ctx context.Context, id order.ID) ([]order.Intent, error) {
	found, err := t.Bank.Find(ctx, id)
	if t.finds == nil {
		return found, err
	}
	return t.finds(found, err)
}

// underTest is the till with its books.
func (t *till) underTest() ordertest.PaymentsUnderTest {
	b := t.Bank
	u := underTest(b, t)
	u.Charges = func(id order.ID) []order.Money {
		all := b.Charges(id)
		for range t.extra[line{id, order.Succeeded}] {
			all = append(all, all[0])
		}
		return all
	}
	u.Declines = func(id order.ID) int { return b.Declines(id) + t.extra[line{id, order.NeedsMethod}] }
	return u
}

// bankBug is a bank that breaks one promise.
type bankBug struct {
	breaks string // the promise, as TestPayments names it
	bug    string
	on     ordertest.Call
	does   func(t *till, c *payment) (order.Intent, error)
}

// findBug is a bank whose Find breaks one promise.
type findBug struct {
	breaks, bug string
	finds       func(found []order.Intent, err error) ([]order.Intent, error)
}

func brokenFinds() []findBug {
	const all = "find returns every intent of an order and of no other"
	return []findBug{
		{all, "it returns the first alone", func(found []order.Intent, err error) ([]order.Intent, error) {
			return found[:min(1, len(found))], err
		}},
		{all, "it returns those that wait alone", func(found []order.Intent, err error) ([]order.Intent, error) {
			return slices.DeleteFunc(found, func(i order.Intent) bool { return i.State == order.Succeeded }), err
		}},
		{all, "its intents carry no fingerprint", func(found []order.Intent, err error) ([]order.Intent, error) {
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
			"a failed find returns no intents", "a failure counts as nothing found",
			func(found []order.Intent, _ error) ([]order.Intent, error) { return found, nil },
		},
	}
}

// becomes answers with the intent as change leaves it.
func becomes(change func(i *order.Intent)) func(*till, *payment) (order.Intent, error) {
	return func(_ *till, c *payment) (order.Intent, error) {
		i, err := c.pass()
		if err == nil {
			change(&i)
		}
		return i, err
	}
}

// turns changes the intent itself.
func turns(change func(i *order.Intent)) func(*till, *payment) (order.Intent, error) {
	return func(t *till, c *payment) (order.Intent, error) {
		i, err := c.pass()
		if err == nil {
			t.Edit(i.ID, change)
			change(&i)
		}
		return i, err
	}
}

// takes one trouble for another; "" is every trouble.
func takes(one, another order.ErrorKind) func(*till, *payment) (order.Intent, error) {
	return func(_ *till, c *payment) (order.Intent, error) {
		i, err := c.pass()
		if e, ok := errors.AsType[*order.PaymentError](err); ok && (e.Kind == one || one == "") {
			e.Kind = another
		}
		return i, err
	}
}

// names gives every error this name of a request.
func names(requestID string) func(*till, *payment) (order.Intent, error) {
	return func(_ *till, c *payment) (order.Intent, error) {
		i, err := c.pass()
		if e, ok := errors.AsType[*order.PaymentError](err); ok {
			e.RequestID = requestID
		}
		return i, err
	}
}

// repeats answers with the first intent that was told under such a name.
func repeats(name func(c *payment) string) func(*till, *payment) (order.Intent, error) {
	return func(t *till, c *payment) (order.Intent, error) {
		if i, told := t.memory[name(c)]; told {
			return i, nil
		}
		i, err := c.pass()
		if err == nil {
			t.memory[name(c)] = i
		}
		return i, err
	}
}

func byKey(c *payment) string    { return c.key.String() }
func byIntent(c *payment) string { return string(c.id) }
func byOrder(c *payment) string  { return string(c.order.ID()) }

// anew makes an intent at each call.
func anew(t *till, c *payment) (order.Intent, error) {
	c.key = order.PrepareAgainKey(t.Scope, c.order.ID(), t.calls)
	return c.pass()
}

// againAndAgain does to people once more what it did, when an intent is confirmed that
// needs it no more.
func againAndAgain(end order.IntentState) func(*till, *payment) (order.Intent, error) {
	return func(t *till, c *payment) (order.Intent, error) {
		before, _ := t.Bank.Read(c.ctx, c.id)
		i, err := c.pass()
		if before.State == end {
			t.extra[line{before.OrderID, end}]++
		}
		return i, err
	}
}

func succeeds(i *order.Intent) { i.State, i.Failure = order.Succeeded, order.Failure{} }

func brokenPrepares() []bankBug {
	return []bankBug{
		{
			"prepare moves no money", "it charges at once", ordertest.Prepare, func(t *till, c *payment) (order.Intent, error) {
				i, err := c.pass()
				t.Edit(i.ID, succeeds)
				return i, err
			},
		},
		{
			"prepare moves no money",
			"its intent is another order's",
			ordertest.Prepare,
			becomes(func(i *order.Intent) { i.OrderID = "ORD-2" }),
		},
		{
			"prepare moves no money",
			"its intent is another deployment's",
			ordertest.Prepare,
			becomes(func(i *order.Intent) { i.Scope = "" }),
		},
		{
			"prepare moves no money",
			"its intent is for another sum",
			ordertest.Prepare,
			becomes(func(i *order.Intent) { i.Total.Amount++ }),
		},
		{"prepare moves no money", "it is read as charged", ordertest.Read, becomes(succeeds)},
		{"prepare twice under one key creates one intent", "each call makes one", ordertest.Prepare, anew},
		{
			"prepare under an expired key creates another intent",
			"the first comes back for ever",
			ordertest.Prepare,
			repeats(byOrder),
		},
		{
			"prepare again returns a canceled intent in its current state",
			"it is returned as it was",
			ordertest.Prepare,
			repeats(byKey),
		},
		{
			"prepare with different content under one key is KeyReused",
			"the first content's intent comes back",
			ordertest.Prepare,
			repeats(byKey),
		},
		{
			"prepare with different content under one key is KeyReused",
			"it is refused",
			ordertest.Prepare,
			takes(order.KeyReused, order.Refused),
		},
		{
			"prepare with different content under one key is KeyReused", "a key may confirm what it prepared", ordertest.Confirm,
			takes(order.KeyReused, order.Replayed),
		},
		{
			"prepare with different content under one key is KeyReused", "it says so, and brings an intent", ordertest.Prepare,
			func(_ *till, c *payment) (order.Intent, error) {
				i, err := c.pass()
				if err != nil {
					i.ID = "pi_1"
				}
				return i, err
			},
		},
		{
			"prepare with an unknown card is Refused",
			"nobody knows",
			ordertest.Prepare,
			takes(order.Refused, order.Unknown),
		},
		{
			"prepare with an unknown card is Refused", "the error tells the card", ordertest.Prepare,
			func(_ *till, c *payment) (order.Intent, error) {
				i, err := c.pass()
				if e, ok := errors.AsType[*order.PaymentError](err); ok {
					e.Err = errors.New("no such card: " + c.order.Payment().Method)
				}
				return i, err
			},
		},
		{"fifty concurrent prepares under one key create one intent", "each call makes one", ordertest.Prepare, anew},
		{
			"fifty concurrent prepares under one key create one intent", "whoever comes second is refused", ordertest.Prepare,
			func(t *till, c *payment) (order.Intent, error) {
				if t.calls > 1 {
					return order.Intent{}, &order.PaymentError{Kind: order.Refused}
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
	chargesAgain := againAndAgain(order.Succeeded)
	return []bankBug{
		{once, "each confirm charges", ordertest.Confirm, chargesAgain},
		{once, "another sum is charged", ordertest.Confirm, func(t *till, c *payment) (order.Intent, error) {
			i, err := c.pass()
			t.Edit(i.ID, func(i *order.Intent) { i.Total.Amount++ })
			return i, err
		}},
		{
			once,
			"a charged intent is read as if it waited",
			ordertest.Read,
			becomes(func(i *order.Intent) { i.State = order.NeedsConfirmation }),
		},
		{once, "a charged intent is refused", ordertest.Confirm, func(t *till, c *payment) (order.Intent, error) {
			if before, _ := t.Bank.Read(c.ctx, c.id); before.State == order.Succeeded {
				return order.Intent{}, &order.PaymentError{Kind: order.Refused}
			}
			return c.pass()
		}},
		{
			"fifty concurrent confirms under fifty keys charge once",
			"each confirm charges",
			ordertest.Confirm,
			chargesAgain,
		},
		{
			"fifty concurrent confirms under one key charge once",
			"each confirm charges",
			ordertest.Confirm,
			chargesAgain,
		},
		{decline, "a decline is an error", ordertest.Confirm, func(_ *till, c *payment) (order.Intent, error) {
			i, err := c.pass()
			if i.State == order.NeedsMethod {
				return order.Intent{}, &order.PaymentError{Kind: order.Refused}
			}
			return i, err
		}},
		{decline, "each confirm tries the card", ordertest.Confirm, againAndAgain(order.NeedsMethod)},
		{decline, "it is read as if it had not been tried", ordertest.Read, becomes(func(i *order.Intent) {
			i.State, i.Failure = order.NeedsConfirmation, order.Failure{}
		})},
		{
			decline,
			"nobody is told why",
			ordertest.Confirm,
			becomes(func(i *order.Intent) { i.Failure = order.Failure{} }),
		},
		{"a customer can pay a declined intent", "a key repeats what it said", ordertest.Confirm, repeats(byKey)},
		{
			"a customer can pay a declined intent",
			"what was declined once stays so",
			ordertest.Confirm,
			repeats(byIntent),
		},
		{
			"a customer can pay a declined intent",
			"an intent is read as it was",
			ordertest.Read,
			becomes(func(i *order.Intent) {
				i.State = order.NeedsMethod
			}),
		},
		{
			"an intent that needs authentication is not declined", "it did", ordertest.Confirm,
			becomes(func(i *order.Intent) { i.Failure = order.Failure{Code: "card_declined"} }),
		},
		{
			days,
			"it is read as it was",
			ordertest.Read,
			becomes(func(i *order.Intent) { i.State = order.Processing }),
		},
		{days, "it counts as paid", ordertest.Confirm, becomes(succeeds)},
		{days, "a key repeats what it said", ordertest.Confirm, repeats(byKey)},
		{"a canceled intent is not charged", "it is", ordertest.Confirm, turns(succeeds)},
		{
			"a canceled intent is not charged",
			"it is read as if it waited",
			ordertest.Read,
			becomes(func(i *order.Intent) {
				i.State = order.NeedsConfirmation
			}),
		},
		{"two intents are independent", "the key alone counts", ordertest.Confirm, repeats(byKey)},
		{named, "whoever has no money pays all the same", ordertest.Confirm, turns(func(i *order.Intent) {
			if i.State == order.NeedsMethod {
				succeeds(i)
			}
		})},
		{
			named,
			"the first card that was charged is charged for everything",
			ordertest.Confirm,
			func(t *till, c *payment) (order.Intent, error) {
				first, known := t.memory["first"]
				i, err := c.pass()
				if !known {
					t.memory["first"] = i
					return i, err
				}
				i.State, i.Failure = first.State, first.Failure
				return i, err
			},
		},
	}
}

func brokenTroubles() []bankBug {
	const (
		unknown = "an unknown intent is Misconfigured"
		request = "an error has a request id if and only if the provider responded"
		away    = "a call that was Unavailable succeeds later under the same key"
		lost    = "a retry under the same key after a lost response charges once"
		burnt   = "a stored failure is replayed under its key and no other"
		hides   = "a stored failure may hide a charge"
		dead    = "a canceled context is Unknown"
	)
	believes := func(_ *till, c *payment) (order.Intent, error) {
		c.ctx = context.WithoutCancel(c.ctx)
		return c.pass()
	}
	hopes := becomes(func(i *order.Intent) { i.State = order.NeedsConfirmation })
	return []bankBug{
		{unknown, "a confirm of it is refused", ordertest.Confirm, takes(order.Misconfigured, order.Refused)},
		{unknown, "a read of it is refused", ordertest.Read, takes(order.Misconfigured, order.Refused)},
		{
			"confirm of an invalid intent id is Refused", "it may come to be", ordertest.Confirm,
			takes(order.Refused, order.Misconfigured),
		},
		{request, "silence has a name", ordertest.Confirm, names("req_1")},
		{request, "no request of a confirm has one", ordertest.Confirm, names("")},
		{request, "no request of a prepare has one", ordertest.Prepare, names("")},
		{request, "no request of a read has one", ordertest.Read, names("")},
		{away, "it has happened already", ordertest.Confirm, func(_ *till, c *payment) (order.Intent, error) {
			i, err := c.pass()
			if e, ok := errors.AsType[*order.PaymentError](err); ok && e.Kind == order.Unavailable {
				_, _ = c.pass()
			}
			return i, err
		}},
		{away, "nobody knows", ordertest.Confirm, takes(order.Unavailable, order.Unknown)},
		{
			away,
			"a read that never arrived is our mistake",
			ordertest.Read,
			takes(order.Unknown, order.Misconfigured),
		},
		{lost, "nothing has happened", ordertest.Confirm, takes(order.Unknown, order.Unavailable)},
		{lost, "each confirm charges", ordertest.Confirm, againAndAgain(order.Succeeded)},
		{"read shows a charge whose response was lost", "it is not", ordertest.Read, hopes},
		{burnt, "it fails anew each time", ordertest.Confirm, takes(order.Replayed, order.Unknown)},
		{burnt, "it burns every key", ordertest.Prepare, func(t *till, c *payment) (order.Intent, error) {
			i, err := c.pass()
			if t.calls > 2 {
				return order.Intent{}, &order.PaymentError{Kind: order.Replayed}
			}
			return i, err
		}},
		{hides, "it is a reason to try again", ordertest.Confirm, takes(order.Replayed, order.Unavailable)},
		{hides, "the charge is not read", ordertest.Read, hopes},
		{dead, "a prepare does not look at it", ordertest.Prepare, believes},
		{dead, "a confirm does not look at it", ordertest.Confirm, believes},
		{dead, "a read does not look at it", ordertest.Read, believes},
		{dead, "it says that nothing has happened", ordertest.Confirm, takes("", order.Unavailable)},
	}
}

func TestEveryBrokenBankIsSeenByItsPromise(t *testing.T) {
	t.Parallel()
	var broken []string
	bank := func() *till {
		return &till{Bank: &ordertest.Bank{Scope: "test"}, extra: map[line]int{}, memory: map[string]order.Intent{}}
	}
	for _, b := range brokenFinds() {
		broken = append(broken, b.breaks)
		p := find(t, ordertest.PaymentPromises(), b.breaks)
		t.Run(b.breaks+" - "+b.bug, func(t *testing.T) {
			t.Parallel()
			wrong := bank()
			wrong.finds = b.finds
			if h := hear(t, p, wrong.underTest()); !h.Failed() {
				t.Error("the suite sees nothing wrong")
			}
		})
	}
	for _, b := range slices.Concat(brokenPrepares(), brokenConfirms(), brokenTroubles()) {
		broken = append(broken, b.breaks)
		p := find(t, ordertest.PaymentPromises(), b.breaks)
		t.Run(b.breaks+" - "+b.bug, func(t *testing.T) {
			t.Parallel()
			wrong, right := bank(), bank()
			wrong.on, wrong.does = b.on, b.does
			if h := hear(t, p, wrong.underTest()); !h.Failed() {
				t.Error("the suite sees nothing wrong")
			}
			if h := hear(t, p, right.underTest()); h.Failed() {
				t.Errorf("the suite sees something wrong without the bug: %s", h)
			}
		})
	}
	covered(t, ordertest.PaymentPromises(), broken)
}
