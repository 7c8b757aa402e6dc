package sqstest

import (
	"encoding/json"
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
	if m.Group != "" {
		out["MessageGroupId"] = m.Group
	}
	if m.Sequence != "" {
		out["MessageDeduplicationId"], out["SequenceNumber"] = m.DeduplicationID, m.Sequence
	}
	return out
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

type redrivePolicy struct {
	Target      string      `json:"deadLetterTargetArn"`
	MaxReceives json.Number `json:"maxReceiveCount"` // a number, or the same in quotes
}

// apply sets the attributes that CreateQueue and SetQueueAttributes take. Encryption, policies, tags and throughput limits
// mean nothing here.
func (s Settings) apply(attributes map[string]string) (Settings, error) {
	durations := map[string]*time.Duration{
		"VisibilityTimeout": &s.Visibility, "MessageRetentionPeriod": &s.Retention,
		"DelaySeconds": &s.Delay, "ReceiveMessageWaitTimeSeconds": &s.Wait,
	}
	meaningless := []string{"FifoThroughputLimit", "Policy", "RedriveAllowPolicy", "SqsManagedSseEnabled"}
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
		case name == "FifoQueue":
			s.FIFO, err = choose(value, "false", "true")
		case name == "ContentBasedDeduplication":
			s.ContentDeduplication, err = choose(value, "false", "true")
		case name == "DeduplicationScope":
			s.GroupDeduplication, err = choose(value, "queue", "messageGroup")
		case slices.Contains(meaningless, name), strings.HasPrefix(name, "Kms"):
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

// redrive sets the redrive policy from its JSON; empty removes it.
func (s Settings) redrive(policy string) (Settings, error) {
	s.DeadLetters, s.MaxReceives = "", 0
	if policy == "" {
		return s, nil
	}
	var p redrivePolicy
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return s, err
	}
	n, err := strconv.Atoi(p.MaxReceives.String())
	name, ok := strings.CutPrefix(p.Target, ARN(""))
	if err != nil || !ok {
		return s, errors.New("not a redrive policy")
	}
	s.DeadLetters, s.MaxReceives = name, n
	return s, nil
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

func getAttributes(m *Machine, now time.Time, in request) (any, error) {
	q, err := m.open(now, in.queue())
	if err != nil {
		return nil, err
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
		case name != "RedrivePolicy": // known to SQS, not set on this queue
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
	if s.DeadLetters != "" {
		out["RedrivePolicy"] = `{"deadLetterTargetArn":"` + ARN(s.DeadLetters) + `","maxReceiveCount":` + strconv.Itoa(s.MaxReceives) + `}`
	}
	if s.FIFO {
		out["FifoQueue"], out["ContentBasedDeduplication"] = "true", strconv.FormatBool(s.ContentDeduplication)
		out["DeduplicationScope"] = "queue"
		if s.GroupDeduplication {
			out["DeduplicationScope"] = "messageGroup"
		}
	}
	return out
}

// moveTask is a finished message move task, as ListMessageMoveTasks shows it.
type moveTask struct {
	SourceArn                         string
	DestinationArn                    string `json:",omitempty"`
	Status                            string
	FailureReason                     string `json:",omitempty"`
	StartedTimestamp                  int64
	MaxNumberOfMessagesPerSecond      *int `json:",omitempty"`
	ApproximateNumberOfMessagesToMove int
	ApproximateNumberOfMessagesMoved  int
}

// startMove runs a message move task to its end at once, whatever its rate. A message without a known source fails the task, not the
// call.
func (s *Server) startMove(in request) (any, error) {
	if n := in.MaxNumberOfMessagesPerSecond; n != nil && (*n < 1 || *n > 500) {
		return nil, outside("MaxNumberOfMessagesPerSecond", *n, "Must be between 1 and 500, if provided.")
	}
	from, to := strings.TrimPrefix(in.SourceArn, ARN("")), strings.TrimPrefix(in.DestinationArn, ARN(""))
	task := moveTask{
		SourceArn: in.SourceArn, DestinationArn: in.DestinationArn, Status: "COMPLETED",
		MaxNumberOfMessagesPerSecond: in.MaxNumberOfMessagesPerSecond,
	}
	var err error
	s.Machine(func(m *Machine, now time.Time) {
		task.StartedTimestamp = now.UnixMilli()
		before, _ := m.Counts(now, from) // no such queue: Redrive says so
		task.ApproximateNumberOfMessagesToMove = before.Visible
		task.ApproximateNumberOfMessagesMoved, err = m.Redrive(now, from, to)
		if refused, ok := errors.AsType[*Error](err); ok && refused.Code == CodeNoSource {
			task.Status, task.FailureReason, err = "FAILED", refused.Code, nil
		}
		if err == nil {
			s.moves[from] = append([]moveTask{task}, s.moves[from]...)
		}
	})
	return map[string]string{"TaskHandle": "task-" + from + "-" + strconv.FormatInt(task.StartedTimestamp, 10)}, noResource(err)
}

// listMoves shows the latest tasks, by default one (API reference, ListMessageMoveTasks).
func (s *Server) listMoves(in request) (any, error) {
	limit := 1
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > 10 {
		return nil, outside("MaxResults", limit, "Must be between 1 and 10, if provided.")
	}
	from := strings.TrimPrefix(in.SourceArn, ARN(""))
	var tasks []moveTask
	var err error
	s.Machine(func(m *Machine, _ time.Time) {
		_, err = m.Settings(from)
		tasks = slices.Clone(s.moves[from])
	})
	return map[string][]moveTask{"Results": tasks[:min(len(tasks), limit)]}, noResource(err)
}

// noResource is how the operations for move tasks say that there is no such queue.
func noResource(err error) error {
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == CodeQueueDoesNotExist {
		return fault(CodeResourceNotFound, "The resource that you specified for the ARN parameter doesn't exist.")
	}
	return err
}
