package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"orderonce/adapters/sqs/sqstest"
)

type clock struct {
	mu    sync.Mutex
	now   time.Time
	looks int
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return c.now
}

func (c *clock) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// testServer is a server with the queues of newWorld, a virtual clock and a real SDK
// client.
type testServer struct {
	*sqstest.Server
	*clock

	t   *testing.T
	sdk *sqs.Client
	url string // of orders
}

func newServer(t *testing.T) *testServer {
	t.Helper()
	f := &testServer{t: t, clock: &clock{now: start()}}
	s, err := sqstest.Serve(sqstest.Options{Now: f.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f.Server, f.url = s, s.QueueURL("orders")
	f.sdk = sqs.NewFromConfig(aws.Config{
		Region: sqstest.Region, BaseEndpoint: &s.URL, RetryMaxAttempts: 1,
		Credentials: aws.AnonymousCredentials{},
	})
	f.edit(func(m *sqstest.Machine, now time.Time) error {
		settings := sqstest.DefaultSettings()
		err := errors.Join(m.Create(now, "dead", settings), m.Create(now, "orders.fifo", settings))
		settings.DeadLetters, settings.MaxReceives = "dead", 2
		return errors.Join(err, m.Create(now, "orders", settings))
	})
	return f
}

// edit changes the machine without a call.
func (f *testServer) edit(change func(m *sqstest.Machine, now time.Time) error) {
	f.t.Helper()
	f.Machine(func(m *sqstest.Machine, now time.Time) {
		if err := change(m, now); err != nil {
			f.t.Error(err)
		}
	})
}

func (f *testServer) counts(queue string) (c sqstest.Counts) {
	f.t.Helper()
	f.edit(func(m *sqstest.Machine, now time.Time) (err error) {
		c, err = m.Counts(now, queue)
		return err
	})
	return c
}

func (f *testServer) send(body string) string {
	_, err := f.sdk.SendMessage(f.t.Context(), &sqs.SendMessageInput{QueueUrl: &f.url, MessageBody: &body})
	return apiCode(err)
}

// apiCode returns the error code of an SDK's error, "no response" for an error without a
// code, or "".
func apiCode(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	if err != nil {
		return "no response"
	}
	return ""
}

// The example is that of the npm package aws-md5-of-message-attributes.
func TestASendReturnsTheDigestOfTheAttributes(t *testing.T) {
	f := newServer(t)
	attributes := map[string]types.MessageAttributeValue{
		"attribName1":            {DataType: aws.String("String"), StringValue: aws.String("attribValue 1")},
		"customNumberTypeAttrib": {DataType: aws.String("Number.float"), StringValue: aws.String("4563442423554324324264524243.32543234")},
		"binaryAttribute":        {DataType: aws.String("Binary"), BinaryValue: []byte("Hello binary world!")},
	}
	sent, err := f.sdk.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &f.url, MessageBody: aws.String("body"), MessageAttributes: attributes,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *sent.MD5OfMessageAttributes, "c932db14a896c663f83c260297d594ff"; got != want {
		t.Errorf("digest of all attributes = %s, want %s", got, want)
	}
}

type response struct {
	Status     int
	QueryError string // the header X-Amzn-Query-Error
}

// post sends AWS JSON 1.0 without an SDK, for requests that no SDK sends.
func (f *testServer) post(operation, body string) response {
	f.t.Helper()
	call, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.URL, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	call.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	r, err := http.DefaultClient.Do(call)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = r.Body.Close()
	return response{r.StatusCode, r.Header.Get("X-Amzn-Query-Error")}
}

// The SDK reads the code from the header. Further codes are rules of scripts/conform.
func TestRequestsAreAnsweredWithTheCodesOfSQS(t *testing.T) {
	f := newServer(t)
	const nonExistent = "AWS.SimpleQueueService.NonExistentQueue"
	for _, tt := range []struct{ operation, queue, members, want string }{
		{"SendMessage", f.url, `"MessageBody":"a"`, ""},
		{"SendMessage", f.URL + "/123456789012/orders", `"MessageBody":"a"`, nonExistent},
		{"SendMessage", "", `"MessageBody":"a"`, "MissingParameter"},
		{"SendMessage", f.url, `"MessageBody":1`, "InvalidParameterValue"},
		{"DeleteMessage", f.url, `"ReceiptHandle":"x"`, "ReceiptHandleIsInvalid"},
		{"ChangeMessageVisibility", f.url, `"ReceiptHandle":"x"`, "MissingParameter"},
		{"ReceiveMessage", f.url, `"VisibilityTimeout":43201`, "InvalidParameterValue"},
		{"PurgeQueue", f.url, `"Id":""`, "AWS.SimpleQueueService.UnsupportedOperation"},
		{"ChangeMessageVisibilityBatch", f.QueueURL("nowhere"), `"Entries":[{}]`, nonExistent},
	} {
		got := f.post(tt.operation, fmt.Sprintf(`{"QueueUrl":%q,%s}`, tt.queue, tt.members))
		want := response{Status: http.StatusOK}
		if tt.want != "" {
			want = response{http.StatusBadRequest, tt.want + ";Sender"}
		}
		if got != want {
			t.Errorf("%s %s %s: got %+v, want %+v", tt.operation, tt.queue, tt.members, got, want)
		}
	}
}

// polling starts a long poll of 20 seconds, whose messages it sends. It returns when the
// server waits: a server reads its clock once for each call.
func (f *testServer) polling(ctx context.Context) <-chan []types.Message {
	before := f.seen()
	defer func() {
		for f.seen() == before {
			runtime.Gosched()
		}
	}()
	got, in := make(chan []types.Message), &sqs.ReceiveMessageInput{QueueUrl: aws.String(f.url), WaitTimeSeconds: 20}
	go func() {
		out, err := f.sdk.ReceiveMessage(ctx, in)
		if err != nil {
			out = &sqs.ReceiveMessageOutput{}
		}
		got <- out.Messages
	}()
	return got
}

// SQS developer guide, "Amazon SQS short and long polling": the response comes as soon as
// a message is visible, else at the end of the wait.
func TestALongPollIsWokenBy(t *testing.T) {
	for name, tt := range map[string]struct {
		wakes func(f *testServer)
		want  int // messages
	}{
		"a send":               {func(f *testServer) { f.send("a") }, 1},
		"the end of its wait":  {func(f *testServer) { f.add(20 * time.Second); f.Wake() }, 0},
		"the server's closing": {func(f *testServer) { _ = f.Close() }, 0},
	} {
		f := newServer(t)
		got := f.polling(t.Context())
		tt.wakes(f)
		if n := len(<-got); n != tt.want {
			t.Errorf("%s: got %d messages, want %d", name, n, tt.want)
		}
	}
}

// After an HTTP 500 the caller does not know whether the call had an effect.
func TestAFaultAppliesToOneCall(t *testing.T) {
	for body, want := range map[string]string{
		"a":    "InternalError, then , 2 sent",
		"\x01": "InvalidMessageContents, then , 1 sent", // its own error comes first
	} {
		f := newServer(t)
		f.Fail("SendMessage", 0, sqstest.CodeServiceUnavailable) // none
		f.Lose("SendMessage", 3)
		f.Heal()
		f.Fail("DeleteMessage", 1, sqstest.CodeServiceUnavailable)
		f.FailAfter("SendMessage", 1, sqstest.CodeInternalError)
		got := fmt.Sprintf("%s, then %s, %d sent", f.send(body), f.send("b"), f.counts("orders").Sent)
		if got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}
