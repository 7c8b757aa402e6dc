package sqstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// Lambda developer guide, "Implementing partial batch responses", "Success and failure
// conditions".
func TestVerdict(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b"}
	reported := func(ids ...string) string {
		return `{"batchItemFailures":[{"itemIdentifier":"` + strings.Join(ids, `"},{"itemIdentifier":"`) + `"}]}`
	}
	tests := map[string]struct {
		response        string
		err             error
		deleted, failed []string
	}{
		"null is success":                            {response: `null`, deleted: ids},
		"an empty object is success":                 {response: `{}`, deleted: ids},
		"an empty list is success":                   {response: `{"batchItemFailures":[]}`, deleted: ids},
		"a null list is success":                     {response: `{"batchItemFailures":null}`, deleted: ids},
		"an empty response is success":               {deleted: ids},
		"another spelling of the list is success":    {response: `{"BatchItemFailures":[{"itemIdentifier":"a"}]}`, deleted: ids},
		"a reported message stays":                   {response: reported("a"), deleted: ids[1:], failed: ids[:1]},
		"reported twice is reported once":            {response: reported("a", "a"), deleted: ids[1:], failed: ids[:1]},
		"all reported stay":                          {response: reported("b", "a"), failed: ids},
		"an error is failure, whatever the response": {response: `{}`, err: errors.New("pretend"), failed: ids},
		"invalid JSON is failure":                    {response: `{"batchItemFailures":[`, failed: ids},
		"JSON that is not an object is failure":      {response: `"ok"`, failed: ids},
		"a list of another kind is failure":          {response: `{"batchItemFailures":["a"]}`, failed: ids},
		"an empty identifier is failure":             {response: reported("a", ""), failed: ids},
		"a null identifier is failure":               {response: `{"batchItemFailures":[{"itemIdentifier":null}]}`, failed: ids},
		"an identifier under another key is failure": {response: `{"batchItemFailures":[{"ItemIdentifier":"a"}]}`, failed: ids},
		"an unknown identifier is failure":           {response: reported("c"), failed: ids},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deleted, failed := sqstest.Verdict(ids, []byte(tt.response), tt.err)
			if diff := cmp.Diff([][]string{deleted, failed}, [][]string{tt.deleted, tt.failed}); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

// Lambda developer guide, "Example standard queue message event", as in aws-lambda-go.
func TestAnEventIsTheOneThatLambdaSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendTo("orders", sqstest.Draft{Body: `{"a":"<é>"}`, Attributes: map[string]sqstest.Attribute{
		"text": sqstest.Text("x"), "bytes": {Type: "Binary", Binary: []byte{1}},
	}})
	m := w.one("orders")
	decoder := json.NewDecoder(strings.NewReader(string(sqstest.Event("orders", []sqstest.Message{m}))))
	decoder.DisallowUnknownFields()
	var got events.SQSEvent
	w.must(decoder.Decode(&got))
	want := events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: m.ID, ReceiptHandle: m.Receipt, Body: `{"a":"<é>"}`,
		Md5OfBody: "b92ba41755973cd1c20e9fd4c0173ab3", Md5OfMessageAttributes: "ba436c18e396f5eb35a1e3ea67b618cf",
		Attributes: map[string]string{
			"ApproximateReceiveCount": "1", "SentTimestamp": "1767323045000", "ApproximateFirstReceiveTimestamp": "1767323045000",
			"SenderId": "AIDAPRETENDSENDER",
		},
		MessageAttributes: map[string]events.SQSMessageAttribute{
			"text":  {DataType: "String", StringValue: new("x"), StringListValues: []string{}, BinaryListValues: [][]byte{}},
			"bytes": {DataType: "Binary", BinaryValue: []byte{1}, StringListValues: []string{}, BinaryListValues: [][]byte{}},
		},
		EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:orders", AWSRegion: "us-east-1",
	}}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

// Lambda developer guide, "Example FIFO queue message event".
func TestAnEventOfAFIFOQueueHasGroupAndSequence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.line("a1")[0]
	var got events.SQSEvent
	w.must(json.Unmarshal(sqstest.Event("orders.fifo", w.take(1)), &got))
	want := map[string]string{
		"ApproximateReceiveCount": "1", "SentTimestamp": "1767323045000", "ApproximateFirstReceiveTimestamp": "1767323045000",
		"SenderId": "AIDAPRETENDSENDER", "MessageGroupId": "a", "SequenceNumber": sent.Sequence,
		"MessageDeduplicationId": "f55ff16f66f43360266b95db6f8fec01d76031054306ae4a4b380598f6cfd114", // SHA-256 of the body
	}
	if diff := cmp.Diff(got.Records[0].Attributes, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

// feed is a server with a mapping, and records the batches.
type feed struct {
	*testServer
	sqstest.Mapping

	mu      sync.Mutex
	batches []sqstest.Batch
}

func newFeed(t *testing.T, invoke func(context.Context, events.SQSEvent) (any, error)) *feed {
	t.Helper()
	f := &feed{testServer: newServer(t, sqstest.Options{})}
	f.Mapping = sqstest.Mapping{
		Server: f.testServer.Server, Queue: "orders", BatchSize: 10, Concurrency: 1,
		Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
			var event events.SQSEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				return nil, err
			}
			response, err := invoke(ctx, event)
			if err != nil {
				return nil, err
			}
			return json.Marshal(response)
		},
		Observe: func(b sqstest.Batch) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.batches = append(f.batches, b)
		},
	}
	return f
}

// put sends bodies before the mapping receives any of them. On a FIFO queue, the first
// letter of a body is its group.
func (f *feed) put(bodies ...string) {
	f.t.Helper()
	f.edit(func(m *sqstest.Machine, now time.Time) (err error) {
		for _, body := range bodies {
			d := sqstest.Draft{Body: body}
			if f.Queue == "orders.fifo" {
				d.Group = body[:1]
			}
			_, sendErr := m.Send(now, f.Queue, d)
			err = errors.Join(err, sendErr)
		}
		return err
	})
}

// useFIFO points the mapping to a new FIFO queue.
func (f *feed) useFIFO() {
	f.t.Helper()
	f.Queue = "orders.fifo"
	f.create(f.Queue, func(s *sqstest.Settings) { s.FIFO, s.ContentDeduplication = true, true })
}

// run starts the mapping and returns a function that stops it.
func (f *feed) run() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return func() {
		f.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
}

// drain runs the mapping until the queue is empty, and moves the clock so that failed
// messages become visible.
func (f *feed) drain() {
	f.t.Helper()
	stop := f.run()
	defer stop()
	drained := make(chan error)
	go func() { drained <- f.Drained(f.t.Context()) }()
	for {
		select {
		case err := <-drained:
			if err != nil {
				f.t.Error(err)
			}
			return
		case <-time.After(time.Millisecond): // gives the function time; the outcome does not depend on it
			f.add(time.Second)
			f.Wake()
		}
	}
}

// bodies describes the batches: body and receives of each message, and how many were
// deleted, failed and lost.
func (f *feed) bodies() (got []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
		var all []string
		for _, m := range b.Messages {
			all = append(all, fmt.Sprint(m.Body, m.Receives))
		}
		fate := fmt.Sprintf("%d deleted, %d failed, %d lost", len(b.Deleted), len(b.Failed), len(b.Lost))
		got = append(got, strings.Join(all, " ")+": "+fate)
	}
	return got
}

func failing(ids ...string) events.SQSEventResponse {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, id := range ids {
		out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return out
}

func succeed(context.Context, events.SQSEvent) (any, error) { return failing(), nil }

// firstDelivery reports whether this is the first delivery of a record.
func firstDelivery(r events.SQSMessage) bool { return r.Attributes["ApproximateReceiveCount"] == "1" }

func TestAMapping(t *testing.T) {
	t.Parallel()
	const done, failed = ": 1 deleted, 0 failed, 0 lost", ": 0 deleted, 1 failed, 0 lost"
	for claim, tt := range map[string]struct {
		queue  func(f *feed)
		invoke func(ctx context.Context, e events.SQSEvent) (any, error)
		want   []string
	}{
		// Lambda developer guide, "Implementing partial batch responses": only the failed
		// messages become visible again.
		"redelivers only a failed message": {
			func(f *feed) { f.put("a", "b", "c") },
			func(_ context.Context, e events.SQSEvent) (any, error) {
				if first := e.Records[0]; firstDelivery(first) {
					return failing(first.MessageId), nil
				}
				return failing(), nil
			},
			[]string{"a1 b1 c1: 2 deleted, 1 failed, 0 lost", "a2" + done},
		},
		// The same guide: a function error fails the whole batch; after the visibility
		// timeout it is redelivered, and then dead-lettered.
		"continues after a message whose function failed is dead-lettered": {
			func(f *feed) { f.BatchSize = 1; f.put("poison", "a") },
			func(_ context.Context, e events.SQSEvent) (any, error) {
				if e.Records[0].Body == "poison" {
					return nil, errors.New("pretend")
				}
				return failing(), nil
			},
			[]string{"poison1" + failed, "a1" + done, "poison2" + failed},
		},
		// Lambda developer guide, "Configuring scaling behavior for SQS event source
		// mappings": "If your function returns an error, the function attempts all retries
		// on the affected messages before Lambda receives additional messages from the
		// same group".
		"delays only the group of a failed message": {
			func(f *feed) { f.BatchSize = 1; f.useFIFO(); f.put("a1", "a2", "b1") },
			func(_ context.Context, e events.SQSEvent) (any, error) {
				if r := e.Records[0]; r.Body == "a1" && firstDelivery(r) {
					return nil, errors.New("pretend")
				}
				return failing(), nil
			},
			[]string{"a11" + failed, "b11" + done, "a12" + done, "a21" + done},
		},
		"can deliver a duplicate in the same batch": {
			func(f *feed) {
				f.Duplicate = func(sqstest.Message) sqstest.Twice { return sqstest.InSameBatch }
				f.put("a", "b")
			},
			succeed,
			[]string{"a1 a1 b1 b1: 4 deleted, 0 failed, 0 lost"},
		},
		"redelivers a message with a lost delete": {
			func(f *feed) {
				f.LoseDelete = func(m sqstest.Message) bool { return m.Body == "a" && m.Receives == 1 }
				f.put("a", "b")
			},
			succeed,
			[]string{"a1 b1: 1 deleted, 0 failed, 1 lost", "a2" + done},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			f := newFeed(t, tt.invoke)
			tt.queue(f)
			f.drain()
			if diff := cmp.Diff(f.bodies(), tt.want); diff != "" {
				t.Errorf("batches (-got +want):\n%s", diff)
			}
		})
	}
}

func TestTheFunctionMayChangeTheVisibilityOfItsMessage(t *testing.T) {
	t.Parallel()
	var f *feed
	f = newFeed(t, func(_ context.Context, e events.SQSEvent) (any, error) {
		if !firstDelivery(e.Records[0]) {
			return failing(), nil
		}
		f.edit(func(m *sqstest.Machine, now time.Time) error {
			return m.ChangeVisibility(now, "orders", e.Records[0].ReceiptHandle, 0)
		})
		return failing(e.Records[0].MessageId), nil
	})
	f.put("a")
	stop := f.run()
	defer stop()
	if err := f.Drained(t.Context()); err != nil { // the clock does not move
		t.Error(err)
	}
	// after Drained the last batch has been observed
	want := []string{"a1: 0 deleted, 1 failed, 0 lost", "a2: 1 deleted, 0 failed, 0 lost"}
	if diff := cmp.Diff(f.bodies(), want); diff != "" {
		t.Errorf("batches (-got +want):\n%s", diff)
	}
}

func TestAQueueIsNotDrainedBeforeItsLastBatchIsObserved(t *testing.T) {
	t.Parallel()
	f := newFeed(t, succeed)
	observe := f.Observe
	f.Observe = func(b sqstest.Batch) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.Drained(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v from within Observe, want %v", err, context.Canceled)
		}
		observe(b)
	}
	f.put("a")
	f.drain()
	want := []string{"a1: 1 deleted, 0 failed, 0 lost"}
	if diff := cmp.Diff(f.bodies(), want); diff != "" {
		t.Errorf("batches (-got +want):\n%s", diff)
	}
}

func TestADuplicateMayRunInASecondInvocation(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	f := newFeed(t, func(context.Context, events.SQSEvent) (any, error) {
		both.Done()
		both.Wait() // returns only if the other one runs now
		return failing(), nil
	})
	f.Duplicate = func(sqstest.Message) sqstest.Twice { return sqstest.AtOnceBeside }
	f.put("a")
	f.drain()
	want := []string{"a1: 1 deleted, 0 failed, 0 lost", "a1: 1 deleted, 0 failed, 0 lost"}
	if diff := cmp.Diff(f.bodies(), want); diff != "" {
		t.Errorf("batches (-got +want):\n%s", diff)
	}
}

// Lambda developer guide, "Batching behavior": a batch ends at its size or at 6 MB.
func TestABatchEnds(t *testing.T) {
	t.Parallel()
	sizes := func(f *feed) (got []int) {
		for _, b := range f.batches {
			got = append(got, len(b.Messages))
		}
		return got
	}
	t.Run("at its size", func(t *testing.T) {
		t.Parallel()
		f := newFeed(t, succeed)
		f.BatchSize = 4
		f.put("a", "b", "c", "d", "e", "f", "g", "h", "i")
		f.drain()
		if diff := cmp.Diff(sizes(f), []int{4, 4, 1}); diff != "" {
			t.Errorf("mismatch (-got +want):\n%s", diff)
		}
	})
	t.Run("at 6 MB", func(t *testing.T) {
		t.Parallel()
		f := newFeed(t, succeed)
		invoke := f.Invoke
		f.Invoke = func(ctx context.Context, payload []byte) ([]byte, error) {
			if len(payload) > sqstest.MaxPayload {
				t.Errorf("got a payload of %d bytes, want at most %d", len(payload), sqstest.MaxPayload)
			}
			return invoke(ctx, payload)
		}
		f.put(slices.Repeat([]string{strings.Repeat("a", 1<<20)}, 7)...)
		f.drain()
		if diff := cmp.Diff(sizes(f), []int{5, 2}); diff != "" {
			t.Errorf("mismatch (-got +want):\n%s", diff)
		}
	})
}

func TestInvocationsRunAtTheSameTimeUpToTheConcurrency(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	gate := make(chan struct{})
	f := newFeed(t, func(context.Context, events.SQSEvent) (any, error) {
		mu.Lock()
		running++
		if most = max(most, running); most == 3 && running == 3 {
			select {
			case <-gate:
			default:
				close(gate) // opens when three run at once
			}
		}
		mu.Unlock()
		<-gate
		mu.Lock()
		defer mu.Unlock()
		running--
		return failing(), nil
	})
	f.Concurrency, f.BatchSize = 3, 1
	f.put("a", "b", "c", "d", "e", "f")
	f.drain()
	if most != 3 {
		t.Errorf("got %d invocations at once, want 3", most)
	}
}

// Lambda developer guide, "Configuring scaling behavior for SQS event source mappings":
// "For FIFO queues, concurrent invocations are capped either by the number of message
// group IDs or the maximum concurrency setting"; "the order of the messages is
// maintained".
func TestAGroupIsInOneInvocationAtATimeAndInOrder(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, handled := map[string]bool{}, map[string]string{}
	f := newFeed(t, func(_ context.Context, e events.SQSEvent) (any, error) {
		group := e.Records[0].Attributes["MessageGroupId"]
		mu.Lock()
		if running[group] {
			t.Errorf("group %s is in two invocations", group)
		}
		running[group] = true
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		defer mu.Unlock()
		running[group] = false
		for _, r := range e.Records {
			handled[group] += r.Body
		}
		return failing(), nil
	})
	f.Concurrency, f.BatchSize = 4, 2
	var bodies []string
	want := map[string]string{}
	for i := range 60 {
		body := string(rune('a'+i%3)) + strconv.Itoa(i)
		bodies = append(bodies, body)
		want[body[:1]] += body
	}
	f.useFIFO()
	f.put(bodies...)
	f.drain()
	if diff := cmp.Diff(handled, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

func TestRunWaitsForARunningInvocation(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	f := newFeed(t, func(ctx context.Context, _ events.SQSEvent) (any, error) {
		close(begun)
		<-finish
		return failing(), ctx.Err()
	})
	f.put("a")
	stop := f.run()
	<-begun
	go close(finish)
	stop()
	want := []string{"a1: 1 deleted, 0 failed, 0 lost"}
	if diff := cmp.Diff(f.bodies(), want); diff != "" {
		t.Errorf("batches (-got +want):\n%s", diff)
	}
}

func TestAStoppedMappingReceivesNoMoreMessages(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := newFeed(t, func(context.Context, events.SQSEvent) (any, error) {
		cancel()
		return failing(), nil
	})
	f.BatchSize = 1
	f.put("a", "b", "c")
	if err := f.Run(ctx); err != nil {
		t.Error(err)
	}
	want := []string{"a1: 1 deleted, 0 failed, 0 lost"}
	if diff := cmp.Diff(f.bodies(), want); diff != "" {
		t.Errorf("batches (-got +want):\n%s", diff)
	}
}

// Lambda developer guide, "Lambda parameters for Amazon SQS event source mappings";
// Lambda API reference, CreateEventSourceMapping: BatchSize is at most 10 without a
// batching window; ScalingConfig: MaximumConcurrency is at most 1,000.
func TestCheckRejects(t *testing.T) {
	t.Parallel()
	f := newFeed(t, succeed)
	tests := map[string]func(*sqstest.Mapping){
		"no batch size":          func(m *sqstest.Mapping) { m.BatchSize = 0 },
		"11 in a batch":          func(m *sqstest.Mapping) { m.BatchSize = 11 },
		"no concurrency":         func(m *sqstest.Mapping) { m.Concurrency = 0 },
		"a concurrency of 1,001": func(m *sqstest.Mapping) { m.Concurrency = 1001 },
		"an unknown queue":       func(m *sqstest.Mapping) { m.Queue = "nowhere" },
	}
	for name, change := range tests {
		m := f.Mapping
		change(&m)
		if err := m.Check(); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	none := sqstest.Mapping{Server: f.Mapping.Server, Queue: "nowhere"}
	if err := none.Run(t.Context()); code(err) != sqstest.CodeQueueDoesNotExist {
		t.Errorf("Run with invalid settings: got %v, want %s", err, sqstest.CodeQueueDoesNotExist)
	}
	widest := f.Mapping
	widest.BatchSize, widest.Concurrency, widest.FunctionTimeout = 10, 1000, 30*time.Second
	if err := widest.Check(); err != nil {
		t.Errorf("got %v, want no error at the limits", err)
	}
}

// Lambda checks this when a mapping is created, because otherwise a message would be
// redelivered while the function processes it. Lambda developer guide, "Configuring a
// queue to use with Lambda", advises six times the function's timeout.
func TestTheFunctionTimeoutIsAtMostTheVisibilityTimeout(t *testing.T) {
	t.Parallel()
	f := newFeed(t, succeed)
	f.FunctionTimeout = 31 * time.Second
	want := `mapping of queue "orders": queue visibility timeout: 30 seconds is less than Function timeout: 31 seconds`
	if err := f.Check(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
