package sqstest_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/sqs/sqstest"
)

// park sends messages to the dead-letter queue, where nobody knows their source.
func (w *world) park(bodies ...string) {
	w.t.Helper()
	for _, body := range bodies {
		_, err := w.Send(w.now, "dead", sqstest.Draft{Body: body})
		w.must(err)
	}
}

// API reference, StartMessageMoveTask, and its failure reason CouldNotDetermineMessageSource: a message that was sent to the
// dead-letter queue has no source.
func TestAMessageSentToTheDeadLetterQueueNeedsANamedDestination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("parked")
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

// API reference, StartMessageMoveTask: both are queues, "only ARNs of dead-letter queues" are sources; SQS developer guide, "Learn how to
// configure a dead-letter queue redrive": both are of the same type. It is so with nothing to move, too.
func TestWhereMessagesMayNotBeMoved(t *testing.T) {
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
		_, redriven := w.Redrive(w.now, tt.from, tt.to)
		_, started := w.StartMove(w.now, tt.from, tt.to, 0)
		if got := [2]string{code(redriven), code(started)}; got != [2]string{tt.want, tt.want} {
			t.Errorf("from %s to %q: got %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}

// API reference, StartMessageMoveTask: MaxNumberOfMessagesPerSecond; ListMessageMoveTasks and CancelMessageMoveTask: "Cancelling a message
// movement task does not revert the messages that have already been moved".
func TestAMoveTaskWithARateRunsByTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("a", "b", "c", "d", "e")
	handle, err := w.StartMove(w.now, "dead", "orders", 2)
	w.must(err)
	moved := func(want int) {
		t.Helper()
		if got := w.Moves(w.now, "dead")[0].Moved; got != want {
			t.Errorf("got %d moved after %v, want %d", got, w.now.Sub(start()), want)
		}
	}
	moved(1)
	if _, err := w.StartMove(w.now, "dead", "orders", 0); code(err) != sqstest.CodeInvalidParameterValue {
		t.Errorf("got %v for a second task, want %q", err, sqstest.CodeInvalidParameterValue) // "Only one active task"
	}
	if next, ok := w.Next(w.now); !ok || !next.Equal(start().Add(500*time.Millisecond)) {
		t.Errorf("got %v as the next moment, want half a second from the start", next)
	}
	w.pass(500*time.Millisecond - 1)
	moved(1)
	w.pass(501 * time.Millisecond) // two at once
	moved(3)
	n, err := w.CancelMove(w.now, handle)
	w.must(err)
	if n != 3 {
		t.Errorf("got %d moved when the task was canceled, want 3", n)
	}
	w.pass(time.Hour)
	want := []sqstest.Move{{
		Handle: handle, From: "dead", To: "orders", Rate: 2, Status: sqstest.MoveCancelled, Started: start(), Planned: 5, Moved: 3,
	}}
	if diff := cmp.Diff(w.Moves(w.now, "dead"), want); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	messages, err := w.Messages(w.now, "orders")
	w.must(err)
	for i, m := range messages { // each is new at its own moment, whenever somebody looked
		if sent := start().Add(time.Duration(i) * 500 * time.Millisecond); !m.Sent.Equal(sent) {
			t.Errorf("message %d was sent at %v, want %v", i, m.Sent, sent)
		}
	}
	if _, err := w.CancelMove(w.now, handle); code(err) != sqstest.CodeUnsupportedOperation {
		t.Errorf("got %v for a task that is over, want %q", err, sqstest.CodeUnsupportedOperation)
	}
}

func TestAMoveTaskEndsWith(t *testing.T) {
	t.Parallel()
	end := func(w *world) string {
		w.pass(time.Hour)
		task := w.Moves(w.now, "dead")[0]
		return string(task.Status) + " " + task.Failure
	}
	t.Run("what was there at its start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.park("a", "b")
		_, err := w.StartMove(w.now, "dead", "orders", 1)
		w.must(err)
		w.park("late")
		if got, want := end(w), "COMPLETED "; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := w.counts("dead").Visible; got != 1 {
			t.Errorf("got %d left, want the late one", got)
		}
		if got := w.counts("orders").Arrived; got != 2 {
			t.Errorf("got %d moved, want 2", got)
		}
	})
	t.Run("nothing left", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.park("a", "b")
		_, err := w.StartMove(w.now, "dead", "orders", 1)
		w.must(err)
		w.one("dead") // somebody else has it
		w.pass(time.Second)
		if got := w.Moves(w.now, "dead")[0]; got.Status != sqstest.MoveCompleted || got.Moved != 1 {
			t.Errorf("got %+v, want it completed with one moved", got)
		}
	})
	t.Run("a message without a source", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.send("a")
		for range 3 {
			w.receive("orders")
			w.pass(30 * time.Second)
		}
		w.park("parked")
		_, err := w.StartMove(w.now, "dead", "", 1)
		w.must(err)
		if got, want := end(w), "FAILED "+sqstest.CodeNoSource; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := w.counts("dead"); got.Redriven != 1 || got.Visible != 1 {
			t.Errorf("got %+v, want one moved before and one left", got)
		}
	})
}

func TestACloneMovesByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.park("a", "b")
	handle, err := w.StartMove(w.now, "dead", "orders", 1)
	w.must(err)
	twin := &world{Machine: w.Clone(), t: t, now: w.now}
	before := string(w.AppendState(nil))
	_, err = twin.CancelMove(twin.now, handle)
	twin.must(err)
	if string(w.AppendState(nil)) != before || string(twin.AppendState(nil)) == before {
		t.Error("canceling a clone's task has to change the clone's state and no other")
	}
	w.pass(time.Second)
	twin.pass(time.Second)
	if got := [2]int{w.counts("dead").Visible, twin.counts("dead").Visible}; got != [2]int{0, 1} {
		t.Errorf("got %v left in both, want 0 and 1", got)
	}
}

// API reference, ListMessageMoveTasks: "The upper limit is 10".
func TestTenTasksAreRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handles := map[string]bool{}
	for range 12 {
		handle, err := w.StartMove(w.now, "dead", "orders", 0)
		w.must(err)
		handles[handle] = true
	}
	if got := len(w.Moves(w.now, "dead")); got != 10 || len(handles) != 12 {
		t.Errorf("got %d tasks and %d handles, want 10 and 12 different ones", got, len(handles))
	}
}

// startMove starts a task through the SDK; a rate of nil is none.
func (f *face) startMove(source, destination string, rate *int32) (handle string, err error) {
	in := &sqs.StartMessageMoveTaskInput{SourceArn: &source, MaxNumberOfMessagesPerSecond: rate}
	if destination != "" {
		in.DestinationArn = &destination
	}
	out, err := f.sdk.StartMessageMoveTask(f.t.Context(), in)
	if err != nil {
		return "", err
	}
	return *out.TaskHandle, nil
}

func (f *face) moves(source string, limit *int32) []types.ListMessageMoveTasksResultEntry {
	f.t.Helper()
	out, err := f.sdk.ListMessageMoveTasks(f.t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: &source, MaxResults: limit})
	if err != nil {
		f.t.Fatal(err)
	}
	return out.Results
}

func (f *face) park(bodies ...string) {
	f.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, body := range bodies {
			if _, err := m.Send(now, "dead", sqstest.Draft{Body: body}); err != nil {
				f.t.Error(err)
			}
		}
	})
}

// API reference, ListMessageMoveTasks: FailureReason, CouldNotDetermineMessageSource for messages that were sent to the queue.
func TestAMoveTaskFailsUntilItsDestinationIsNamed(t *testing.T) {
	t.Parallel()
	f := newFace(t, sqstest.Options{})
	ctx, dead := t.Context(), sqstest.ARN("dead")
	f.park("parked")
	for _, destination := range []string{"", sqstest.ARN("orders")} {
		if _, err := f.startMove(dead, destination, nil); err != nil {
			t.Fatal(err)
		}
		f.add(time.Second)
	}
	tasks := f.moves(dead, aws.Int32(10))
	if len(tasks) != 2 || *tasks[0].Status != "COMPLETED" || tasks[0].ApproximateNumberOfMessagesMoved != 1 {
		t.Fatalf("got %+v, want the latest of two tasks to have moved one message", tasks)
	}
	if got := tasks[1]; *got.Status != "FAILED" || *got.FailureReason != sqstest.CodeNoSource {
		t.Errorf("got %s, %s for the task without a destination", *got.Status, *got.FailureReason)
	}
	if _, err := f.sdk.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &f.url}); err != nil {
		t.Fatal(err)
	}
	if got := f.receive(sqs.ReceiveMessageInput{}); len(got) != 0 {
		t.Errorf("got %d messages after a purge, want none", len(got))
	}
	_, err := f.sdk.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &f.url})
	if got, want := apiCode(err), "AWS.SimpleQueueService.PurgeQueueInProgress"; got != want {
		t.Errorf("got %q for a second purge, want %q", got, want)
	}
}

// API reference, ListMessageMoveTasks: "The default is 1, which provides the most recent message movement task"; the handle "is only
// populated for tasks that are in RUNNING status".
func TestWhatAMoveTaskShows(t *testing.T) {
	t.Parallel()
	f := newFace(t, sqstest.Options{})
	dead, orders := sqstest.ARN("dead"), sqstest.ARN("orders")
	f.park("a", "b", "c")
	handle, err := f.startMove(dead, orders, aws.Int32(1))
	if err != nil {
		t.Fatal(err)
	}
	running := f.moves(dead, nil)
	want := []types.ListMessageMoveTasksResultEntry{{
		TaskHandle: &handle, SourceArn: &dead, DestinationArn: &orders, Status: aws.String("RUNNING"), StartedTimestamp: start().UnixMilli(),
		MaxNumberOfMessagesPerSecond: aws.Int32(1), ApproximateNumberOfMessagesToMove: aws.Int64(3), ApproximateNumberOfMessagesMoved: 1,
	}}
	if diff := cmp.Diff(running, want, cmpopts.IgnoreUnexported(want[0])); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	f.add(time.Second)
	out, err := f.sdk.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
	if err != nil || out.ApproximateNumberOfMessagesMoved != 2 {
		t.Errorf("got %+v, %v, want two moved", out, err)
	}
	if _, err := f.startMove(dead, "", nil); err != nil {
		t.Fatal(err)
	}
	both := f.moves(dead, aws.Int32(10))
	if len(both) != 2 || *both[1].Status != "CANCELLED" || both[1].TaskHandle != nil || both[0].MaxNumberOfMessagesPerSecond != nil {
		t.Errorf("got %+v, want the canceled task after one without a rate", both)
	}
}

// API reference, StartMessageMoveTask: at most 500 a second, ResourceNotFoundException; CancelMessageMoveTask: a task that runs.
func TestWhatMoveTasksRefuse(t *testing.T) {
	t.Parallel()
	f := newFace(t, sqstest.Options{})
	const invalid, unknown = sqstest.CodeInvalidParameterValue, sqstest.CodeResourceNotFound
	dead, orders, nowhere := sqstest.ARN("dead"), sqstest.ARN("orders"), sqstest.ARN("nowhere")
	over, err := f.startMove(dead, orders, nil)
	if err != nil {
		t.Fatal(err)
	}
	handle := func(task, source string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"taskId":"` + task + `","sourceArn":"` + source + `"}`))
	}
	start := func(source, destination string, rate *int32) error {
		_, err := f.startMove(source, destination, rate)
		return err
	}
	list := func(source string) error {
		_, err := f.sdk.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: &source, MaxResults: aws.Int32(11)})
		return err
	}
	abort := func(handle string) error {
		_, err := f.sdk.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: &handle})
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a rate of 0":            {start(dead, orders, aws.Int32(0)), invalid},
		"a rate of 501":          {start(dead, orders, aws.Int32(501)), invalid},
		"no source":              {start("", orders, nil), sqstest.CodeMissingParameter},
		"an unknown source":      {start(nowhere, orders, nil), unknown},
		"an unknown destination": {start(dead, nowhere, nil), unknown},
		"a name for a source":    {start("dead", orders, nil), unknown},
		"another region":         {start(dead, "arn:aws:sqs:eu-west-1:000000000000:orders", nil), unknown},
		"itself":                 {start(dead, dead, nil), invalid},
		"11 tasks":               {list(dead), invalid},
		"no task":                {abort(""), sqstest.CodeMissingParameter},
		"no handle":              {abort("task"), invalid},
		"a handle of nothing":    {abort(handle("", "")), invalid},
		"a source that is gone":  {abort(handle("x", nowhere)), unknown},
		"a task that never was":  {abort(handle("x", dead)), unknown},
		"a task that is over":    {abort(over), "AWS.SimpleQueueService.UnsupportedOperation"},
	} {
		if got := apiCode(tt.err); got != tt.want {
			t.Errorf("%s: got %q (%v), want %q", name, got, tt.err, tt.want)
		}
		answer, ok := errors.AsType[*smithyhttp.ResponseError](tt.err)
		if notFound := ok && answer.HTTPStatusCode() == http.StatusNotFound; notFound != (tt.want == unknown) {
			t.Errorf("%s: got %v, want the status %d if the resource is unknown", name, tt.err, http.StatusNotFound)
		}
	}
}
