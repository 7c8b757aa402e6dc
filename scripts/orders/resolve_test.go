package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/orders/shell"
)

// resolve runs `orders refund resolve` and returns what it printed.
func (w *till) resolve(r resolveRefund, typed string) (string, error) {
	var out strings.Builder
	r.Order = "ORD-1"
	d := w.resolver(&out)
	d.In = strings.NewReader(typed)
	err := d.resolve(w.Context(), r)
	return out.String(), err
}

func (w *till) resolver(out io.Writer) resolver {
	return resolver{Shell: shell.Shell{Out: out, Now: w.clock}, store: w.claims, provider: w.bank, scope: scope}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	const id = "operator-1000"
	const warning = "WARNING: a request for 10.00 USD was sent at 2026-11-21T12:00:00Z and lost. " +
		"Stripe may still execute it, even days later.\n"
	usd := func(amount int64) order.Money { return order.Money{Amount: amount, Currency: "usd"} }
	for claim, tt := range map[string]struct {
		arrange func(*till)
		command resolveRefund
		typed   string
		printed string
		err     string // "" for none
		status  refund.Status
	}{
		"not made, confirmed": {
			command: resolveRefund{Refund: id, NotMade: true}, typed: id + "\n", printed: warning, status: refund.Refused,
		},
		"not made, in a script": {
			command: resolveRefund{Refund: id, NotMade: true, Yes: true},
			printed: "resolved: refund operator-1000 is refused\n", status: refund.Refused,
		},
		"not made, with the order id instead of the refund id": {
			command: resolveRefund{Refund: id, NotMade: true}, typed: "ORD-1\n", err: shell.ErrNotConfirmed.Error(), status: refund.Unknown,
		},
		"not made, but Stripe has made it": {
			arrange: func(w *till) { w.bank.Complete() }, command: resolveRefund{Refund: id, NotMade: true, Yes: true},
			printed: "at Stripe  re_1, 10.00 USD, succeeded, of operator-1000\n",
			err:     "Stripe contradicts it: re_1 of it is succeeded", status: refund.Succeeded,
		},
		"not made, and somebody gave it back in the Dashboard": {
			arrange: func(w *till) { w.bank.InDashboard("pi_1", usd(1000)) }, command: resolveRefund{Refund: id, NotMade: true, Yes: true},
			printed: "at Stripe  re_1, 10.00 USD, succeeded, of others\n", status: refund.Refused,
		},
		"made, and Stripe lists it": {
			arrange: func(w *till) { w.bank.Complete() }, command: resolveRefund{Refund: id, Made: "re_1"},
			printed: "nothing to resolve: refund operator-1000 is succeeded at Stripe, as you say\n", status: refund.Succeeded,
		},
		"made, and Stripe's list lacks it": {
			arrange: func(w *till) { w.bank.Complete(); w.bank.Lag = time.Hour }, command: resolveRefund{Refund: id, Made: "re_1"}, typed: id,
			printed: "at Stripe  no refund\n", status: refund.Succeeded,
		},
		"made, but under another id": {
			arrange: func(w *till) { w.bank.Complete() }, command: resolveRefund{Refund: id, Made: "re_2", Yes: true},
			err: "for a day, ends so: operator-1000 is succeeded, re_1", status: refund.Succeeded,
		},
		"made, but that one is another's": {
			arrange: func(w *till) { w.bank.InDashboard("pi_1", usd(1000)) }, command: resolveRefund{Refund: id, Made: "re_1", Yes: true},
			err: `Stripe contradicts it: re_1: intent pi_1: refund scope is "", want "test"`, status: refund.Unknown,
		},
		"made, but Stripe does not know it": {
			command: resolveRefund{Refund: id, Made: "re_9", Yes: true}, err: "misconfigured", status: refund.Unknown,
		},
		"another refund": {
			command: resolveRefund{Refund: "R-2", NotMade: true, Yes: true}, err: errNoRefund.Error(), status: refund.Unknown,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newTill(t, ordertest.Pays)
			w.lose()
			if tt.arrange != nil {
				tt.arrange(w)
			}
			printed, err := w.resolve(tt.command, tt.typed)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if !strings.Contains(printed, tt.printed) {
				t.Errorf("printed\n%s\nwant %q in it", printed, tt.printed)
			}
			a, err := w.claims.Account(t.Context(), "ORD-1")
			must(t, err)
			if i, _ := a.Item(id); i.Status != tt.status || i.Status == refund.Refused && i.Failure != resolvedByOperator {
				t.Errorf("got %+v, want it %s", i, tt.status)
			}
		})
	}
}

// A refund that is not unknown is left alone, also by the right words.
func TestResolveLeavesASettledRefundAlone(t *testing.T) {
	t.Parallel()
	w := newTill(t, ordertest.Pays)
	w.bank.Dispute("pi_1")
	if _, err := w.run(makeRefund{Amount: 1000, Yes: true}, ""); err == nil {
		t.Fatal("got no error, want the refund refused")
	}
	_, err := w.resolve(resolveRefund{Refund: "operator-1000", NotMade: true, Yes: true}, "")
	if err == nil || !strings.HasSuffix(err.Error(), "for a day, ends so: operator-1000 is refused") {
		t.Errorf("got error %v, want that the refund is refused", err)
	}
}

// The amount of a refund that was not made is free for another one.
func TestAResolvedRefundFreesItsAmount(t *testing.T) {
	t.Parallel()
	w := newTill(t, ordertest.Pays)
	w.lose()
	all := makeRefund{Amount: 3998, Yes: true}
	if _, err := w.run(all, ""); err == nil {
		t.Error("got no error, want the amount reserved")
	}
	_, err := w.resolve(resolveRefund{Refund: "operator-1000", NotMade: true, Yes: true}, "")
	must(t, err)
	if _, err := w.run(all, ""); err != nil {
		t.Errorf("got error %v, want all given back", err)
	}
}

// begin claims refund R-1 of 0.01 USD, as a worker does that dies.
func (w *till) begin() refund.Claim {
	w.Helper()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1, Reason: "duplicate"})
	must(w.T, err)
	c, err := w.claims.Begin(w.Context(), r, order.Lease{Owner: w.now.String(), From: w.now, Until: w.now.Add(time.Minute)})
	must(w.T, err)
	return c
}

// The function still works on an open refund, or will when its message comes back.
func TestResolveLeavesAnOpenRefundToItsMessage(t *testing.T) {
	t.Parallel()
	w := newTill(t, ordertest.Pays)
	w.begin()
	w.now = w.now.Add(24*time.Hour - time.Second)
	_, err := w.resolve(resolveRefund{Refund: "R-1", NotMade: true, Yes: true}, "")
	if !errors.Is(err, errNotUnknown) || !strings.Contains(err.Error(), "redrive it from the dead-letter queue") {
		t.Errorf("got %v, want that its message comes back", err)
	}
}

// The message of an open refund is gone: nobody else can end it.
func TestResolveEndsAnAbandonedRefund(t *testing.T) {
	t.Parallel()
	notMade := resolveRefund{Refund: "R-1", NotMade: true, Yes: true}
	for claim, tt := range map[string]struct {
		arrange func(*till) refund.Claim
		command resolveRefund
		printed string
		err     error
		status  refund.Status
	}{
		"no request was sent": {
			arrange: (*till).begin, command: notMade, status: refund.Refused,
			printed: "Stripe was asked for nothing, or refused each time: it was not made.\n",
		},
		"a request was lost": {
			arrange: func(w *till) refund.Claim {
				c, err := w.claims.Mark(w.Context(), w.begin(), 1, w.now)
				must(w.T, err)
				return c
			},
			command: notMade, printed: "WARNING: a request for 0.01 USD was sent at 2026-11-21T", status: refund.Refused,
		},
		"it was made, and Stripe's list lacks it": {
			arrange: func(w *till) refund.Claim {
				w.bank.Fail(refundtest.Create, ordertest.LosesResponse)
				w.bank.Lag = 48 * time.Hour
				c := w.begin()
				w.now = w.now.Add(time.Hour)
				w.deliver(w.Context(), c.Request)
				return c
			},
			command: resolveRefund{Refund: "R-1", Made: "re_1", Yes: true}, printed: "resolved: refund R-1 is succeeded", status: refund.Succeeded,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newTill(t, ordertest.Pays)
			c := tt.arrange(w)
			w.now = w.now.Add(25 * time.Hour)
			printed, err := w.resolve(tt.command, "")
			if !errors.Is(err, tt.err) || !strings.Contains(printed, tt.printed) {
				t.Errorf("got error %v, want %v, and printed\n%s\nwant %q in it", err, tt.err, printed, tt.printed)
			}
			a, err := w.claims.Account(t.Context(), "ORD-1")
			must(t, err)
			if i, _ := a.Item("R-1"); i.Status != tt.status {
				t.Errorf("got %+v, want it %s", i, tt.status)
			}
			if _, err := w.claims.Mark(t.Context(), c, 1, w.now); !errors.Is(err, order.ErrClaimLost) {
				t.Errorf("a frozen worker marks: got %v, want %v", err, order.ErrClaimLost)
			}
		})
	}
}

// arriving is the input of a person during whose thought the message comes back.
type arriving struct {
	io.Reader

	message func()
}

func (a arriving) Read(b []byte) (int, error) {
	a.message()
	return a.Reader.Read(b)
}

// A worker may have sent a request since the person saw the refund, so the decision is
// out of date, also when the worker's lease has ended.
func TestResolveEndsNoRefundThatAWorkerTookUpMeanwhile(t *testing.T) {
	t.Parallel()
	for later, want := range map[time.Duration]error{0: nil, time.Hour: order.ErrStale} {
		w := newTill(t, ordertest.Pays)
		w.begin()
		w.now = w.now.Add(25 * time.Hour)
		d := w.resolver(new(strings.Builder))
		d.In = arriving{strings.NewReader("R-1\n"), func() { w.begin(); w.now = w.now.Add(later) }}
		err := d.resolve(t.Context(), resolveRefund{Order: "ORD-1", Refund: "R-1", NotMade: true})
		_, running := errors.AsType[*order.InProgressError](err)
		if running != (want == nil) || !running && !errors.Is(err, want) {
			t.Errorf("after %v: got %v, want it in progress, or %v", later, err, want)
		}
		a, err := w.claims.Account(t.Context(), "ORD-1")
		must(t, err)
		if i, _ := a.Item("R-1"); i.Status != refund.Open {
			t.Errorf("after %v: got %+v, want it open", later, i)
		}
	}
}

// Stripe's list catches up between the two looks of the command.
func TestResolveIsContradictedByWhateverStripeHasOfTheRefund(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		takes bool
		later refund.Status // of a pending one
		want  refund.Status
	}{{false, "", refund.Succeeded}, {true, "", refund.Pending}, {true, refund.Failed, refund.Failed}} {
		w := newTill(t, ordertest.Pays)
		w.lose()
		w.bank.Takes = tt.takes
		w.bank.Complete()
		if tt.later != "" {
			w.bank.Settle(tt.later)
		}
		w.bank.Lag = time.Hour
		d := w.resolver(new(strings.Builder))
		d.provider = refundtest.Intercepted{Provider: w.bank, Intercept: func(_ refundtest.Call, do func() error) error {
			defer func() { w.bank.Lag = 0 }()
			return do()
		}}
		err := d.resolve(t.Context(), resolveRefund{Order: "ORD-1", Refund: "operator-1000", NotMade: true, Yes: true})
		if !errors.Is(err, errContradicted) || !strings.Contains(err.Error(), "re_1 of it is "+string(tt.want)) {
			t.Errorf("%s: got %v, want that Stripe contradicts it", tt.want, err)
		}
		if a, err := w.claims.Account(t.Context(), "ORD-1"); err != nil || a.Items[0].Status != refund.Unknown {
			t.Errorf("%s: got %+v, %v, want it unknown", tt.want, a, err)
		}
	}
}
