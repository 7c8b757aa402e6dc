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

// batch returns an event with a record for each "id=body", or "group/id=body" for a FIFO
// record.
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

// scripted returns a handler that fails or panics as the body says, and appends each id
// to seen.
func scripted(seen *[]string) baselines.Handler {
	var mu sync.Mutex
	return func(_ context.Context, _ baselines.Env, m baselines.Message) error {
		mu.Lock()
		defer mu.Unlock()
		*seen = append(*seen, m.ID)
		switch m.Body {
		case "fail":
			return errors.New("failed")
		case "panic":
			panic("scripted")
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
		"successful records are deleted":          {batch("1=ok", "2=ok"), []string{}, []string{"1", "2"}},
		"a failed record fails alone":             {batch("1=ok", "2=fail", "3=ok"), []string{"2"}, []string{"1", "2", "3"}},
		"a panic fails its own record only":       {batch("1=ok", "2=panic", "3=ok"), []string{"2"}, []string{"1", "2", "3"}},
		"a FIFO group stops at its first failure": {batch("g/1=ok", "g/2=fail", "g/3=ok"), []string{"2", "3"}, []string{"1", "2"}},
		"a FIFO group stops at a panic":           {batch("g/1=panic", "g/2=ok"), []string{"1", "2"}, []string{"1"}},
		"another FIFO group continues":            {batch("g/1=fail", "h/2=ok", "g/3=ok"), []string{"1", "3"}, []string{"1", "2"}},
		"an empty batch has an empty list":        {batch(), []string{}, nil},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var seen []string
			f := &function{baseline: baselines.Baseline{Handle: scripted(&seen)}, timeout: time.Minute}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			response, err := f.handle(ctx, tt.event)
			if err != nil || response.BatchItemFailures == nil {
				t.Fatalf("got failures %v, error %v, want a list that is not nil", response.BatchItemFailures, err)
			}
			failed := []string{}
			for _, item := range response.BatchItemFailures {
				failed = append(failed, item.ItemIdentifier)
			}
			slices.Sort(failed) // groups run concurrently
			slices.Sort(seen)
			if diff := cmp.Diff(failed, tt.failed); diff != "" {
				t.Errorf("failed: (-got +want)\n%s", diff)
			}
			if diff := cmp.Diff(seen, tt.seen); diff != "" {
				t.Errorf("handled: (-got +want)\n%s", diff)
			}
		})
	}
}

func TestARecordIsPassedWithItsDeadline(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(24 * time.Hour)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	f := &function{
		timeout: time.Hour,
		baseline: baselines.Baseline{Handle: func(_ context.Context, e baselines.Env, m baselines.Message) error {
			if m != (baselines.Message{ID: "1", Body: "body"}) || !e.Deadline.Equal(deadline) {
				t.Errorf("got message %+v, deadline %v, want record 1, deadline %v", m, e.Deadline, deadline)
			}
			return nil
		}},
	}
	if _, err := f.handle(ctx, batch("1=body")); err != nil {
		t.Error(err)
	}
}

// A host whose clock is a day ahead sends deadlines a day ahead.
func TestTheClockFollowsTheDeadline(t *testing.T) {
	t.Parallel()
	f := &function{timeout: time.Hour}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(25*time.Hour))
	defer cancel()
	e := f.env(ctx)
	before := time.Now()
	if ahead := e.Now().Sub(before); ahead < 24*time.Hour-time.Minute || ahead > 24*time.Hour+time.Minute {
		t.Errorf("got a clock that is %v ahead, want a day", ahead)
	}
}

func TestNewFunction(t *testing.T) {
	t.Parallel()
	environ := func(baseline string) []string {
		return []string{
			"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend", "BASELINE=" + baseline, "ORDERS_TABLE=baselines",
			"STRIPE_SECRET_KEY=sk_test_pretend", "STRIPE_API_BASE=http://127.0.0.1:1", "STRIPE_TIMEOUT=1s", "FUNCTION_TIMEOUT=2s",
		}
	}
	for _, b := range baselines.All() {
		if f, err := newFunction(environ(b.Name)); err != nil || f.baseline.Name != b.Name ||
			f.timeout != 2*time.Second {
			t.Errorf("%s: got %+v, %v, want that baseline with a timeout of 2 s", b.Name, f, err)
		}
	}
	if _, err := newFunction(environ("no-such")); err == nil ||
		!strings.Contains(err.Error(), `unknown baseline "no-such"`) {
		t.Errorf("got error %v, want one that names the baseline", err)
	}
	_, err := newFunction(nil)
	for _, name := range []string{"BASELINE", "ORDERS_TABLE", "STRIPE_SECRET_KEY", "FUNCTION_TIMEOUT"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want one that names %s", err, name)
		}
	}
}
