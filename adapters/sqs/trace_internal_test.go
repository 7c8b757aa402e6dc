package sqs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	trace   = "00-" + traceID + "-b7ad6b7169203331-01"
	other   = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"
	xray    = "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1"
)

func TestTheTraceOfAMessage(t *testing.T) {
	for name, tt := range map[string]struct {
		system map[string]string
		own    attributes
		want   order.Trace
	}{
		"none": {},

		"the producer's trace":     {own: textAttributes(AttrTrace, trace), want: trace},
		"a trace that is none":     {own: textAttributes(AttrTrace, "canary")},
		"X-Ray's trace":            {system: map[string]string{"AWSTraceHeader": xray}, want: trace},
		"X-Ray's, with blanks":     {system: map[string]string{"AWSTraceHeader": strings.ReplaceAll(xray, ";", "; ")}, want: trace},
		"X-Ray's without a parent": {system: map[string]string{"AWSTraceHeader": xray[:40]}},
		"X-Ray's, not sampled": {
			system: map[string]string{"AWSTraceHeader": strings.Replace(xray, "d=1", "d=0", 1)}, want: order.Trace(trace[:53] + "00"),
		},
		"the producer's, and X-Ray's": {
			system: map[string]string{"AWSTraceHeader": xray}, own: textAttributes(AttrTrace, other), want: other,
		},
	} {
		d := deliveryOf(events.SQSMessage{Attributes: tt.system, MessageAttributes: tt.own}, time.Unix(4e9, 0))
		if d.Trace != tt.want {
			t.Errorf("%s: got %q, want %q", name, d.Trace, tt.want)
		}
	}
}

func TestAParkedMessageKeepsItsTrace(t *testing.T) {
	for of, want := range map[string]string{trace: trace, trace + "\ninjected": ""} {
		r := &record{SQSMessage: events.SQSMessage{MessageAttributes: textAttributes(AttrTrace, of)}}
		r.result = order.Result{Reason: order.ReasonConflict, Err: errors.New("d")}
		if got := aws.ToString(r.parkedAttributes()[AttrTrace].StringValue); got != want {
			t.Errorf("of %q: got %q, want %q", of, got, want)
		}
	}
}
