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

// Developer guide, "Error handling with DynamoDB": AccessDeniedException is not worth a
// retry. "IAM and DynamoDB transactions": the permissions of a transaction are those of
// its UpdateItem and PutItem.
func TestADeniedActionLeavesNoPartialWrite(t *testing.T) {
	t.Parallel()
	for action, tt := range map[string]struct {
		operations []string
		charges    int // while the action is denied
	}{
		"dynamodb:UpdateItem": {[]string{"UpdateItem", "TransactWriteItems"}, 0},
		// Of the event: the charge is made, and the next attempt finds it.
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
				t.Errorf("denied: got %+v, want it redelivered for %s, however often", got, order.ReasonStore)
			}
			if got.Err == nil || !strings.Contains(got.Err.Error(), "AccessDeniedException") ||
				strings.Contains(got.Err.Error(), "CUST987") {
				t.Errorf("denied: error = %v, want the code and nothing of the customer", got.Err)
			}
			if n := len(bank.Charges("O1")); n != tt.charges {
				t.Errorf("denied: %d charges, want %d", n, tt.charges)
			}
			if r, err := f.Load(t.Context(), "O1"); err == nil &&
				(r.Status != order.Open || len(r.Events) > 0) {
				t.Errorf("denied: got %+v, want an open order without events, or none", r)
			}

			f.Proxy.Heal()
			now = at(time.Hour)
			l := order.Lease{Owner: "second", From: now, Until: now.Add(time.Minute)}
			if got := p.Process(t.Context(), o, at(0), l); got.Verdict != order.Done || got.Status != order.Paid {
				t.Errorf("allowed again: got %+v, want it paid", got)
			}
			if r := f.loaded("O1"); len(bank.Charges("O1")) != 1 || r.Status != order.Paid ||
				len(r.Events) != 1 {
				t.Errorf(
					"allowed again: %d charges, %+v, want one, and one event",
					len(bank.Charges("O1")),
					r,
				)
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
					t.Errorf("error = %v, want %q first and %s, and nothing about the order", err, want, name)
				}
				if got := f.Proxy.Total(); got != 1 {
					t.Errorf("%d calls, want 1: the same credentials are refused again", got)
				}
				f.Proxy.Heal()
				after, afterErr := f.Load(t.Context(), "O1")
				if errors.Is(beforeErr, order.ErrNotFound) != errors.Is(afterErr, order.ErrNotFound) ||
					before.Status != after.Status || before.Seq != after.Seq ||
					before.Intent != after.Intent || before.Owner != after.Owner {
					t.Errorf(
						"got %+v, %v, want the row as it was: %+v, %v",
						after,
						afterErr,
						before,
						beforeErr,
					)
				}
			})
		}
	}
}

// answers is a table over HTTP in a function: one answer a call. It is safe for
// concurrent use.
type answers func(call int) *http.Response

func (a answers) store(calls *atomic.Int64) *dynamodb.Store {
	return dynamodb.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String("http://pretend.invalid"),
		HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
			response := a(int(calls.Add(1)))
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
	return respond(
		http.StatusInternalServerError,
		`{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}`,
	)
}

// A wrong clock makes signatures that DynamoDB refuses. The SDK learns the difference
// from the Date of the refusal and signs again; without a Date that is far off, the
// signature is wrong for another reason, and no retry helps.
func TestClockSkewCostsOneRetry(t *testing.T) {
	t.Parallel()
	const refused = `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`
	for claim, tt := range map[string]struct {
		date  string // of the refusal
		calls int64
		fails bool
	}{
		"the clock is years off":      {"Tue, 01 Jan 2030 00:00:00 GMT", 2, false},
		"the secret key is not right": {"", 1, true},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := answers(func(call int) *http.Response {
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
				t.Errorf(
					"%d calls, error %v, want %d calls, failed %v, and nothing about the order",
					calls.Load(),
					err,
					tt.calls,
					tt.fails,
				)
			}
		})
	}
}

// The SDK's bucket of retries holds 500 tokens, of which a retry costs 5: when many calls
// fail, it is empty, and a call that fails is not tried again, so that an outage is not
// made worse. What succeeds at its first try fills the bucket again.
func TestAnExhaustedRetryQuotaFailsAtOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var healthy atomic.Bool
	s := answers(func(int) *http.Response {
		if healthy.Load() {
			return respond(http.StatusOK, `{}`)
		}
		return failing()
	}).store(&calls)
	release := func() error {
		return s.Release(
			t.Context(),
			order.Claim{Order: ordertest.Order("O1"), Lease: lease("first")},
			order.ReasonUnavailable,
			at(1),
		)
	}
	var many sync.WaitGroup
	for range 40 { // of which each wants four retries
		many.Go(func() { _ = release() })
	}
	many.Wait()

	calls.Store(0)
	err := release()
	if err == nil || isDomain(err) || calls.Load() != 1 ||
		!strings.Contains(err.Error(), "retry quota exceeded") {
		t.Errorf("empty bucket: %d calls, error %v, want 1 and an error of the store", calls.Load(), err)
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
		t.Errorf("five tokens: %d calls, error %v, want one retry and an error", calls.Load(), err)
	}
}

// API reference, TransactWriteItems: a canceled transaction has a reason for each item.
// One without any says nothing about the order.
func TestACanceledTransactionWithoutReasonsIsAStoreError(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no list":       `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`,
		"an empty list": `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[]}`,
	} {
		var calls atomic.Int64
		s := answers(func(int) *http.Response { return respond(http.StatusBadRequest, body) }).store(&calls)
		c := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first")}
		if err := s.Finish(t.Context(), c, outcome(order.Paid), at(1)); err == nil || isDomain(err) ||
			calls.Load() != 1 {
			t.Errorf("%s: %d calls, error %v, want 1 and an error of the store", name, calls.Load(), err)
		}
	}
}
