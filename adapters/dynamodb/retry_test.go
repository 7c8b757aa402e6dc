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
	for name, c := range map[string]struct {
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
		if got := dynamodb.Retryer().IsErrorRetryable(c.err); got != c.want {
			t.Errorf("%s is retried: got %v, want %v", name, got, c.want)
		}
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	r := dynamodb.Retryer()
	for try := 1; try < r.MaxAttempts(); try++ {
		most := 50 * time.Millisecond << (try - 1)
		seen := map[time.Duration]bool{}
		for range 100 {
			got, err := r.RetryDelay(try, errors.New("anything"))
			if err != nil || got < 0 || got > most {
				t.Fatalf("after try %d: got %v and error %v, want at most %v", try, got, err, most)
			}
			seen[got] = true
		}
		if len(seen) < 50 {
			t.Errorf("after try %d: got %d different waits of 100: no jitter", try, len(seen))
		}
	}
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

func (s *scripted) store() *dynamodb.Store {
	return dynamodb.New(aws.Config{
		Region: "us-east-1", HTTPClient: s, BaseEndpoint: aws.String("http://pretend.invalid"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "PRETEND", SecretAccessKey: "pretend"}, nil
		}),
	}, "orders")
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
			http.StatusBadRequest,
			"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
			free,
		}
	}
	taken := openRow()
	taken["owner"], taken["attempt"] = text("second"), number(2)

	s := &scripted{answers: []answer{refused(), {http.StatusOK, "", taken}}}
	c, err := s.store().Begin(t.Context(), ordertest.Order("O1"), lease("second"))
	if err != nil || c.Attempt != 2 || c.Intent != intent {
		t.Errorf("got %+v and error %v, want attempt 2 with its intent", c, err)
	}

	s = &scripted{answers: []answer{refused(), refused()}}
	_, err = s.store().Begin(t.Context(), ordertest.Order("O1"), lease("second"))
	if err == nil || isDomain(err) || len(s.asked) != 2 {
		t.Errorf(
			"refused twice without a reason: got %d calls and %v, want 2 and an error of the store",
			len(s.asked),
			err,
		)
	}
	want := `":fingerprint":{"S":"` + string(ordertest.Order("O1").Fingerprint()) + `"}`
	if !strings.Contains(s.asked[1], want) {
		t.Errorf("got second question %s, want one that expects the row's fingerprint", s.asked[1])
	}
}
