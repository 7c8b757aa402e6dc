package order_test

import (
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	parentID    = "b7ad6b7169203331"
	traceparent = "00-" + traceID + "-" + parentID + "-01"
)

func TestParseTraceAcceptsTraceparentsOnly(t *testing.T) {
	if got := order.ParseTrace(traceparent); got != traceparent || got.ID() != traceID {
		t.Errorf("got %q with id %q, want %q and %q", got, got.ID(), traceparent, traceID)
	}
	for _, s := range []string{
		"", traceparent + "-00", strings.ToUpper(traceparent), "01" + traceparent[2:], traceparent[:54],
		"00-" + strings.Repeat("0", 32) + "-" + parentID + "-01", "00-" + traceID + "-" + strings.Repeat("0", 16) + "-01",
		strings.Replace(traceparent, "c-", "g-", 1), strings.TrimSuffix(traceparent, "1") + "/", "00-" + traceID[1:] + "-" + parentID + "-01",
		"00-" + traceID + "-" + parentID[1:] + "-01", "x" + traceparent,
	} {
		if got := order.ParseTrace(s); got != "" || order.Trace(s).ID() != "" {
			t.Errorf("%q: got %q with id %q, want none", s, got, order.Trace(s).ID())
		}
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add(traceparent)
	f.Add("00-" + traceID + "-" + parentID + "-zz")
	f.Fuzz(func(t *testing.T, s string) {
		got := order.ParseTrace(s)
		if got != "" && string(got) != s || len(got.ID()) != 0 && len(got.ID()) != 32 || (got == "") != (got.ID() == "") {
			t.Errorf("%q: got %q with id %q, want the traceparent or none", s, got, got.ID())
		}
	})
}

func TestTraceFromIDs(t *testing.T) {
	if got := order.TraceFrom(traceID, parentID, true); got != traceparent {
		t.Errorf("got %q, want %q", got, traceparent)
	}
	if got, want := order.TraceFrom(traceID, parentID, false), order.Trace(traceparent[:53]+"00"); got != want {
		t.Errorf("not sampled: got %q, want %q", got, want)
	}
	if got := order.TraceFrom(traceID, "", true); got != "" {
		t.Errorf("without a parent: got %q, want none", got)
	}
}

// A duplicate message has another trace. The provider refuses other parameters under a
// known key, so the trace must not reach it.
func TestTheTraceOfTheFirstMessageIsReported(t *testing.T) {
	o, err := order.New(ordertest.Draft("ORD-1"))
	if err != nil {
		t.Fatal(err)
	}
	p := order.Processor{
		Store: new(ordertest.Memory), Payments: &ordertest.Bank{Scope: "test"}, Scope: "test", Now: noon, ConfirmTime: confirmTime,
	}
	l := order.Lease{Owner: "a", From: noon(), Until: noon().Add(time.Minute), Trace: traceparent}
	first := p.Process(t.Context(), o, noon(), l)
	l.Owner, l.Trace = "b", order.TraceFrom(strings.Repeat("1", 32), parentID, true)
	again := p.Process(t.Context(), o, noon(), l)
	if first.Reason != order.ReasonSettled || again.Reason != order.ReasonDuplicate ||
		first.Trace != traceparent || again.Trace != traceparent {
		t.Errorf("got %+v and %+v, want both with the trace of the first message", first, again)
	}
}
