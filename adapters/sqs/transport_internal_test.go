package sqs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

type attributes = map[string]events.SQSMessageAttribute

func textAttributes(pairs ...string) attributes {
	all := attributes{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = events.SQSMessageAttribute{DataType: "String", StringValue: &pairs[i+1]}
	}
	return all
}

// Lambda always passes the system attributes on, and producers may set any other: what
// does not parse must park no message.
func TestDeliveryOf(t *testing.T) {
	now := time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
	sent := map[string]string{"SentTimestamp": fmt.Sprint(now.Add(-time.Hour).UnixMilli())}
	for name, tt := range map[string]struct {
		system map[string]string
		own    attributes
		count  int           // 0 means 1
		age    time.Duration // since the first send
	}{
		"no attributes":          {},
		"a third delivery":       {system: map[string]string{"ApproximateReceiveCount": "3"}, count: 3},
		"a count that is a word": {system: map[string]string{"ApproximateReceiveCount": "many"}},
		"a count of zero":        {system: map[string]string{"ApproximateReceiveCount": "0"}},
		"a broken send":          {system: map[string]string{"SentTimestamp": "today"}},

		"a new message":             {system: sent, age: time.Hour},
		"a redriven message":        {system: sent, own: textAttributes(AttrFirstSent, "2100-01-01T03:04:05Z"), age: 24 * time.Hour},
		"of another zone":           {system: sent, own: textAttributes(AttrFirstSent, "2100-01-01T05:04:05+02:00"), age: 24 * time.Hour},
		"first sent at no time":     {system: sent, own: textAttributes(AttrFirstSent, "yesterday"), age: time.Hour},
		"first sent after the send": {system: sent, own: textAttributes(AttrFirstSent, "2100-01-02T02:04:06Z"), age: time.Hour},
		"redriven, and no send":     {own: textAttributes(AttrFirstSent, "2100-01-02T03:03:05Z"), age: time.Minute},
		"first sent in binary": {
			system: sent, own: attributes{AttrFirstSent: {DataType: "Binary", BinaryValue: []byte("x")}}, age: time.Hour,
		},
	} {
		got := deliveryOf(events.SQSMessage{Attributes: tt.system, MessageAttributes: tt.own}, now)
		want := fmt.Sprint(max(tt.count, 1), tt.age)
		if got := fmt.Sprint(got.Count, now.Sub(got.FirstSent)); got != want {
			t.Errorf("%s: got count and age %s, want %s", name, got, want)
		}
	}
}

// What a producer writes into our attributes reaches a person's terminal through the
// dead-letter queue.
func TestTheAttributesOfAParkedMessage(t *testing.T) {
	const id, first = "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "00000000-fdea-4c2c-8f9d-bdfb0c7bf324"
	producers := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("mine-", i), fmt.Sprint(i))
		}
		return all
	}
	ours := func(more ...string) []string {
		return append([]string{
			AttrReason, "conflict", AttrOrderID, "A", AttrFirstMessageID, id, AttrFirstSent, "2100-01-02T03:04:05Z",
			AttrDetail, "d",
		}, more...)
	}
	printableASCII := ""
	for c := ' '; c <= '~'; c++ {
		printableASCII += string(c)
	}
	for name, tt := range map[string]struct {
		own    []string
		detail string // "" means "d"
		want   []string
	}{
		"alone":                    {want: ours()},
		"five of the producer":     {own: producers(5), want: ours(producers(5)...)},
		"six of the producer":      {own: producers(6), want: ours(append(producers(4), AttrDropped, "mine-4 mine-5")...)},
		"parked before, with room": {own: append(producers(4), AttrReason, "refused"), want: ours(append(producers(4), AttrTimesParked, "2")...)},
		"parked thrice before":     {own: []string{AttrReason, "refused", AttrTimesParked, "3"}, want: ours(AttrTimesParked, "4")},
		"parked before, no room":   {own: append(producers(5), AttrReason, "refused"), want: ours(producers(5)...)},
		"the origin":               {own: []string{AttrFirstMessageID, first}, want: append(ours(), AttrFirstMessageID, first)},
		"what does not parse": {own: []string{
			AttrFirstMessageID, "<b>canary", AttrReason, "refused\ncanary",
			AttrTimesParked, "canary", AttrDropped, "canary", AttrDetail, "canary",
		}, want: ours()},
		"a long list of dropped names": {
			own:  []string{"a", "", "b", "", "c", "", "d", "", strings.Repeat("x", 2000), "", "z", ""},
			want: ours("a", "", "b", "", "c", "", "d", "", AttrDropped, strings.Repeat("x", 1024)),
		},
		"an error that cannot be printed": {
			detail: "line one\nünï\x00" + printableASCII + "\x7f" + strings.Repeat("x", 5000),
			want:   append(ours(), AttrDetail, "line one??n??"+printableASCII+"?"+strings.Repeat("x", 1024-13-96)),
		},
	} {
		if tt.detail == "" {
			tt.detail = "d"
		}
		r := &record{
			SQSMessage: events.SQSMessage{MessageId: id, MessageAttributes: textAttributes(tt.own...)}, task: Task{ID: "A"},
			delivery: Delivery{FirstSent: time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)},
			result:   order.Result{Reason: order.ReasonConflict, Err: errors.New(tt.detail)},
		}
		got, want := map[string]string{}, map[string]string{}
		for name, a := range r.parkedAttributes() {
			got[name] = aws.ToString(a.StringValue)
		}
		for name, a := range textAttributes(tt.want...) {
			want[name] = *a.StringValue
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
}

func TestAttributesOfSQSAndOfParkParse(t *testing.T) {
	const id = "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324"
	for value, want := range map[string]string{
		id: id, "": "own", id + "0": "own", id[1:]: "own", strings.ToUpper(id): "own",
		strings.ReplaceAll(id, "-", "0"): "own", "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf32\n": "own",
	} {
		if got := FirstMessageID(value, "own"); got != want {
			t.Errorf("FirstMessageID(%q) = %q, want %q", value, got, want)
		}
	}
	for _, value := range []string{"refused\n", "Refused", "=cmd()", "refused 4242", strings.Repeat("a", 41)} {
		if got := ParseReason(value); got != "" {
			t.Errorf("ParseReason(%q) = %q, want none", value, got)
		}
	}
	seen := map[order.Reason]bool{}
	for _, r := range slices.Concat(order.Reasons(), Reasons(), refund.Reasons(), receipt.Reasons()) {
		if got := ParseReason(string(r)); got != r || seen[r] {
			t.Errorf("ParseReason(%q) = %q, want the reason, which one package has", r, got)
		}
		seen[r] = true
	}
}

// SQS deletes a message at the end of its retention, and the order would be lost. One
// that can never be parked reaches maxReceiveCount in its last day, so that SQS
// dead-letters it before.
func TestTheLastDayHasTimeForAllReceives(t *testing.T) {
	const works = 30 * time.Second // what each delivery may take, as infra/terraform has it
	p, now := DefaultPolicy(), time.Unix(4e9, 0)
	d := Delivery{Count: 1, SentAt: now.Add(-6 * 24 * time.Hour)}
	for all := time.Duration(0); d.Count <= p.MaxReceives; d.Count++ {
		a := p.unparked(d, now, 0.99)
		if all += a.Delay + works; a.Verdict != order.Redeliver || all > 24*time.Hour {
			t.Fatalf("receive %d: got %+v after %v, want it received within a day", d.Count, a, all)
		}
	}
}

func TestSettingsAreParsedInEveryFormThatSQSReturns(t *testing.T) {
	for name, tt := range map[string]struct {
		arn, retention, policy string
		want                   QueueSettings // none after an error
	}{
		"without a redrive policy": {"q", "60", "", QueueSettings{ARN: "q", Retention: time.Minute}},
		"a number of receives": {
			"q", "60", `{"deadLetterTargetArn":"dead","maxReceiveCount":7}`, QueueSettings{"q", time.Minute, "dead", 7},
		},
		"a quoted number of receives": {
			"q", "60", `{"deadLetterTargetArn":"dead","maxReceiveCount":"7"}`, QueueSettings{"q", time.Minute, "dead", 7},
		},
		"no ARN":          {retention: "60"},
		"no retention":    {arn: "q"},
		"a broken policy": {arn: "q", retention: "60", policy: "{"},
		"a policy that has no number of receives": {arn: "q", retention: "60", policy: "{}"},
	} {
		got, err := settingsOf(map[string]string{
			"QueueArn": tt.arn, "MessageRetentionPeriod": tt.retention, "RedrivePolicy": tt.policy,
		})
		if valid := tt.want.ARN != ""; (err == nil) != valid || valid && got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, tt.want)
		}
	}
}
