package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
)

const (
	ordersARN = "arn:aws:sqs:us-east-1:000000000000:orders"
	deadARN   = "arn:aws:sqs:us-east-1:000000000000:dead"
)

func TestSettingsThatCanLoseMessagesAreMismatches(t *testing.T) {
	type settings = sqs.Settings
	const (
		retention = "MessageRetentionPeriod of the queue is %s, want at least 168h0m0s: SQS deletes waiting messages before " +
			"they are parked; set the attribute to 604800 (seconds) or lower QUEUE_RETENTION"
		target = "deadLetterTargetArn in the RedrivePolicy of the queue is %s, want %s: SQS deletes messages that kill " +
			"the function, or moves them to a queue without an alarm; set it to the queue of DEAD_LETTER_QUEUE_URL"
		receives = "maxReceiveCount in the RedrivePolicy of the queue is 999, want at least 1000: SQS moves waiting " +
			"messages to the dead-letter queue without a reason; set it to 1000"
		dead = "MessageRetentionPeriod of the dead-letter queue is 168h0m0s, want more than the queue's 168h0m0s: a message " +
			"that SQS moves keeps its age; raise the attribute, up to 1209600 (seconds), or lower the queue's"
	)
	for name, tt := range map[string]struct {
		change func(*settings) // of what Terraform deploys
		want   string
	}{
		"what Terraform deploys":            {func(*settings) {}, ""},
		"a longer retention is safe":        {func(s *settings) { s.Orders.Retention = 13 * day }, ""},
		"dead letters kept a second longer": {func(s *settings) { s.DeadLetters.Retention = 7*day + time.Second }, ""},
		"an unknown queue":                  {func(s *settings) { s.Orders = sqs.QueueSettings{} }, ""},
		"an unknown dead-letter queue":      {func(s *settings) { s.DeadLetters = sqs.QueueSettings{} }, ""},
		"a retention a second shorter": {
			func(s *settings) { s.Orders.Retention -= time.Second }, fmt.Sprintf(retention, "167h59m59s"),
		},
		"one receive less": {func(s *settings) { s.Orders.MaxReceives-- }, receives},
		"another dead-letter queue": {
			func(s *settings) { s.Orders.RedriveTarget = ordersARN }, fmt.Sprintf(target, ordersARN, deadARN),
		},
		"no redrive policy": {
			func(s *settings) { s.Orders.RedriveTarget, s.Orders.MaxReceives = "", 0 }, fmt.Sprintf(target, "none", deadARN),
		},
		"no redrive policy, and an unknown dead-letter queue": {
			func(s *settings) { s.DeadLetters, s.Orders.RedriveTarget = sqs.QueueSettings{}, "" },
			fmt.Sprintf(target, "none", "the dead-letter queue"),
		},
		"dead letters kept as long as orders": {func(s *settings) { s.DeadLetters.Retention = 7 * day }, dead},
	} {
		s := settings{
			Orders:      sqs.QueueSettings{ARN: ordersARN, Retention: 7 * day, RedriveTarget: deadARN, MaxReceives: 1000},
			DeadLetters: sqs.QueueSettings{ARN: deadARN, Retention: 14 * day},
		}
		tt.change(&s)
		got := ""
		for _, m := range s.Mismatches(sqs.DefaultPolicy()) {
			got += m.String()
		}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestSettingsAreParsedInEveryFormThatSQSReturns(t *testing.T) {
	const arn, kept = `"QueueArn":"` + ordersARN + `"`, `"MessageRetentionPeriod":"345600"`
	policy := func(text string) string { return arn + "," + kept + `,"RedrivePolicy":` + text }
	plain := sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day}
	redriven := sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day, RedriveTarget: deadARN, MaxReceives: 7}
	const target = `\"deadLetterTargetArn\":\"` + deadARN + `\",`
	for attributes, tt := range map[string]struct {
		want sqs.QueueSettings
		err  string // "" for none
	}{
		arn + "," + kept: {plain, ""},
		policy(`"{` + target + `\"maxReceiveCount\":7}"`):     {redriven, ""},
		policy(`"{` + target + `\"maxReceiveCount\":\"7\"}"`): {redriven, ""},
		kept:                          {err: "missing attribute QueueArn"},
		arn:                           {err: `attribute MessageRetentionPeriod "": want seconds`},
		policy(`"{"`):                 {err: "attribute RedrivePolicy: unexpected end of JSON input"},
		policy(`"{` + target + `1}"`): {err: "attribute RedrivePolicy: invalid character"},
		policy(`"{}"`):                {err: "attribute RedrivePolicy: maxReceiveCount: "},
	} {
		cfg := aws.Config{
			Region: sqstest.Region, Credentials: aws.AnonymousCredentials{},
			HTTPClient: doer(func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"Attributes":{` + attributes + `}}`)),
				}, nil
			}),
		}
		got, err := sqs.ReadSettings(t.Context(), cfg, "https://sqs.test/1/orders")
		if diff := cmp.Diff(got, tt.want); diff != "" || (err == nil) != (tt.err == "") {
			t.Errorf("%s: %v (-got +want):\n%s", attributes, err, diff)
		}
		want := "read the settings of queue https://sqs.test/1/orders: " + tt.err
		if err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error = %v, want %q", attributes, err, want)
		}
	}
}

// Four days are SQS's default; an outage of five loses orders then.
func fourDays(w *world, queue string) {
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		s, err := m.Settings(queue)
		s.Retention = 4 * day
		w.must(errors.Join(err, m.Configure(now, queue, s)))
	})
}

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
			func(w *world) { fourDays(w, w.orders); fourDays(w, w.dead) }, 2, "", []string{"retention", "dead_letter_retention"},
		},
		// The role of an older deployment may read only one queue's attributes.
		"reports a mismatch of one queue although the other is unreadable": {func(w *world) {
			fourDays(w, w.orders)
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
			w := newWorld(t)
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
					w.counted("QueueMisconfigured "+fmt.Sprint(line["setting"])) != 1 {
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

// The comparison runs in the background, so a queue that never responds does not delay
// the batch.
func TestABatchDoesNotWaitForTheComparison(t *testing.T) {
	w := newWorld(t)
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
			response, err := w.Handle(t.Context(), e)
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

// The invocation's context ends with its response, but the comparison continues.
func TestAnInvocationThatEndsFirstDoesNotEndTheComparison(t *testing.T) {
	w := newWorld(t)
	fourDays(w, w.orders)
	held := make(chan struct{})
	w.through(doer(func(r *http.Request) (*http.Response, error) {
		<-held
		return http.DefaultClient.Do(r)
	}))
	w.Settings = new(sqs.SettingsCheck)
	w.send(good)
	ctx, cancel := context.WithCancel(t.Context())
	response, err := w.Handle(ctx, w.receive())
	cancel()
	close(held)
	w.Settings.Wait()
	if got := w.counted("QueueMisconfigured retention"); err != nil || len(response.BatchItemFailures) > 0 || got != 1 {
		t.Errorf("got %v, %v and %d mismatches, want the order settled and one mismatch", response, err, got)
	}
}
