package sqstest

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The operations that operators and tests call, and no function of ours.
const (
	changeMessageVisibility = "ChangeMessageVisibility"
	createQueue             = "CreateQueue"
	deleteMessage           = "DeleteMessage"
	deleteQueue             = "DeleteQueue"
	getQueueAttributes      = "GetQueueAttributes"
	receiveMessage          = "ReceiveMessage"
	sendMessageBatch        = "SendMessageBatch"
	startMessageMoveTask    = "StartMessageMoveTask"
)

// otherMembers are the members of these operations alone.
type otherMembers struct {
	MaxNumberOfMessages         *int
	WaitTimeSeconds             int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string

	QueueName      string
	Attributes     map[string]string
	SourceARN      string `json:"SourceArn"`
	DestinationARN string `json:"DestinationArn"`
}

// create creates a queue. Attributes that a machine does not have have no effect.
func (m *Machine) create(now time.Time, in request) (err error) {
	s := DefaultSettings()
	var policy struct {
		DeadLetterTargetARN string `json:"deadLetterTargetArn"`
		MaxReceiveCount     int    `json:"maxReceiveCount"`
	}
	for name, value := range in.Attributes {
		switch name {
		case "VisibilityTimeout", "MessageRetentionPeriod":
			n, notNumber := strconv.Atoi(value)
			if err = cmp.Or(err, notNumber); name == "VisibilityTimeout" {
				s.Visibility = *duration(&n)
			} else {
				s.Retention = *duration(&n)
			}
		case "RedrivePolicy":
			err = cmp.Or(err, json.Unmarshal([]byte(value), &policy))
			s.DeadLetters, s.MaxReceives = nameOf(policy.DeadLetterTargetARN), policy.MaxReceiveCount
		}
	}
	if err != nil {
		return fault(CodeInvalidAttributeValue, "%v", err)
	}
	return m.Create(now, in.QueueName, s)
}

func nameOf(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }

func (m *Machine) move(now time.Time, in request) (any, error) {
	_, err := m.Redrive(now, nameOf(in.SourceARN), nameOf(in.DestinationARN))
	return map[string]string{"TaskHandle": in.SourceARN}, err
}

// attributes returns the attributes of a queue that AttributeNames requests. Without
// names these are none, and not all (github.com/aws/aws-cli/issues/17).
func (m *Machine) attributes(now time.Time, in request) (any, error) {
	q, err := m.open(now, in.queue())
	if err != nil {
		return nil, err
	}
	s := q.settings
	all := map[string]any{
		"QueueArn":                              ARN(q.name),
		"ApproximateNumberOfMessages":           q.counts.Visible,
		"ApproximateNumberOfMessagesNotVisible": q.counts.InFlight,
		"ApproximateNumberOfMessagesDelayed":    0,
		"VisibilityTimeout":                     seconds(s.Visibility),
		"MessageRetentionPeriod":                seconds(s.Retention),
		"MaximumMessageSize":                    maxSize,
	}
	if s.DeadLetters != "" {
		all["RedrivePolicy"] = fmt.Sprintf(
			`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, ARN(s.DeadLetters), s.MaxReceives,
		)
	}
	if q.fifo {
		all["FifoQueue"] = true
	}
	out := struct {
		Attributes map[string]string `json:",omitempty"`
	}{map[string]string{}}
	for name, value := range all {
		if wanted(name, in.AttributeNames) {
			out.Attributes[name] = fmt.Sprint(value)
		}
	}
	return out, nil
}

type wireMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	MD5OfMessageAttributes string `json:",omitempty"`
	Body                   string
	Attributes             map[string]string    `json:",omitempty"`
	MessageAttributes      map[string]Attribute `json:",omitempty"`
}

// receiveMessage receives, and waits if there are no messages: until a message becomes
// visible or the wait time ends.
func (s *Server) receiveMessage(ctx context.Context, in request) (any, error) {
	limit := 1
	if in.MaxNumberOfMessages != nil {
		limit = *in.MaxNumberOfMessages
	}
	if t := in.WaitTimeSeconds; t < 0 || t > 20 {
		return nil, outside("WaitTimeSeconds", t, "Must be >= 0 and <= 20, if provided.")
	}
	var got []Message
	var err error
	until := s.options.Now().Add(*duration(&in.WaitTimeSeconds))
	ended := s.await(ctx, &waiter{until: until, try: func(now time.Time) bool {
		got, err = s.machine.Receive(now, in.queue(), limit, duration(in.VisibilityTimeout))
		return err != nil || len(got) > 0
	}})
	if err := cmp.Or(ended, err); err != nil {
		return nil, err
	}
	out := struct {
		Messages []wireMessage `json:",omitempty"`
	}{}
	for _, m := range got {
		out.Messages = append(out.Messages, wire(m, in))
	}
	return out, nil
}

// wire returns a message with the requested attributes, which alone count for the digest.
func wire(m Message, in request) wireMessage {
	out := wireMessage{
		MessageID: m.ID, ReceiptHandle: m.Handle, Body: m.Body, MD5OfBody: digest([]byte(m.Body)),
		Attributes: m.systemAttributes(), MessageAttributes: maps.Clone(m.Attributes),
	}
	maps.DeleteFunc(out.MessageAttributes, func(name string, _ Attribute) bool {
		return !wanted(name, in.MessageAttributeNames)
	})
	out.MD5OfMessageAttributes = attributesMD5(out.MessageAttributes)
	maps.DeleteFunc(out.Attributes, func(name, _ string) bool {
		return !wanted(name, in.AttributeNames) && !wanted(name, in.MessageSystemAttributeNames)
	})
	return out
}

// wanted reports whether a list requests a name: itself, or a prefix of it before ".*".
func wanted(name string, list []string) bool {
	return slices.ContainsFunc(list, func(want string) bool {
		prefix, many := strings.CutSuffix(want, ".*")
		return want == "All" || want == name || many && strings.HasPrefix(name, prefix)
	})
}

// rejectQuery responds to a client of the older Query protocol, such as the AWS CLI 2.9
// of Debian 12, in XML, because it cannot parse an error in JSON. It returns true.
func rejectQuery(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type>`+
		`<Code>UnsupportedProtocol</Code>`+
		`<Message>this queue speaks AWS JSON 1.0: use AWS CLI 2.13 or later</Message></Error>`+
		`<RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>`)
	return true
}

func duration(seconds *int) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(*seconds) * time.Second)
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
		if strings.HasPrefix(a.Type, "Binary") {
			b = appendSized(append(b, 2), string(a.Binary))
		} else {
			b = appendSized(append(b, 1), a.Text)
		}
	}
	return digest(b)
}

func appendSized(b []byte, s string) []byte {
	size := uint32(len(s)) //nolint:gosec // a message is at most 1 MiB
	return append(binary.BigEndian.AppendUint32(b, size), s...)
}
