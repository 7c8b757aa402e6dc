package dynamodb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

const (
	intent      order.IntentID = "pi_pretend"
	traceparent order.Trace    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// prepared returns the intent that Bind gets.
func prepared() order.Intent {
	return order.Intent{ID: intent, State: order.NeedsConfirmation, Mode: order.TestMode}
}

func at(d time.Duration) time.Time { return time.UnixMilli(1_767_225_600_123).UTC().Add(d) }

func lease(owner string) order.Lease {
	return order.Lease{Owner: owner, From: at(0), Until: at(time.Minute), Trace: traceparent}
}

func asPaid() order.Outcome { return order.Outcome{Status: order.Paid, Intent: intent} }

// fixture is a store behind a proxy, with setup steps that fail the test on an error.
type fixture struct {
	*testing.T
	*dynamodbtest.Harness
	*dynamodb.Store

	stocked bool // the store tracks stock
}

func open(t *testing.T) fixture {
	t.Helper()
	h := dynamodbtest.Open(t)
	h.Config.RetryMaxAttempts = 1 // the store must set its own number of attempts
	return fixture{T: t, Harness: h, Store: dynamodb.New(h.Config, h.Table)}
}

func (f fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f fixture) claimed(id order.ID) order.Claim {
	f.Helper()
	o, quantities := ordertest.Order(id), order.Quantities(nil)
	if f.stocked {
		quantities = o.Quantities()
	}
	c, err := order.Begin(f.Context(), f, o, lease("first"), quantities)
	f.must(err)
	return c
}

func (f fixture) bound(id order.ID) order.Claim {
	f.Helper()
	c := f.claimed(id)
	f.must(c.Bind(f.Context(), f, prepared(), at(1)))
	c.Intent = intent
	return c
}

func (f fixture) settled(id order.ID) order.Claim {
	f.Helper()
	c := f.bound(id)
	f.must(c.Finish(f.Context(), f, asPaid(), at(time.Second)))
	return c
}

func (f fixture) loaded(id order.ID) order.Record {
	f.Helper()
	r, err := f.Load(f.Context(), id)
	f.must(err)
	return r
}

// calls maps the calls that an order makes, a write, a transaction and a read, to
// functions that prepare an order for a call and return the call. What a claim does else
// is one of the three.
func calls() map[string]func(f fixture, id order.ID) (call func(context.Context) error, after order.Status) {
	type call = func(context.Context) error
	return map[string]func(fixture, order.ID) (call, order.Status){
		"Begin": func(f fixture, id order.ID) (call, order.Status) {
			return func(ctx context.Context) error {
				c, err := order.Begin(ctx, f, ordertest.Order(id), lease("first"), nil)
				if err == nil && c.Attempt != 1 {
					err = fmt.Errorf("attempt %d, want 1", c.Attempt)
				}
				return err
			}, order.Open
		},
		"Finish": func(f fixture, id order.ID) (call, order.Status) {
			c := f.bound(id)
			return func(ctx context.Context) error { return c.Finish(ctx, f, asPaid(), at(2)) }, order.Paid
		},
		"Load": func(f fixture, id order.ID) (call, order.Status) {
			f.bound(id)
			return func(ctx context.Context) error { _, err := f.Load(ctx, id); return err }, order.Open
		},
	}
}

func TestTransientErrors(t *testing.T) {
	t.Parallel()
	kinds := map[string]dynamodbtest.Kind{
		"capacity":                dynamodbtest.ThroughputExceeded,
		"throttled":               dynamodbtest.Throttled,
		"account quota":           dynamodbtest.RequestLimitExceeded,
		"internal error":          dynamodbtest.InternalError,
		"internal error after":    dynamodbtest.InternalErrorAfter,
		"transaction conflict":    dynamodbtest.TransactionConflict,
		"transaction in progress": dynamodbtest.TransactionInProgress,
		"request lost":            dynamodbtest.LoseBefore,
		"response lost":           dynamodbtest.LoseAfter,
	}
	for method, ready := range calls() {
		t.Run(method+" succeeds on the second attempt with one effect", func(t *testing.T) {
			t.Parallel()
			f := open(t)
			for name, kind := range kinds {
				id := order.ID(strings.ReplaceAll(name, " ", "-"))
				do, want := ready(f, id)
				f.Proxy.Reset()
				f.Proxy.Fail(dynamodbtest.Fault{Kind: kind, Times: 1})
				err := do(t.Context())
				f.Proxy.Heal()
				wantCalls := map[string]int{}
				for operation := range f.Proxy.Counts() {
					wantCalls[operation] = 1
					if kind.Possible(operation) {
						wantCalls[operation] = 2
					}
				}
				diff := cmp.Diff(wantCalls, f.Proxy.Counts())
				if err != nil || diff != "" || len(wantCalls) != 1 {
					t.Errorf("%s: got error %v, want none; calls of one operation (-want +got):\n%s", name, err, diff)
				}
				r := f.loaded(id)
				if r.Status != want || r.Attempt != 1 || len(r.Events) != r.Seq {
					t.Errorf("%s: got %+v, want %s at attempt 1 with one event per transition", name, r, want)
				}
			}
		})
	}
}

// Developer guide, "Error handling with DynamoDB": AccessDeniedException must not be
// retried.
func TestPersistentErrors(t *testing.T) {
	t.Parallel()
	// Writes fail with a transaction conflict, which reads cannot have, and reads with
	// throttling.
	busy := []dynamodbtest.Kind{dynamodbtest.TransactionConflict, dynamodbtest.Throttled}
	for method, ready := range calls() {
		for end, tt := range map[string]struct {
			kinds           []dynamodbtest.Kind
			cancelAt, calls int
			want            string
		}{
			"after five attempts":           {busy, 0, 5, ""},
			"with its context":              {busy, 2, 2, context.Canceled.Error()},
			"at once if it is denied":       {[]dynamodbtest.Kind{dynamodbtest.AccessDenied}, 0, 1, "AccessDeniedException"},
			"at once with an expired token": {[]dynamodbtest.Kind{dynamodbtest.ExpiredToken}, 0, 1, "ExpiredTokenException"},
		} {
			t.Run(method+" gives up "+end, func(t *testing.T) {
				t.Parallel()
				f := open(t)
				do, _ := ready(f, "O1")
				f.Proxy.Reset()
				for _, kind := range tt.kinds {
					f.Proxy.Fail(dynamodbtest.Fault{Kind: kind})
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f.Proxy.Before(func(c dynamodbtest.Call) {
					if c.Number == tt.cancelAt {
						cancel()
					}
				})
				err := do(ctx)
				if got := f.Proxy.Total(); err == nil || isDomain(err) || got != tt.calls {
					t.Fatalf("got %d calls and error %v, want %d and a store error", got, err, tt.calls)
				}
				prefix := strings.ToLower(method) + ` order "O1": `
				if text := err.Error(); !strings.HasPrefix(text, prefix) || !strings.Contains(text, tt.want) {
					t.Errorf("got error %v, want one that begins with %s and names %q", err, prefix, tt.want)
				}
			})
		}
	}
}

// isDomain reports whether err is an error of package order, and not one of the store.
func isDomain(err error) bool {
	for _, sentinel := range []error{
		order.ErrConflict, order.ErrClaimLost, order.ErrStale, order.ErrNotFound, order.ErrUnknownVersion,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return errors.As(err, new(*order.SettledError)) || errors.As(err, new(*order.InProgressError)) ||
		errors.As(err, new(*order.TransitionError))
}

func TestARejectedCallCostsOneRequest(t *testing.T) {
	t.Parallel()
	f := open(t)
	paid, other := f.settled("PAID"), f.bound("OPEN")
	stale := f.loaded("OPEN")
	stale.Seq++
	taken := order.Lease{Owner: "other", From: at(time.Hour), Until: at(70 * time.Minute)}
	_, err := order.Begin(t.Context(), f, other.Order, taken, nil)
	f.must(err)
	begin := func(o order.Order) error {
		_, err := order.Begin(t.Context(), f, o, order.Lease{Owner: "second", From: taken.From, Until: taken.Until}, nil)
		return err
	}
	for name, do := range map[string]func() error{
		"a duplicate of a settled order": func() error { return begin(paid.Order) },
		"begin under a running lease":    func() error { return begin(other.Order) },
		"finish by another owner":        func() error { return other.Finish(t.Context(), f, asPaid(), at(2)) },
		"settle of a stale record":       func() error { return order.Settle(t.Context(), f, stale, asPaid(), at(2)) },
	} {
		f.Proxy.Reset()
		err := do()
		if got := f.Proxy.Total(); !isDomain(err) || got != 1 {
			t.Errorf("%s: got %d calls and error %v, want 1 and a domain error", name, got, err)
		}
		for _, private := range []string{"CUST987", "cus_", "pm_"} {
			if strings.Contains(err.Error(), private) {
				t.Errorf("%s: got error %q, want one without %q", name, err, private)
			}
		}
	}
}

func TestLoadIsConsistent(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.claimed("O1")
	f.Proxy.Before(func(c dynamodbtest.Call) {
		if !bytes.Contains(c.Request, []byte(`"ConsistentRead":true`)) {
			t.Errorf("got the read %s, want a consistent one", c.Request)
		}
	})
	f.loaded("O1")
	if _, err := refundtable.New(f.Store).Load(t.Context(), "O1"); err != nil {
		t.Errorf("account: got %v, want a consistent read", err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	f := open(t)
	ordertest.TestStore(t, func(*testing.T) order.Store { return f.Store })
}
