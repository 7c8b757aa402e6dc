package refundtest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

// ProviderUnderTest is a port and controls of the provider behind it. A provider starts
// without intents, refunds and faults.
type ProviderUnderTest struct {
	Provider refund.Provider
	Payments order.Payments // charges the intents
	Scope    order.Scope    // that both ports write into what they make
	Now      func() time.Time
	Advance  func(time.Duration)         // moves the provider's clock and the port's
	Lag      time.Duration               // how long a Read may miss a new refund
	Method   func(ordertest.Card) string // a payment method of this kind
	// PendingMethod returns a payment method that pays, and whose refunds are pending
	// until Settle.
	PendingMethod func() string

	Fail        func(Call, ordertest.Fault)  // the next call of this kind
	ForgetKeys  func()                       // expires every idempotency key
	Complete    func()                       // executes the requests that failed before their effect
	Settle      func(refund.Status)          // settles every pending refund
	Return      func()                       // fails every refund that succeeded
	InDashboard func(order.IntentID, int64)  // gives money back, as a person can at the provider
	Dispute     func(order.IntentID)         // as the customer can
	Made        func(order.IntentID) []int64 // amounts of its refunds that count, in the provider's books
}

// TestProvider tests the contracts of refund.Provider and refund.Session.
func TestProvider(t *testing.T, open func(t *testing.T) ProviderUnderTest) {
	t.Helper()
	for claim, test := range map[string]func(providerTest){
		"a new charge has no refunds":                                  providerTest.readsNone,
		"an intent that was not charged cannot be refunded":            providerTest.notCharged,
		"a refund is made once under its key, as it was asked for":     providerTest.creates,
		"a key is that of one amount, until it expires":                providerTest.usesKeys,
		"a refund of more than half is never made twice":               providerTest.bigOnce,
		"refunds never give back more than was charged":                providerTest.bounded,
		"refunds that race never give back more than was charged":      providerTest.races,
		"a disputed charge is not refunded":                            providerTest.disputed,
		"a pending refund succeeds, and may fail even then":            providerTest.pends,
		"a replayed refund is returned in its current state":           providerTest.replaysCurrent,
		"what others gave back is read, without ids":                   providerTest.readsOutside,
		"every refund is read, however many there are":                 providerTest.readsAll,
		"the refunds of an intent are those of no other":               providerTest.readsItsOwn,
		"an unknown intent or refund is Misconfigured":                 providerTest.unknown,
		"a failed read returns nothing":                                providerTest.readFails,
		"a failed create may have made the refund, or make it later":   providerTest.createFails,
		"create without a read on its connection is not sent":          providerTest.createsUnread,
		"create later than 30 seconds after the last read is not sent": providerTest.createsLate,
		"a session is not ended by the loss of another":                providerTest.separate,
	} {
		t.Run(claim, func(t *testing.T) {
			test(newProviderTest(t, open(t)))
		})
	}
}

// providerTest is one paid order of 39.98 USD and one session.
type providerTest struct {
	*testing.T
	ProviderUnderTest

	order   order.Order
	intent  order.IntentID
	session refund.Session
}

func newProviderTest(t *testing.T, p ProviderUnderTest) providerTest {
	t.Helper()
	return providerTest{T: t, ProviderUnderTest: p}.paidWith("ORD-1", p.Method(ordertest.Pays))
}

// Fail injects a fault; testing.T has a method of the same name.
func (x providerTest) Fail(c Call, f ordertest.Fault) { x.ProviderUnderTest.Fail(c, f) }

// paidWith returns the test of another order, which is paid unless its method declines,
// with a session of its own.
func (x providerTest) paidWith(id order.ID, method string) providerTest {
	x.Helper()
	x.order = ordertest.OrderWith(id, method)
	i, err := x.Payments.Prepare(x.Context(), x.order, order.PrepareKey(x.Scope, id))
	if err == nil {
		i, err = x.Payments.Confirm(x.Context(), i.ID, order.ConfirmKey(x.Scope, id, 1))
	}
	if err != nil {
		x.Fatal(err)
	}
	x.intent = i.ID
	return x.withSession()
}

func (x providerTest) withSession() providerTest {
	x.session = x.Provider.Open(x.Context())
	x.Cleanup(x.session.Close)
	return x
}

// of returns the order to refund an amount under the first key of an id.
func (x providerTest) of(id refund.ID, amount int64) refund.CreateParams {
	return refund.CreateParams{
		Intent: x.intent, OrderID: x.order.ID(), ID: id, Amount: amount, Reason: refund.RequestedByCustomer,
		Key: refund.Key(x.Scope, x.order.ID(), id, 1),
	}
}

// read returns the ledger after every list has caught up.
func (x providerTest) read() refund.Ledger {
	x.Helper()
	x.Advance(x.Lag)
	l, err := x.session.Read(x.Context(), x.intent)
	if err != nil {
		x.Fatalf("Read: %v", err)
	}
	return l
}

func (x providerTest) create(o refund.CreateParams) (refund.Refund, error) {
	x.Helper()
	x.read()
	return x.session.Create(x.Context(), o)
}

func (x providerTest) mustCreate(o refund.CreateParams) refund.Refund {
	x.Helper()
	r, err := x.create(o)
	if err != nil {
		x.Fatalf("Create: %v", err)
	}
	return r
}

// wantRefund checks a refund, apart from its id.
func (x providerTest) wantRefund(got refund.Refund, o refund.CreateParams, s refund.Status) {
	x.Helper()
	want := refund.Refund{
		ID: got.ID, Status: s, Total: order.Money{Amount: o.Amount, Currency: x.order.Total().Currency},
		Intent: o.Intent, OrderID: o.OrderID, Scope: x.Scope, For: o.ID, Reason: o.Reason, Failure: got.Failure,
	}
	if got != want || got.ID == "" || (got.Failure != "") != (s == refund.Failed) {
		x.Errorf("got refund %+v, want %+v", got, want)
	}
}

// wantFailure checks that a call failed with this kind of error and returned nothing.
func (x providerTest) wantFailure(want order.ErrorKind) func(refund.Refund, error) {
	return func(r refund.Refund, err error) {
		x.Helper()
		if order.KindOf(err) != want || r != (refund.Refund{}) {
			x.Errorf("got refund %+v and error %v, want a PaymentError of kind %s", r, err, want)
		}
	}
}

// wantMade checks the refunds that count, in the provider's books.
func (x providerTest) wantMade(want ...int64) {
	x.Helper()
	if got := fmt.Sprint(x.Made(x.intent)); got != fmt.Sprint(want) {
		x.Errorf("got refunds of %s, want %d", got, want)
	}
}

const (
	half = paidFor / 2
	part = 1000 // less than half
)

func (x providerTest) readsNone() {
	x.Advance(time.Hour + 7*time.Second)
	l := x.read()
	want := order.Intent{
		ID: x.intent, State: order.Succeeded, Total: x.order.Total(), OrderID: x.order.ID(), Scope: x.Scope,
		Fingerprint: x.order.Fingerprint(), Mode: order.TestMode,
	}
	if l.Intent != want || l.Charged != paidFor || l.Disputed || len(l.Refunds) > 0 {
		x.Errorf("got %+v, want %+v with a charge of %d and no refunds", l, want, paidFor)
	}
	if now := x.Now().Truncate(time.Second); !l.Now.Truncate(time.Second).Equal(now) {
		x.Errorf("got the time %s, want the provider's %s", l.Now, now)
	}
}

func (x providerTest) notCharged() {
	for _, c := range []ordertest.Card{ordertest.Declines, ordertest.TakesDays} {
		x := x.paidWith("ORD-"+order.ID(strings.ReplaceAll(string(c), "_", "-")), x.Method(c))
		if l := x.read(); l.Charged != 0 || len(l.Refunds) > 0 {
			x.Errorf("%s: got %+v, want nothing charged", c, l)
		}
		x.wantFailure(order.KindRefused)(x.create(x.of("R1", part)))
	}
}

func (x providerTest) creates() {
	o := x.of("R1", part)
	r := x.mustCreate(o)
	x.wantRefund(r, o, refund.Succeeded)
	if l := x.read(); len(l.Refunds) != 1 || l.Refunds[0] != r || l.Charged != paidFor {
		x.Errorf("got %+v, want the refund %+v", l, r)
	}
	if byID, err := x.session.ReadRefund(x.Context(), r.ID); err != nil || byID != r {
		x.Errorf("by its id: got %+v, %v, want %+v", byID, err, r)
	}
	if again := x.withSession().mustCreate(o); again != r {
		x.Errorf("got %+v, then %+v, want one refund", r, again)
	}
	x.mustCreate(x.of("R2", part)) // on the session that has made one
	x.wantMade(part, part)
}

func (x providerTest) usesKeys() {
	o := x.of("R1", part)
	x.mustCreate(o)
	x.wantFailure(order.KindKeyReused)(x.create(x.of("R1", part+1)))
	x.ForgetKeys()
	x.mustCreate(o)
	x.wantMade(part, part)
}

func (x providerTest) bigOnce() {
	o := x.of("R1", half+1)
	x.mustCreate(o)
	x.wantFailure(order.KindRefused)(x.create(x.of("R2", half+1)))
	x.ForgetKeys()
	for range 2 { // the second refusal may be a stored one
		x.wantFailure(order.KindRefused)(x.create(o))
	}
	x.wantMade(half + 1)
}

func (x providerTest) bounded() {
	x.mustCreate(x.of("R1", part))
	x.wantFailure(order.KindRefused)(x.create(x.of("R2", paidFor-part+1)))
	x.mustCreate(x.of("R3", paidFor-part))
	x.wantFailure(order.KindRefused)(x.create(x.of("R4", 1)))
	x.wantMade(part, paidFor-part)
}

func (x providerTest) races() {
	var racers sync.WaitGroup
	for n := range 20 {
		racers.Go(func() {
			x := x.withSession()
			_, err := x.session.Read(x.Context(), x.intent)
			if err == nil {
				_, err = x.session.Create(x.Context(), x.of(refund.ID(fmt.Sprint("R", n)), part))
			}
			if k := order.KindOf(err); err != nil && k != order.KindRefused && k != order.KindUnavailable {
				x.Errorf("got %v, want it Refused or Unavailable", err)
			}
		})
	}
	racers.Wait()
	if n := len(x.Made(x.intent)); n == 0 || n > paidFor/part {
		x.Errorf("got %d refunds of %d, want 1 to %d", n, part, paidFor/part)
	}
}

func (x providerTest) disputed() {
	x.Dispute(x.intent)
	x.wantFailure(order.KindRefused)(x.create(x.of("R1", part)))
	if !x.read().Disputed {
		x.Error("got a charge that is not disputed")
	}
	x.wantMade()
}

func (x providerTest) pends() {
	x = x.paidWith("ORD-2", x.PendingMethod())
	o := x.of("R1", paidFor)
	r := x.mustCreate(o)
	for _, step := range []struct {
		do   func()
		want refund.Status
		made []int64
	}{
		{func() {}, refund.Pending, []int64{paidFor}},
		{func() { x.Settle(refund.Succeeded) }, refund.Succeeded, []int64{paidFor}},
		{x.Return, refund.Failed, nil},
	} {
		step.do()
		now, err := x.session.ReadRefund(x.Context(), r.ID)
		if err != nil {
			x.Fatal(err)
		}
		x.wantRefund(now, o, step.want)
		if l := x.read(); len(l.Refunds) != 1 || l.Refunds[0] != now {
			x.Errorf("got %+v, want the refund %+v", l.Refunds, now)
		}
		x.wantMade(step.made...)
	}
	x.mustCreate(x.of("R2", paidFor)) // the amount is back
}

func (x providerTest) replaysCurrent() {
	o := x.of("R1", part)
	x.mustCreate(o)
	x.Return()
	x.wantRefund(x.mustCreate(o), o, refund.Failed)
	x.wantMade()
}

func (x providerTest) readsOutside() {
	x.InDashboard(x.intent, part)
	l := x.read()
	if len(l.Refunds) != 1 {
		x.Fatalf("got %+v, want one refund", l)
	}
	r := l.Refunds[0]
	ours := r.OrderID != "" || r.Scope != "" || r.For != ""
	if r.Total.Amount != part || r.Status != refund.Succeeded || ours {
		x.Errorf("got %+v, want a refund of %d that is not ours", r, part)
	}
	x.wantFailure(order.KindRefused)(x.create(x.of("R1", paidFor)))
}

func (x providerTest) readsAll() {
	o := x.of("R1", part)
	made := x.mustCreate(o)
	const others = 215
	for range others {
		x.InDashboard(x.intent, 1)
	}
	l := x.read()
	found := map[refund.ProviderID]refund.Refund{}
	for _, r := range l.Refunds {
		found[r.ID] = r
	}
	if len(l.Refunds) != others+1 || len(found) != others+1 || found[made.ID] != made {
		x.Errorf("got %d refunds with %d ids, want %d and ours among them", len(l.Refunds), len(found), others+1)
	}
}

func (x providerTest) readsItsOwn() {
	other := x.paidWith("ORD-2", x.Method(ordertest.Pays))
	other.mustCreate(other.of("R1", part))
	if l := x.read(); len(l.Refunds) > 0 {
		x.Errorf("got %+v, want no refunds", l)
	}
	x.mustCreate(x.of("R1", part))
	x.wantMade(part)
	other.wantMade(part)
}

func (x providerTest) unknown() {
	for _, id := range []order.IntentID{"pi_unknown", "", "pi 1", "pi_1/cancel"} {
		_, err := x.session.Read(x.Context(), id)
		x.wantFailure(order.KindMisconfigured)(refund.Refund{}, err)
	}
	for _, id := range []refund.ProviderID{"re_unknown", "", "re 1", "re_1/cancel"} {
		x.wantFailure(order.KindMisconfigured)(x.session.ReadRefund(x.Context(), id))
	}
}

func (x providerTest) readFails() {
	r := x.mustCreate(x.of("R1", part))
	for _, fault := range []ordertest.Fault{
		ordertest.ReturnsUnavailable, ordertest.ReturnsMisconfigured,
		ordertest.LosesRequest, ordertest.LosesResponse,
	} {
		x.read()
		x.Fail(ReadRefund, fault)
		x.wantFailure(fault.Kind())(x.session.ReadRefund(x.Context(), r.ID))
		x.Fail(Read, fault)
		l, err := x.session.Read(x.Context(), x.intent)
		x.wantFailure(fault.Kind())(refund.Refund{}, err)
		if len(l.Refunds) > 0 || l.Charged != 0 {
			x.Errorf("%s: got %+v with an error", fault, l)
		}
	}
}

// createFails fails one request for a refund, and sends it again under its key.
func (x providerTest) createFails() {
	const unmade, made = "[]", "[1000]"
	for fault, want := range map[ordertest.Fault]struct {
		again      order.ErrorKind // "" is no error
		first, now string          // refunds that count after each request
	}{
		ordertest.ReturnsUnavailable:       {"", unmade, made},
		ordertest.ReturnsMisconfigured:     {"", unmade, made},
		ordertest.LosesRequest:             {"", unmade, made},
		ordertest.LosesResponse:            {"", made, made},
		ordertest.StoresFailure:            {order.KindReplayed, unmade, unmade},
		ordertest.StoresFailureAfterEffect: {order.KindReplayed, made, made},
	} {
		x := x.paidWith(order.ID("ORD-"+strings.ReplaceAll(string(fault), " ", "-")), x.Method(ordertest.Pays))
		o := x.of("R1", part)
		x.Fail(Create, fault)
		x.wantFailure(fault.Kind())(x.create(o))
		first := fmt.Sprint(x.Made(x.intent))
		_, err := x.create(o)
		now := fmt.Sprint(x.Made(x.intent))
		if first != want.first || now != want.now || order.KindOf(err) != want.again {
			x.Errorf("%s: made %s, then %s, %v, want %+v", fault, first, now, err, want)
		}
		x.Complete()
		x.wantMade(part)
		if want.again != "" { // it is replayed although the refund was made
			x.wantFailure(want.again)(x.create(o))
		}
		x.wantRefund(x.read().Refunds[0], o, refund.Succeeded)
	}
}

// notSent checks that a Create is Unavailable and was not sent.
func (x providerTest) notSent(o refund.CreateParams) {
	x.Helper()
	before := x.Made(x.intent)
	x.wantFailure(order.KindUnavailable)(x.session.Create(x.Context(), o))
	x.Complete()
	x.wantMade(before...)
}

// createsUnread breaks a session in every way, and makes a refund on it.
func (x providerTest) createsUnread() {
	x.mustCreate(x.of("R0", part))
	made := x.read().Refunds[0].ID
	failed := func(c Call, f ordertest.Fault) func(providerTest) {
		return func(x providerTest) {
			x.read()
			x.Fail(c, f)
			_, err := x.session.Read(x.Context(), x.intent)
			if c == Create {
				_, err = x.session.Create(x.Context(), x.of("R1", part))
			}
			x.wantFailure(f.Kind())(refund.Refund{}, err)
		}
	}
	for claim, prepare := range map[string]func(providerTest){
		"before any read": func(providerTest) {},
		"after a read of a refund alone": func(x providerTest) {
			if _, err := x.session.ReadRefund(x.Context(), made); err != nil {
				x.Fatal(err)
			}
		},
		"after a read that was turned away":      failed(Read, ordertest.ReturnsUnavailable),
		"after a read with a wrong key":          failed(Read, ordertest.ReturnsMisconfigured),
		"after a read whose request was lost":    failed(Read, ordertest.LosesRequest),
		"after a read whose response was lost":   failed(Read, ordertest.LosesResponse),
		"after a create whose response was lost": failed(Create, ordertest.LosesResponse),
		"on a closed session":                    func(x providerTest) { x.read(); x.session.Close() },
	} {
		x := x.withSession()
		prepare(x)
		if x.notSent(x.of("R2", part)); x.Failed() {
			x.Fatal(claim)
		}
	}
	x.mustCreate(x.of("R3", part)) // another session, or another read, can
}

func (x providerTest) createsLate() {
	o := x.of("R1", part)
	x.read()
	x.Advance(31 * time.Second)
	x.notSent(o)
	x.read()
	x.Advance(29 * time.Second)
	if _, err := x.session.Create(x.Context(), o); err != nil {
		x.Errorf("29 s after the read: %v", err)
	}
	x.wantMade(part)
}

func (x providerTest) separate() {
	x.read()
	other := x.withSession()
	other.notSent(x.of("R1", part))
	x.Fail(Read, ordertest.LosesResponse)
	_, err := other.session.Read(x.Context(), x.intent)
	x.wantFailure(order.KindUnknown)(refund.Refund{}, err)
	if _, err := x.session.Create(x.Context(), x.of("R1", part)); err != nil {
		x.Errorf("got %v, want the other session's loss to leave this one", err)
	}
}
