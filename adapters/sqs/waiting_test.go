package sqs_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// SQS leaves a message that was received three times or more out of
// ApproximateAgeOfOldestMessage (SQS developer guide, "Available CloudWatch metrics for
// Amazon SQS"), so the function reports the age itself, for every reason of a redelivery.
func TestEveryRedeliveredMessageReportsItsWaitingAge(t *testing.T) {
	t.Parallel()
	for reason, tt := range map[order.Reason]struct {
		breaks func(*world)
		want   []float64 // ages in seconds of the redelivered ones of two messages
	}{
		order.ReasonStore:       {func(w *world) { w.script["B"] = outage() }, []float64{90}},
		order.ReasonUnconfirmed: {func(w *world) { w.script["B"] = unconfirmed(1) }, []float64{90}},
		sqs.ReasonBehind:        {func(w *world) { w.script["A"] = outage() }, []float64{90, 90}},
		sqs.ReasonPanic:         {func(w *world) { w.failsFor("B", runtime.Goexit) }, []float64{90}},
		sqs.ReasonParkFailed: {func(w *world) {
			w.script["B"] = conflict()
			w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		}, []float64{90}},
		sqs.ReasonNotStarted:      {func(w *world) { w.processFor(25 * time.Second) }, []float64{115}},
		order.ReasonMisconfigured: {func(w *world) { w.OrderBudget = 30 * time.Second }, []float64{90, 90}},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			w := newFIFOWorld(t)
			tt.breaks(w)
			w.sendGrouped("g", orderWithID("A"), orderWithID("B"))
			w.advance(90 * time.Second)
			w.deliverWithin(30*time.Second, w.receive())
			if diff := cmp.Diff(w.waitingAges(), tt.want); diff != "" {
				t.Errorf("WaitingAge (-got +want):\n%s", diff)
			}
			if w.counted("Redelivered "+string(reason)) == 0 {
				t.Errorf("no message was redelivered for %s", reason)
			}
		})
	}
}

// A redrive resets SentTimestamp, so the age of a message counts from the time that its
// first parking wrote.
func TestTheAgeOfARedrivenMessageCountsFromItsFirstSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = conflict()
	w.send(good)
	for _, wait := range []time.Duration{time.Hour, 3 * day, 9 * day} { // parked three times, redriven twice
		w.advance(wait)
		w.redrive()
		w.deliverVisible()
	}
	if got := w.messages(w.dead)[0].Attributes[sqs.AttrFirstSent].Text; got != "2100-01-02T03:04:05Z" {
		t.Errorf("%s = %s, want the time of the first send", sqs.AttrFirstSent, got)
	}
	w.redrive()
	w.script["ORD12345"] = outage()
	w.deliverVisible()
	want := []float64{(12*day + time.Hour).Seconds()}
	if diff := cmp.Diff(w.waitingAges(), want); diff != "" {
		t.Errorf("WaitingAge (-got +want):\n%s", diff)
	}
	if got := w.counted("Parked"); got != 3 {
		t.Errorf("Parked = %d, want 3: a redrive resets the message's age in the queue", got)
	}
}

func TestTheTimeOfTheFirstSendIsReadFromTheMessage(t *testing.T) {
	t.Parallel()
	attribute := func(text string) map[string]events.SQSMessageAttribute {
		return map[string]events.SQSMessageAttribute{sqs.AttrFirstSent: {DataType: "String", StringValue: &text}}
	}
	binary := map[string]events.SQSMessageAttribute{
		sqs.AttrFirstSent: {DataType: "Binary", BinaryValue: []byte("x")},
	}
	sent := map[string]string{"SentTimestamp": fmt.Sprint(start().Add(-time.Hour).UnixMilli())}
	broken := map[string]string{"SentTimestamp": "x"}
	for name, tt := range map[string]struct {
		system map[string]string
		own    map[string]events.SQSMessageAttribute
		age    time.Duration
	}{
		"a new message":                  {sent, nil, time.Hour},
		"a redriven message":             {sent, attribute("2100-01-01T03:04:05Z"), day},
		"a redriven message, other zone": {sent, attribute("2100-01-01T05:04:05+02:00"), day},
		// Producers may set any attribute. One that is not a time, or is after the send,
		// is ignored.
		"not a time":                     {sent, attribute("yesterday"), time.Hour},
		"an empty string":                {sent, attribute(""), time.Hour},
		"bytes instead of a string":      {sent, binary, time.Hour},
		"a time after the send":          {sent, attribute("2100-01-02T02:04:06Z"), time.Hour},
		"a time in the future":           {sent, attribute("2101-01-01T00:00:00Z"), time.Hour},
		"no SentTimestamp":               {nil, nil, 0},
		"redriven, no SentTimestamp":     {nil, attribute("2100-01-02T03:03:05Z"), time.Minute},
		"redriven, broken SentTimestamp": {broken, attribute("2100-01-02T03:03:05Z"), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["WAITS"] = outage()
			e := events.SQSEvent{}
			for _, body := range []string{orderWithID("WAITS"), "no order"} {
				e.Records = append(e.Records, events.SQSMessage{
					MessageId: body, Body: body, Attributes: tt.system, MessageAttributes: tt.own,
				})
			}
			_, err := w.Handle(t.Context(), e)
			w.must(err)
			if diff := cmp.Diff(w.waitingAges(), []float64{tt.age.Seconds()}); diff != "" {
				t.Errorf("WaitingAge (-got +want):\n%s", diff)
			}
			want := start().Add(-tt.age)
			if got := w.messages(w.dead)[0].Attributes[sqs.AttrFirstSent].Text; got != want.Format(time.RFC3339) {
				t.Errorf("parked with %s = %s, want %s", sqs.AttrFirstSent, got, want)
			}
			if got := w.processed()[0].Sent; !got.Equal(want) {
				t.Errorf("processed as sent at %v, want %v", got, want)
			}
		})
	}
}
