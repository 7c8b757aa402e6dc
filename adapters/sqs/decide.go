package sqs

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
)

// The reasons that this package adds to the domain's.
const (
	ReasonPanic      order.Reason = "panic"           // processing the message panicked or exited
	ReasonNotStarted order.Reason = "not_started"     // too little time was left to start
	ReasonBehind     order.Reason = "behind_in_group" // an earlier message of its FIFO group is redelivered
	ReasonParkFailed order.Reason = "park_failed"     // the dead-letter queue did not accept it
)

// Reasons lists every reason that this package adds.
func Reasons() []order.Reason {
	return []order.Reason{ReasonPanic, ReasonNotStarted, ReasonBehind, ReasonParkFailed}
}

// Policy is how long and how often messages are redelivered. All fields are required.
type Policy struct {
	FirstDelay    time.Duration // before the second delivery; doubles with each delivery
	LongestDelay  time.Duration
	MaxDeliveries int           // of an order that fails by itself
	MaxReceives   int           // the queue's maxReceiveCount: then SQS dead-letters a message, without a reason
	Retention     time.Duration // the queue's retention: then SQS deletes a message without dead-lettering it
}

// DefaultPolicy is the policy for the queue in infra/terraform.
func DefaultPolicy() Policy {
	return Policy{
		FirstDelay:    5 * time.Second,
		LongestDelay:  15 * time.Minute,
		MaxDeliveries: 20,
		MaxReceives:   1000, // the maximum (SQS developer guide, "Configure a dead-letter queue ...")
		Retention:     7 * 24 * time.Hour,
	}
}

const (
	// lastDay is how long before the end of its retention a message is parked, whatever
	// it waits for.
	lastDay = 24 * time.Hour
	// receiveReserve is how many receives are left for parking before SQS moves the
	// message itself. Only a function that was throttled or killed for days uses them up.
	receiveReserve = 10
)

// Delivery describes one delivery of a message.
type Delivery struct {
	Count  int       // 1 for the first (ApproximateReceiveCount)
	SentAt time.Time // SentTimestamp; a redrive from the dead-letter queue resets it
	// FirstSent is when the message was first sent: the attribute orderonce-first-sent of
	// a message that was parked and redriven, else SentAt. It is never after SentAt.
	FirstSent time.Time
	Group     string // MessageGroupId; fair standard queues have it too
	FIFO      bool   // the messages of one group are ordered
	Trace     order.Trace
}

// deliveryOf reads the attributes that Lambda always passes on (Lambda developer guide,
// "Example Amazon SQS message event"). Missing or unreadable ones count as a first
// delivery, sent now, so that no message is parked because of them.
func deliveryOf(m events.SQSMessage, now time.Time) Delivery {
	d := Delivery{
		Count: 1, SentAt: now, Trace: traceOf(m),
		Group: m.Attributes["MessageGroupId"], FIFO: FIFO(m.EventSourceARN),
	}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil && n > 0 {
		d.Count = n
	}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms)
	}
	d.FirstSent = d.SentAt
	if at, err := time.Parse(time.RFC3339, text(m, AttrFirstSent)); err == nil && at.Before(d.SentAt) {
		d.FirstSent = at
	}
	return d
}

// text returns a message attribute. Producers can set any, also one of ours.
func text(m events.SQSMessage, name string) string {
	return aws.ToString(m.MessageAttributes[name].StringValue)
}

// traceOf returns the trace in the message attribute traceparent, or the one of AWS X-Ray
// in the system attribute AWSTraceHeader, as in
// "Root=1-5759e988-bd862e3fe1be46a994272793; Parent=53995c3f42cd8ad8;Sampled=1" (X-Ray
// developer guide, "Tracing header").
func traceOf(m events.SQSMessage) order.Trace {
	if t := order.ParseTrace(text(m, AttrTrace)); t != "" {
		return t
	}
	field := map[string]string{}
	for part := range strings.SplitSeq(m.Attributes["AWSTraceHeader"], ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		field[name] = value
	}
	id := strings.ReplaceAll(strings.TrimPrefix(field["Root"], "1-"), "-", "")
	return order.TraceFrom(id, field["Parent"], field["Sampled"] == "1")
}

// Action is what happens to one message: it is deleted (Done), redelivered after Delay
// (Redeliver), or sent to the dead-letter queue (Park).
type Action struct {
	Verdict order.Verdict
	Delay   time.Duration
}

// Decide returns the action for a delivery whose order had this result. It is a pure
// function. jitter is in [0, 1) and spreads messages that failed together.
func Decide(r order.Result, d Delivery, now time.Time, jitter float64, p Policy) Action {
	switch r.Verdict {
	case order.Done, order.Park:
		return Action{Verdict: r.Verdict}
	case order.Redeliver:
	}
	if p.exhausted(r, d, now) {
		return Action{Verdict: order.Park}
	}
	return Action{Verdict: order.Redeliver, Delay: p.delay(r, d, now, jitter)}
}

// exhausted reports whether a message has to be parked instead of redelivered. An outage
// or a misconfiguration parks no message before its last day, and before SQS would soon
// dead-letter it without a reason.
func (p Policy) exhausted(r order.Result, d Delivery, now time.Time) bool {
	if p.onLastDay(d, now) || d.Count > p.MaxReceives-receiveReserve {
		return true
	}
	failures := d.Count
	if r.Attempt > 0 { // its order was claimed so often, also for other messages
		failures = min(r.Attempt, d.Count)
	}
	return !r.Transient && failures >= p.MaxDeliveries
}

func (p Policy) onLastDay(d Delivery, now time.Time) bool {
	return now.Sub(d.SentAt) >= p.Retention-lastDay
}

func (p Policy) delay(r order.Result, d Delivery, now time.Time, jitter float64) time.Duration {
	if r.Reason == ReasonNotStarted && d.Count <= 3 {
		return 0 // it needs only a free worker, and often gets one
	}
	delay := p.backoff(d.Count, jitter)
	if !r.NotBefore.IsZero() {
		// A lease includes its last instant.
		delay = max(delay, r.NotBefore.Sub(now)+time.Second)
	}
	return wholeSeconds(delay)
}

// maxJitter bounds the random part of a delay. With a larger one an unlucky message would
// use up its receives before an outage of six days ends.
const maxJitter = 5 * time.Minute

// backoff doubles with each delivery up to LongestDelay, less a random part of at most a
// half.
func (p Policy) backoff(count int, jitter float64) time.Duration {
	delay := p.LongestDelay
	if doublings := max(count, 1) - 1; doublings < 20 {
		delay = min(p.FirstDelay<<doublings, p.LongestDelay)
	}
	spread := min(delay/2, maxJitter)
	return wholeSeconds(delay - spread + time.Duration(jitter*float64(spread)))
}

// unparked returns the action for a message that the dead-letter queue did not accept. On
// its last day the delay is so short that the message reaches maxReceiveCount: SQS then
// dead-letters it, without a reason, before its retention ends and SQS deletes it.
func (p Policy) unparked(d Delivery, now time.Time, jitter float64) Action {
	delay := p.backoff(d.Count, jitter)
	if p.onLastDay(d, now) {
		delay = min(delay, 30*time.Second)
	}
	return Action{Verdict: order.Redeliver, Delay: delay}
}

// maxDelay leaves the function an hour: SQS hides a message for at most 12 hours after
// its receive (API reference, ChangeMessageVisibility).
const maxDelay = 11 * time.Hour

// wholeSeconds rounds up, because a visibility timeout has whole seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return min((d + time.Second - 1).Truncate(time.Second), maxDelay)
}
