package sqs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	for name, tt := range map[string]struct {
		change func(*sqs.Settings)
		want   []string
	}{
		"what Terraform deploys":     {func(*sqs.Settings) {}, nil},
		"a longer retention is safe": {func(s *sqs.Settings) { s.Orders.Retention = 13 * day }, nil},
		"a retention a second shorter": {
			func(s *sqs.Settings) { s.Orders.Retention -= time.Second },
			[]string{"retention 167h59m59s, want at least 168h0m0s"},
		},
		"SQS's default retention": {
			func(s *sqs.Settings) { s.Orders.Retention = 4 * day },
			[]string{"retention 96h0m0s, want at least 168h0m0s"},
		},
		"one receive less": {func(s *sqs.Settings) { s.Orders.MaxReceives-- }, []string{
			"max_receives 999, want at least 1000",
		}},
		"another dead-letter queue": {
			func(s *sqs.Settings) { s.Orders.RedriveTarget = ordersARN },
			[]string{"redrive_target " + ordersARN + ", want " + deadARN},
		},
		"no redrive policy": {
			func(s *sqs.Settings) { s.Orders.RedriveTarget, s.Orders.MaxReceives = "", 0 },
			[]string{"redrive_target none, want " + deadARN},
		},
		"dead letters kept as long as orders": {
			func(s *sqs.Settings) { s.DeadLetters.Retention = 7 * day },
			[]string{"dead_letter_retention 168h0m0s, want more than the order queue's 168h0m0s"},
		},
		"dead letters kept a second longer": {func(s *sqs.Settings) { s.DeadLetters.Retention = 7*day + time.Second }, nil},
		"everything at once": {
			func(s *sqs.Settings) {
				s.Orders = sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day, RedriveTarget: ordersARN, MaxReceives: 3}
				s.DeadLetters.Retention = day
			},
			[]string{
				"retention 96h0m0s, want at least 168h0m0s", "redrive_target " + ordersARN + ", want " + deadARN,
				"max_receives 3, want at least 1000", "dead_letter_retention 24h0m0s, want more than the order queue's 96h0m0s",
			},
		},
		"an unknown dead-letter queue is not compared": {
			func(s *sqs.Settings) { s.DeadLetters = sqs.QueueSettings{}; s.Orders.Retention = day },
			[]string{"retention 24h0m0s, want at least 168h0m0s"},
		},
		"a missing redrive policy is a mismatch also then": {
			func(s *sqs.Settings) { s.DeadLetters = sqs.QueueSettings{}; s.Orders.RedriveTarget = "" },
			[]string{"redrive_target none, want the dead-letter queue"},
		},
		"an unknown order queue is not compared": {
			func(s *sqs.Settings) { s.Orders = sqs.QueueSettings{} }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := deployed()
			tt.change(&s)
			var got []string
			for _, m := range s.Mismatches(sqs.DefaultPolicy()) {
				got = append(got, fmt.Sprintf("%s %s, want %s", m.Setting, m.Got, m.Want))
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
		"MessageRetentionPeriod of the order queue is 96h0m0s, want at least 168h0m0s: SQS deletes waiting orders before " +
			"they are parked; set the attribute to 604800 (seconds) or lower QUEUE_RETENTION",
		"deadLetterTargetArn in the RedrivePolicy of the order queue is " + ordersARN + ", want " + deadARN + ": SQS deletes " +
			"messages that kill the function, or moves them to a queue without an alarm; set it to the queue of DEAD_LETTER_QUEUE_URL",
		"maxReceiveCount in the RedrivePolicy of the order queue is 3, want at least 1000: SQS moves waiting orders to the " +
			"dead-letter queue without a reason; set it to 1000",
		"MessageRetentionPeriod of the dead-letter queue is 24h0m0s, want more than the order queue's 96h0m0s: a message " +
			"that SQS moves keeps its age; raise the attribute, up to 1209600 (seconds), or lower the order queue's",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

func TestSettingsAreReadWithOneCallForEachQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, err := w.Queue.Settings(t.Context())
	if diff := cmp.Diff(got, deployed()); err != nil || diff != "" {
		t.Errorf("error = %v, settings (-got +want):\n%s", err, diff)
	}
	var requests []string
	for _, c := range w.calls {
		requests = append(requests, c.Operation+" "+string(c.Request))
	}
	names := `"AttributeNames":["QueueArn","MessageRetentionPeriod","RedrivePolicy"]`
	want := []string{
		`GetQueueAttributes {` + names + `,"QueueUrl":"` + w.server.QueueURL("orders") + `"}`,
		`GetQueueAttributes {` + names + `,"QueueUrl":"` + w.server.QueueURL("dead") + `"}`,
	}
	if diff := cmp.Diff(requests, want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
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
	for name, tt := range map[string]struct {
		attributes string
		want       sqs.QueueSettings
		err        string // "" for none
	}{
		"without a redrive policy": {arn + "," + kept, sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day}, ""},
		"with one": {
			policy(`"{\"deadLetterTargetArn\":\"` + deadARN + `\",\"maxReceiveCount\":7}"`),
			sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day, RedriveTarget: deadARN, MaxReceives: 7},
			"",
		},
		"with a quoted count": {
			policy(`"{\"deadLetterTargetArn\":\"` + deadARN + `\",\"maxReceiveCount\":\"7\"}"`),
			sqs.QueueSettings{ARN: ordersARN, Retention: 4 * day, RedriveTarget: deadARN, MaxReceives: 7},
			"",
		},
		"no ARN":       {kept, sqs.QueueSettings{}, "missing attribute QueueArn"},
		"no retention": {arn, sqs.QueueSettings{}, `attribute MessageRetentionPeriod "": want seconds`},
		"a retention in words": {
			arn + `,"MessageRetentionPeriod":"4 days"`, sqs.QueueSettings{}, `attribute MessageRetentionPeriod "4 days": want seconds`,
		},
		"a policy that is truncated JSON": {policy(`"{"`), sqs.QueueSettings{}, "attribute RedrivePolicy: unexpected end of JSON input"},
		"a policy without count":          {policy(`"{}"`), sqs.QueueSettings{}, "attribute RedrivePolicy: maxReceiveCount: "},
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

// settingsLines returns the log lines about the queues' settings, without their time.
func (w *world) settingsLines() (all []map[string]any) {
	w.t.Helper()
	for _, line := range w.lines() {
		if line["msg"] == "queue misconfigured" || line["msg"] == "queue settings not compared" {
			delete(line, "time")
			all = append(all, line)
		}
	}
	return all
}

// settingsCalls returns the number of calls to GetQueueAttributes.
func (w *world) settingsCalls() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.Operation == "GetQueueAttributes" {
			n++
		}
	}
	return n
}

func TestTheSettingsAreComparedOnceInTheLifeOfAProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	for range 3 {
		w.send(good)
		w.deliverVisible()
		w.Settings.Wait()
	}
	if got := w.settingsCalls(); got != 2 {
		t.Errorf("GetQueueAttributes was called %d times, want 2: once for each queue", got)
	}
	if got := w.settingsLines(); len(got) > 0 {
		t.Errorf("log = %v, want nothing about settings that match", got)
	}
	if got := w.counted("QueueMisconfigured"); got != 0 {
		t.Errorf("QueueMisconfigured = %d, want 0", got)
	}
}

// An order queue with SQS's default retention of four days loses orders in an outage of
// five, although the function is configured for seven.
func TestAMismatchIsLoggedAndCountedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.configure(w.orders, func(s *sqstest.Settings) { s.Retention, s.MaxReceives = 4*day, 5 })
	w.configure(w.dead, func(s *sqstest.Settings) { s.Retention = 4 * day })
	for range 3 {
		w.send(good)
		if got := w.deliverVisible(); len(got) > 0 {
			t.Errorf("batch item failures: got %q, want none", got)
		}
		w.Settings.Wait()
	}
	s := deployed()
	s.Orders.Retention, s.Orders.MaxReceives, s.DeadLetters.Retention = 4*day, 5, 4*day
	var want []map[string]any
	for _, m := range s.Mismatches(w.Policy) {
		want = append(want, map[string]any{
			"level": "ERROR", "msg": "queue misconfigured", "setting": string(m.Setting), "attribute": m.Attribute,
			"got": m.Got, "want": m.Want, "remedy": m.Remedy, "request_id": "request-1",
		})
	}
	if diff := cmp.Diff(w.settingsLines(), want); diff != "" || len(want) != 3 {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	for _, setting := range []string{"retention", "max_receives", "dead_letter_retention"} {
		if got := w.counted("QueueMisconfigured " + setting); got != 1 {
			t.Errorf("QueueMisconfigured for %s = %d, want 1", setting, got)
		}
	}
	if got := w.counted("QueueMisconfigured"); got != 3 {
		t.Errorf("QueueMisconfigured = %d, want 3", got)
	}
}

func TestSettingsThatCannotBeReadAreTriedAgainWithTheNextInvocations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.server.Fail("GetQueueAttributes", 4, "AccessDenied") // both queues, twice
	for range 5 {
		w.send(good)
		if got := w.deliverVisible(); len(got) > 0 {
			t.Errorf("batch item failures: got %q, want none", got)
		}
		w.Settings.Wait()
	}
	var got []string
	for _, line := range w.settingsLines() {
		got = append(
			got, fmt.Sprint(line["level"], " ", line["msg"], " ", line["tries_left"], " ", line["request_id"]),
		)
		for _, queue := range []string{w.orders, w.dead} {
			want := "read the settings of queue " + w.server.QueueURL(queue)
			if text := fmt.Sprint(line["error"]); !strings.Contains(text, want) ||
				!strings.Contains(text, "AccessDenied") {
				t.Errorf("error = %q, want it to contain %q and AccessDenied", text, want)
			}
		}
	}
	want := []string{
		"WARN queue settings not compared 4 request-1", "WARN queue settings not compared 3 request-1",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	if got := w.settingsCalls(); got != 6 {
		t.Errorf("GetQueueAttributes was called %d times, want 6: twice in each of three invocations", got)
	}
}

func TestSettingsThatCanNeverBeReadAreTriedFiveTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.server.Fail("GetQueueAttributes", 1000, sqstest.CodeServiceUnavailable)
	for range 7 {
		w.send(good)
		if got := w.deliverVisible(); len(got) > 0 {
			t.Errorf("batch item failures: got %q, want none", got)
		}
		w.Settings.Wait()
	}
	if got := w.settingsCalls(); got != 10 {
		t.Errorf("GetQueueAttributes was called %d times, want 10: twice in each of five invocations", got)
	}
	if got := len(w.settingsLines()); got != 5 {
		t.Errorf("%d log lines, want 5", got)
	}
}

// The role of an older deployment may read only the order queue's attributes.
func TestAnUnreadableQueueHidesNoMismatchOfTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.configure(w.orders, func(s *sqstest.Settings) { s.Retention = 4 * day })
	w.Queue = w.queueThrough(doer(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		var in struct {
			QueueURL string `json:"QueueUrl"`
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		if r.Header.Get("X-Amz-Target") == "AmazonSQS.GetQueueAttributes" &&
			in.QueueURL == w.server.QueueURL(w.dead) {
			return sqsResponse(http.StatusForbidden, `{"__type":"com.amazonaws.sqs#AccessDenied","message":"no"}`), nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return http.DefaultClient.Do(r)
	}))
	for range 7 {
		w.send(good)
		if got := w.deliverVisible(); len(got) > 0 {
			t.Errorf("batch item failures: got %q, want none", got)
		}
		w.Settings.Wait()
	}
	if got := w.counted("QueueMisconfigured retention"); got != 1 {
		t.Errorf("QueueMisconfigured for retention = %d, want 1", got)
	}
	if got := w.counted("QueueMisconfigured"); got != 1 {
		t.Errorf("QueueMisconfigured = %d, want 1", got)
	}
	if got := len(w.settingsLines()); got != 6 {
		t.Errorf("%d log lines, want the mismatch and five errors", got)
	}
}

// The role may get its permission while the function runs. A mismatch is not reported
// twice, and does not hide a new one.
func TestALaterMismatchIsReportedToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.configure(w.orders, func(s *sqstest.Settings) { s.Retention = 4 * day })
	w.configure(w.dead, func(s *sqstest.Settings) { s.Retention = 4 * day })
	calls := 0
	w.Queue = w.queueThrough(doer(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("X-Amz-Target") == "AmazonSQS.GetQueueAttributes" {
			if calls++; calls == 2 { // the dead-letter queue, in the first try
				return sqsResponse(
					http.StatusForbidden, `{"__type":"com.amazonaws.sqs#AccessDenied","message":"no"}`,
				), nil
			}
		}
		return http.DefaultClient.Do(r)
	}))
	for range 2 {
		w.send(good)
		w.deliverVisible()
		w.Settings.Wait()
	}
	var got []any
	for _, line := range w.settingsLines() {
		got = append(got, line["setting"])
	}
	if diff := cmp.Diff(got, []any{nil, "retention", "dead_letter_retention"}); diff != "" {
		t.Errorf("settings in the log lines, of which the first is an error (-got +want):\n%s", diff)
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
		w.Queue = sqs.NewQueue(aws.Config{
			Region: sqstest.Region, Credentials: aws.AnonymousCredentials{},
			HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
				tries++
				return silentQueue{}.Do(r)
			}),
		}, "http://queue.test/orders", "http://queue.test/dead")
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

func TestAPanicInTheComparisonFailsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(good)
	w.Settings = new(sqs.SettingsCheck)
	w.Queue = w.queueThrough(doer(func(*http.Request) (*http.Response, error) { panic("boom") }))
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures: got %q, want none", got)
	}
	w.Settings.Wait()
}

func TestManyBatchesAtOnceShareOneComparison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settings = new(sqs.SettingsCheck)
	w.send(good)
	e := w.receive()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := w.Handle(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.Settings.Wait()
	if got := w.settingsCalls(); got != 2 {
		t.Errorf("GetQueueAttributes was called %d times, want 2", got)
	}
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
