package eventbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/internal/strictjson"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

var errNotEvent = errors.New("not an event of an order: want an object with source and detail")

// Source returns the source of an event that EventBridge put into a queue, or "" if the
// body is not an event.
func Source(body string) string {
	return strictjson.Member([]byte(body), "source")
}

type event struct {
	Source string  `json:"source"`
	Detail *detail `json:"detail"`
}

// Decode returns the event of an order that EventBridge put into a queue: what Put was
// given, with the time in milliseconds and without a dispute's. The source must be that
// of the scope. The error names what is wrong and repeats no value but a valid source.
func Decode(body string, scope order.Scope) (outbox.Event, error) {
	var e event // encoding/json, because EventBridge and later releases may add fields
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Detail == nil {
		return outbox.Event{}, errNotEvent // an error of json may repeat a value
	}
	if want := sourceOf(scope); e.Source != want {
		return outbox.Event{}, fmt.Errorf("event source %s: want %q", order.Quote(e.Source), want)
	}
	return e.Detail.event()
}

const disputePrefix = "dispute_" // of the type of an event, before the status of its dispute

func (d detail) event() (outbox.Event, error) {
	at, err := time.Parse(rfc3339Millis, d.OccurredAt)
	switch {
	case d.Version != 1:
		return outbox.Event{}, fmt.Errorf("event version %d: want 1", d.Version)
	case err != nil:
		return outbox.Event{}, errors.New("event: occurredAt: want RFC 3339 with milliseconds")
	case !order.ValidID(d.OrderID):
		return outbox.Event{}, fmt.Errorf("event: orderId %s: want %s", order.Quote(d.OrderID), order.IDRule)
	}
	e := order.Event{
		Seq: d.Seq, From: order.Status(d.From), To: order.Status(d.Status),
		Intent: order.IntentID(d.Intent), Failure: d.Reason, At: at.UTC(),
	}
	switch what, status, _ := strings.Cut(d.Type, "."); {
	case what == "refund":
		e.Refund = order.RefundEvent{ID: d.RefundID, Status: status, Amount: d.Refunded}
	case status == "refunded_outside":
		e.Refund = order.RefundEvent{Status: order.RefundedOutside, Amount: d.Refunded}
	case status == "disputed":
		e.Dispute = order.Dispute{ID: order.DisputeID(d.DisputeID), Status: order.DisputeOpen}
	case strings.HasPrefix(status, disputePrefix):
		status = strings.TrimPrefix(status, disputePrefix)
		e.Dispute = order.Dispute{ID: order.DisputeID(d.DisputeID), Status: order.DisputeStatus(status)}
	}
	if e.Type() != d.Type {
		return outbox.Event{}, fmt.Errorf("event type %s: want %q", order.Quote(d.Type), e.Type())
	}
	return outbox.Event{
		OrderID: order.ID(d.OrderID), Total: order.Money{Amount: d.Amount, Currency: order.Currency(d.Currency)},
		Trace: order.ParseTrace(d.Traceparent), Event: e,
	}, nil
}
