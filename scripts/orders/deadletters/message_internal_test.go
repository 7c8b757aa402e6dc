package deadletters

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/scripts/jobs"
)

// A message that SQS moved has the producer's attributes, whatever their names. What the
// function cannot have written is dropped, and replaced on the way back.
func TestAMessageHasItsOriginAndItsHistory(t *testing.T) {
	t.Parallel()
	const firstID = "0af76519-16cd-43dd-8448-eb211c80319c"
	sent := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	type shown struct {
		OrderID                 order.ID
		Reason, Detail, FirstID string
		FirstSent               time.Time
		Receives, TimesParked   int
	}
	moved := shown{Reason: Unnamed, FirstID: "message", FirstSent: sent, Receives: 4}
	forged, ten := map[string]string{}, map[string]string{}
	for n, name := range []string{
		sqs.AttrReason, sqs.AttrDetail, sqs.AttrOrderID, sqs.AttrTimesParked, sqs.AttrFirstMessageID, sqs.AttrFirstSent,
		sqs.AttrTrace, sqs.AttrDropped, "mine", "yours",
	} {
		forged[name], ten[fmt.Sprint("mine-", n)] = "Jane Doe\nredrive  ORD-2 \u009b31m", "1"
	}
	for claim, tt := range map[string]struct {
		attributes map[string]string
		want       shown
	}{
		"parked three times": {map[string]string{
			sqs.AttrReason: "refused", sqs.AttrDetail: "no such card", sqs.AttrTimesParked: "3", sqs.AttrOrderID: "ORD-1",
			sqs.AttrFirstMessageID: firstID, sqs.AttrFirstSent: "2026-10-31T08:00:00Z",
		}, shown{"ORD-1", "refused", "no such card", firstID, sent.AddDate(0, 0, -1), 4, 3}},
		"parked": {map[string]string{sqs.AttrReason: "refused"}, shown{"", "refused", "", "message", sent, 4, 1}},
		"moved by SQS, with what the function cannot have written":    {forged, moved},
		"moved by SQS, with a detail of the producer":                 {map[string]string{sqs.AttrDetail: "Jane Doe"}, moved},
		"moved by SQS, with as many attributes as a message may have": {ten, moved},
	} {
		raw := types.Message{
			MessageId: aws.String("message"), Body: aws.String("{"), MessageAttributes: map[string]types.MessageAttributeValue{},
			Attributes: map[string]string{"SentTimestamp": fmt.Sprint(sent.UnixMilli()), "ApproximateReceiveCount": "4"},
		}
		for name, value := range tt.attributes {
			raw.MessageAttributes[name] = types.MessageAttributeValue{StringValue: &value}
		}
		m := newMessage(raw, "dead", jobs.NewDecoder())
		got := shown{m.OrderID(), m.ReasonShown(), m.Detail, m.FirstID, m.FirstSent, m.Receives, m.TimesParked}
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", claim, diff)
		}
		back, room := m.redriven(), tt.attributes["mine-0"] == ""
		first := aws.ToString(back[sqs.AttrFirstSent].StringValue)
		if len(back) > 10 || room && first != tt.want.FirstSent.Format(time.RFC3339) {
			t.Errorf("%s: redriven with %d attributes, as first sent at %q, want the time that SQS has", claim, len(back), first)
		}
	}
}
