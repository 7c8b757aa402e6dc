package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/orders/cloud"
)

const day = 24 * time.Hour

// serveQueues serves two queues with the settings of infra/terraform, apart from a
// change. It returns a config that names the order queue and has more variables.
func serveQueues(
	t *testing.T, change func(orders, dead *sqstest.Settings), more ...string,
) (cloud.SmokeEnv, *sqstest.Server) {
	t.Helper()
	server, err := sqstest.Serve(sqstest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	orders, dead := sqstest.DefaultSettings(), sqstest.DefaultSettings()
	orders.Retention, orders.DeadLetters, orders.MaxReceives = 7*day, "dead", 1000
	dead.Retention = 14 * day
	change(&orders, &dead)
	server.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, name := range []string{"dead", "other"} {
			must(t, m.Create(now, name, dead))
		}
		must(t, m.Create(now, "orders", orders))
	})
	c, err := config.Read[cloud.SmokeEnv](environment(append(more,
		"AWS_ENDPOINT_URL="+server.URL, "QUEUE_URL="+server.QueueURL("orders"))...))
	must(t, err)
	return c, server
}

func TestCompareQueuesNamesEverySettingThatWouldLoseOrders(t *testing.T) {
	t.Parallel()
	const intro = "queues misconfigured:"
	for claim, tt := range map[string]struct {
		change  func(orders, dead *sqstest.Settings)
		more    []string
		printed string
		err     []string // its lines; none for no error
	}{
		"the settings that Terraform deploys": {
			change:  func(_, _ *sqstest.Settings) {},
			printed: "queues  orders are kept 168h0m0s and received 1000 times, dead letters are kept 336h0m0s\n",
		},
		"SQS's default retention": {
			change: func(orders, _ *sqstest.Settings) { orders.Retention = 4 * day },
			err: []string{
				intro, "  MessageRetentionPeriod of the order queue is 96h0m0s, want at least 168h0m0s: SQS deletes waiting orders " +
					"before they are parked; set the attribute to 604800 (seconds) or lower QUEUE_RETENTION",
			},
		},
		"SQS's default retention with QUEUE_RETENTION to match": {
			change: func(orders, _ *sqstest.Settings) { orders.Retention = 4 * day }, more: []string{"QUEUE_RETENTION=96h"},
			printed: "queues  orders are kept 96h0m0s and received 1000 times, dead letters are kept 336h0m0s\n",
		},
		"two wrong settings": {
			change: func(orders, dead *sqstest.Settings) { orders.MaxReceives, dead.Retention = 5, 7*day },
			err: []string{
				intro, "  maxReceiveCount in the RedrivePolicy of the order queue is 5, want at least 1000: SQS moves waiting orders " +
					"to the dead-letter queue without a reason; set it to 1000",
				"  MessageRetentionPeriod of the dead-letter queue is 168h0m0s, want more than the order queue's 168h0m0s: a message " +
					"that SQS moves keeps its age; raise the attribute, up to 1209600 (seconds), or lower the order queue's",
			},
		},
		"a queue without a redrive policy": {
			change: func(orders, _ *sqstest.Settings) { orders.DeadLetters, orders.MaxReceives = "", 0 },
			err: []string{
				intro, "  deadLetterTargetArn in the RedrivePolicy of the order queue is none, want the dead-letter queue: SQS deletes " +
					"messages that kill the function, or moves them to a queue without an alarm; set it to the queue of DEAD_LETTER_QUEUE_URL",
			},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c, server := serveQueues(t, tt.change, tt.more...)
			var out strings.Builder
			var got []string
			if err := c.CompareQueues(t.Context(), awsOf(t, server.URL), &out); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(got, tt.err); diff != "" {
				t.Errorf("error: got - want +\n%s", diff)
			}
			if out.String() != tt.printed {
				t.Errorf("printed %q, want %q", &out, tt.printed)
			}
		})
	}
}

func TestTheDeadLetterQueueIsThatOfTheEnvironment(t *testing.T) {
	t.Parallel()
	c, server := serveQueues(t, func(_, _ *sqstest.Settings) {})
	c.DeadLetters = config.URL(server.QueueURL("other"))
	err := c.CompareQueues(t.Context(), awsOf(t, server.URL), new(strings.Builder))
	want := "deadLetterTargetArn in the RedrivePolicy of the order queue is " +
		sqstest.ARN("dead") + ", want " + sqstest.ARN("other")
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %q", err, want)
	}
}

func TestQueuesThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		fails string // an operation
		dead  string // a queue for DEAD_LETTER_QUEUE_URL
		want  string
	}{
		"the order queue's attributes":       {"GetQueueAttributes", "", "/orders: operation error SQS: GetQueueAttributes"},
		"the dead-letter queue's URL":        {"GetQueueUrl", "", "find the dead-letter queue " + sqstest.ARN("dead") + ": "},
		"the dead-letter queue's attributes": {"", "none", "/none: operation error SQS: GetQueueAttributes"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c, server := serveQueues(t, func(_, _ *sqstest.Settings) {})
			if tt.dead != "" {
				c.DeadLetters = config.URL(server.QueueURL(tt.dead))
			}
			server.Fail(tt.fails, 1, "AccessDenied")
			err := c.CompareQueues(t.Context(), awsOf(t, server.URL), new(strings.Builder))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}
