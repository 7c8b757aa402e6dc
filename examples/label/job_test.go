package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// One kill at each call, before or after its effect, and a second one at each call of the
// next attempt.
func TestAKillAtEveryCallTakesEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const calls = 5
	for first := range 2 * calls {
		for second := range 2 * (calls + 1) {
			id := order.ID(fmt.Sprintf("ORD-%d-%d", first, second))
			for _, n := range []int{first, second} {
				w.atCall(1+n/2, fault{kill: true, after: n%2 == 1})
				w.deliver(id, content)
				w.later(time.Hour)
			}
			w.settles(id, "killed at", first, second)
		}
	}
}

func TestDuplicatesTakeEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var workers sync.WaitGroup
	for i := range 20 {
		workers.Go(func() { w.deliver(order.ID(fmt.Sprintf("ORD-%d", i%5)), content) })
	}
	workers.Wait()
	for i := range 5 {
		w.settles(order.ID(fmt.Sprintf("ORD-%d", i)))
	}
}

func TestADuplicateIsDoneAndWhatNoRetryHelpsIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settles("ORD-1")
	if calls := w.settles("ORD-1"); len(calls) != 1 {
		t.Errorf("a duplicate made the calls %q, want one", calls)
	}
	if r := w.deliver("ORD-1", other); r.Verdict != order.Park || r.Reason != order.ReasonConflict {
		t.Errorf("other content: got %+v, want it parked as a conflict", r)
	}
	for _, body := range []string{"", "{}", body("no id", content), body("ORD-1", "")} {
		if _, err := w.job.Task(body); err == nil {
			t.Errorf("message %q: accepted", body)
		}
	}
}

// The table's contract: who may write when.
func TestOneAttemptAtATimeMayWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const begin = ""
	for i, step := range []struct {
		owner   string
		at      int // minutes; a lease ends with its minute
		content string
		may     string // condition, or begin
		set     string
		object  string
		want    order.Reason
	}{
		{"one", 0, content, begin, "", "", order.ReasonSettled},
		{"one", 0, content, begin, "", "", order.ReasonSettled}, // the answer was lost
		{"two", 0, content, begin, "", "", order.ReasonInProgress},
		{"two", 2, other, begin, "", "", order.ReasonConflict},
		{"two", 2, content, begin, "", "", order.ReasonSettled},
		{"one", 2, content, mayBind, bind, "obj_1", order.ReasonClaimLost},
		{"two", 2, content, mayBind, bind, "obj_1", order.ReasonSettled},
		{"two", 2, content, mayBind, bind, "obj_2", order.ReasonClaimLost},
		{"two", 2, content, mayFinish, finish, "obj_2", order.ReasonClaimLost},
		{"one", 3, content, claimed, release, "", order.ReasonClaimLost},
		{"one", 3, content, mayFinish, finish, "obj_1", order.ReasonClaimLost},
		{"two", 3, content, claimed, release, "", order.ReasonSettled},
		{"one", 4, content, begin, "", "", order.ReasonSettled},
		{"one", 4, content, mayFinish, finish, "obj_1", order.ReasonSettled},
		{"two", 9, content, begin, "", "", order.ReasonDuplicate},
	} {
		var m message
		w.must(json.Unmarshal([]byte(body("ORD-1", step.content)), &m))
		from := w.now.Add(time.Duration(step.at) * time.Minute)
		l := order.Lease{Owner: step.owner, From: from, Until: from.Add(time.Minute)}
		var err error
		if step.may == begin {
			_, err = w.job.Table.begin(t.Context(), m, l)
		} else {
			_, err = w.job.Table.write(t.Context(), m, Object{ID: step.object, Status: "done"}, l, step.may, step.set)
		}
		if got := order.ResultOf(err).Reason; got != step.want {
			t.Errorf("step %d %+v: got %s", i, step, got)
		}
	}
}

// The compiled function, with its wiring, between a queue, the table and the provider.
func TestTheFunctionTakesEffectOnce(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	w := newWorld(t)
	queue, err := sqstest.Serve(sqstest.Options{Now: time.Now})
	w.must(err)
	t.Cleanup(func() { _ = queue.Close() })
	var batch []sqstest.Message
	queue.Machine(func(m *sqstest.Machine, now time.Time) {
		w.must(m.Create(now, "jobs", sqstest.DefaultSettings()))
		for range 2 { // the second is a duplicate
			_, err := m.Send(now, "jobs", sqstest.Draft{Body: body("ORD-1", content)})
			w.must(err)
		}
		batch, err = m.Receive(now, "jobs", 10, nil)
		w.must(err)
	})
	binary := filepath.Join(t.TempDir(), "label")
	w.must(lambdatest.Build(t.Context(), "examples/label", binary))
	host, err := lambdatest.Start(lambdatest.Options{Binary: binary, Timeout: 15 * time.Second, Env: map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": w.table.Proxy.URL, "AWS_ENDPOINT_URL_SQS": queue.URL,
		"LABEL_TABLE": w.job.Table.Name, "QUEUE_URL": queue.QueueURL("jobs"), "SCOPE": "test",
		"DEAD_LETTER_QUEUE_URL": queue.QueueURL("jobs"), "LABEL_URL": w.job.Provider.URL,
	}})
	w.must(err)
	t.Cleanup(func() { _ = host.Close() })
	response, err := host.Invoke(t.Context(), sqstest.Event("jobs", batch))
	done, failed := sqstest.Verdict([]string{batch[0].ID, batch[1].ID}, response, err)
	if len(done) != 2 || w.effects("ORD-1") != 1 {
		t.Errorf("%d effects, %v, %v and %v failed, want 1 and none", w.effects("ORD-1"), err, done, failed)
	}
}
