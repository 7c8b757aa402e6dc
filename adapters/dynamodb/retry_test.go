package dynamodb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order/ordertest"
)

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
		"a conflict with a transaction":                {&types.TransactionConflictException{}, true},
		"a conflict inside a transaction":              {canceled("None", "TransactionConflict"), true},
		"capacity inside a transaction":                {canceled("ProvisionedThroughputExceeded", "None"), true},
		"throttling inside a transaction":              {canceled("None", "ThrottlingError"), true},
		"a failed condition":                           {&types.ConditionalCheckFailedException{}, false},
		"a failed condition inside a transaction":      {canceled("ConditionalCheckFailed", "None"), false},
		"a failed condition of the event":              {canceled("None", "ConditionalCheckFailed"), false},
		"a failed condition and a conflict":            {canceled("TransactionConflict", "ConditionalCheckFailed"), false},
		"a request that is wrong inside a transaction": {canceled("ValidationError", "None"), false},
		"a canceled transaction without reasons":       {canceled(), false},
		"another parameter under the token":            {&types.IdempotentParameterMismatchException{}, false},
		"no such table":                                {&types.ResourceNotFoundException{}, false},
		"throttling":                                   {&types.ThrottlingException{}, true},
	} {
		if got := retryer.IsErrorRetryable(tt.err); got != tt.want {
			t.Errorf("%s: IsErrorRetryable(%v) = %t, want %t", claim, tt.err, got, tt.want)
		}
	}
}

// failingTable is a table that fails every request at once. It records when each one
// arrives.
type failingTable struct {
	status   int // 0: the connection is lost
	code     string
	arrivals []time.Time
}

func (f *failingTable) Do(r *http.Request) (*http.Response, error) {
	f.arrivals = append(f.arrivals, time.Now()) //nolint:forbidigo // the clock of the bubble
	if f.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: f.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(`{"__type":"` + f.code + `"}`)), Request: r,
	}, nil
}

// The SDK's defaults change with AWS_NEW_RETRIES_2026. The retries must not.
func TestTheSDKsDefaultsDoNotChangeTheRetries(t *testing.T) {
	const calls = 20
	const ms = time.Millisecond
	maxDelays := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms}
	for failure, table := range map[string]failingTable{
		"unavailable":          {status: http.StatusServiceUnavailable, code: "ServiceUnavailable"},
		"throttled":            {status: http.StatusBadRequest, code: "ProvisionedThroughputExceededException"},
		"transaction conflict": {status: http.StatusBadRequest, code: "TransactionConflictException"},
		"connection lost":      {},
	} {
		for _, newRetries := range []string{"false", "true"} {
			t.Run(failure+", AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
				t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
				synctest.Test(t, func(t *testing.T) {
					store := newStore(&table)
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

func TestAnOutageLeavesAHundredRetriesAndThenOneAttemptForEachCall(t *testing.T) {
	const calls = 40
	for _, newRetries := range []string{"false", "true"} {
		t.Run("AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
			t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
			synctest.Test(t, func(t *testing.T) {
				table := &failingTable{status: http.StatusServiceUnavailable, code: "ServiceUnavailable"}
				store := newStore(table)
				var err error
				for range calls {
					_, err = store.Load(t.Context(), "O1")
				}
				if got, want := len(table.arrivals), calls+100; got != want {
					t.Errorf("attempts of %d calls = %d, want %d", calls, got, want)
				}
				if err == nil || !strings.Contains(err.Error(), "retry quota exceeded") {
					t.Errorf("last error = %v, want one that says the retry quota is exceeded", err)
				}
			})
		})
	}
}

func TestACallEndsWithItsContextWhateverIsLeftOfItsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		attempts := 0
		silent := doer(func(r *http.Request) (*http.Response, error) {
			attempts++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now() //nolint:forbidigo // the clock of the bubble
		_, err := newStore(silent).Load(ctx, "O1")
		if took := time.Since(start); took != time.Second { //nolint:forbidigo // the clock of the bubble
			t.Errorf("the call took %v, want 1s", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || attempts != 1 {
			t.Errorf("got %d attempts and error %v, want 1 and %v", attempts, err, context.DeadlineExceeded)
		}
	})
}

func newStore(client aws.HTTPClient) *dynamodb.Store {
	return dynamodb.New(aws.Config{
		Region: "us-east-1", HTTPClient: client, BaseEndpoint: aws.String("http://pretend.invalid"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "PRETEND", SecretAccessKey: "pretend"}, nil
		}),
	}, "orders")
}

// scripted is a table that gives these answers, whatever the store asks, and keeps the
// questions.
type scripted struct {
	answers []answer
	asked   []string
}

type answer struct {
	status int
	kind   string
	item   row
}

func (s *scripted) Do(r *http.Request) (*http.Response, error) {
	question, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if len(s.asked) == len(s.answers) {
		return nil, errors.New("the script is over")
	}
	a := s.answers[len(s.asked)]
	s.asked = append(s.asked, string(question))
	body, err := json.Marshal(map[string]any{"__type": a.kind, "Item": wire(a.item), "Attributes": wire(a.item)})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: a.status, Request: r, Body: io.NopCloser(strings.NewReader(string(body))),
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
	}, nil
}

func wire(item row) map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			out[name] = map[string]string{"S": v.Value}
		case *types.AttributeValueMemberN:
			out[name] = map[string]string{"N": v.Value}
		}
	}
	return out
}

// No release writes a second version of the fingerprint yet, so a script plays the table
// that holds one: it refuses although CheckClaim finds nothing wrong.
func TestOlderFingerprint(t *testing.T) {
	t.Parallel()
	refused := func() answer {
		free := openRow()
		delete(free, "owner")
		delete(free, "leaseUntil")
		return answer{
			http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", free,
		}
	}
	taken := openRow()
	taken["owner"], taken["attempt"] = text("second"), number(2)

	s := &scripted{answers: []answer{refused(), {http.StatusOK, "", taken}}}
	c, err := newStore(s).Begin(t.Context(), ordertest.Order("O1"), lease("second"))
	if err != nil || c.Attempt != 2 || c.Intent != intent {
		t.Errorf("got %+v and error %v, want attempt 2 with its intent", c, err)
	}

	s = &scripted{answers: []answer{refused(), refused()}}
	_, err = newStore(s).Begin(t.Context(), ordertest.Order("O1"), lease("second"))
	if err == nil || isDomain(err) || len(s.asked) != 2 {
		t.Errorf(
			"refused twice without a reason: got %d calls and %v, want 2 and an error of the store", len(s.asked), err,
		)
	}
	want := `":fingerprint":{"S":"` + string(ordertest.Order("O1").Fingerprint()) + `"}`
	if !strings.Contains(s.asked[1], want) {
		t.Errorf("got second question %s, want one that expects the row's fingerprint", s.asked[1])
	}
}
