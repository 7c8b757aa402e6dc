package sqs

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

// An unknown verdict, or none, must never delete a message.
func TestOnlyDoneAndParkedMessagesAreAcknowledged(t *testing.T) {
	t.Parallel()
	cfg := aws.Config{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}}
	b := &batch{
		Handler: &Handler{
			Queue: NewQueue(cfg, "http://127.0.0.1:1/orders", "http://127.0.0.1:1/dead"),
			Log:   slog.New(slog.DiscardHandler),
		},
		leaseUntil: time.Unix(0, 0), // no time is left for calls to the queue
	}
	for id, verdict := range map[string]order.Verdict{
		"done": order.Done, "parked": order.Park, "redelivered": order.Redeliver, "unknown": "ignore", "none": "",
	} {
		b.records = append(b.records, &record{
			SQSMessage: events.SQSMessage{MessageId: id}, action: Action{Verdict: verdict},
		})
	}
	var got []string
	for _, f := range b.response(t.Context()).BatchItemFailures {
		got = append(got, f.ItemIdentifier)
	}
	slices.Sort(got)
	if want := []string{"none", "redelivered", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("batch item failures = %q, want %q", got, want)
	}
}
