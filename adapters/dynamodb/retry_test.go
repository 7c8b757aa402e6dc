package dynamodb_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// TestTransientErrors has what a table can be made to answer; these are the others. How
// often and when is tested in package awsretry.
func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	canceled := func(codes ...string) error {
		reasons := make([]types.CancellationReason, len(codes))
		for i, code := range codes {
			reasons[i].Code = aws.String(code)
		}
		return fmt.Errorf("wrapped: %w", &types.TransactionCanceledException{CancellationReasons: reasons})
	}
	retryer, longest := dynamodb.Retryer(), time.Duration(0)
	for range 100 {
		delay, err := retryer.RetryDelay(1, io.ErrUnexpectedEOF)
		fixture{T: t}.must(err)
		longest = max(longest, delay)
	}
	if longest > 50*time.Millisecond || longest < 25*time.Millisecond || retryer.MaxAttempts() != 5 {
		t.Errorf("got first delays of up to %v and %d attempts, want 50 ms and 5", longest, retryer.MaxAttempts())
	}
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

// pretendTable gives every call the same answer, and counts the calls.
type pretendTable struct {
	status int
	body   string
	calls  int
}

func alwaysResponds(status int, body string) *pretendTable {
	return &pretendTable{status: status, body: body}
}

func (p *pretendTable) Do(r *http.Request) (*http.Response, error) {
	p.calls++
	sum := fmt.Sprint(crc32.ChecksumIEEE([]byte(p.body)))
	return &http.Response{
		StatusCode: p.status, Body: io.NopCloser(strings.NewReader(p.body)), Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {sum}},
	}, nil
}

func newStore(client aws.HTTPClient) *dynamodb.Store {
	return dynamodb.New(aws.Config{
		Region: "us-east-1", HTTPClient: client, BaseEndpoint: aws.String("http://pretend.invalid"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "PRETEND", SecretAccessKey: "pretend"}, nil
		}),
	}, "orders")
}

// API reference, TransactWriteItems: a canceled transaction has a reason for each item.
// Without reasons, nothing is known about the order.
func TestACanceledTransactionWithoutReasonsIsAStoreError(t *testing.T) {
	t.Parallel()
	claimed := order.Record{OrderID: "O1", Status: order.Open, Owner: "first", Attempt: 1}
	for name, body := range map[string]string{
		"no list":       `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException"}`,
		"an empty list": `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[]}`,
	} {
		table := alwaysResponds(http.StatusBadRequest, body)
		err := order.NewClaim(claimed, ordertest.Order("O1")).Finish(t.Context(), newStore(table), asPaid(), at(1))
		if err == nil || isDomain(err) || table.calls != 1 {
			t.Errorf("%s: got %d calls and error %v, want 1 and a store error", name, table.calls, err)
		}
	}
}
