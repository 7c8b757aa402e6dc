package dynamodb_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Developer guide, "Error handling with DynamoDB": AccessDeniedException must not be
// retried. "IAM and DynamoDB transactions": a transaction needs the permissions of its
// UpdateItem and PutItem.
func TestADeniedActionLeavesNoPartialWrite(t *testing.T) {
	t.Parallel()
	for action, tt := range map[string]struct {
		operations []string
		charges    int // while the action is denied
	}{
		"dynamodb:UpdateItem": {[]string{"UpdateItem", "TransactWriteItems"}, 0},
		// The event cannot be written: the order is charged, and the next attempt reads
		// that.
		"dynamodb:PutItem": {[]string{"TransactWriteItems"}, 1},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			for _, operation := range tt.operations {
				f.Proxy.Fail(dynamodbtest.Fault{Operation: operation, Kind: dynamodbtest.AccessDenied})
			}
			bank, now, o := &ordertest.Bank{Scope: "test"}, at(0), ordertest.Order("O1")
			p := order.Processor{
				Store: f.Store, Payments: bank, Scope: "test",
				Now: func() time.Time { return now }, ConfirmTime: time.Second,
			}

			got := p.Process(t.Context(), o, at(0), lease("first"))
			if got.Verdict != order.Redeliver || got.Reason != order.ReasonStore || !got.Transient {
				t.Errorf("denied: got %+v, want a transient redelivery for %s", got, order.ReasonStore)
			}
			if got.Err == nil || !strings.Contains(got.Err.Error(), "AccessDeniedException") ||
				strings.Contains(got.Err.Error(), "CUST987") {
				t.Errorf("denied: got error %v, want AccessDeniedException and no customer id", got.Err)
			}
			if n := len(bank.Charges("O1")); n != tt.charges {
				t.Errorf("denied: got %d charges, want %d", n, tt.charges)
			}
			if r, err := f.Load(t.Context(), "O1"); err == nil &&
				(r.Status != order.Open || len(r.Events) > 0) {
				t.Errorf("denied: got %+v, want an open record without events, or none", r)
			}

			f.Proxy.Heal()
			now = at(time.Hour)
			l := order.Lease{Owner: "second", From: now, Until: now.Add(time.Minute)}
			if got := p.Process(t.Context(), o, at(0), l); got.Verdict != order.Done || got.Status != order.Paid {
				t.Errorf("allowed again: got %+v, want done and paid", got)
			}
			if r := f.loaded("O1"); len(bank.Charges("O1")) != 1 || r.Status != order.Paid ||
				len(r.Events) != 1 {
				t.Errorf("allowed again: got charges %v and record %+v, want one charge and one event",
					bank.Charges("O1"), r)
			}
		})
	}
}

func TestRejectedCredentialsAreAStoreError(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]dynamodbtest.Kind{
		"AccessDeniedException": dynamodbtest.AccessDenied, "ExpiredTokenException": dynamodbtest.ExpiredToken,
	} {
		for method, ready := range calls() {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				f := open(t)
				do, _ := ready(f, "O1")
				before, beforeErr := f.Load(t.Context(), "O1")
				f.Proxy.Reset()
				f.Proxy.Fail(dynamodbtest.Fault{Kind: kind})
				err := do(t.Context())
				want := strings.ToLower(method) + ` order "O1": `
				if err == nil || isDomain(err) || !strings.HasPrefix(err.Error(), want) ||
					!strings.Contains(err.Error(), name) {
					t.Errorf("got error %v, want a store error with prefix %q and %s", err, want, name)
				}
				if got := f.Proxy.Total(); got != 1 {
					t.Errorf("got %d calls, want 1 without a retry", got)
				}
				f.Proxy.Heal()
				after, afterErr := f.Load(t.Context(), "O1")
				if errors.Is(beforeErr, order.ErrNotFound) != errors.Is(afterErr, order.ErrNotFound) ||
					before.Status != after.Status || before.Seq != after.Seq ||
					before.Intent != after.Intent || before.Owner != after.Owner {
					t.Errorf("got %+v, %v, want the record unchanged: %+v, %v", after, afterErr, before, beforeErr)
				}
			})
		}
	}
}

// DynamoDB rejects the signature of a wrong clock. The SDK computes the skew from the
// Date of the response and signs again. Without skew the signature is wrong for another
// reason, and the SDK does not retry.
func TestClockSkewCostsOneRetry(t *testing.T) {
	t.Parallel()
	const refused = `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`
	for name, tt := range map[string]struct {
		date  string // of the refusal
		calls int
		fails bool
	}{
		"the clock is years off":  {"Tue, 01 Jan 2030 00:00:00 GMT", 2, false},
		"the secret key is wrong": {"", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := &pretendTable{respond: func(call int, _ *http.Request) *http.Response {
				if call > 1 {
					return stored(t, http.StatusOK, "", openRow())
				}
				r := respond(http.StatusBadRequest, refused)
				r.Header.Set("Date", tt.date)
				return r
			}}
			err := openClaim().Release(t.Context(), newStore(table), order.ReasonUnavailable, at(1))
			if calls := len(table.asked); (err != nil) != tt.fails || isDomain(err) || calls != tt.calls {
				t.Errorf("got %d calls and error %v, want %d calls and a store error: %t", calls, err, tt.calls, tt.fails)
			}
		})
	}
}

// API reference, TransactWriteItems: a canceled transaction has a reason for each item.
// Without reasons, nothing is known about the order.
func TestACanceledTransactionWithoutReasonsIsAStoreError(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no list":       `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`,
		"an empty list": `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[]}`,
	} {
		table := alwaysResponds(http.StatusBadRequest, body)
		err := openClaim().Finish(t.Context(), newStore(table), outcome(order.Paid), at(1))
		if calls := len(table.asked); err == nil || isDomain(err) || calls != 1 {
			t.Errorf("%s: got %d calls and error %v, want 1 and a store error", name, calls, err)
		}
	}
}
