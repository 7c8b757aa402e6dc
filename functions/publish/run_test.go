package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/stream"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/outbox"
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// publishing is a run over a bus in memory, with its output.
type publishing struct {
	*run

	bus ordertest.Bus
	out bytes.Buffer
}

func newPublishing() *publishing {
	p := &publishing{}
	p.run = &run{
		publisher: outbox.Publisher{Bus: &p.bus}, log: lambda.NewLogger(&p.out, slog.LevelInfo),
		meter: lambda.NewMeter(&p.out, "orderonce", map[string]string{"Scope": "test"}, noon),
	}
	return p
}

// batch returns one event item for each of n orders. The last argument makes some of them
// unreadable.
func batch(n int, broken map[int]error) (records []stream.Record) {
	for i, e := range ordertest.OutboxEvents(n)[:n] {
		r := stream.Record{SortKey: fmt.Sprintf("event#%06d", e.Event.Seq), Event: e}
		if broken[i] != nil {
			r.Event, r.Err = outbox.Event{OrderID: e.OrderID}, fmt.Errorf("stream record: %w", broken[i])
		}
		records = append(records, r)
	}
	return records
}

// metrics returns the counted metrics: name, and value of the further dimension.
func (p *publishing) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for line := range strings.Lines(p.out.String()) {
		if !strings.Contains(line, `"_aws":`) {
			continue
		}
		var metric struct {
			Reason                 string
			Published, Unpublished []float64
		}
		if err := json.Unmarshal([]byte(line), &metric); err != nil {
			t.Fatal(err)
		}
		for _, n := range append(metric.Published, metric.Unpublished...) {
			got[metric.Reason] += n
		}
	}
	return got
}

func TestABatch(t *testing.T) {
	t.Parallel()
	corrupt := order.ErrCorrupt
	for claim, tt := range map[string]struct {
		broken   map[int]error
		trouble  func(*ordertest.Bus)
		done     int
		accepted int // events at the bus
		metrics  map[string]float64
		log      []string
	}{
		"everything is published": {
			done: 25, accepted: 25, metrics: map[string]float64{"": 25},
			log: []string{`"level":"INFO","message":"batch published","published":25,"left":0}`},
		},
		"a refused event stops the batch there": {
			trouble: func(b *ordertest.Bus) { b.Refuse("ORD-13") },
			done:    12, accepted: 19, metrics: map[string]float64{"": 12, "refused": 13},
			log: []string{
				`"level":"WARN","message":"batch published","published":12,"left":13,"reason":"refused"`,
				`"order_id":"ORD-13","sort_key":"event#000001","trace_id":"0af7651916cd43dd8448eb211c80319c"`,
			},
		},
		"a bus that does not answer leaves everything": {
			trouble: func(b *ordertest.Bus) { b.Fail() },
			done:    0, accepted: 0, metrics: map[string]float64{"unavailable": 25},
			log: []string{`"level":"WARN","message":"batch published","published":0,"left":25,"reason":"unavailable"`},
		},
		"unreadable items are skipped and reported": {
			broken: map[int]error{0: corrupt, 3: corrupt, 24: corrupt},
			done:   25, accepted: 22, metrics: map[string]float64{"": 22, "unreadable": 3},
			log: []string{
				`"level":"ERROR","message":"unreadable event item skipped","order_id":"ORD-1","sort_key":"event#000001"`,
				`"error":"stream record: corrupt record"`, `"order_id":"ORD-25"`,
			},
		},
		"an unreadable item after a failure is reported once, when the batch gets there": {
			broken:  map[int]error{3: corrupt, 20: corrupt},
			trouble: func(b *ordertest.Bus) { b.Refuse("ORD-13") },
			done:    12, accepted: 19, metrics: map[string]float64{"": 11, "unreadable": 1, "refused": 13},
		},
		"unreadable items before a failure are done": {
			broken:  map[int]error{0: corrupt, 1: corrupt},
			trouble: func(b *ordertest.Bus) { b.Refuse("ORD-3") },
			done:    2, accepted: 9, metrics: map[string]float64{"unreadable": 2, "refused": 23},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := newPublishing()
			if tt.trouble != nil {
				tt.trouble(&p.bus)
			}
			if done := p.publish(t.Context(), batch(25, tt.broken)); done != tt.done {
				t.Errorf("got %d records done, want %d", done, tt.done)
			}
			if got := len(p.bus.Accepted()); got != tt.accepted {
				t.Errorf("got %d events at the bus, want %d", got, tt.accepted)
			}
			if diff := cmp.Diff(p.metrics(t), tt.metrics); diff != "" {
				t.Errorf("metrics (-got +want):\n%s", diff)
			}
			for _, want := range tt.log {
				if !strings.Contains(p.out.String(), want) {
					t.Errorf("got the log %s\nwant %s", p.out.String(), want)
				}
			}
		})
	}
}

func TestMoneyThatOthersGaveBackIsCountedOnceItIsPublished(t *testing.T) {
	t.Parallel()
	outside := order.RefundEvent{Status: order.RefundedOutside, Amount: 998}
	returned, nothing := outside, outside
	returned.Amount, nothing.Amount = -998, 0
	for claim, tt := range map[string]struct {
		refund           order.RefundEvent
		refused, counted bool
	}{
		"others gave money back":     {outside, false, true},
		"the bank returned it":       {returned, false, false},
		"nothing was given back":     {nothing, false, false},
		"a refund of ours":           {order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 998}, false, false},
		"the event is not published": {outside, true, false},
	} {
		p := newPublishing()
		records := batch(1, nil)
		records[0].Event.Event.Refund = tt.refund
		if tt.refused {
			p.bus.Refuse(records[0].Event.OrderID)
		}
		p.publish(t.Context(), records)
		if got := strings.Contains(p.out.String(), `"RefundedOutside":[1]`); got != tt.counted {
			t.Errorf("%s: counted: got %t, want %t: %s", claim, got, tt.counted, p.out.String())
		}
	}
}

// hanging is a bus that answers the first call only.
type hanging struct {
	ordertest.Bus

	calls int
}

func (h *hanging) Put(ctx context.Context, events []outbox.Event) ([]int, error) {
	if h.calls++; h.calls == 1 {
		return h.Bus.Put(ctx, events)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestABatchEndsBeforeTheFunctionsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPublishing()
		p.publisher.Bus = &hanging{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		done := p.publish(ctx, batch(25, nil))
		if took := time.Since(start); done != 10 || took != 9*time.Second {
			t.Errorf("got %d records done after %v, want the 10 of the first call, a second before the deadline", done, took)
		}
	})
}
