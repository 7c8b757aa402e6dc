package sqstest

import (
	"crypto/md5" //nolint:gosec // the SQS protocol has its checksums in MD5; nothing here is a secret
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// State is the state of a message in a queue.
type State int

// The states of a message (SQS developer guide, "Amazon SQS visibility timeout").
const (
	Visible State = iota
	InFlight
)

// Draft is a message to send. A FIFO queue requires a Group and a DeduplicationID.
type Draft struct {
	Body                   string
	Attributes             map[string]Attribute
	Group, DeduplicationID string
}

// Message is a copy of a stored message. Its Attributes are shared: do not change them.
type Message struct {
	Draft

	ID            string
	Sent          time.Time
	FirstReceived time.Time // zero: never received
	Receives      int       // across all queues, until redriven
	Source        string    // queue that dead-lettered it, empty if none did
	Handle        string    // handle of the latest receive in this queue, empty if none
	State         State
	VisibleAt     time.Time // from which it can be received
}

// Attribute is a message attribute. Type is String, Number or Binary, optionally with a
// label after a dot. Binary has the value of a binary attribute, Text that of the others.
type Attribute struct {
	Type   string `json:"DataType"`
	Text   string `json:"StringValue,omitempty"`
	Binary []byte `json:"BinaryValue,omitempty"`
}

// Text returns a String attribute.
func Text(s string) Attribute { return Attribute{Type: "String", Text: s} }

// maxSize is the limit of a message, and of all messages of a batch.
const maxSize = 1 << 20

const wordCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// check applies the limits of the API reference, SendMessage. A standard queue accepts a
// group, for fair queues; it has no effect here.
func (d Draft) check(fifo bool) error {
	switch {
	case d.Body == "":
		return missing("MessageBody")
	case len(d.Attributes) > 10:
		return invalid("Number of message attributes [%d] exceeds the allowed maximum [10].", len(d.Attributes))
	case d.size() > maxSize:
		return invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.",
			maxSize)
	case strings.ContainsFunc(d.Body, forbidden):
		return fault(CodeInvalidMessageContents, "The message contains characters outside the allowed set.")
	case fifo && d.Group == "":
		return missing("MessageGroupId")
	case fifo && d.DeduplicationID == "":
		return invalid("The queue should either have ContentBasedDeduplication enabled or " +
			"MessageDeduplicationId provided explicitly")
	case !fifo && d.DeduplicationID != "":
		return outside("MessageDeduplicationId", d.DeduplicationID,
			"The request include parameter that is not valid for this queue type.")
	}
	for name, a := range d.Attributes {
		if err := a.check(name); err != nil {
			return err
		}
	}
	return nil
}

// size counts as SQS does: the body and every part of every message attribute.
func (d Draft) size() int {
	n := len(d.Body)
	for name, a := range d.Attributes {
		n += len(name) + len(a.Type) + len(a.Text) + len(a.Binary)
	}
	return n
}

// forbidden reports whether the API reference excludes a character: anything but #x9,
// #xA, #xD, #x20-#xD7FF, #xE000-#xFFFD, #x10000-#x10FFFF.
func forbidden(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// check applies "Message attribute components" in the SQS developer guide, except that
// the text of a Number is not parsed.
func (a Attribute) check(name string) error {
	lower := strings.ToLower(name)
	kind, _, _ := strings.Cut(a.Type, ".")
	binary := kind == "Binary"
	switch {
	case name == "" || len(name) > 256 || strings.Trim(name, wordCharacters+"-.") != "",
		strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."),
		strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return invalid("Invalid message attribute name %q.", name)
	case len(a.Type) > 256 || kind != "String" && kind != "Number" && !binary:
		return invalid("The message attribute %q has an invalid message attribute type.", name)
	case binary == (len(a.Binary) == 0), binary == (a.Text != ""):
		return invalid("The message attribute %q must contain a non-empty value of its type.", name)
	case strings.ContainsFunc(a.Text, forbidden):
		// Not the code for a body: LocalStack's suite, recorded against AWS,
		// test_invalid_string_attributes_cause_invalid_parameter_value_error.
		return invalid("The message attribute %q contains characters outside the allowed set.", name)
	}
	return nil
}

// senderID is a made-up user id, because the server does not know its callers.
const senderID = "AIDAPRETENDSENDER"

// systemAttributes returns the attributes in ReceiveMessage and in a function's event;
// times are in milliseconds since the epoch.
func (m Message) systemAttributes() map[string]string {
	millis := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	out := map[string]string{
		"SenderId":                         senderID,
		"SentTimestamp":                    millis(m.Sent),
		"ApproximateReceiveCount":          strconv.Itoa(m.Receives),
		"ApproximateFirstReceiveTimestamp": millis(m.FirstReceived),
	}
	if m.Source != "" {
		out["DeadLetterQueueSourceArn"] = ARN(m.Source)
	}
	if m.Group != "" {
		out["MessageGroupId"] = m.Group
	}
	if m.DeduplicationID != "" {
		out["MessageDeduplicationId"] = m.DeduplicationID
	}
	return out
}

// digest returns the checksum of a body, MD5OfMessageBody.
func digest(b []byte) string {
	sum := md5.Sum(b) //nolint:gosec // the protocol's checksum
	return hex.EncodeToString(sum[:])
}
