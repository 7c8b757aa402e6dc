package dynamodb_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// TestTransientErrors has what a table can be made to answer; these are the others.
func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	canceled := func(codes ...string) error {
		reasons := make([]types.CancellationReason, len(codes))
		for i, code := range codes {
			reasons[i].Code = aws.String(code)
		}
		return fmt.Errorf("wrapped: %w", &types.TransactionCanceledException{CancellationReasons: reasons})
	}
	retryer := dynamodb.Retryer()
	for claim, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a conflict inside a transaction":              {canceled("None", "TransactionConflict"), true},
		"a failed condition and a conflict":            {canceled("TransactionConflict", "ConditionalCheckFailed"), false},
		"a request that is wrong inside a transaction": {canceled("ValidationError", "None"), false},
		"another parameter under the token":            {&types.IdempotentParameterMismatchException{}, false},
		"no such table":                                {&types.ResourceNotFoundException{}, false},
	} {
		if got := retryer.IsErrorRetryable(tt.err); got != tt.want {
			t.Errorf("%s: IsErrorRetryable(%v) = %t, want %t", claim, tt.err, got, tt.want)
		}
	}
}

// pretendTable responds to each call by its number, from 1; nil is a lost connection. It
// records when calls arrive. It is not safe for concurrent use.
type pretendTable struct {
	respond  func(call int) *http.Response
	arrivals []time.Time
}

func (p *pretendTable) Do(r *http.Request) (*http.Response, error) {
	p.arrivals = append(p.arrivals, time.Now()) //nolint:forbidigo // the clock of the bubble
	response := p.respond(len(p.arrivals))
	if response == nil {
		return nil, io.ErrUnexpectedEOF
	}
	response.Request = r
	return response, nil
}

func alwaysResponds(status int, body string) *pretendTable {
	return &pretendTable{respond: func(int) *http.Response { return respond(status, body) }}
}

func respond(status int, body string) *http.Response {
	sum := fmt.Sprint(crc32.ChecksumIEEE([]byte(body)))
	return &http.Response{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {sum}},
	}
}

const unavailable = `{"__type":"ServiceUnavailable"}`

// The SDK's defaults change with AWS_NEW_RETRIES_2026. The retries must not.
func TestTheSDKsDefaultsDoNotChangeTheRetries(t *testing.T) {
	const calls = 20
	const ms = time.Millisecond
	maxDelays := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms}
	for failure, table := range map[string]*pretendTable{
		"unavailable":          alwaysResponds(http.StatusServiceUnavailable, unavailable),
		"throttled":            alwaysResponds(http.StatusBadRequest, `{"__type":"ProvisionedThroughputExceededException"}`),
		"transaction conflict": alwaysResponds(http.StatusBadRequest, `{"__type":"TransactionConflictException"}`),
		"connection lost":      {respond: func(int) *http.Response { return nil }},
	} {
		for _, newRetries := range []string{"false", "true"} {
			t.Run(failure+", AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
				t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
				synctest.Test(t, func(t *testing.T) {
					store := newStore(table)
					longest := make([]time.Duration, len(maxDelays))
					for range calls {
						table.arrivals = nil
						if _, err := store.Load(t.Context(), "O1"); err == nil {
							t.Fatal("got no error of a table that fails")
						}
						if got, want := len(table.arrivals), 5; got != want {
							t.Fatalf("attempts of one call = %d, want %d", got, want)
						}
						for i := range maxDelays {
							longest[i] = max(longest[i], table.arrivals[i+1].Sub(table.arrivals[i]))
						}
					}
					for i, most := range maxDelays {
						if longest[i] > most || longest[i] < most/8 {
							t.Errorf("longest delay %d of %d calls = %v, want at most %v and at least an eighth of it",
								i+1, calls, longest[i], most)
						}
					}
				})
			})
		}
	}
}

// The SDK's retry quota holds 500 tokens, and a retry costs 5. When many calls fail, the
// quota is exhausted and a failed call is not retried, so that retries do not prolong an
// outage. A call that succeeds at its first attempt returns a token.
func TestAnOutageLeavesAHundredRetriesAndThenOneAttemptForEachCall(t *testing.T) {
	const calls = 40
	for _, newRetries := range []string{"false", "true"} {
		t.Run("AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
			t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
			synctest.Test(t, func(t *testing.T) {
				table := alwaysResponds(http.StatusServiceUnavailable, unavailable)
				outage, store := table.respond, newStore(table)
				release := func() error {
					return openClaim().Release(t.Context(), store, order.ReasonUnavailable, at(1))
				}
				var err error
				for range calls {
					err = release()
				}
				if got, want := len(table.arrivals), calls+100; got != want {
					t.Errorf("attempts of %d calls = %d, want %d", calls, got, want)
				}
				if err == nil || isDomain(err) || !strings.Contains(err.Error(), "retry quota exceeded") {
					t.Errorf("last error = %v, want a store error that says the retry quota is exceeded", err)
				}
				table.respond = func(int) *http.Response { return respond(http.StatusOK, "{}") }
				for range 5 {
					if err := release(); err != nil {
						t.Fatal(err)
					}
				}
				table.respond, table.arrivals = outage, nil
				if err := release(); err == nil || len(table.arrivals) != 2 {
					t.Errorf("five tokens: got %d attempts and error %v, want one retry and an error", len(table.arrivals), err)
				}
			})
		})
	}
}

func newStore(client aws.HTTPClient) *dynamodb.Store {
	return dynamodb.New(aws.Config{
		Region: "us-east-1", HTTPClient: client, BaseEndpoint: aws.String("http://pretend.invalid"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "PRETEND", SecretAccessKey: "pretend"}, nil
		}),
	}, "orders")
}

// openClaim returns a claim on the order as Begin returns it.
func openClaim() order.Claim {
	r := order.Record{OrderID: "O1", Status: order.Open, Owner: "first", Attempt: 1}
	return order.NewClaim(r, ordertest.Order("O1"))
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
		err := openClaim().Finish(t.Context(), newStore(table), asPaid(), at(1))
		if calls := len(table.arrivals); err == nil || isDomain(err) || calls != 1 {
			t.Errorf("%s: got %d calls and error %v, want 1 and a store error", name, calls, err)
		}
	}
}
