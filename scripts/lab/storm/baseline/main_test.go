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

// eventOf returns an event with a record for each "id=body", or "group/id=body" for a
// FIFO record.
func eventOf(records ...string) (e events.SQSEvent) {
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
		"a failed record and a panic fail alone":  {eventOf("1=ok", "2=fail", "3=panic", "4=ok"), []string{"2", "3"}, []string{"1", "2", "3", "4"}},
		"a FIFO group stops at its first failure": {eventOf("g/1=fail", "h/2=ok", "g/3=ok"), []string{"1", "3"}, []string{"1", "2"}},
		"an empty batch has an empty list":        {eventOf(), []string{}, nil},
	} {
		var seen []string
		f := &function{baseline: baselines.Baseline{Handle: scripted(&seen)}, timeout: time.Minute}
		response, err := f.handle(t.Context(), tt.event)
		if err != nil || response.BatchItemFailures == nil {
			t.Fatalf("%s: got failures %v, error %v, want a list that is not nil", claim, response.BatchItemFailures, err)
		}
		failed := []string{}
		for _, item := range response.BatchItemFailures {
			failed = append(failed, item.ItemIdentifier)
		}
		slices.Sort(failed) // groups run concurrently
		slices.Sort(seen)
		if diff := cmp.Diff([][]string{failed, seen}, [][]string{tt.failed, tt.seen}); diff != "" {
			t.Errorf("%s: failed, handled: (-got +want)\n%s", claim, diff)
		}
	}
}
