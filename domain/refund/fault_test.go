package refund_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// What comes of a refund whose Create fails once, at once and when its message comes
// back.
func TestAFailedCreate(t *testing.T) {
	for claim, tt := range map[string]struct {
		fault  ordertest.Fault
		amount int64
		first  order.Reason
		held   bool // until the lease ends
		again  order.Reason
		made   int
	}{
		"a rate limit": {
			ordertest.ReturnsUnavailable, half, order.ReasonUnavailable, false, order.ReasonSettled, 1,
		},
		"a wrong key": {
			ordertest.ReturnsMisconfigured, half, order.ReasonMisconfigured, false, order.ReasonSettled, 1,
		},
		"a request that was lost": {
			ordertest.LosesRequest, half, order.ReasonUnknown, true, order.ReasonSettled, 1,
		},
		"a response that was lost": {
			ordertest.LosesResponse, half, order.ReasonUnknown, true, order.ReasonSettled, 1,
		},
		"a stored 500 after the effect": {
			ordertest.StoresFailureAfterEffect, half, order.ReasonUnknown, true, order.ReasonSettled, 1,
		},
		"a stored 500 of a small refund": {
			ordertest.StoresFailure, half, order.ReasonUnknown, true, order.ReasonReplayed, 0,
		},
		"a stored 500 of a big refund": {
			ordertest.StoresFailure, half + 1, order.ReasonUnknown, true, order.ReasonSettled, 1,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			r := request(t, "R1", tt.amount)
			w.bank.Fail(refundtest.Create, tt.fault)
			got := w.deliver(r, noFault)
			if got.Verdict != order.Redeliver || got.Reason != tt.first || got.NotBefore.IsZero() == tt.held {
				t.Errorf("got %+v, want %s, held %t", got, tt.first, tt.held)
			}
			if early := w.deliver(r, noFault); tt.held && early.Reason != order.ReasonInProgress {
				t.Errorf("before the lease ends: got %+v, want %s", early, order.ReasonInProgress)
			}
			w.now = w.now.Add(16 * time.Minute)
			if got := w.deliver(r, noFault); tt.held && got.Reason != tt.again {
				t.Errorf("later: got %+v, want %s", got, tt.again)
			}
			if v := w.violations(); len(v) > 0 || w.made("R1") != tt.made {
				t.Errorf("made %d times, want %d; %v", w.made("R1"), tt.made, v)
			}
		})
	}
}

// A stored 500 may be completed days later, so a small refund is parked and never
// repeated.
func TestASmallRefundIsNotRepeatedAfterItsKeyIsForgotten(t *testing.T) {
	for claim, tt := range map[string]struct {
		amount int64
		want   order.Reason
		status refund.Status // after the 500 was completed
	}{
		"half of the charge": {half, refund.ReasonUnknown, refund.Succeeded},
		"more than half":     {half + 1, order.ReasonSettled, refund.Succeeded},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			r := request(t, "R1", tt.amount)
			w.bank.Fail(refundtest.Create, ordertest.StoresFailure)
			w.deliver(r, noFault)
			w.now = w.now.Add(20 * time.Hour)
			if got := w.deliver(r, noFault); got.Reason != tt.want {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
			w.now = w.now.Add(6 * day)
			w.bank.Complete()
			if i, _ := w.refresh().Item("R1"); i.Status != tt.status || w.made("R1") != 1 {
				t.Errorf("got %+v, made %d times, want it %s and made once", i, w.made("R1"), tt.status)
			}
			if v := w.violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}

func TestARefusedRefundIsExplained(t *testing.T) {
	money := order.Money{Amount: half, Currency: "usd"}
	for claim, tt := range map[string]struct {
		before func(*world)
		amount int64
		want   order.Reason
		status refund.Status
	}{
		"the charge is disputed": {
			func(w *world) { w.bank.Dispute("pi_1") }, half, refund.ReasonRefused, refund.Refused,
		},
		"others gave too much back": {
			func(w *world) { w.bank.InDashboard("pi_1", money) }, total, refund.ReasonRefused, refund.Refused,
		},
		"others gave half back, and half is left": {
			func(w *world) { w.bank.InDashboard("pi_1", money) }, half, order.ReasonSettled, refund.Succeeded,
		},
		"it was made, and the list lags": {
			func(w *world) {
				w.bank.Lag = time.Hour
				w.bank.KeyLife = 0
				w.bank.Fail(refundtest.Create, ordertest.LosesResponse)
				w.deliver(request(w.T, "R1", total), noFault)
				w.now = w.now.Add(16 * time.Minute)
			}, total, refund.ReasonUnexplained, refund.Open,
		},
		"it was made after another one failed, and the list shows neither": {
			func(w *world) {
				w.bank.InDashboard("pi_1", money)
				w.now = w.now.Add(day)
				w.bank.Return()
				w.bank.Lag = 14 * time.Hour
				w.bank.Fail(refundtest.Create, ordertest.StoresFailureAfterEffect)
				w.deliver(request(w.T, "R1", total), noFault)
				w.now = w.now.Add(16 * time.Minute)
			}, total, refund.ReasonUnexplained, refund.Open,
		},
		"it was made under a key that holds a failure, the list lags, and the charge is disputed": {
			func(w *world) {
				w.bank.Lag = time.Hour
				w.bank.Fail(refundtest.Create, ordertest.StoresFailureAfterEffect)
				w.deliver(request(w.T, "R1", total), noFault)
				w.now = w.now.Add(16 * time.Minute)
				w.bank.Dispute("pi_1")
			}, total, refund.ReasonUnexplained, refund.Open,
		},
		"it was made under a key that is forgotten, the list lags, and the charge is disputed": {
			func(w *world) {
				w.bank.Lag = 30 * time.Hour
				w.bank.Fail(refundtest.Create, ordertest.LosesResponse)
				w.deliver(request(w.T, "R1", total), noFault)
				w.now = w.now.Add(25 * time.Hour)
				w.bank.Dispute("pi_1")
			}, total, refund.ReasonUnknown, refund.Unknown,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			tt.before(w)
			got := w.deliver(request(t, "R1", tt.amount), noFault)
			if i, _ := w.account().Item("R1"); got.Reason != tt.want || i.Status != tt.status {
				t.Errorf("got %+v and %+v, want %s and %s", got, i, tt.want, tt.status)
			}
			w.now = w.now.Add(2 * time.Hour)
			w.deliver(request(t, "R1", tt.amount), noFault)
			if v := w.violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}

// Stripe takes no fraction of a currency that has none, at any time.
func TestAnAmountThatTheCurrencyDoesNotHaveIsRefused(t *testing.T) {
	for currency, want := range map[string]refund.Status{
		"isk": refund.Refused, "ugx": refund.Refused, "kwd": refund.Refused, "usd": refund.Succeeded, "jpy": refund.Succeeded,
	} {
		w := newWorldOf(t, func(d *order.Draft) {
			d.Currency, d.Lines[0].UnitAmount, d.Lines[1].UnitAmount = currency, 2000, 2000
		})
		got := w.deliver(request(t, "R1", 1505), noFault)
		if i, _ := w.account().Item("R1"); i.Status != want || got.Verdict != order.Done {
			t.Errorf("%s: got %+v and %+v, want %s", currency, got, i, want)
		}
		if a := w.account(); want == refund.Refused && a.Left() != 4000 {
			t.Errorf("%s: got %d left, want all of it", currency, a.Left())
		}
	}
}

// An order that nothing but a person can bring to payment is not waited for.
func TestARefundWaitsOnlyForAnOrderThatMayBePaid(t *testing.T) {
	for status, want := range map[order.Status]order.Verdict{
		order.Open: order.Redeliver, order.Pending: order.Redeliver, order.ActionRequired: order.Redeliver,
		order.Declined: order.Park, order.Canceled: order.Park, order.Refused: order.Park, order.OutOfStock: order.Park,
	} {
		w := newWorld(t)
		seen, _ := w.orders.Peek(orderID)
		now := seen
		now.Status = status
		w.orders.Replace(seen, now)
		got := w.deliver(request(t, "R1", 1), noFault)
		if got.Verdict != want || got.Reason != refund.ReasonNotCharged || got.Transient != (want == order.Redeliver) {
			t.Errorf("%s: got %+v, want %s", status, got, want)
		}
		if a := w.account(); len(a.Items) > 0 || len(w.bank.Refunds()) > 0 {
			t.Errorf("%s: got %+v, want no refund", status, a)
		}
	}
	got := newWorld(t).deliver(request(t, "R1", total+1), noFault)
	if got.Verdict != order.Park || got.Reason != refund.ReasonExceeds {
		t.Errorf("more than was charged: got %+v, want it parked", got)
	}
}

// A worker that is frozen before its Create thaws after its connection, its lease, or the
// keys are gone.
func TestAFrozenWorkerMakesNoSecondRefund(t *testing.T) {
	for _, frozen := range []time.Duration{31 * time.Second, time.Hour, 25 * time.Hour, 6 * day} {
		for _, amount := range []int64{half, total} {
			w := newWorld(t)
			r := request(t, "R1", amount)
			got := w.deliver(r, func(c refundtest.Call, do func() error) error {
				if c == refundtest.Create {
					began := w.now
					if w.now = w.now.Add(frozen); frozen > order.MaxLease {
						w.now = began.Add(order.MaxLease + time.Minute)
						w.deliver(r, noFault)
						w.now = began.Add(frozen)
					}
				}
				return do()
			})
			w.now = w.now.Add(time.Hour)
			w.deliver(r, noFault)
			if v := w.violations(); len(v) > 0 || w.made("R1") > 1 || got.Verdict == order.Park {
				t.Errorf("frozen for %v, %d: got %+v, made %d times; %v", frozen, amount, got, w.made("R1"), v)
			}
		}
	}
}

// wrongRefunds is a provider whose answers to Create are changed.
type wrongRefunds struct {
	refund.Provider

	change func(*refund.Refund)
}

func (p wrongRefunds) Open(ctx context.Context) refund.Session { //nolint:ireturn // as the port
	return wrongSession{p.Provider.Open(ctx), p.change}
}

type wrongSession struct {
	refund.Session

	change func(*refund.Refund)
}

func (s wrongSession) Create(ctx context.Context, o refund.CreateParams) (refund.Refund, error) {
	r, err := s.Session.Create(ctx, o)
	s.change(&r)
	return r, err
}

// A response that is about another refund is never recorded: the next delivery looks at
// the provider again.
func TestAWrongResponseIsNotRecorded(t *testing.T) {
	for field, change := range map[string]func(*refund.Refund){
		"scope":    func(r *refund.Refund) { r.Scope = "other" },
		"orderId":  func(r *refund.Refund) { r.OrderID = "OTHER" },
		"refundId": func(r *refund.Refund) { r.For = "R2" },
		"intent":   func(r *refund.Refund) { r.Intent = "pi_2" },
		"amount":   func(r *refund.Refund) { r.Total.Amount-- },
		"currency": func(r *refund.Refund) { r.Total.Currency = "eur" },
	} {
		t.Run(field, func(t *testing.T) {
			w := newWorld(t)
			got := w.process(w.store, wrongRefunds{w.bank, change}, request(t, "R1", half))
			_, mismatch := errors.AsType[*order.MismatchError](got.Err)
			if i, _ := w.account().Item("R1"); !mismatch || got.Verdict != order.Redeliver || i.Status != refund.Open || i.Owner == "" {
				t.Errorf("got %+v and %+v, want a MismatchError and the refund still claimed", got, i)
			}
			w.now = w.now.Add(time.Hour)
			if got := w.deliver(request(t, "R1", half), noFault); got.Reason != order.ReasonSettled || w.made("R1") != 1 {
				t.Errorf("later: got %+v, made %d times, want it settled", got, w.made("R1"))
			}
		})
	}
}

// A worker whose clock is 30 hours fast sends a request. A day later its key may be
// forgotten, whatever that clock said.
func TestTheAgeOfARequestIsMeasuredByTheProvidersClock(t *testing.T) {
	w := newWorld(t)
	r := request(t, "R1", half)
	w.bank.Fail(refundtest.Create, ordertest.StoresFailure)
	w.skew = 30 * time.Hour
	w.deliver(r, noFault)
	w.skew, w.now = 0, w.now.Add(25*time.Hour)
	got := w.deliver(r, noFault)
	w.bank.Complete()
	if got.Reason != refund.ReasonUnknown || w.made("R1") != 1 {
		t.Errorf("got %+v, made %d times, want it unknown and made once", got, w.made("R1"))
	}
}

// The time of a request is recorded before the request.
func TestAWorkerThatDiesAfterItsRequestLeavesItsTime(t *testing.T) {
	w := newWorld(t)
	r := request(t, "R1", half)
	w.bank.Fail(refundtest.Create, ordertest.StoresFailure)
	died := w.crashes(r, func(c refundtest.Call, do func() error) error {
		if err := do(); c != refundtest.Create {
			return err
		}
		panic(crash{})
	})
	w.now = w.now.Add(25 * time.Hour)
	got := w.deliver(r, noFault)
	w.bank.Complete()
	if !died || got.Reason != refund.ReasonUnknown || w.made("R1") != 1 {
		t.Errorf("got %+v, made %d times, want it unknown and made once", got, w.made("R1"))
	}
}

// The number of the key is recorded, so that the third attempt does not begin with the
// first key again, which holds a failure for a day.
func TestABigRefundGetsANewKeyForEachStoredFailure(t *testing.T) {
	w := newWorld(t)
	r := request(t, "R1", total)
	w.bank.Fail(refundtest.Create, ordertest.StoresFailure)
	w.deliver(r, noFault)
	w.now = w.now.Add(16 * time.Minute)
	second := true // Create of this delivery replays the first failure
	w.deliver(r, func(c refundtest.Call, do func() error) error {
		err := do()
		if c == refundtest.Create && second {
			second = false
			w.bank.Fail(refundtest.Create, ordertest.StoresFailure)
		}
		return err
	})
	w.now = w.now.Add(16 * time.Minute)
	got := w.deliver(r, noFault)
	if i, _ := w.account().Item("R1"); got.Reason != order.ReasonSettled || i.KeySeq != 3 || w.made("R1") != 1 {
		t.Errorf("got %+v and %+v, want it made with the third key", got, i)
	}
}

// The provider completes the request that it answered with a 500 just before it refuses
// the one with the new key.
func TestARefundThatIsMadeDuringAnAttemptIsNotRefused(t *testing.T) {
	w := newWorld(t)
	r := request(t, "R1", total)
	w.bank.Fail(refundtest.Create, ordertest.StoresFailure)
	w.deliver(r, noFault)
	w.now = w.now.Add(16 * time.Minute)
	creates := 0
	got := w.deliver(r, func(c refundtest.Call, do func() error) error {
		if c == refundtest.Create {
			if creates++; creates == 2 {
				w.bank.Complete()
			}
		}
		return do()
	})
	if i, _ := w.account().Item("R1"); got.Reason != order.ReasonSettled || i.Status != refund.Succeeded || w.made("R1") != 1 {
		t.Errorf("got %+v and %+v, want it succeeded", got, i)
	}
}

// refuses is the answer to a Create that the provider refuses without an explanation.
func refuses(c refundtest.Call, do func() error) error {
	if c != refundtest.Create {
		return do()
	}
	return &order.PaymentError{Kind: order.KindRefused, Code: "balance_insufficient", Err: errors.New("refused")}
}

// denied is the answer to a Create while the key lacks the permission to refund.
func denied(c refundtest.Call, do func() error) error {
	if c != refundtest.Create {
		return do()
	}
	return &order.PaymentError{Kind: order.KindMisconfigured, Err: errors.New("denied")}
}

// A request that was refused, or sent with a wrong key, made nothing and never will, so
// the time for repeating one does not run. A request that was lost before still counts.
func TestAWrongKeyDoesNotMakeARefundOld(t *testing.T) {
	for claim, tt := range map[string]struct {
		before  ordertest.Fault // of the first request
		answers refundtest.Interceptor
		reason  order.Reason // meanwhile
		want    order.Reason
	}{
		"no request was sent before":          {"", denied, order.ReasonMisconfigured, order.ReasonSettled},
		"a request was lost before":           {ordertest.LosesRequest, denied, "", refund.ReasonUnknown},
		"a request was turned away before":    {ordertest.ReturnsUnavailable, denied, "", refund.ReasonUnknown},
		"every request was refused":           {"", refuses, refund.ReasonUnexplained, order.ReasonSettled},
		"a request was lost, then refused":    {ordertest.LosesRequest, refuses, "", refund.ReasonUnknown},
		"a stored failure was answered first": {ordertest.StoresFailure, refuses, "", refund.ReasonUnknown},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t)
			r := request(t, "R1", half)
			if tt.before != "" {
				w.bank.Fail(refundtest.Create, tt.before)
				w.deliver(r, noFault)
			}
			for range 21 {
				w.now = w.now.Add(time.Hour)
				got := w.deliver(r, tt.answers)
				if tt.reason != "" && (got.Verdict != order.Redeliver || got.Reason != tt.reason) {
					t.Fatalf("got %+v, want it %s", got, tt.reason)
				}
			}
			w.now = w.now.Add(time.Hour)
			made := tt.want == order.ReasonSettled
			if got := w.deliver(r, noFault); got.Reason != tt.want || (w.made("R1") == 1) != made {
				t.Errorf("got %+v, made %d times, want %s", got, w.made("R1"), tt.want)
			}
			w.bank.Complete()
			if v := w.violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}

// An attempt whose Mark fails has sent nothing, so the next one need not wait for the
// lease to expire.
func TestAFailedMarkEndsTheClaim(t *testing.T) {
	throttled := errors.New("throttled")
	for name, after := range map[string]bool{"before its effect": false, "after its effect": true} {
		w := newWorld(t)
		w.deliver(request(t, "R1", half), func(c refundtest.Call, do func() error) error {
			if c != refundtest.Mark {
				return do()
			}
			if after {
				_ = do()
			}
			return throttled
		})
		if i, _ := w.account().Item("R1"); i.Owner != "" || !i.SentAt.IsZero() {
			t.Errorf("%s: got %+v, want no claim and no request", name, i)
		}
	}
}
