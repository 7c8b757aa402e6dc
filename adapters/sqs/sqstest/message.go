package sqstest

import (
	"crypto/md5" //nolint:gosec // the SQS protocol has its checksums in MD5; nothing here is a secret
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is the state of a message in a queue.
type State int

// The states of a message (SQS developer guide, "Amazon SQS visibility timeout" and
// "delay queues").
const (
	Visible State = iota
	Delayed
	InFlight
)

// Message is a copy of a stored message. Its Attributes are shared: do not change them.
type Message struct {
	ID            string
	Body          string
	Attributes    map[string]Attribute
	Sent          time.Time
	FirstReceived time.Time // zero: never received
	Receives      int       // across all queues, until redriven
	Source        string    // queue that dead-lettered it, empty if none did
	Receipt       string    // handle of the latest receive in this queue, empty if none
	State         State
	VisibleAt     time.Time // from which it can be received; only Messages sets it

	Group           string // message group id
	DeduplicationID string // in a FIFO queue
	Sequence        string // in a FIFO queue: larger for a later message
}

// Attribute is a message attribute. Type is String, Number or Binary, optionally with a
// label after a dot. Binary has the value of a binary attribute, Text that of the others.
type Attribute struct {
	Type, Text string
	Binary     []byte
}

// Text returns a String attribute.
func Text(s string) Attribute { return Attribute{Type: "String", Text: s} }

// Draft is a message to send. A nil Delay means the queue's delay. A FIFO queue requires
// a Group, and a DeduplicationID unless it has content-based deduplication.
type Draft struct {
	Body       string
	Attributes map[string]Attribute
	Delay      *time.Duration

	Group, DeduplicationID string
}

const wordCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

func (d Draft) check(s Settings) error {
	if d.Body == "" {
		return fault(CodeMissingParameter, "The request must contain the parameter MessageBody.")
	}
	if d.Delay != nil && (*d.Delay < 0 || *d.Delay > maxDelay) {
		return outside("DelaySeconds", seconds(*d.Delay), "DelaySeconds must be >= 0 and <= 900.")
	}
	if len(d.Attributes) > 10 {
		return fault(
			CodeInvalidParameterValue, "Number of message attributes [%d] exceeds the allowed maximum [10].",
			len(d.Attributes),
		)
	}
	if size := d.size(); size > s.MaxSize {
		return fault(
			CodeInvalidParameterValue,
			"One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", s.MaxSize,
		)
	}
	if strings.ContainsFunc(d.Body, forbidden) {
		return fault(CodeInvalidMessageContents, "The message contains characters outside the allowed set.")
	}
	for name, a := range d.Attributes {
		if err := a.check(name); err != nil {
			return err
		}
	}
	return d.checkIDs(s)
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

// check applies "Message attribute components" in the SQS developer guide.
func (a Attribute) check(name string) error {
	lower := strings.ToLower(name)
	kind, _, _ := strings.Cut(a.Type, ".")
	switch {
	case name == "" || len(name) > 256 || strings.Trim(name, wordCharacters+"-.") != "",
		strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."),
		strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return fault(CodeInvalidParameterValue, "Invalid message attribute name %q.", name)
	case len(a.Type) > 256 || kind != "String" && kind != "Number" && kind != "Binary":
		return fault(
			CodeInvalidParameterValue, "The message attribute %q has an invalid message attribute type.", name,
		)
	case kind == "Binary" && (len(a.Binary) == 0 || a.Text != ""),
		kind != "Binary" && (a.Text == "" || len(a.Binary) > 0):
		return fault(
			CodeInvalidParameterValue, "The message attribute %q must contain a non-empty value of its type.", name,
		)
	case kind == "Number" && !isNumber(a.Text):
		return fault(
			CodeInvalidParameterValue, "Can't cast the value of message (user) attribute %q to a number.", name,
		)
	case strings.ContainsFunc(a.Text, forbidden):
		// Not the code for a body: LocalStack's suite, recorded against AWS,
		// test_invalid_string_attributes_cause_invalid_parameter_value_error.
		return fault(
			CodeInvalidParameterValue, "The message attribute %q contains characters outside the allowed set.", name,
		)
	}
	return nil
}

// isNumber reports whether a text is a number with "up to 38 digits of precision, and it
// can be between 10^-128 and 10^+126" (SQS developer guide, "Message attribute data
// types"). SQS also "trims leading and trailing zeroes", which is not done here.
func isNumber(text string) bool {
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return false // ParseFloat accepts more: hexadecimal, underscores, inf
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	digits := strings.Trim(strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "+-"), "0")
	n, err := strconv.ParseFloat(text, 64)
	n = math.Abs(n)
	return err == nil && len(digits) <= 38 && (n == 0 || 1e-128 <= n && n <= 1e126)
}

func (a Attribute) isBinary() bool { return strings.HasPrefix(a.Type, "Binary") }

// bodyMD5 returns MD5OfMessageBody.
func bodyMD5(body string) string {
	sum := md5.Sum([]byte(body)) //nolint:gosec // the protocol's checksum
	return hex.EncodeToString(sum[:])
}

// attributesMD5 returns MD5OfMessageAttributes, "" without attributes. It digests the
// attributes sorted by name, each as name, type, one byte (1 for text, 2 for binary) and
// value; name, type and value have their length as four bytes before them (SQS developer
// guide, "Calculating the MD5 message digest for message attributes").
func attributesMD5(attributes map[string]Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		b = appendSized(appendSized(b, name), a.Type)
		if a.isBinary() {
			b = appendSized(append(b, 2), string(a.Binary))
		} else {
			b = appendSized(append(b, 1), a.Text)
		}
	}
	sum := md5.Sum(b) //nolint:gosec // the protocol's checksum
	return hex.EncodeToString(sum[:])
}

func appendSized(b []byte, s string) []byte {
	size := uint32(len(s)) //nolint:gosec // a message is at most 1 MiB
	return append(binary.BigEndian.AppendUint32(b, size), s...)
}
