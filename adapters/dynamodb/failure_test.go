package dynamodb_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/dynamodb"
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
				Claims: f.Store, Payments: bank, Scope: "test",
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

// responses is a DynamoDB endpoint as a function of the call number. It is safe for
// concurrent use.
type responses func(call int) *http.Response

func (f responses) store(calls *atomic.Int64) *dynamodb.Store {
	return dynamodb.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String("http://pretend.invalid"),
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			response := f(int(calls.Add(1)))
			response.Request = r
			return response, nil
		}),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "PRETEND", SecretAccessKey: "pretend"}, nil
		}),
	}, "orders")
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

func respond(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
	}
}

func failing() *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`
	return respond(http.StatusInternalServerError, body)
}

// DynamoDB rejects the signature of a wrong clock. The SDK computes the skew from the
// Date of the response and signs again. Without skew the signature is wrong for another
// reason, and the SDK does not retry.
func TestClockSkewCostsOneRetry(t *testing.T) {
	t.Parallel()
	const refused = `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`
	for name, tt := range map[string]struct {
		date  string // of the refusal
		calls int64
		fails bool
	}{
		"the clock is years off":  {"Tue, 01 Jan 2030 00:00:00 GMT", 2, false},
		"the secret key is wrong": {"", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := responses(func(call int) *http.Response {
				if call > 1 {
					return respond(http.StatusOK, `{}`)
				}
				r := respond(http.StatusBadRequest, refused)
				r.Header.Set("Date", tt.date)
				return r
			}).store(&calls)
			c := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first")}
			err := s.Release(t.Context(), c, order.ReasonUnavailable, at(1))
			if (err != nil) != tt.fails || isDomain(err) || calls.Load() != tt.calls {
				t.Errorf("got %d calls and error %v, want %d calls and a store error: %t",
					calls.Load(), err, tt.calls, tt.fails)
			}
		})
	}
}

// The SDK's retry quota holds 500 tokens, and a retry costs 5. When many calls fail, the
// quota is exhausted and a failed call is not retried, so that retries do not prolong an
// outage. A call that succeeds at its first attempt returns a token.
func TestAnExhaustedRetryQuotaFailsAtOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var healthy atomic.Bool
	s := responses(func(int) *http.Response {
		if healthy.Load() {
			return respond(http.StatusOK, `{}`)
		}
		return failing()
	}).store(&calls)
	release := func() error {
		c := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first")}
		return s.Release(t.Context(), c, order.ReasonUnavailable, at(1))
	}
	var many sync.WaitGroup
	for range 40 { // with four retries each
		many.Go(func() { _ = release() })
	}
	many.Wait()

	calls.Store(0)
	err := release()
	if err == nil || isDomain(err) || calls.Load() != 1 ||
		!strings.Contains(err.Error(), "retry quota exceeded") {
		t.Errorf("exhausted quota: got %d calls and error %v, want 1 and a store error", calls.Load(), err)
	}
	healthy.Store(true)
	for range 5 {
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	healthy.Store(false)
	calls.Store(0)
	if err := release(); err == nil || calls.Load() != 2 {
		t.Errorf("five tokens: got %d calls and error %v, want one retry and an error", calls.Load(), err)
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
		var calls atomic.Int64
		s := responses(func(int) *http.Response { return respond(http.StatusBadRequest, body) }).store(&calls)
		c := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first")}
		if err := s.Finish(t.Context(), c, outcome(order.Paid), at(1)); err == nil || isDomain(err) ||
			calls.Load() != 1 {
			t.Errorf("%s: got %d calls and error %v, want 1 and a store error", name, calls.Load(), err)
		}
	}
}
