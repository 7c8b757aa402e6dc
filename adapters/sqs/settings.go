package sqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueueSettings are attributes of one queue, as SQS reports them. The zero value means
// unknown.
type QueueSettings struct {
	ARN           string
	Retention     time.Duration
	RedriveTarget string // ARN of its dead-letter queue; "" without a redrive policy
	MaxReceives   int    // 0 without a redrive policy
}

// Settings are those of the order queue and of its dead-letter queue.
type Settings struct{ Orders, DeadLetters QueueSettings }

// Mismatch is a setting with which messages can be lost, or reach the dead-letter queue
// without a reason.
type Mismatch struct {
	Setting   string // its name in the log and in MetricQueueMisconfigured
	Attribute string // SQS's name for it, and the queue
	Got, Want string
	Remedy    string
}

// String returns one line with attribute, values and remedy.
func (m Mismatch) String() string {
	return fmt.Sprintf("%s is %s, want %s: %s", m.Attribute, m.Got, m.Want, m.Remedy)
}

// Mismatches compares the settings with the policy. Unknown settings are not compared. A
// longer retention than the policy's is not a mismatch, because it only parks orders
// sooner than necessary.
func (s Settings) Mismatches(p Policy) []Mismatch {
	orders, dead := s.Orders, s.DeadLetters
	if orders.ARN == "" {
		return nil
	}
	var all []Mismatch
	check := func(ok bool, m Mismatch) {
		if !ok {
			all = append(all, m)
		}
	}
	check(orders.Retention >= p.Retention, Mismatch{
		"retention", "MessageRetentionPeriod of the queue",
		orders.Retention.String(), "at least " + p.Retention.String(),
		fmt.Sprintf("SQS deletes waiting messages before they are parked; "+
			"set the attribute to %d (seconds) or lower QUEUE_RETENTION", int(p.Retention.Seconds())),
	})
	check(orders.RedriveTarget != "" && (dead.ARN == "" || orders.RedriveTarget == dead.ARN), Mismatch{
		"redrive_target", "deadLetterTargetArn in the RedrivePolicy of the queue",
		cmp.Or(orders.RedriveTarget, "none"), cmp.Or(dead.ARN, "the dead-letter queue"),
		"SQS deletes messages that kill the function, or moves them to a queue without an alarm; " +
			"set it to the queue of DEAD_LETTER_QUEUE_URL",
	})
	check(orders.RedriveTarget == "" || orders.MaxReceives >= p.MaxReceives, Mismatch{
		"max_receives", "maxReceiveCount in the RedrivePolicy of the queue",
		strconv.Itoa(orders.MaxReceives), "at least " + strconv.Itoa(p.MaxReceives),
		"SQS moves waiting messages to the dead-letter queue without a reason; set it to " + strconv.Itoa(p.MaxReceives),
	})
	// SQS developer guide, "Setting-up dead-letter queue retention in Amazon SQS".
	check(dead.ARN == "" || dead.Retention > orders.Retention, Mismatch{
		"dead_letter_retention", "MessageRetentionPeriod of the dead-letter queue",
		dead.Retention.String(), "more than the queue's " + orders.Retention.String(),
		"a message that SQS moves keeps its age; " +
			"raise the attribute, up to 1209600 (seconds), or lower the queue's",
	})
	return all
}

// Settings reads the settings of both queues, with one call for each. It needs the
// permission sqs:GetQueueAttributes on both. If one call fails, it returns the error and
// the other queue's settings.
func (q *Queue) Settings(ctx context.Context) (Settings, error) {
	orders, err := q.settings(ctx, q.url)
	dead, deadErr := q.settings(ctx, q.deadLetterURL)
	return Settings{Orders: orders, DeadLetters: dead}, errors.Join(err, deadErr)
}

func (q *Queue) settings(ctx context.Context, url string) (QueueSettings, error) {
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &url,
		AttributeNames: []types.QueueAttributeName{"QueueArn", "MessageRetentionPeriod", "RedrivePolicy"},
	})
	if err == nil {
		var s QueueSettings
		if s, err = settingsOf(out.Attributes); err == nil {
			return s, nil
		}
	}
	return QueueSettings{}, fmt.Errorf("read the settings of queue %s: %w", url, err)
}

// settingsOf parses attributes as GetQueueAttributes returns them (API reference). A
// queue without a redrive policy has no attribute RedrivePolicy.
func settingsOf(attributes map[string]string) (s QueueSettings, err error) {
	if s.ARN = attributes["QueueArn"]; s.ARN == "" {
		return s, errors.New("missing attribute QueueArn")
	}
	retention := attributes["MessageRetentionPeriod"]
	seconds, err := strconv.Atoi(retention)
	if err != nil {
		return s, fmt.Errorf("attribute MessageRetentionPeriod %q: want seconds", retention)
	}
	s.Retention = time.Duration(seconds) * time.Second
	text := attributes["RedrivePolicy"]
	if text == "" {
		return s, nil
	}
	var policy struct {
		Target      string      `json:"deadLetterTargetArn"`
		MaxReceives json.Number `json:"maxReceiveCount"` // SQS accepts it with and without quotes
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return s, fmt.Errorf("attribute RedrivePolicy: %w", err)
	}
	s.RedriveTarget = policy.Target
	if s.MaxReceives, err = strconv.Atoi(policy.MaxReceives.String()); err != nil {
		return s, fmt.Errorf("attribute RedrivePolicy: maxReceiveCount: %w", err)
	}
	return s, nil
}

// SettingsCheck compares the queues' settings with the handler's policy, once in the life
// of a process, in the background of the first batch. The zero value is ready to use.
type SettingsCheck struct {
	once       sync.Once
	background sync.WaitGroup
}

// Wait returns when no comparison is running.
func (c *SettingsCheck) Wait() { c.background.Wait() }

// start runs the comparison in the background, the first time. It does nothing on a nil
// SettingsCheck.
func (c *SettingsCheck) start(ctx context.Context, h *Handler) {
	if c == nil {
		return
	}
	c.once.Do(func() {
		// The invocation may end before the response of SQS.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		c.background.Go(func() {
			defer cancel()
			// A panic here must not end the process, because a batch is running in it.
			_ = recoverPanic(func() { h.compareSettings(ctx) })
		})
	})
}

func (h *Handler) compareSettings(ctx context.Context) {
	requestID := slog.String("request_id", h.RequestID(ctx))
	settings, err := h.Queue.Settings(ctx)
	if err != nil {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "queue settings not compared", slog.Any("error", err), requestID)
	}
	for _, m := range settings.Mismatches(h.Policy) {
		h.Meter.Count(MetricQueueMisconfigured, "Setting", m.Setting)
		h.Log.LogAttrs(ctx, slog.LevelError, "queue misconfigured",
			slog.String("setting", m.Setting), slog.String("attribute", m.Attribute),
			slog.String("got", m.Got), slog.String("want", m.Want), slog.String("remedy", m.Remedy), requestID)
	}
}
