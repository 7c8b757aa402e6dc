package sqstest

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// senderID is a pretend user id: the server knows no callers.
const senderID = "AIDAPRETENDSENDER"

// systemAttributes are those that ReceiveMessage and a function's event show; times are epoch milliseconds.
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
	if m.TraceHeader != "" {
		out[traceHeader] = m.TraceHeader
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

// isIgnored reports whether an attribute exists and means nothing here: it is taken and not kept, so GetQueueAttributes does not
// show it.
func isIgnored(name string) bool {
	return slices.Contains([]string{"Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"}, name)
}

// apply sets the attributes that CreateQueue and SetQueueAttributes take.
func (s Settings) apply(attributes map[string]string) (Settings, error) {
	durations := map[string]*time.Duration{
		"VisibilityTimeout": &s.Visibility, "MessageRetentionPeriod": &s.Retention,
		"DelaySeconds": &s.Delay, "ReceiveMessageWaitTimeSeconds": &s.Wait,
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		n, err := strconv.Atoi(value)
		d, isDuration := durations[name]
		switch {
		case isDuration:
			*d = time.Duration(n) * time.Second
		case name == "MaximumMessageSize":
			s.MaxSize = n
		case name == "RedrivePolicy":
			s, err = s.redrive(value)
		case name == "RedriveAllowPolicy":
			s, err = s.allow(value)
		case name == "FifoQueue":
			s.FIFO, err = choose(value, "false", "true")
		case name == "ContentBasedDeduplication":
			s.ContentDeduplication, err = choose(value, "false", "true")
		case name == "DeduplicationScope":
			s.GroupDeduplication, err = choose(value, "queue", "messageGroup")
		case name == "FifoThroughputLimit":
			s.GroupThroughput, err = choose(value, "perQueue", "perMessageGroupId")
		case isIgnored(name):
			err = nil
		default:
			return s, unknownAttribute(name)
		}
		if err != nil {
			return s, badAttribute(name)
		}
	}
	return s, nil
}

// choose reads an attribute that has two values.
func choose(value, no, yes string) (bool, error) {
	if value != no && value != yes {
		return false, errors.New("neither " + no + " nor " + yes)
	}
	return value == yes, nil
}

func (s *Server) createQueue(in request) (any, error) {
	settings, err := DefaultSettings().apply(in.Attributes)
	if err != nil {
		return nil, err
	}
	s.Machine(func(m *Machine, now time.Time) { err = m.Create(now, in.QueueName, settings) })
	return map[string]string{"QueueUrl": s.QueueURL(in.QueueName)}, err
}

func (s *Server) getQueueURL(in request) (out any, err error) {
	if in.QueueOwner != "" && in.QueueOwner != Account {
		return nil, noQueue(in.QueueName)
	}
	s.Machine(func(m *Machine, _ time.Time) { _, err = m.Settings(in.QueueName) })
	return map[string]string{"QueueUrl": s.QueueURL(in.QueueName)}, err
}

// listQueues answers all at once: there are never a thousand.
func (s *Server) listQueues(in request) any {
	urls := []string{}
	s.Machine(func(m *Machine, _ time.Time) {
		for _, name := range m.Queues() {
			if strings.HasPrefix(name, in.QueueNamePrefix) {
				urls = append(urls, s.QueueURL(name))
			}
		}
	})
	return map[string][]string{"QueueUrls": urls}
}

func setAttributes(m *Machine, now time.Time, in request) error {
	settings, err := m.Settings(in.queue())
	if err != nil {
		return err
	}
	if settings, err = settings.apply(in.Attributes); err != nil {
		return err
	}
	return m.Configure(now, in.queue(), settings)
}

// mayBeUnset reports whether a queue may be without an attribute that exists.
func mayBeUnset(name string) bool {
	return isIgnored(name) || slices.Contains([]string{
		"RedrivePolicy", "RedriveAllowPolicy", "FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit",
	}, name)
}

func getAttributes(m *Machine, now time.Time, in request) (any, error) {
	q, err := m.open(now, in.queue())
	if err != nil {
		return nil, err
	}
	if len(in.AttributeNames) == 0 { // nothing, and not everything (github.com/aws/aws-cli/issues/17)
		return struct{}{}, nil
	}
	all := q.attributes()
	asked := map[string]string{}
	for _, name := range in.AttributeNames {
		value, known := all[name]
		switch {
		case name == "All":
			asked = all
		case known:
			asked[name] = value
		case !mayBeUnset(name):
			return nil, unknownAttribute(name)
		}
	}
	return map[string]any{"Attributes": asked}, nil
}

// attributes are what GetQueueAttributes shows; times are epoch seconds.
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
	maps.Copy(out, s.policies())
	if s.FIFO {
		out["FifoQueue"], out["ContentBasedDeduplication"] = "true", strconv.FormatBool(s.ContentDeduplication)
		out["DeduplicationScope"], out["FifoThroughputLimit"] = "queue", "perQueue"
	}
	if s.GroupDeduplication {
		out["DeduplicationScope"] = "messageGroup"
	}
	if s.GroupThroughput {
		out["FifoThroughputLimit"] = "perMessageGroupId"
	}
	return out
}
