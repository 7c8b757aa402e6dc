package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/baselines"
)

// batch is an event of records with an id each and the body that says what a design makes of it; "group/id" is a FIFO record.
func batch(records ...string) (e events.SQSEvent) {
	for _, text := range records {
		name, body, _ := strings.Cut(text, "=")
		group, id, fifo := strings.Cut(name, "/")
		r := events.SQSMessage{MessageId: name, Body: body}
		if fifo {
			r.MessageId, r.Attributes = id, map[string]string{"MessageGroupId": group}
		}
		e.Records = append(e.Records, r)
	}
	return e
}

// obedient is a design that does what a body says, and notes whom it was given.
func obedient(seen *[]string) baselines.Handler {
	var mu sync.Mutex
	return func(_ context.Context, _ baselines.Env, m baselines.Message) error {
		mu.Lock()
		defer mu.Unlock()
		*seen = append(*seen, m.ID)
		switch m.Body {
		case "fail":
			return errors.New("no")
		case "panic":
			panic("no")
		}
		return nil
	}
}

func TestHandle(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		event        events.SQSEvent
		failed, seen []string
	}{
		"what is done is deleted":                     {batch("1=ok", "2=ok"), []string{}, []string{"1", "2"}},
		"what fails comes back alone":                 {batch("1=ok", "2=fail", "3=ok"), []string{"2"}, []string{"1", "2", "3"}},
		"a panic fails its own record":                {batch("1=ok", "2=panic", "3=ok"), []string{"2"}, []string{"1", "2", "3"}},
		"a FIFO group stops at its first failure":     {batch("g/1=ok", "g/2=fail", "g/3=ok"), []string{"2", "3"}, []string{"1", "2"}},
		"a FIFO group stops at a panic":               {batch("g/1=panic", "g/2=ok"), []string{"1", "2"}, []string{"1"}},
		"another FIFO group goes on":                  {batch("g/1=fail", "h/2=ok", "g/3=ok"), []string{"1", "3"}, []string{"1", "2"}},
		"an empty batch is answered, and not by null": {batch(), []string{}, nil},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var seen []string
			f := &function{design: baselines.Design{Handle: obedient(&seen)}, timeout: time.Minute}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			answer, err := f.handle(ctx, tt.event)
			if err != nil || answer.BatchItemFailures == nil {
				t.Fatalf("failures %v, %v, want a list that is not nil", answer.BatchItemFailures, err)
			}
			failed := []string{}
			for _, item := range answer.BatchItemFailures {
				failed = append(failed, item.ItemIdentifier)
			}
			slices.Sort(failed) // groups run side by side
			slices.Sort(seen)
			if diff := cmp.Diff(failed, tt.failed); diff != "" {
				t.Errorf("failed: - got, + want:\n%s", diff)
			}
			if diff := cmp.Diff(seen, tt.seen); diff != "" {
				t.Errorf("handled: - got, + want:\n%s", diff)
			}
		})
	}
}

func TestARecordIsGivenWholeWithADeadline(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(24 * time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	f := &function{timeout: time.Hour, design: baselines.Design{Handle: func(_ context.Context, e baselines.Env, m baselines.Message) error {
		if m != (baselines.Message{ID: "1", Body: "body"}) || !e.Deadline.Equal(deadline) {
			t.Errorf("message %+v until %v, want record 1 until %v", m, e.Deadline, deadline)
		}
		return nil
	}}}
	if _, err := f.handle(ctx, batch("1=body")); err != nil {
		t.Error(err)
	}
}

// TestTheClockIsThatOfTheStorm: a host whose clock is a day ahead tells deadlines that are.
func TestTheClockIsThatOfTheStorm(t *testing.T) {
	t.Parallel()
	f := &function{timeout: time.Hour}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(25*time.Hour))
	defer cancel()
	e := f.env(ctx)
	before := time.Now()
	if ahead := e.Now().Sub(before); ahead < 24*time.Hour-time.Minute || ahead > 24*time.Hour+time.Minute {
		t.Errorf("the clock is %v ahead, want a day", ahead)
	}
}

func TestWire(t *testing.T) {
	t.Parallel()
	environ := func(design string) []string {
		return []string{
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend", "DESIGN=" + design, "ORDERS_TABLE=others",
			"STRIPE_SECRET_KEY=sk_test_pretend", "STRIPE_API_BASE=http://127.0.0.1:1", "STRIPE_TIMEOUT=1s", "FUNCTION_TIMEOUT=2s",
		}
	}
	for _, d := range baselines.All() {
		if f, err := wire(environ(d.Name)); err != nil || f.design.Name != d.Name || f.timeout != 2*time.Second {
			t.Errorf("design %q: %+v, %v, want it with 2 s", d.Name, f, err)
		}
	}
	if _, err := wire(environ("no-such")); err == nil || !strings.Contains(err.Error(), `no design is named "no-such"`) {
		t.Errorf("error = %v, want one that names the design", err)
	}
	_, err := wire(nil)
	for _, name := range []string{"DESIGN", "ORDERS_TABLE", "STRIPE_SECRET_KEY", "FUNCTION_TIMEOUT"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error = %v, want one that names %s", err, name)
		}
	}
}
