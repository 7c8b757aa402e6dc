package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orderonce/adapters/sqs"
)

// A comparison is made once in the life of a process, and fails no order.
func TestTheComparisonOfSettings(t *testing.T) {
	for claim, tt := range map[string]struct {
		before   func(*world)
		reads    int
		unread   string   // the queues that could not be read
		reported []string // mismatches
	}{
		"finds nothing": {before: func(*world) {}, reads: 2},
		"reports each mismatch once": {
			func(w *world) { w.Policy.Retention, w.Policy.MaxReceives = 8*day, 1001 }, 2, "", []string{"retention", "max_receives"},
		},
		// The role of an older deployment may read only one queue's attributes.
		"reports a mismatch of one queue although the other is unreadable": {func(w *world) {
			w.Policy.Retention = 8 * day
			tries := 0
			w.through(doer(func(r *http.Request) (*http.Response, error) {
				if tries++; tries == 2 {
					return nil, errors.New("access denied")
				}
				return http.DefaultClient.Do(r)
			}))
		}, 1, "dead", []string{"retention"}},
		"reports that neither can be read": {
			func(w *world) { w.server.Fail("GetQueueAttributes", 2, "AccessDenied") }, 2, "orders dead", nil,
		},
		"fails nothing if it panics": {func(w *world) {
			w.through(doer(func(*http.Request) (*http.Response, error) { panic("boom") }))
		}, 0, "", nil},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t, standard)
			w.Settings = new(sqs.SettingsCheck)
			tt.before(w)
			for range 3 {
				w.send(good)
				if failed := w.deliver(); len(failed) > 0 {
					t.Errorf("batch item failures: got %q, want none", failed)
				}
				w.Settings.Wait()
			}
			if got := len(w.calls); got != tt.reads {
				t.Errorf("calls %q, want %d", w.calls, tt.reads)
			}
			var reported []string
			for _, line := range w.lines("msg", "queue misconfigured") {
				reported = append(reported, fmt.Sprint(line["setting"]))
				if line["level"] != "ERROR" || line["request_id"] != "request-1" || line["remedy"] == "" ||
					w.meter["QueueMisconfigured "+fmt.Sprint(line["setting"])] != 1 {
					t.Errorf("got %v and %v, want an error with a remedy, counted once", line, w.meter)
				}
			}
			if !slices.Equal(reported, tt.reported) {
				t.Errorf("mismatches = %q, want %q", reported, tt.reported)
			}
			unread := w.lines("msg", "queue settings not compared")
			if (len(unread) == 1) != (tt.unread != "") {
				t.Fatalf("settings not compared: got %v, want %q", unread, tt.unread)
			}
			for queue := range strings.FieldsSeq(tt.unread) {
				want := "read the settings of queue " + w.server.QueueURL(queue)
				if unread[0]["level"] != "WARN" || !strings.Contains(fmt.Sprint(unread[0]["error"]), want) {
					t.Errorf("got %v, want a warning with %q", unread[0], want)
				}
			}
		})
	}
}

func TestSettingsThatCanLoseMessagesAreMismatches(t *testing.T) {
	const orders, dead = "arn:aws:sqs:us-east-1:000000000000:orders", "arn:aws:sqs:us-east-1:000000000000:dead"
	for name, tt := range map[string]struct {
		change func(*sqs.Settings) // of what Terraform deploys
		want   string              // setting, what it is and what it should be
	}{
		"what Terraform deploys":            {func(*sqs.Settings) {}, ""},
		"a longer retention is safe":        {func(s *sqs.Settings) { s.Orders.Retention = 13 * day }, ""},
		"dead letters kept a second longer": {func(s *sqs.Settings) { s.DeadLetters.Retention = 7*day + time.Second }, ""},
		"an unknown queue":                  {func(s *sqs.Settings) { s.Orders = sqs.QueueSettings{} }, ""},
		"an unknown dead-letter queue":      {func(s *sqs.Settings) { s.DeadLetters = sqs.QueueSettings{} }, ""},
		"a retention a second shorter": {
			func(s *sqs.Settings) { s.Orders.Retention -= time.Second }, "retention 167h59m59s at least 168h0m0s",
		},
		"one receive less":          {func(s *sqs.Settings) { s.Orders.MaxReceives-- }, "max_receives 999 at least 1000"},
		"another dead-letter queue": {func(s *sqs.Settings) { s.Orders.RedriveTarget = orders }, "redrive_target " + orders + " " + dead},
		"no redrive policy": {
			func(s *sqs.Settings) { s.Orders.RedriveTarget, s.Orders.MaxReceives = "", 0 }, "redrive_target none " + dead,
		},
		"no redrive policy, and an unknown dead-letter queue": {
			func(s *sqs.Settings) { s.DeadLetters, s.Orders.RedriveTarget = sqs.QueueSettings{}, "" },
			"redrive_target none the dead-letter queue",
		},
		"dead letters kept as long as orders": {
			func(s *sqs.Settings) { s.DeadLetters.Retention = 7 * day },
			"dead_letter_retention 168h0m0s more than the queue's 168h0m0s",
		},
	} {
		s := sqs.Settings{
			Orders:      sqs.QueueSettings{ARN: orders, Retention: 7 * day, RedriveTarget: dead, MaxReceives: 1000},
			DeadLetters: sqs.QueueSettings{ARN: dead, Retention: 14 * day},
		}
		tt.change(&s)
		var got []string
		for _, m := range s.Mismatches(sqs.DefaultPolicy()) {
			got = append(got, m.Setting, m.Got, m.Want)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// The comparison runs in the background, so a queue that never responds does not delay
// the batch. The invocation's context ends with its response, but the comparison
// continues.
func TestABatchDoesNotWaitForTheComparison(t *testing.T) {
	w := newWorld(t, standard)
	w.send(good)
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		w.Settings = new(sqs.SettingsCheck)
		w.Handler.Now = time.Now //nolint:forbidigo // the clock of the bubble
		w.through(doer(func(r *http.Request) (*http.Response, error) {
			tries++
			return silent(r)
		}))
		began := w.Handler.Now()
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			response, err := w.Handle(ctx, e)
			cancel()
			if took := w.Handler.Now().Sub(began); err != nil || len(response.BatchItemFailures) > 0 || took > 0 {
				t.Errorf("got %v, %v after %v, want the order settled at once", response, err, took)
			}
		}
		w.Settings.Wait()
		if took := w.Handler.Now().Sub(began); took != 5*time.Second || tries != 1 {
			t.Errorf("the comparison ends after %v and %d calls, want 5s and one call", took, tries)
		}
	})
}
