package sqstest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// request has the members of every operation and of every batch entry, whose names do not
// clash.
type request struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []request
	ID       string `json:"Id"` // of a batch entry

	MessageBody            string
	MessageAttributes      map[string]Attribute
	MessageGroupID         string `json:"MessageGroupId"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`

	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	ReceiptHandle               string

	QueueName      string
	Attributes     map[string]string
	SourceARN      string `json:"SourceArn"`
	DestinationARN string `json:"DestinationArn"`
}

// queue returns the queue name at the end of the queue URL, or the name in place of the
// URL, which SQS accepts as well (github.com/getmoto/moto/pull/5073). For a URL of
// another account it returns the URL, which is not a queue's name.
func (r request) queue() string {
	if u, err := url.Parse(r.QueueURL); err == nil {
		if name, ok := strings.CutPrefix(u.Path, "/"+Account+"/"); ok {
			return name
		}
	}
	return r.QueueURL
}

// wireMessage is a message in a response to ReceiveMessage.
type wireMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	MD5OfMessageAttributes string `json:",omitempty"`
	Body                   string
	Attributes             map[string]string    `json:",omitempty"`
	MessageAttributes      map[string]Attribute `json:",omitempty"`
}

// serve handles one HTTP request: decode, inject a fault, perform, respond.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the connection broke, or the body is too large
	}
	_, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !ok {
		rejectQuery(w)
		return
	}
	var in request
	decodeErr := json.Unmarshal(body, &in)
	if s.options.Before != nil {
		s.options.Before(Call{Operation: operation, Queue: in.queue(), Request: body})
	}
	f := s.fault(operation)
	var out any
	switch {
	case f.code != "" && !f.after:
		err = fault(f.code, "This fault was injected.")
	case decodeErr != nil:
		err = invalid("The request is not valid JSON for %s: %v.", operation, decodeErr)
	default:
		out, err = s.perform(r.Context(), operation, in)
	}
	if f.after && err == nil {
		err = fault(f.code, "This fault was injected.")
	}
	if f.loses {
		panic(http.ErrAbortHandler) // closes the connection
	}
	respond(w, out, err)
}

// rejectQuery responds to a client of the older Query protocol, such as the AWS CLI 2.9
// of Debian 12, in XML, because it cannot parse an error in JSON.
func rejectQuery(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type>`+
		`<Code>UnsupportedProtocol</Code>`+
		`<Message>this queue speaks AWS JSON 1.0: use AWS CLI 2.13 or later</Message></Error>`+
		`<RequestId>00000000-0000-0000-0000-000000000000</RequestId></ErrorResponse>`)
}

// respond writes the result or the error. SDKs read the error code of the Query protocol
// from the header.
func respond(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if sqsErr, ok := errors.AsType[*Error](err); ok {
		w.Header().Set("X-Amzn-Query-Error", sqsErr.queryCode()+";"+sqsErr.blame())
		w.WriteHeader(sqsErr.status())
		out = map[string]string{"__type": "com.amazonaws.sqs#" + sqsErr.Code, "message": sqsErr.Message}
	} else if err != nil {
		panic(http.ErrAbortHandler) // the caller or the server ended the wait
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err) // only strings, numbers and bytes
	}
	_, _ = w.Write(b) // fails if the client has closed the connection
}

// perform performs one operation. Only ReceiveMessage waits.
func (s *Server) perform(ctx context.Context, operation string, in request) (out any, err error) {
	if in.QueueURL == "" && in.QueueName+in.SourceARN == "" {
		return nil, missing("QueueUrl")
	}
	if operation == "ReceiveMessage" {
		return s.receiveMessage(ctx, in)
	}
	s.Machine(func(m *Machine, now time.Time) {
		switch operation {
		case "CreateQueue":
			out, err = map[string]string{"QueueUrl": s.QueueURL(in.QueueName)}, m.create(now, in)
		case "DeleteQueue":
			out, err = struct{}{}, m.Drop(now, in.queue())
		case "StartMessageMoveTask":
			_, err = m.Redrive(now, nameOf(in.SourceARN), nameOf(in.DestinationARN))
			out = map[string]string{"TaskHandle": in.SourceARN}
		case "GetQueueAttributes":
			out, err = m.attributes(now, in)
		case "SendMessage":
			out, err = m.sendEntry(now, in.queue(), in)
		case "DeleteMessage":
			out, err = struct{}{}, m.Delete(now, in.queue(), in.ReceiptHandle)
		case "ChangeMessageVisibility":
			out, err = m.changeEntry(now, in.queue(), in)
		case "SendMessageBatch":
			out, err = m.batch(now, in, m.sendEntry)
		case "ChangeMessageVisibilityBatch":
			out, err = m.batch(now, in, m.changeEntry)
		default:
			err = fault(CodeUnsupportedOperation, "%s is not supported by sqstest.", operation)
		}
	})
	return out, err
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

// nameOf returns the name of a queue at the end of its ARN.
func nameOf(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }

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

// result is the response to a SendMessage or a ChangeMessageVisibility, and an entry in
// that to a batch of them.
type result struct {
	ID                     string `json:"Id,omitempty"`
	MessageID              string `json:"MessageId,omitempty"`
	MD5OfMessageBody       string `json:",omitempty"`
	MD5OfMessageAttributes string `json:",omitempty"`
}

// sendEntry digests what was sent, also if it is a duplicate with other content.
func (m *Machine) sendEntry(now time.Time, queue string, in request) (any, error) {
	d := in.draft()
	got, err := m.Send(now, queue, d)
	return result{
		ID: in.ID, MessageID: got.ID, MD5OfMessageBody: digest([]byte(d.Body)),
		MD5OfMessageAttributes: attributesMD5(d.Attributes),
	}, err
}

// draft returns the message of a SendMessage or of an entry in a SendMessageBatch.
func (r request) draft() Draft {
	return Draft{
		Body: r.MessageBody, Attributes: r.MessageAttributes,
		Group: r.MessageGroupID, DeduplicationID: r.MessageDeduplicationID,
	}
}

func (m *Machine) changeEntry(now time.Time, queue string, in request) (any, error) {
	if in.VisibilityTimeout == nil {
		return nil, missing("VisibilityTimeout")
	}
	return result{ID: in.ID}, m.ChangeVisibility(now, queue, in.ReceiptHandle, *duration(in.VisibilityTimeout))
}

// failed is an entry of a batch that failed.
type failed struct {
	ID          string `json:"Id"`
	SenderFault bool
	Code        string
	Message     string
}

// batch performs the entries of a batch: some may fail while others succeed (API
// reference, SendMessageBatch). An empty list is omitted from the response.
func (m *Machine) batch(
	now time.Time, in request, do func(time.Time, string, request) (any, error),
) (any, error) {
	out := struct {
		Successful []any    `json:",omitempty"`
		Failed     []failed `json:",omitempty"`
	}{}
	q, err := m.open(now, in.queue())
	if err == nil {
		err = checkBatch(in.Entries)
	}
	if err != nil {
		return nil, err
	}
	// Recorded against AWS by LocalStack's suite:
	// test_send_batch_missing_message_group_id_for_fifo_queue.
	alone := func(e request) bool { return e.MessageBody != "" && e.MessageGroupID == "" }
	if q.fifo && slices.ContainsFunc(in.Entries, alone) {
		return nil, invalid("The request must contain the parameter MessageGroupId.")
	}
	for _, e := range in.Entries {
		done, err := do(now, in.queue(), e)
		if sqsErr, ok := errors.AsType[*Error](err); ok {
			out.Failed = append(out.Failed, failed{
				e.ID, sqsErr.blame() == "Sender", sqsErr.queryCode(), sqsErr.Message,
			})
		} else {
			out.Successful = append(out.Successful, done)
		}
	}
	return out, nil
}

// checkBatch rejects a whole batch.
func checkBatch(entries []request) error {
	size, seen := 0, map[string]bool{}
	for _, e := range entries {
		if seen[e.ID] {
			return fault(CodeBatchEntryIDsNotDistinct, "Id %q repeated.", e.ID)
		}
		seen[e.ID] = true
		size += e.draft().size()
	}
	switch {
	case len(entries) == 0:
		return fault(CodeEmptyBatchRequest, "There should be at least one entry in the request.")
	case len(entries) > 10:
		return fault(
			CodeTooManyEntriesInBatchRequest, "Maximum number of entries per request are 10. You have sent %d.",
			len(entries),
		)
	case size > maxSize:
		return fault(
			CodeBatchRequestTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			maxSize, size,
		)
	}
	return nil
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
	ended := s.await(ctx, &waiter{wait: duration(&in.WaitTimeSeconds), try: func(now time.Time) bool {
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

func duration(seconds *int) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(*seconds) * time.Second)
}
