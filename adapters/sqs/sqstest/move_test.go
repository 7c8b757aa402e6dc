package sqstest_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// API reference, StartMessageMoveTask, and its failure reason
// CouldNotDetermineMessageSource: a message that was sent to the dead-letter queue has no
// source.
func TestAMessageSentToTheDeadLetterQueueNeedsANamedDestination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendTo("dead", sqstest.Draft{Body: "parked"})
	_, err := w.Redrive(w.now, "dead", "")
	if got, want := code(err), sqstest.CodeNoSource; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	moved, err := w.Redrive(w.now, "dead", "orders")
	w.must(err)
	if moved != 1 {
		t.Errorf("got %d moved to a named queue, want 1", moved)
	}
}

// API reference, StartMessageMoveTask: both are queues, "only ARNs of dead-letter queues"
// are sources; SQS developer guide, "Learn how to configure a dead-letter queue redrive":
// both are of the same type. These rules apply to an empty queue, too.
func TestRedriveRejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tt := range []struct{ from, to, want string }{
		{"nowhere", "orders", sqstest.CodeQueueDoesNotExist},
		{"dead", "nowhere", sqstest.CodeQueueDoesNotExist},
		{"orders", "dead", sqstest.CodeInvalidParameterValue}, // takes no dead letters
		{"dead", "dead", sqstest.CodeInvalidParameterValue},
		{"dead", "orders.fifo", sqstest.CodeInvalidParameterValue},
		{"dead", "orders", ""},
		{"dead", "", ""},
	} {
		_, err := w.Redrive(w.now, tt.from, tt.to)
		if got := code(err); got != tt.want {
			t.Errorf("from %s to %q: got %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

// API reference, StartMessageMoveTask: without a destination, messages go back to their
// source.
func TestStartMessageMoveTaskMovesAllVisibleMessagesAtOnce(t *testing.T) {
	t.Parallel()
	dead, orders := sqstest.ARN("dead"), sqstest.ARN("orders")
	for name, destination := range map[string]*string{"to their source": nil, "to a named queue": &orders} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newServer(t, sqstest.Options{})
			for _, body := range []string{"a", "b"} {
				if err := f.trySend(body); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 { // the third receive moves both to the dead-letter queue
				f.receive(sqs.ReceiveMessageInput{MaxNumberOfMessages: 10})
				f.add(30 * time.Second)
			}
			out, err := f.sdk.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{
				SourceArn: &dead, DestinationArn: destination,
			})
			if err != nil {
				t.Fatal(err)
			}
			if handle, err := base64.StdEncoding.DecodeString(*out.TaskHandle); err != nil || len(handle) == 0 {
				t.Errorf("task handle = %q, want base64", *out.TaskHandle)
			}
			var got []string
			for _, m := range f.receive(sqs.ReceiveMessageInput{MaxNumberOfMessages: 10}) {
				got = append(got, *m.Body)
			}
			if diff := cmp.Diff(got, []string{"a", "b"}); diff != "" {
				t.Errorf("received from the source queue (-got +want):\n%s", diff)
			}
		})
	}
}

// API reference, StartMessageMoveTask: ResourceNotFoundException, and the failure reason
// CouldNotDetermineMessageSource, which fails the call here.
func TestStartMessageMoveTaskRejects(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.url = f.QueueURL("dead")
	f.send() // a message without a source
	dead, orders, nowhere := sqstest.ARN("dead"), sqstest.ARN("orders"), sqstest.ARN("nowhere")
	type input = sqs.StartMessageMoveTaskInput
	for name, tt := range map[string]struct {
		in   input
		want string
	}{
		"an unknown source":            {input{SourceArn: &nowhere}, sqstest.CodeResourceNotFound},
		"a name instead of an ARN":     {input{SourceArn: aws.String("dead")}, sqstest.CodeResourceNotFound},
		"an empty source":              {input{SourceArn: aws.String("")}, sqstest.CodeMissingParameter},
		"a message without a source":   {input{SourceArn: &dead}, sqstest.CodeNoSource},
		"an unknown destination":       {input{SourceArn: &dead, DestinationArn: &nowhere}, sqstest.CodeResourceNotFound},
		"a queue without dead letters": {input{SourceArn: &orders}, sqstest.CodeInvalidParameterValue},
		"a rate": {
			input{SourceArn: &dead, MaxNumberOfMessagesPerSecond: aws.Int32(1)},
			"AWS.SimpleQueueService.UnsupportedOperation",
		},
	} {
		_, err := f.sdk.StartMessageMoveTask(t.Context(), &tt.in)
		if got := apiCode(err); got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, tt.want)
		}
	}
}

func TestAQueueIsNotItsOwnDeadLetterQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.Settings("orders")
	w.must(err)
	s.DeadLetters = "orders"
	if got, want := code(w.Configure(w.now, "orders", s)), sqstest.CodeInvalidParameterValue; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestACycleOfDeadLetterQueuesDoesNotLoop(t *testing.T) {
	t.Parallel()
	f := newServer(t, sqstest.Options{})
	f.edit(func(m *sqstest.Machine, now time.Time) error {
		picks := 0
		m.Pick = func(int) int {
			if picks++; picks > 100 {
				panic("Receive does not end")
			}
			return 0
		}
		back := sqstest.DefaultSettings()
		back.DeadLetters, back.MaxReceives = "orders", 1
		return m.Configure(now, "dead", back)
	})
	f.send()
	f.receive(sqs.ReceiveMessageInput{VisibilityTimeout: 1})
	f.add(time.Second)
	f.receive(sqs.ReceiveMessageInput{VisibilityTimeout: 10}) // the last one that the policy allows
	orders := f.polling(t.Context())
	f.url = f.QueueURL("dead")
	dead := f.polling(t.Context())
	for _, wait := range []time.Duration{10 * time.Second, 10 * time.Second} { // until it is visible, until the polls are over
		f.add(wait)
		f.Wake()
	}
	if a, b := <-orders, <-dead; len(a)+len(b) != 0 {
		t.Errorf("got %v and %v, want no message", a, b)
	}
	if a, b := f.counts("orders"), f.counts("dead"); a.Visible+b.Visible != 1 {
		t.Errorf("got %+v and %+v, want the message in one of them", a, b)
	}
}
