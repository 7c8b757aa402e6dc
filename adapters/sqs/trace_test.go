package sqs_test

import (
	"testing"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// A duplicate has a trace of its own.
func TestARecordIsLoggedWithItsTraces(t *testing.T) {
	const (
		ofMessage order.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		ofOrder   order.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"
	)
	duplicate := order.Result{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Paid, Trace: ofOrder}
	for name, tt := range map[string]struct {
		result         order.Result
		trace, another any // ids
	}{
		"the message's own":    {paid(), ofMessage.ID(), nil},
		"another of its order": {duplicate, ofOrder.ID(), ofMessage.ID()},
	} {
		w := newWorld(t, standard)
		w.script["ORD12345"] = tt.result
		w.sendDraft(sqstest.Draft{Body: good, Attributes: map[string]sqstest.Attribute{
			sqs.AttrTrace: sqstest.Text(string(ofMessage)),
		}})
		w.deliver()
		if got := w.processed[0].Lease.Trace; got != ofMessage {
			t.Errorf("%s: trace of the lease = %s, want the message's", name, got)
		}
		if line := w.line("msg", "order"); line["trace_id"] != tt.trace || line["message_trace_id"] != tt.another {
			t.Errorf("%s: got %v, want the traces %v and %v", name, line, tt.trace, tt.another)
		}
	}
}
