package sqstest_test

import (
	"context"
	"encoding/json"
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
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// clock is a clock that tests move.
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

func newServer(t *testing.T, o sqstest.Options) *testServer {
	t.Helper()
	f := &testServer{t: t, clock: &clock{now: start()}}
	if o.Now == nil {
		o.Now = f.Now
	}
	s, err := sqstest.Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f.Server, f.url = s, s.QueueURL("orders")
	f.sdk = newClient(s.URL)
	f.create("dead", func(*sqstest.Settings) {})
	f.create("orders", func(s *sqstest.Settings) { s.DeadLetters, s.MaxReceives = "dead", 2 })
	return f
}

func newClient(endpoint string) *sqs.Client {
	return sqs.NewFromConfig(aws.Config{
		Region: sqstest.Region, BaseEndpoint: &endpoint, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
	})
}

// trySend sends a body.
func (f *testServer) trySend(body string) error {
	_, err := f.sdk.SendMessage(f.t.Context(), &sqs.SendMessageInput{QueueUrl: &f.url, MessageBody: &body})
	return err
}

func (f *testServer) send() {
	f.t.Helper()
	if err := f.trySend("a"); err != nil {
		f.t.Fatal(err)
	}
}

// create creates a queue with changed default settings.
func (f *testServer) create(queue string, change func(*sqstest.Settings)) {
	f.t.Helper()
	settings := sqstest.DefaultSettings()
	change(&settings)
	f.edit(func(m *sqstest.Machine, now time.Time) error { return m.Create(now, queue, settings) })
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

func (f *testServer) receive(in sqs.ReceiveMessageInput) []types.Message {
	f.t.Helper()
	in.QueueUrl = &f.url
	out, err := f.sdk.ReceiveMessage(f.t.Context(), &in)
	if err != nil {
		f.t.Fatal(err)
	}
	return out.Messages
}

func (f *testServer) attributes(url string, names ...types.QueueAttributeName) map[string]string {
	f.t.Helper()
	in := &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names}
	out, err := f.sdk.GetQueueAttributes(f.t.Context(), in)
	if err != nil {
		f.t.Fatal(err)
	}
	return out.Attributes
}

// apiCode returns the error code of an SDK's error, or "".
func apiCode(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

func TestAMessageGoesThroughTheSDK(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	_, err := f.sdk.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &f.url, MessageBody: aws.String("body"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"attribName1":     {DataType: aws.String("String"), StringValue: aws.String("attribValue 1")},
			"binaryAttribute": {DataType: aws.String("Binary"), BinaryValue: []byte("Hello binary world!")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.add(time.Second)
	got := f.receive(sqs.ReceiveMessageInput{
		MessageAttributeNames: []string{"attrib.*"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			"ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp", "SentTimestamp",
		},
	})
	if len(got) != 1 {
		t.Fatalf("got %d messages, want 1", len(got))
	}
	want := map[string]string{
		"ApproximateReceiveCount": "1", "SentTimestamp": "1767323045000", "ApproximateFirstReceiveTimestamp": "1767323046000",
	}
	if diff := cmp.Diff(got[0].Attributes, want); diff != "" {
		t.Errorf("attributes (-got +want):\n%s", diff)
	}
	if len(got[0].MessageAttributes) != 1 ||
		*got[0].MD5OfMessageAttributes != "19e27d4e946b072f3f58da80d94fd778" {
		t.Errorf("got %v with digest %s, want attribName1 alone",
			got[0].MessageAttributes, *got[0].MD5OfMessageAttributes)
	}
	if _, err := f.sdk.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &f.url, ReceiptHandle: got[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	if err := f.Drained(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}

// The digests are those that the npm package aws-md5-of-message-attributes publishes as
// examples.
func TestTheDigestOfMessageAttributes(t *testing.T) {
	t.Parallel()
	one := types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("attribValue 1")}
	two := types.MessageAttributeValue{
		DataType: aws.String("Number.float"), StringValue: aws.String("4563442423554324324264524243.32543234"),
	}
	three := types.MessageAttributeValue{
		DataType: aws.String("Binary"), BinaryValue: []byte("Hello binary world!"),
	}
	tests := map[string]map[string]types.MessageAttributeValue{
		"19e27d4e946b072f3f58da80d94fd778": {"attribName1": one},
		"9fe1b90bbd9965bdf77bac517c7d2495": {"customNumberTypeAttrib": two},
		"31a92b15d92f8db860eda32aceb656c3": {"binaryAttribute": three},
		"c932db14a896c663f83c260297d594ff": {"attribName1": one, "customNumberTypeAttrib": two, "binaryAttribute": three},
	}
	f := newServer(t, sqstest.Options{})
	for want, attributes := range tests {
		in := &sqs.SendMessageInput{QueueUrl: &f.url, MessageBody: aws.String("a"), MessageAttributes: attributes}
		out, err := f.sdk.SendMessage(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := *out.MD5OfMessageAttributes; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestErrorsHaveTheCodesOfSQS(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.send()
	receipt := *f.receive(sqs.ReceiveMessageInput{})[0].ReceiptHandle
	entries := func(ids ...string) string {
		var all []string
		for _, id := range ids {
			all = append(all, fmt.Sprintf(`{"Id":%q,"ReceiptHandle":%q}`, id, receipt))
		}
		return `"Entries":[` + strings.Join(all, ",") + `]`
	}
	large := func(id string) string { // two of them exceed 1 MiB with their attributes only
		return fmt.Sprintf(`{"Id":%q,"MessageBody":%q,"MessageAttributes":{"long":{"DataType":"String","StringValue":%q}}}`,
			id, strings.Repeat("a", 500_000), strings.Repeat("a", 50_000))
	}
	queue := `"QueueUrl":"` + f.url + `",`
	tests := map[string]struct{ operation, body string }{
		"AWS.SimpleQueueService.NonExistentQueue": {
			"SendMessage", `"QueueUrl":"` + f.QueueURL("nowhere") + `","MessageBody":"a"`,
		},
		"ReceiptHandleIsInvalid": {"DeleteMessage", queue + `"ReceiptHandle":"x"`},
		"InvalidParameterValue":  {"ReceiveMessage", queue + `"MaxNumberOfMessages":11`},
		"MissingParameter":       {"SendMessage", queue + `"MessageBody":""`},
		"InvalidMessageContents": {"SendMessage", queue + `"MessageBody":"\u0002"`},
		"InvalidAttributeName":   {"GetQueueAttributes", queue + `"AttributeNames":["Color"]`},
		"InvalidAction":          {"PeekMessage", `"QueueUrl":"` + f.url + `"`},

		"AWS.SimpleQueueService.UnsupportedOperation":     {"ListQueueTags", `"QueueUrl":"` + f.url + `"`},
		"AWS.SimpleQueueService.EmptyBatchRequest":        {"DeleteMessageBatch", queue + entries()},
		"AWS.SimpleQueueService.BatchEntryIdsNotDistinct": {"DeleteMessageBatch", queue + entries("a", "a")},
		"AWS.SimpleQueueService.InvalidBatchEntryId":      {"DeleteMessageBatch", queue + entries("a b")},
		"AWS.SimpleQueueService.TooManyEntriesInBatchRequest": {
			"DeleteMessageBatch", queue + entries(strings.Split("0 1 2 3 4 5 6 7 8 9 10", " ")...),
		},
		"AWS.SimpleQueueService.BatchRequestTooLong": {
			"SendMessageBatch", queue + `"Entries":[` + large("a") + `,` + large("b") + `]`,
		},
	}
	for want, tt := range tests {
		if got := f.post(tt.operation, "{"+tt.body+"}").QueryError; got != want+";Sender" {
			t.Errorf("got %q, want %q", got, want+";Sender")
		}
	}
}

func TestRequestsThatNoCallerNeedsAreUnsupported(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	for operation, body := range map[string]string{
		"CreateQueue":          `{"QueueName":"q"}`,
		"ListMessageMoveTasks": `{"SourceArn":"` + sqstest.ARN("dead") + `"}`,
		"ListQueues":           `{}`,
		"PurgeQueue":           `{"QueueUrl":"` + f.url + `"}`,
		"SendMessage":          `{"QueueUrl":"` + f.url + `","MessageBody":"a","MessageSystemAttributes":{"AWSTraceHeader":{}}}`,
		"SetQueueAttributes":   `{"QueueUrl":"` + f.url + `"}`,
	} {
		got := f.post(operation, body)
		if got.Status != http.StatusBadRequest || got.Type != "com.amazonaws.sqs#UnsupportedOperation" {
			t.Errorf("%s: got %+v, want an UnsupportedOperation", operation, got)
		}
	}
}

// response is a response to post.
type response struct {
	Status     int
	QueryError string // the header X-Amzn-Query-Error
	Type       string `json:"__type"`
	Message    string `json:"message"`
}

// post sends AWS JSON 1.0 without an SDK, for requests that no SDK sends.
func (f *testServer) post(operation, body string) (got response) {
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
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		f.t.Fatal(err)
	}
	got.Status, got.QueryError = r.StatusCode, r.Header.Get("X-Amzn-Query-Error")
	return got
}

// SQS developer guide, "Amazon SQS queue and message identifiers": a queue's URL holds
// its account and, by its host, its region. A name alone means a queue of the caller's.
// SQS does not document it, but the AWS SDK for JavaScript does
// (github.com/aws/aws-sdk-js-v3/pull/6337), moto was corrected to it
// (github.com/getmoto/moto/pull/5073), and LocalStack's suite has it from AWS
// (test_posting_to_queue_via_queue_name).
func TestAQueueOfAnotherAccountOrRegionDoesNotExist(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	const nonExistent = "AWS.SimpleQueueService.NonExistentQueue"
	for url, want := range map[string]string{
		f.url: "",
		"https://sqs.us-east-1.amazonaws.com/000000000000/orders": "",
		"http://localhost/000000000000/orders":                    "",
		"https://sqs.eu-west-1.amazonaws.com/000000000000/orders": nonExistent,
		f.URL + "/123456789012/orders":                            nonExistent,
		f.URL + "/orders":                                         nonExistent,
		"orders":                                                  "",
		"nowhere":                                                 nonExistent,
		"":                                                        "MissingParameter",
	} {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a")}
		_, err := f.sdk.SendMessage(t.Context(), in, func(o *sqs.Options) { o.BaseEndpoint = &f.URL })
		if got := apiCode(err); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
		if _, ok := errors.AsType[*types.QueueDoesNotExist](err); ok != (want == nonExistent) {
			t.Errorf("%s: got %T, want the SDK's own type for %s alone", url, err, nonExistent)
		}
	}
	theirs := &sqs.GetQueueUrlInput{
		QueueName: aws.String("orders"), QueueOwnerAWSAccountId: aws.String("123456789012"),
	}
	_, err := f.sdk.GetQueueUrl(t.Context(), theirs)
	if got := apiCode(err); got != nonExistent {
		t.Errorf("got %q for the queue of another account, want %q", got, nonExistent)
	}
}

// API reference, SendMessageBatch and other batches: "the batch request can result in a
// combination of successful and unsuccessful actions".
func TestABatchSucceedsAndFailsByEntry(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	ctx := t.Context()
	out, err := f.sdk.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: &f.url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("good"), MessageBody: aws.String("a")},
			{Id: aws.String("bad"), MessageBody: aws.String("\x01")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Successful[0].Id != "good" ||
		*out.Failed[0].Code != "InvalidMessageContents" {
		t.Errorf("got %v and %v, want good sent and bad rejected", out.Successful, out.Failed)
	}
	handle := f.receive(sqs.ReceiveMessageInput{})[0].ReceiptHandle
	change, err := f.sdk.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: &f.url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: handle, VisibilityTimeout: 0},
			{Id: aws.String("bad"), ReceiptHandle: aws.String("x")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(change.Successful) != 1 || len(change.Failed) != 1 ||
		*change.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Errorf("got %v and %v, want good changed and bad rejected", change.Successful, change.Failed)
	}
	if got := f.receive(sqs.ReceiveMessageInput{}); len(got) != 1 {
		t.Errorf("got %d messages after a visibility of zero, want 1", len(got))
	}
}

// The documents say that a batch succeeds and fails by entry, and do not mention an entry
// that has no group, or no way to a deduplication id. AWS rejects the whole batch:
// LocalStack's suite, recorded against AWS,
// test_send_batch_missing_message_group_id_for_fifo_queue and
// test_send_batch_missing_deduplication_id_for_fifo_queue. The code is not that of
// SendMessage, MissingParameter.
func TestAFIFOBatchWithAnEntryWithoutItsIDsIsRejectedAsAWhole(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.create("line.fifo", func(s *sqstest.Settings) { s.FIFO = true })
	url := f.QueueURL("line.fifo")
	whole := types.SendMessageBatchRequestEntry{
		Id: aws.String("whole"), MessageBody: aws.String("a"), MessageGroupId: aws.String("g"),
		MessageDeduplicationId: aws.String("1"),
	}
	noGroup, noID := whole, whole
	noGroup.Id, noGroup.MessageGroupId = aws.String("noGroup"), nil
	noID.Id, noID.MessageDeduplicationId = aws.String("noID"), nil
	for _, e := range []types.SendMessageBatchRequestEntry{noGroup, noID} {
		_, err := f.sdk.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
			QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{whole, e},
		})
		if got, want := apiCode(err), "InvalidParameterValue"; got != want {
			t.Errorf("entry %s: got %q, want %q", *e.Id, got, want)
		}
	}
	if got := f.counts("line.fifo").Sent; got != 0 {
		t.Errorf("%d messages were sent, want none", got)
	}
}

// AWS returns no attributes, and not all of them (github.com/aws/aws-cli/issues/17,
// github.com/localstack/localstack/issues/4178).
func TestGetQueueAttributesWithoutNamesReturnsNone(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	for _, names := range [][]types.QueueAttributeName{nil, {}} {
		if got := f.attributes(f.url, names...); got != nil {
			t.Errorf("names %v: got %v, want no attributes in the response", names, got)
		}
	}
}

// API reference, ReceiveMessage: 1 to 10 messages, 0 to 20 seconds of wait, 0 to 43,200
// of visibility. The messages are AWS's, recorded by LocalStack's suite
// (test_send_receive_max_number_of_messages, test_send_receive_wait_time_seconds).
func TestReceiveRejects(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	for body, want := range map[string]string{
		`"MaxNumberOfMessages":0`:   "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
		`"MaxNumberOfMessages":11`:  "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
		`"WaitTimeSeconds":-1`:      "Value -1 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.",
		`"WaitTimeSeconds":21`:      "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.",
		`"VisibilityTimeout":43201`: "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided.",
	} {
		got := f.post("ReceiveMessage", `{"QueueUrl":"`+f.url+`",`+body+`}`)
		if got.Status != http.StatusBadRequest || got.Type != "com.amazonaws.sqs#InvalidParameterValue" ||
			got.Message != want {
			t.Errorf("%s: got %+v, want %q", body, got, want)
		}
	}
	for _, body := range []string{`"MaxNumberOfMessages":10`, `"WaitTimeSeconds":0`, `"VisibilityTimeout":43200`} {
		if got := f.post("ReceiveMessage", `{"QueueUrl":"`+f.url+`",`+body+`}`); got.Status != http.StatusOK {
			t.Errorf("%s: got %+v, want it accepted", body, got)
		}
	}
}

func TestGetQueueAttributesReportsAllOfAQueue(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.create("third", func(s *sqstest.Settings) {
		s.Visibility, s.Delay, s.DeadLetters, s.MaxReceives = 12*time.Second, 3*time.Second, "dead", 50
	})
	found, err := f.sdk.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("third")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *found.QueueUrl, f.QueueURL("third"); got != want {
		t.Errorf("GetQueueUrl = %s, want %s", got, want)
	}
	want := map[string]string{
		"QueueArn": sqstest.ARN("third"), "CreatedTimestamp": "1767323045", "LastModifiedTimestamp": "1767323045",
		"VisibilityTimeout": "12", "MessageRetentionPeriod": "345600", "DelaySeconds": "3", "ReceiveMessageWaitTimeSeconds": "0",
		"MaximumMessageSize": "1048576", "ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0",
		"ApproximateNumberOfMessagesDelayed": "0",
		"RedrivePolicy":                      `{"deadLetterTargetArn":"` + sqstest.ARN("dead") + `","maxReceiveCount":50}`,
	}
	if diff := cmp.Diff(f.attributes(*found.QueueUrl, "All"), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

// API reference, SendMessageBatch and ReceiveMessage on a FIFO queue.
func TestAFIFOQueueThroughTheSDK(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	ctx := t.Context()
	f.create("q.fifo", func(s *sqstest.Settings) { s.FIFO, s.ContentDeduplication = true, true })
	f.url = f.QueueURL("q.fifo")
	got := f.attributes(f.url, "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
	want := map[string]string{
		"FifoQueue": "true", "ContentBasedDeduplication": "true",
		"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("attributes (-got +want):\n%s", diff)
	}
	entry := func(id, body, group, duplicate string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{
			Id: &id, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &duplicate,
		}
	}
	sent, err := f.sdk.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: &f.url, Entries: []types.SendMessageBatchRequestEntry{
			entry("0", "first", "g", "x"), entry("1", "second", "g", "y"), entry("2", "first again", "g", "x"),
			entry("3", "no such group", "a group", "z"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sent.Failed) != 1 || *sent.Failed[0].Code != sqstest.CodeInvalidParameterValue {
		t.Errorf("got %v, want the entry with a space in its group rejected", sent.Failed)
	}
	first, again := sent.Successful[0], sent.Successful[2]
	if *first.MessageId != *again.MessageId || *first.SequenceNumber != *again.SequenceNumber {
		t.Errorf("got %s and %s, want the duplicate to have the id of the first",
			*first.MessageId, *again.MessageId)
	}
	received := f.receive(sqs.ReceiveMessageInput{
		MaxNumberOfMessages: 10,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			"MessageGroupId", "MessageDeduplicationId", "SequenceNumber",
		},
	})
	if len(received) != 2 || *received[0].Body != "first" || *received[1].Body != "second" {
		t.Fatalf("got %v, want the first and the second", received)
	}
	want = map[string]string{
		"MessageGroupId": "g", "MessageDeduplicationId": "y", "SequenceNumber": *sent.Successful[1].SequenceNumber,
	}
	if diff := cmp.Diff(received[1].Attributes, want); diff != "" {
		t.Errorf("second message (-got +want):\n%s", diff)
	}
}

// API reference, GetQueueAttributes: an attribute that a queue does not have is omitted,
// and is not unknown.
func TestAnOptionalAttributeIsNotUnknown(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	allButAll := types.QueueAttributeName("").Values()[1:]
	if got, want := len(f.attributes(f.QueueURL("dead"), allButAll...)), 11; got != want {
		t.Errorf("got %d attributes of a standard queue without policies, want %d", got, want)
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
	got, in := make(chan []types.Message), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(f.url), WaitTimeSeconds: 20,
	}
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
	t.Parallel()
	var handle string // of a message of the full queue
	for name, tt := range map[string]struct {
		queue         string
		before, wakes func(f *testServer)
	}{
		"a send": {"orders", func(*testServer) {}, (*testServer).send},
		"a delay that ends": {
			"orders",
			func(f *testServer) {
				f.edit(func(m *sqstest.Machine, now time.Time) error {
					_, err := m.Send(now, "orders", sqstest.Draft{Body: "a", Delay: new(10 * time.Second)})
					return err
				})
			},
			func(f *testServer) { f.add(10 * time.Second); f.Wake() },
		},
		"a dead letter": {"dead", func(*testServer) {}, func(f *testServer) {
			f.url = f.QueueURL("orders")
			f.send()
			for range 3 { // the third exceeds the count
				f.receive(sqs.ReceiveMessageInput{VisibilityTimeout: 1})
				f.add(time.Second)
			}
			if got := f.counts("dead"); got.InFlight != 1 {
				t.Errorf("got %+v right after the receive that dead-lettered, want one in flight", got)
			}
		}},
		"the end of the in-flight limit, which is not an error": {
			"orders",
			func(f *testServer) {
				f.Machine(func(m *sqstest.Machine, now time.Time) {
					for range sqstest.InFlightLimit {
						_, _ = m.Send(now, "orders", sqstest.Draft{Body: "a"})
					}
					for range sqstest.InFlightLimit / 10 {
						got, _ := m.Receive(now, "orders", 10, nil)
						handle = got[0].Receipt
					}
				})
			},
			func(f *testServer) {
				f.edit(func(m *sqstest.Machine, now time.Time) error {
					return m.ChangeVisibility(now, "orders", handle, 0)
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newServer(t, sqstest.Options{})
			tt.before(f)
			f.url = f.QueueURL(tt.queue)
			got := f.polling(t.Context())
			tt.wakes(f)
			if n := len(<-got); n != 1 {
				t.Errorf("got %d messages, want 1", n)
			}
		})
	}
	t.Run("the end of its wait", func(t *testing.T) {
		t.Parallel()
		f := newServer(t, sqstest.Options{})
		got := f.polling(t.Context())
		for {
			select {
			case messages := <-got:
				if f.Now().Before(start().Add(20*time.Second)) || len(messages) != 0 {
					t.Errorf("got %d messages after %v, want none after 20 s", len(messages), f.Now().Sub(start()))
				}
				return
			default:
				f.add(time.Second)
				f.Wake()
				runtime.Gosched()
			}
		}
	})
	t.Run("its caller going away", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		got := newServer(t, sqstest.Options{}).polling(ctx)
		cancel()
		<-got
	})
	t.Run("the server closing", func(t *testing.T) {
		t.Parallel()
		f := newServer(t, sqstest.Options{})
		got := f.polling(t.Context())
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		<-got
	})
	t.Run("the real clock", func(t *testing.T) {
		t.Parallel()
		looks := &clock{}
		f := newServer(t, sqstest.Options{Now: func() time.Time {
			looks.Now()
			return time.Now() //nolint:forbidigo // the alarm is what is tested
		}})
		f.clock = looks
		f.Machine(func(m *sqstest.Machine, now time.Time) {
			_, _ = m.Send(now, "orders", sqstest.Draft{Body: "a", Delay: new(20 * time.Millisecond)})
		})
		if n := len(<-f.polling(t.Context())); n != 1 {
			t.Errorf("got %d messages, want 1", n)
		}
	})
}

// After an HTTP 500 or a lost response the caller does not know whether the call had an
// effect.
func TestAFaultAppliesToOneCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault func(f *testServer)
		code  string // "" if the connection is closed
		sent  int    // after another call
	}{
		"that fails without an effect": {
			func(f *testServer) { f.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable) }, sqstest.CodeServiceUnavailable, 1,
		},
		"that fails after its effect": {
			func(f *testServer) { f.FailAfter("SendMessage", 1, sqstest.CodeInternalError) }, sqstest.CodeInternalError, 2,
		},
		"whose response is lost": {func(f *testServer) { f.Lose("SendMessage", 1) }, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newServer(t, sqstest.Options{})
			tt.fault(f)
			if err := f.trySend("a"); err == nil || apiCode(err) != tt.code {
				t.Errorf("got %v, want an error with the code %q", err, tt.code)
			}
			f.send()
			if got := f.receive(sqs.ReceiveMessageInput{MaxNumberOfMessages: 10}); len(got) != tt.sent {
				t.Errorf("got %d messages, want %d", len(got), tt.sent)
			}
		})
	}
	t.Run("and does not hide that call's own error", func(t *testing.T) {
		t.Parallel()
		f := newServer(t, sqstest.Options{})
		f.FailAfter("SendMessage", 1, sqstest.CodeInternalError)
		if err := f.trySend("\x01"); apiCode(err) != sqstest.CodeInvalidMessageContents {
			t.Errorf("got %v, want %s", err, sqstest.CodeInvalidMessageContents)
		}
	})
}

func TestHealRemovesAllFaults(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.Fail("SendMessage", 0, sqstest.CodeInternalError) // none
	f.send()
	f.Fail("SendMessage", 3, sqstest.CodeInternalError)
	f.FailAfter("SendMessage", 3, sqstest.CodeInternalError)
	f.Lose("SendMessage", 3)
	f.Heal()
	f.send()
}

func TestHooksSeeEachCall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	note := func(when string) func(sqstest.Call) {
		return func(c sqstest.Call) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, when+" "+c.Operation+" "+c.Queue+" "+code(c.Err))
		}
	}
	f := newServer(t, sqstest.Options{Before: note("before"), After: note("after")})
	f.send()
	f.Fail("SendMessage", 1, sqstest.CodeOverLimit)
	_ = f.trySend("a")
	want := []string{
		"before SendMessage orders ", "after SendMessage orders ", "before SendMessage orders ", "after SendMessage orders OverLimit",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

func TestDrainedEndsWithTheServer(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.send()
	ended := make(chan error)
	go func() { ended <- f.Drained(t.Context(), "orders") }()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("got %v, want %v", err, http.ErrServerClosed)
	}
	if got := code(f.Drained(t.Context(), "nowhere")); got != sqstest.CodeQueueDoesNotExist {
		t.Errorf("got %q for a queue that does not exist", got)
	}
}
