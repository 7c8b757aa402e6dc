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
		Count: 1, SentAt: now,
		Group: m.Attributes["MessageGroupId"], FIFO: FIFO(m.EventSourceARN),
	}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil && n > 0 {
		d.Count = n
	}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms)
	}
	d.FirstSent = firstSent(m, d.SentAt)
	d.Trace = traceOf(m)
	return d
}

// traceOf returns the trace in the message attribute traceparent, or the one of AWS X-Ray
// in the system attribute AWSTraceHeader, as in
// "Root=1-5759e988-bd862e3fe1be46a994272793; Parent=53995c3f42cd8ad8;Sampled=1" (X-Ray
// developer guide, "Tracing header").
func traceOf(m events.SQSMessage) order.Trace {
	if t := producersTrace(m); t != "" {
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

func producersTrace(m events.SQSMessage) order.Trace {
	return order.ParseTrace(aws.ToString(m.MessageAttributes[AttrTrace].StringValue))
}

// firstSent returns the time that Park wrote when it first parked the message, or sentAt.
// Producers can set any attribute, so one that is not a time or is after sentAt is
// ignored.
func firstSent(m events.SQSMessage, sentAt time.Time) time.Time {
	a := m.MessageAttributes[AttrFirstSent]
	if a.StringValue == nil {
		return sentAt
	}
	at, err := time.Parse(time.RFC3339, *a.StringValue)
	if err != nil || at.After(sentAt) {
		return sentAt
	}
	return at
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
	return !r.Transient && failures(r, d) >= p.MaxDeliveries
}

func (p Policy) onLastDay(d Delivery, now time.Time) bool {
	return now.Sub(d.SentAt) >= p.Retention-lastDay
}

// failures returns how often the order itself may have failed: at most as often as its
// message was received, and as it was claimed, also for other messages.
func failures(r order.Result, d Delivery) int {
	if r.Attempt == 0 {
		return d.Count
	}
	return min(r.Attempt, d.Count)
}

// promptReturns is how many deliveries that were not started are redelivered without a
// delay.
const promptReturns = 3

func (p Policy) delay(r order.Result, d Delivery, now time.Time, jitter float64) time.Duration {
	if r.Reason == ReasonNotStarted && d.Count <= promptReturns {
		return 0 // it needs only a free worker
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

// lastDayDelay is the longest delay of a message that cannot be parked on its last day.
// It is so short that the message reaches maxReceiveCount in that day: SQS then
// dead-letters it, without a reason, before its retention ends and SQS deletes it.
const lastDayDelay = 30 * time.Second

// unparked returns the action for a message that the dead-letter queue did not accept.
func (p Policy) unparked(d Delivery, now time.Time, jitter float64) Action {
	delay := p.backoff(d.Count, jitter)
	if p.onLastDay(d, now) {
		delay = min(delay, lastDayDelay)
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
