package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// world is a deployment in memory: send gives the order to a worker with a latency.
type world struct {
	store   ordertest.Memory
	bank    ordertest.Bank
	latency time.Duration
	out     strings.Builder
}

func newWorld() *world {
	return &world{bank: ordertest.Bank{Scope: scope}, latency: 2800 * time.Millisecond}
}

// probe has a worker that processes the order after the latency, unless it is stopped.
func (w *world) probe(o order.Order, stopped bool) probe {
	processor := &order.Processor{
		Claims: &w.store, Payments: &w.bank, Scope: scope, Now: time.Now, ConfirmTime: time.Second,
	}
	return probe{
		send: func(ctx context.Context, _ order.ID, _ string) error {
			if stopped {
				return nil
			}
			go func() {
				time.Sleep(w.latency)
				now := time.Now()
				lease := order.Lease{Owner: "w", From: now, Until: now.Add(time.Minute)}
				processor.Process(context.WithoutCancel(ctx), o, now, lease)
			}()
			return nil
		},
		load: w.store.Load, read: w.bank.Read, scope: scope, now: time.Now, every: 500 * time.Millisecond, out: &w.out,
	}
}

func orderWith(t *testing.T, card ordertest.Card) order.Order {
	t.Helper()
	d := ordertest.Draft("SMOKE-1")
	d.Payment.Method = ordertest.PaymentMethod(card)
	o, err := order.New(d)
	must(t, err)
	return o
}

func TestFollow(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card    ordertest.Card
		stopped bool
		mishap  ordertest.Fault
		err     string // "" for none
		printed []string
	}{
		"a paid order is shown with its charge": {
			card: ordertest.Pays, printed: []string{"  0.0 s  no row yet\n", "  3.0 s  paid\n", "row     paid, ", "charge  succeeded, "},
		},
		"a declined order is an error that says why": {
			card: ordertest.Declines, err: "status declined, insufficient_funds: want paid",
			printed: []string{"row     declined, ", "charge  needs_method, "},
		},
		"an order that is never processed is an error after the limit": {
			card: ordertest.Pays, stopped: true, err: "not settled after 1m0s: no row yet: check the function's log",
		},
		"an order that stays open is an error with the row's last error": {
			card: ordertest.Pays, mishap: ordertest.ReturnsUnavailable,
			err:     "not settled after 1m0s: open, attempt 1, no intent bound, last error provider_unavailable: see docs/reference/failures.md",
			printed: []string{"  3.0 s  open, attempt 1"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, o := newWorld(), orderWith(t, tt.card)
				if tt.mishap != "" {
					w.bank.Fail(ordertest.Prepare, tt.mishap)
				}
				err := w.probe(o, tt.stopped).follow(t.Context(), o, "{}", time.Minute)
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error = %v, want %q", err, tt.err)
				}
				for _, want := range tt.printed {
					if !strings.Contains(w.out.String(), want) {
						t.Errorf("printed\n%s\nwant %q in it", w.out.String(), want)
					}
				}
			})
		})
	}
}

func TestFollowReturnsTheErrorOfEachCall(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for claim, breaks := range map[string]func(*probe){
		"the queue refuses the message": func(p *probe) { p.send = func(context.Context, order.ID, string) error { return broken } },
		"the table cannot be read": func(p *probe) {
			p.load = func(context.Context, order.ID) (r order.Record, _ error) { return r, broken }
		},
		"Stripe cannot be read": func(p *probe) {
			p.read = func(context.Context, order.IntentID) (i order.Intent, _ error) { return i, broken }
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := orderWith(t, ordertest.Pays)
				p := newWorld().probe(o, false)
				breaks(&p)
				if err := p.follow(t.Context(), o, "{}", time.Minute); !errors.Is(err, broken) {
					t.Errorf("error = %v, want %v", err, broken)
				}
				time.Sleep(time.Minute) // the worker ends
			})
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	o := orderWith(t, ordertest.Pays)
	for claim, change := range map[string]func(*order.Record, *order.Intent){
		"a row with a different amount":    func(r *order.Record, _ *order.Intent) { r.Total.Amount++ },
		"a charge of a different amount":   func(_ *order.Record, i *order.Intent) { i.Total.Amount++ },
		"a charge in a different currency": func(_ *order.Record, i *order.Intent) { i.Total.Currency = "jpy" },
		"an intent that is not succeeded":  func(_ *order.Record, i *order.Intent) { i.State = order.NeedsConfirmation },
		"an intent of a different order":   func(_ *order.Record, i *order.Intent) { i.OrderID = "SMOKE-2" },
		"an intent of a different scope":   func(_ *order.Record, i *order.Intent) { i.Scope = "other" },
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			r := order.Record{OrderID: o.ID(), Status: order.Paid, Total: o.Total(), Intent: "pi_1"}
			i := order.Intent{ID: "pi_1", State: order.Succeeded, Total: o.Total(), OrderID: o.ID(), Scope: scope}
			p := probe{scope: scope}
			if err := p.compare(o, r, i); err != nil {
				t.Fatalf("a paid order: %v", err)
			}
			change(&r, &i)
			if err := p.compare(o, r, i); err == nil {
				t.Error("got no error")
			}
		})
	}
}
