package sqs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
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

// deployed returns the settings of the queues in infra/terraform.
func deployed() sqs.Settings {
	return sqs.Settings{
		Orders: sqs.QueueSettings{
			ARN: ordersARN, Retention: 7 * day, RedriveTarget: deadARN, MaxReceives: 1000,
		},
		DeadLetters: sqs.QueueSettings{ARN: deadARN, Retention: 14 * day},
	}
}

func TestSettingsThatCanLoseMessagesAreMismatches(t *testing.T) {
	t.Parallel()
	type settings = sqs.Settings
	for name, tt := range map[string]struct {
		change func(*settings)
		want   string // setting, got and want of each mismatch
	}{
		"what Terraform deploys":            {func(*settings) {}, ""},
		"a longer retention is safe":        {func(s *settings) { s.Orders.Retention = 13 * day }, ""},
		"dead letters kept a second longer": {func(s *settings) { s.DeadLetters.Retention = 7*day + time.Second }, ""},
		"an unknown order queue is not compared": {
			func(s *settings) { s.Orders = sqs.QueueSettings{} }, "",
		},
		"a retention a second shorter": {
			func(s *settings) { s.Orders.Retention -= time.Second },
			"retention 167h59m59s, want at least 168h0m0s\n",
		},
		"SQS's default retention": {
			func(s *settings) { s.Orders.Retention = 4 * day },
			"retention 96h0m0s, want at least 168h0m0s\n",
		},
		"one receive less": {
			func(s *settings) { s.Orders.MaxReceives-- },
			"max_receives 999, want at least 1000\n",
		},
		"another dead-letter queue": {
			func(s *settings) { s.Orders.RedriveTarget = ordersARN },
			"redrive_target " + ordersARN + ", want " + deadARN + "\n",
		},
		"no redrive policy": {
			func(s *settings) { s.Orders.RedriveTarget, s.Orders.MaxReceives = "", 0 },
			"redrive_target none, want " + deadARN + "\n",
		},
		"dead letters kept as long as orders": {
			func(s *settings) { s.DeadLetters.Retention = 7 * day },
			"dead_letter_retention 168h0m0s, want more than the queue's 168h0m0s\n",
		},
		"an unknown dead-letter queue is not compared": {
			func(s *settings) { s.DeadLetters, s.Orders.Retention = sqs.QueueSettings{}, day },
			"retention 24h0m0s, want at least 168h0m0s\n",
		},
		"a missing redrive policy is a mismatch also then": {
			func(s *settings) { s.DeadLetters, s.Orders.RedriveTarget = sqs.QueueSettings{}, "" },
			"redrive_target none, want the dead-letter queue\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := deployed()
			tt.change(&s)
			got := ""
			for _, m := range s.Mismatches(sqs.DefaultPolicy()) {
				got += fmt.Sprintf("%s %s, want %s\n", m.Setting, m.Got, m.Want)
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

func TestAMismatchNamesAttributeValuesAndRemedy(t *testing.T) {
	t.Parallel()
	s := deployed()
	s.Orders = sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day, RedriveTarget: ordersARN, MaxReceives: 3}
	s.DeadLetters.Retention = day
	var got []string
	for _, m := range s.Mismatches(sqs.DefaultPolicy()) {
		got = append(got, m.String())
	}
	want := []string{
		"MessageRetentionPeriod of the queue is 96h0m0s, want at least 168h0m0s: SQS deletes waiting messages before " +
			"they are parked; set the attribute to 604800 (seconds) or lower QUEUE_RETENTION",
		"deadLetterTargetArn in the RedrivePolicy of the queue is " + ordersARN + ", want " + deadARN + ": SQS deletes " +
			"messages that kill the function, or moves them to a queue without an alarm; set it to the queue of DEAD_LETTER_QUEUE_URL",
		"maxReceiveCount in the RedrivePolicy of the queue is 3, want at least 1000: SQS moves waiting messages to the " +
			"dead-letter queue without a reason; set it to 1000",
		"MessageRetentionPeriod of the dead-letter queue is 24h0m0s, want more than the queue's 96h0m0s: a message " +
			"that SQS moves keeps its age; raise the attribute, up to 1209600 (seconds), or lower the queue's",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

// doer is an HTTP client of the SDK.
type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }

// sqsResponse returns a response of SQS.
func sqsResponse(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func TestSettingsAreParsedInEveryFormThatSQSReturns(t *testing.T) {
	t.Parallel()
	const arn, kept = `"QueueArn":"` + ordersARN + `"`, `"MessageRetentionPeriod":"345600"`
	policy := func(text string) string { return arn + "," + kept + `,"RedrivePolicy":` + text }
	plain := sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day}
	redriven := sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day, RedriveTarget: deadARN, MaxReceives: 7}
	const target = `\"deadLetterTargetArn\":\"` + deadARN + `\",`
	for name, tt := range map[string]struct {
		attributes string
		want       sqs.QueueSettings
		err        string // "" for none
	}{
		"without a redrive policy": {arn + "," + kept, plain, ""},
		"with one":                 {policy(`"{` + target + `\"maxReceiveCount\":7}"`), redriven, ""},
		"with a quoted count":      {policy(`"{` + target + `\"maxReceiveCount\":\"7\"}"`), redriven, ""},
		"no ARN":                   {attributes: kept, err: "missing attribute QueueArn"},
		"no retention":             {attributes: arn, err: `attribute MessageRetentionPeriod "": want seconds`},
		"a retention in words": {
			attributes: arn + `,"MessageRetentionPeriod":"4 days"`,
			err:        `attribute MessageRetentionPeriod "4 days": want seconds`,
		},
		"a policy that is truncated JSON": {
			attributes: policy(`"{"`), err: "attribute RedrivePolicy: unexpected end of JSON input",
		},
		"a policy without count": {attributes: policy(`"{}"`), err: "attribute RedrivePolicy: maxReceiveCount: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := aws.Config{
				Region: sqstest.Region, Credentials: aws.AnonymousCredentials{},
				HTTPClient: doer(func(*http.Request) (*http.Response, error) {
					return sqsResponse(http.StatusOK, `{"Attributes":{`+tt.attributes+`}}`), nil
				}),
			}
			got, err := sqs.ReadSettings(t.Context(), cfg, "https://sqs.test/1/orders")
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
			if tt.err == "" && err != nil {
				t.Errorf("error = %v, want none", err)
			}
			want := "read the settings of queue https://sqs.test/1/orders: " + tt.err
			if tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("error = %v, want %q", err, want)
			}
		})
	}
}

// configure changes the settings of a queue.
func (w *world) configure(queue string, change func(*sqstest.Settings)) {
	w.t.Helper()
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		settings, err := m.Settings(queue)
		w.must(err)
		change(&settings)
		w.must(m.Configure(now, queue, settings))
	})
}

// comparison is what a SettingsCheck did.
type comparison struct {
	Calls    int      // of GetQueueAttributes
	Errors   int      // settings that could not be read
	Reported []string // mismatches, in the log
	Counted  int      // mismatches, in the metric
}

// comparison returns what the handler's SettingsCheck did.
func (w *world) comparison() (c comparison) {
	w.t.Helper()
	for _, line := range w.lines() {
		switch line["msg"] {
		case "queue misconfigured":
			c.Reported = append(c.Reported, fmt.Sprint(line["setting"]))
		case "queue settings not compared":
			c.Errors++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range w.calls {
		if call.Operation == "GetQueueAttributes" {
			c.Calls++
		}
	}
	c.Counted = w.meter["QueueMisconfigured"]
	return c
}

// invoke settles a good order n times, and lets each comparison end.
func (w *world) invoke(n int) {
	w.t.Helper()
	for range n {
		w.send(good)
		if got := w.deliverVisible(); len(got) > 0 {
			w.t.Errorf("batch item failures: got %q, want none", got)
		}
		w.Settings.Wait()
	}
}

// rejectSettings makes reading the settings of a queue fail a number of times.
func (w *world) rejectSettings(queue string, times int) {
	w.Queue = w.queueThrough(doer(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		reads := r.Header.Get("X-Amz-Target") == "AmazonSQS.GetQueueAttributes"
		if reads && times > 0 && bytes.Contains(body, []byte(`"`+w.server.QueueURL(queue)+`"`)) {
			times--
			return sqsResponse(http.StatusForbidden, `{"__type":"com.amazonaws.sqs#AccessDenied","message":"no"}`), nil
		}
		return http.DefaultClient.Do(r)
	}))
}

func TestTheComparisonOfSettings(t *testing.T) {
	t.Parallel()
	fourDays := func(s *sqstest.Settings) { s.Retention = 4 * day } // SQS's default loses orders in an outage of five
	for claim, tt := range map[string]struct {
		before      func(*world)
		invocations int
		want        comparison
	}{
		"is made once in the life of a process": {func(*world) {}, 3, comparison{Calls: 2}},
		"logs and counts a mismatch once": {func(w *world) {
			w.configure(w.orders, func(s *sqstest.Settings) { s.Retention, s.MaxReceives = 4*day, 5 })
			w.configure(w.dead, fourDays)
		}, 3, comparison{
			Calls: 2, Reported: []string{"retention", "max_receives", "dead_letter_retention"}, Counted: 3,
		}},
		// The role of an older deployment may read only the order queue's attributes.
		"reports a mismatch of one queue although the other is unreadable": {func(w *world) {
			w.configure(w.orders, fourDays)
			w.rejectSettings(w.dead, 1000)
		}, 3, comparison{Calls: 1, Errors: 1, Reported: []string{"retention"}, Counted: 1}},
		"fails nothing if it panics": {func(w *world) {
			w.Queue = w.queueThrough(doer(func(*http.Request) (*http.Response, error) { panic("boom") }))
		}, 1, comparison{}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Settings = new(sqs.SettingsCheck)
			tt.before(w)
			w.invoke(tt.invocations)
			if diff := cmp.Diff(w.comparison(), tt.want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

func TestAMismatchIsLoggedWithItsRemedyAndCountedByItsSetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.configure(w.orders, func(s *sqstest.Settings) { s.Retention = 4 * day })
	w.invoke(1)
	s := deployed()
	s.Orders.Retention = 4 * day
	m := s.Mismatches(w.Policy)[0]
	want := map[string]any{
		"level": "ERROR", "msg": "queue misconfigured", "setting": "retention", "attribute": m.Attribute,
		"got": m.Got, "want": m.Want, "remedy": m.Remedy, "request_id": "request-1",
	}
	if diff := cmp.Diff(w.line("msg", "queue misconfigured"), want); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	if got := w.counted("QueueMisconfigured retention"); got != 1 {
		t.Errorf("QueueMisconfigured for retention = %d, want 1", got)
	}
}

func TestSettingsThatCannotBeReadAreLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.server.Fail("GetQueueAttributes", 2, "AccessDenied")
	w.invoke(2)
	line := w.line("msg", "queue settings not compared")
	text := fmt.Sprint(line["error"])
	delete(line, "error")
	want := map[string]any{
		"level": "WARN", "msg": "queue settings not compared", "request_id": "request-1",
	}
	if diff := cmp.Diff(line, want); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	for _, queue := range []string{w.orders, w.dead} {
		want := "read the settings of queue " + w.server.QueueURL(queue)
		if !strings.Contains(text, want) || strings.Count(text, "AccessDenied") < 2 {
			t.Errorf("error = %q, want it to contain %q and AccessDenied for both", text, want)
		}
	}
}

// The comparison runs in the background, so a queue that never responds does not delay
// the batch.
func TestABatchDoesNotWaitForTheComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(good)
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		w.Settings = new(sqs.SettingsCheck)
		w.Handler.Now = time.Now //nolint:forbidigo // the clock of the bubble
		w.Queue = queueOf(doer(func(r *http.Request) (*http.Response, error) {
			tries++
			return silentQueue{}.Do(r)
		}))
		began := w.Handler.Now()
		for range 3 {
			response, err := w.Handle(t.Context(), e)
			if took := w.Handler.Now().Sub(began); err != nil || len(response.BatchItemFailures) > 0 || took > 0 {
				t.Errorf("got %v, %v after %v, want the order settled at once", response, err, took)
			}
		}
		w.Settings.Wait()
		if took := w.Handler.Now().Sub(began); took != 5*time.Second {
			t.Errorf("the comparison ends after %v, want 5s", took)
		}
		if tries != 1 {
			t.Errorf("%d calls, want 1: three invocations share one comparison", tries)
		}
	})
}

// The invocation's context ends with its response, but the comparison continues.
func TestAnInvocationThatEndsFirstDoesNotEndTheComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(w.orders, func(s *sqstest.Settings) { s.Retention = 4 * day })
	w.send(good)
	e := w.receive()
	held := make(chan struct{})
	w.Queue = w.queueThrough(doer(func(r *http.Request) (*http.Response, error) {
		<-held
		return http.DefaultClient.Do(r)
	}))
	w.Settings = new(sqs.SettingsCheck)
	ctx, cancel := context.WithDeadline(t.Context(), start().Add(30*time.Second))
	response, err := w.Handle(ctx, e)
	cancel()
	close(held)
	w.Settings.Wait()
	if got := w.counted("QueueMisconfigured retention"); err != nil || len(response.BatchItemFailures) > 0 ||
		got != 1 {
		t.Errorf("got %v, %v and %d mismatches, want the order settled and one mismatch", response, err, got)
	}
}
