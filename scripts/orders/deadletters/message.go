package deadletters

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/scripts/jobs"
)

// Message is a message of a dead-letter queue.
type Message struct {
	ID          string
	Handle      string // of the latest receive
	Body        string
	Attributes  map[string]types.MessageAttributeValue
	Group       string       // "" if it has none
	Reason      order.Reason // "" if SQS moved the message, at maxReceiveCount
	Detail      string       // without personal and payment data
	FirstID     string       // the id under which it was first sent
	FirstSent   time.Time
	Receives    int // from this queue, our own included; SQS counts on if it moved the message
	TimesParked int // by the function; 0 if SQS moved the message

	Job     jobs.Job // zero if Invalid is set
	Invalid error    // why the body is neither an order nor a refund

	named named  // by a body that is invalid
	queue string // its URL
}

// Unnamed is how a message without a reason is shown and selected.
const Unnamed = "none"

// ReasonShown returns the reason, or Unnamed.
func (m Message) ReasonShown() string { return cmp.Or(string(m.Reason), Unnamed) }

// OrderID returns the order that the body names, also if it is invalid, or else the one
// that the function noted.
func (m Message) OrderID() order.ID {
	return cmp.Or(m.Job.OrderID(), m.named.OrderID, order.ID(m.text(sqs.AttrOrderID)))
}

// named is what an invalid body names. The order of a message of a newer release may have
// a row.
type named struct {
	OrderID order.ID `json:"orderId"`
	Type    string   `json:"type"`
}

// namedIn reads an invalid body. A value of another type is skipped.
func namedIn(body string) (n named) {
	raw := []byte(body)
	if sqs.Unwrap(&raw) == nil {
		_ = json.Unmarshal(raw, &n)
	}
	if !order.ValidNewID(string(n.OrderID)) {
		n.OrderID = ""
	}
	return n
}

// newMessage decodes a message as it was received. A time or a count that cannot be read
// is zero.
func newMessage(raw types.Message, queue string, d *jobs.Decoder) Message {
	m := Message{
		ID: aws.ToString(raw.MessageId), Handle: aws.ToString(raw.ReceiptHandle), Body: aws.ToString(raw.Body),
		Attributes: raw.MessageAttributes, Group: raw.Attributes["MessageGroupId"], queue: queue,
	}
	if m.Reason = order.Reason(m.text(sqs.AttrReason)); m.Reason != "" { // or the function wrote no detail
		m.Detail = m.text(sqs.AttrDetail)
	}
	m.FirstID = cmp.Or(m.text(sqs.AttrFirstMessageID), m.ID)
	m.Receives, _ = strconv.Atoi(raw.Attributes["ApproximateReceiveCount"])
	if m.TimesParked, _ = strconv.Atoi(m.text(sqs.AttrTimesParked)); m.TimesParked == 0 && m.Reason != "" {
		m.TimesParked = 1
	}
	sent, _ := strconv.ParseInt(raw.Attributes["SentTimestamp"], 10, 64)
	var err error
	if m.FirstSent, err = time.Parse(time.RFC3339, m.text(sqs.AttrFirstSent)); err != nil {
		m.FirstSent = time.UnixMilli(sent).UTC()
	}
	if m.Job, m.Invalid = d.Decode(m.Body); m.Invalid != nil {
		m.named = namedIn(m.Body)
	}
	return m
}

// text returns an attribute of the function, or "" if the function cannot have written
// it.
func (m Message) text(attribute string) string {
	if value := aws.ToString(m.Attributes[attribute].StringValue); Parses(attribute, value) {
		return value
	}
	return ""
}

var namesFormat = regexp.MustCompile(`^[\w.,\- ]+$`)

// Parses reports whether an attribute is one of the function's with such a value as the
// function writes. SQS moves messages with whatever their producer wrote under the same
// names: lines, colors of a terminal, personal data.
func Parses(attribute, value string) bool {
	switch attribute {
	case sqs.AttrReason:
		return sqs.ParseReason(value) != ""
	case sqs.AttrDetail:
		return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	case sqs.AttrOrderID:
		return order.ValidID(value)
	case sqs.AttrFirstMessageID:
		return sqs.FirstMessageID(value, "") != ""
	case sqs.AttrFirstSent:
		_, err := time.Parse(time.RFC3339, value)
		return err == nil
	case sqs.AttrTimesParked:
		_, err := strconv.ParseUint(value, 10, 16)
		return err == nil
	case sqs.AttrDropped:
		return namesFormat.MatchString(value)
	case sqs.AttrTrace:
		return order.ParseTrace(value) != ""
	}
	return false
}

// maxAttributes is the most that one message may have (SQS developer guide, "Message
// quotas").
const maxAttributes = 10

// redriven returns the attributes with which the message goes back: its own, and where it
// came from if SQS moved it. A message that was sent again has a new time of sending, and
// the function compares the first one with the age of the row.
func (m Message) redriven() map[string]types.MessageAttributeValue {
	out := maps.Clone(m.Attributes)
	if out == nil {
		out = map[string]types.MessageAttributeValue{}
	}
	for _, a := range [...]struct{ name, value string }{
		{sqs.AttrFirstSent, m.FirstSent.UTC().Format(time.RFC3339)},
		{sqs.AttrFirstMessageID, m.FirstID},
	} {
		if _, has := out[a.name]; m.text(a.name) == "" && (has || len(out) < maxAttributes) {
			out[a.name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &a.value}
		}
	}
	return out
}
