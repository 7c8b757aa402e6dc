package main

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// remote is a pretend SQS behind the AWS SDK, without a network. Its clock may differ
// from ours.
type remote struct {
	ahead time.Duration // of our clock
	fails string        // the error code of every call; "" for none
	calls []string
}

// Do responds like SQS: it rejects a signature that is more than five minutes old or
// ahead (AWS General Reference, "Signature Version 4").
func (r *remote) Do(request *http.Request) (*http.Response, error) {
	now := time.Now().Add(r.ahead)
	_, operation, _ := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
	r.calls = append(r.calls, operation)
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var in struct{ MessageBody string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	sum := md5.Sum([]byte(in.MessageBody)) // which the SDK compares with the body that it sent
	status, response := http.StatusOK, `{"MessageId":"m","MD5OfMessageBody":"`+hex.EncodeToString(sum[:])+`"}`
	signed, err := time.Parse("20060102T150405Z", request.Header.Get("X-Amz-Date"))
	switch {
	case err != nil:
		return nil, err
	case r.fails != "":
		status, response = http.StatusForbidden, `{"__type":"`+r.fails+`","message":"refused"}`
	case signed.Sub(now).Abs() > 5*time.Minute:
		status, response = http.StatusForbidden, `{"__type":"InvalidSignatureException","message":"Signature expired"}`
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "Date": {now.UTC().Format(http.TimeFormat)}}
	return &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(response)), Request: request,
	}, nil
}

// counts returns the number of calls of each operation since the last counts.
func (r *remote) counts() map[string]int {
	counts := map[string]int{}
	for _, c := range r.calls {
		counts[c]++
	}
	r.calls = nil
	return counts
}

// parking returns the wired function with a domain that parks every order and with a
// pretend SQS.
func parking(t *testing.T, r *remote, out io.Writer) *sqs.Handler {
	t.Helper()
	c, err := config.Read[environment](complete("STRIPE_API_BASE=http://127.0.0.1:1"))
	must(t, err)
	h, err := wire(t.Context(), complete("STRIPE_API_BASE=http://127.0.0.1:1"), out)
	must(t, err)
	h.Settings = nil // its calls are not counted here
	h.Queue = sqs.NewQueue(c.AWS.Config(config.SQS, r), string(c.Queue.URL), string(c.Queue.DeadLetters))
	h.Decode = func(string) (sqs.Task, error) {
		return sqs.Task{ID: "ORD-1", Run: func(context.Context, sqs.Delivery, order.Lease) order.Result {
			return order.Result{Verdict: order.Park, Reason: order.ReasonConflict}
		}}, nil
	}
	return h
}

// parked delivers one order and reports whether it was parked, and the error in its log
// line.
func parked(t *testing.T, h *sqs.Handler, out *output) (ok bool, failure string) {
	t.Helper()
	out.text.Reset()
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(30*time.Second))
	defer cancel()
	response, err := h.Handle(ctx, batchOf(message))
	must(t, err)
	for line := range strings.Lines(out.String()) {
		var fields struct{ Message, Verdict, Reason, Error string }
		must(t, json.Unmarshal([]byte(line), &fields))
		if fields.Message == "order" {
			failure = fmt.Sprint(fields.Reason, ": ", fields.Error)
		}
	}
	return len(response.BatchItemFailures) == 0, failure
}

// With a wrong clock, AWS rejects the signature of the first request. The SDK corrects
// its clock by the Date of the response, so only the first call takes a second attempt.
func TestAWrongClockCostsOneMoreAttempt(t *testing.T) {
	t.Parallel()
	for claim, ahead := range map[string]time.Duration{"an hour behind": time.Hour, "an hour ahead": -time.Hour} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, out := &remote{ahead: ahead}, new(output)
				h := parking(t, r, out)
				for _, want := range []int{2, 1, 1} {
					if ok, failure := parked(t, h, out); !ok {
						t.Errorf("the order was not parked: %s", failure)
					}
					if diff := cmp.Diff(r.counts(), map[string]int{"SendMessage": want}); diff != "" {
						t.Errorf("calls: got -, want +\n%s", diff)
					}
				}
			})
		})
	}
}

// Lambda replaces an execution environment before its credentials expire. If it did not,
// a message that cannot be parked would be redelivered, and the call would not be
// retried.
func TestWithExpiredCredentialsMessagesAreRedelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, out := &remote{fails: "ExpiredTokenException"}, new(output)
		ok, failure := parked(t, parking(t, r, out), out)
		if ok || !strings.HasPrefix(failure, "park_failed: ") ||
			!strings.Contains(failure, "ExpiredTokenException") {
			t.Errorf("parked = %t, error %q, want a redelivery with park_failed and the code", ok, failure)
		}
		want := map[string]int{"SendMessage": 1, "ChangeMessageVisibilityBatch": 1}
		if diff := cmp.Diff(r.counts(), want); diff != "" {
			t.Errorf("calls: got -, want +\n%s", diff)
		}
	})
}
