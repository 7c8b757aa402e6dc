package sqs

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/domain/order"
)

// The reasons that the edge adds to the domain's.
const (
	ReasonPanic      order.Reason = "panic"           // a record of the batch crashed its worker
	ReasonNotStarted order.Reason = "not_started"     // too little time was left to begin it
	ReasonBehind     order.Reason = "behind_in_group" // a message before it in its FIFO group has to go first
	ReasonParkFailed order.Reason = "park_failed"     // the dead-letter queue did not take it
)

// Reasons lists every reason that the edge gives.
func Reasons() []order.Reason {
	return []order.Reason{ReasonPanic, ReasonNotStarted, ReasonBehind, ReasonParkFailed}
}

// Policy is how patient the queue is. All fields are needed.
type Policy struct {
	FirstDelay    time.Duration // before the second delivery; doubles with each
	LongestDelay  time.Duration
	MaxDeliveries int           // of an order that fails by itself
	MaxReceives   int           // the queue's maxReceiveCount: after so many SQS dead-letters a message itself, without a reason
	Retention     time.Duration // the queue's: after it SQS deletes a message, and does not dead-letter it
}

// DefaultPolicy is the policy of the queue in infra/terraform.
func DefaultPolicy() Policy {
	return Policy{
		FirstDelay:    5 * time.Second,
		LongestDelay:  15 * time.Minute,
		MaxDeliveries: 20,
		MaxReceives:   1000, // SQS allows no more (SQS developer guide, "Configure a dead-letter queue using the Amazon SQS console")
		Retention:     7 * 24 * time.Hour,
	}
}

const (
	// lastDay is how long before the queue deletes a message it is parked, whatever it waits for.
	lastDay = 24 * time.Hour
	// lastReceives is how many chances to park a message are left before SQS moves it. Delays alone do not come so far before the
	// last day, but a function that was throttled or killed for days does.
	lastReceives = 10
)

// Delivery is what the queue says about one delivery of a message.
type Delivery struct {
	Count  int       // 1 for the first (ApproximateReceiveCount)
	SentAt time.Time // SentTimestamp; a redrive from the dead-letter queue starts it again
	// FirstSent is when the message was sent for the first time: the attribute
	// orderonce-first-sent of one that was parked and redriven, else SentAt. It is never after
	// SentAt.
	FirstSent time.Time
	Group     string // MessageGroupId, which a standard queue has too, for fairness among tenants
	FIFO      bool   // what is in one group has an order
}

// deliveryOf reads the attributes that Lambda always passes on (Lambda developer guide, "Example Amazon SQS message
// event"). What is missing or unreadable counts as a first delivery of now, so that nothing is parked for it.
func deliveryOf(m events.SQSMessage, now time.Time) Delivery {
	d := Delivery{Count: 1, SentAt: now, Group: m.Attributes["MessageGroupId"], FIFO: strings.HasSuffix(m.EventSourceARN, ".fifo")}
	if n, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]); err == nil && n > 0 {
		d.Count = n
	}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		d.SentAt = time.UnixMilli(ms)
	}
	d.FirstSent = firstSent(m, d.SentAt)
	return d
}

// firstSent returns the time that the first parking of a message noted, or sentAt. Producers may
// set any attribute, so one that is not a time, or that is after sentAt, is ignored.
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

// Action is what is done with one message: it is forgotten (Done), comes back after Delay (Redeliver), or goes to the
// dead-letter queue (Park).
type Action struct {
	Verdict order.Verdict
	Delay   time.Duration
}

// Answer decides what becomes of a delivery whose order had this result. It is pure; jitter is in [0, 1) and spreads
// the deliveries that failed together.
func Answer(r order.Result, d Delivery, now time.Time, jitter float64, p Policy) Action {
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

// exhausted reports whether waiting has become more dangerous than asking a person. Nobody's order is parked for an
// outage or for a mistake of ours, until the queue itself is about to lose it, or to take it away without a reason.
func (p Policy) exhausted(r order.Result, d Delivery, now time.Time) bool {
	if p.onLastDay(d, now) || d.Count > p.MaxReceives-lastReceives {
		return true
	}
	return !r.Transient && tries(r, d) >= p.MaxDeliveries
}

func (p Policy) onLastDay(d Delivery, now time.Time) bool {
	return now.Sub(d.SentAt) >= p.Retention-lastDay
}

// tries is how often the order itself may have failed. A message is also received while the store is down, while no worker is
// free or while another is in front of it, and an order may be claimed for other messages: what counts is in both numbers.
func tries(r order.Result, d Delivery) int {
	if r.Attempt == 0 {
		return d.Count
	}
	return min(r.Attempt, d.Count)
}

// promptReturns is how many deliveries that could not start come back at once.
const promptReturns = 3

func (p Policy) delay(r order.Result, d Delivery, now time.Time, jitter float64) time.Duration {
	if r.Reason == ReasonNotStarted && d.Count <= promptReturns {
		return 0 // it waits for nothing but a free worker
	}
	delay := p.backOff(d.Count, jitter)
	if !r.NotBefore.IsZero() {
		// A lease counts up to and including its last instant.
		delay = max(delay, r.NotBefore.Sub(now)+time.Second)
	}
	return wholeSeconds(delay)
}

// maxSpread bounds the random part of a delay. With a wider one an unlucky message would have used up its receives before an outage
// of six days is over.
const maxSpread = 5 * time.Minute

// backOff doubles with each delivery, up to the longest, less a random part of at most a half.
func (p Policy) backOff(count int, jitter float64) time.Duration {
	delay := p.LongestDelay
	if doublings := max(count, 1) - 1; doublings < 20 {
		delay = min(p.FirstDelay<<doublings, p.LongestDelay)
	}
	spread := min(delay/2, maxSpread)
	return wholeSeconds(delay - spread + time.Duration(jitter*float64(spread)))
}

// lastDayDelay bounds the delay of a message that could not be parked on its last day. It comes back so often that SQS itself moves it
// to the dead-letter queue, without a reason but safe, before it would delete it.
const lastDayDelay = 30 * time.Second

// unparked is what becomes of a message that the dead-letter queue did not take.
func (p Policy) unparked(d Delivery, now time.Time, jitter float64) Action {
	delay := p.backOff(d.Count, jitter)
	if p.onLastDay(d, now) {
		delay = min(delay, lastDayDelay)
	}
	return Action{Verdict: order.Redeliver, Delay: delay}
}

// maxDelay is the longest delay: SQS hides a message for 12 hours from its receive (API reference, ChangeMessageVisibility), of
// which the function has used up some.
const maxDelay = 11 * time.Hour

// wholeSeconds rounds up, because visibility has whole seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return min((d + time.Second - 1).Truncate(time.Second), maxDelay)
}
