package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

// resolve runs `orders refund resolve` and returns what it printed.
func (w *till) resolve(r resolveRefund, typed string) (string, error) {
	var out strings.Builder
	r.Order = "ORD-1"
	d := resolver{
		shell:   shell{in: strings.NewReader(typed), out: &out, now: w.clock},
		records: w.claims, provider: w.bank, scope: scope,
	}
	err := d.resolve(w.Context(), r)
	return out.String(), err
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
			command: resolveRefund{Refund: id, NotMade: true}, typed: "ORD-1\n", err: errNotConfirmed.Error(), status: refund.Unknown,
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
			err: "only an unknown refund can be resolved: operator-1000 is succeeded, re_1", status: refund.Succeeded,
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
	if err == nil || err.Error() != "only an unknown refund can be resolved: operator-1000 is refused" {
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

// The function still works on an open refund, or will when its message comes back.
func TestResolveLeavesAnOpenRefundToItsMessage(t *testing.T) {
	t.Parallel()
	w := newTill(t, ordertest.Pays)
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1, Reason: "duplicate"})
	must(t, err)
	_, err = w.claims.Begin(t.Context(), r, order.Lease{Owner: "worker", From: noon(), Until: noon().Add(time.Minute)})
	must(t, err)
	_, err = w.resolve(resolveRefund{Refund: "R-1", NotMade: true, Yes: true}, "")
	if !errors.Is(err, errNotUnknown) || !strings.Contains(err.Error(), "redrive it from the dead-letter queue") {
		t.Errorf("got %v, want that its message comes back", err)
	}
}
