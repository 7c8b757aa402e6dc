package sqstest

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// senderID is a made-up user id, because the server does not know its callers.
const senderID = "AIDAPRETENDSENDER"

// systemAttributes returns the attributes in ReceiveMessage and in a function's event;
// times are in milliseconds since the epoch.
func (m Message) systemAttributes() map[string]string {
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
	if m.Sequence != "" {
		out["MessageDeduplicationId"], out["SequenceNumber"] = m.DeduplicationID, m.Sequence
	}
	return out
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func (s *Server) getQueueURL(in request) (out any, err error) {
	if in.QueueOwner != "" && in.QueueOwner != Account {
		return nil, noQueue(in.QueueName)
	}
	s.Machine(func(m *Machine, _ time.Time) { _, err = m.Settings(in.QueueName) })
	return map[string]string{"QueueUrl": s.QueueURL(in.QueueName)}, err
}

// isOptional reports whether an attribute exists that a queue may be without.
func isOptional(name string) bool {
	return slices.Contains([]string{
		"Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled",
		"RedrivePolicy", "RedriveAllowPolicy",
		"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit",
	}, name)
}

func getAttributes(m *Machine, now time.Time, in request) (any, error) {
	q, err := m.open(now, in.queue())
	if err != nil {
		return nil, err
	}
	if len(in.AttributeNames) == 0 { // none, and not all (github.com/aws/aws-cli/issues/17)
		return struct{}{}, nil
	}
	all := q.attributes()
	requested := map[string]string{}
	for _, name := range in.AttributeNames {
		value, known := all[name]
		switch {
		case name == "All":
			requested = all
		case known:
			requested[name] = value
		case !isOptional(name):
			return nil, unknownAttribute(name)
		}
	}
	return map[string]any{"Attributes": requested}, nil
}

// attributes returns what GetQueueAttributes reports; times are in seconds since the
// epoch.
func (q *queue) attributes() map[string]string {
	s := q.settings
	out := map[string]string{
		"QueueArn":                              ARN(q.name),
		"ApproximateNumberOfMessages":           strconv.Itoa(q.shown.Len()),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(q.inFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(q.delayed()),
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.modified.Unix(), 10),
		"VisibilityTimeout":                     strconv.Itoa(seconds(s.Visibility)),
		"MessageRetentionPeriod":                strconv.Itoa(seconds(s.Retention)),
		"DelaySeconds":                          strconv.Itoa(seconds(s.Delay)),
		"ReceiveMessageWaitTimeSeconds":         strconv.Itoa(seconds(s.Wait)),
		"MaximumMessageSize":                    strconv.Itoa(s.MaxSize),
	}
	if s.DeadLetters != "" {
		out["RedrivePolicy"] = `{"deadLetterTargetArn":"` + ARN(s.DeadLetters) +
			`","maxReceiveCount":` + strconv.Itoa(s.MaxReceives) + `}`
	}
	if s.FIFO {
		maps.Copy(out, map[string]string{
			"FifoQueue": "true", "ContentBasedDeduplication": strconv.FormatBool(s.ContentDeduplication),
			"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
		})
	}
	return out
}
