package sqstest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// request has the members of every operation and of every batch entry, whose names do not
// clash.
type request struct {
	QueueURL  string `json:"QueueUrl"`
	QueueName string
	Entries   []request
	ID        string `json:"Id"` // of a batch entry

	MessageBody             *string
	MessageAttributes       map[string]wireAttribute
	MessageSystemAttributes map[string]json.RawMessage
	DelaySeconds            *int
	MessageGroupID          string `json:"MessageGroupId"`
	MessageDeduplicationID  string `json:"MessageDeduplicationId"`

	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	ReceiptHandle               string

	QueueOwner     string `json:"QueueOwnerAWSAccountId"`
	SourceArn      string
	DestinationArn string

	MaxNumberOfMessagesPerSecond *int
}

// queue returns the queue name at the end of the queue URL, or the name in place of the
// URL, which SQS accepts as well (github.com/getmoto/moto/pull/5073). For a URL of
// another account or region it returns a text that is not a queue's name.
func (r request) queue() string {
	if !strings.ContainsAny(r.QueueURL, ":/") {
		return cmp.Or(r.QueueURL, r.QueueName)
	}
	u, err := url.Parse(r.QueueURL)
	if err == nil && !elsewhere(u.Hostname()) {
		if name, ok := strings.CutPrefix(u.Path, "/"+Account+"/"); ok {
			return name
		}
	}
	return "elsewhere: " + r.QueueURL
}

// elsewhere reports whether a host is AWS's in another region. Any other host may be a
// name of this server.
func elsewhere(host string) bool {
	return strings.HasSuffix(host, ".amazonaws.com") && !slices.Contains(strings.Split(host, "."), Region)
}

type wireAttribute struct {
	DataType    string
	StringValue string `json:",omitempty"`
	BinaryValue []byte `json:",omitempty"`
}

// wireMessage is a message in a response to ReceiveMessage.
type wireMessage struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	MD5OfMessageAttributes string `json:",omitempty"`
	Body                   string
	Attributes             map[string]string        `json:",omitempty"`
	MessageAttributes      map[string]wireAttribute `json:",omitempty"`
}

// serve handles one HTTP request: decode, inject a fault, perform, respond.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the connection broke, or the body is too large
	}
	if isQuery(r, body) {
		rejectQuery(w)
		return
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in request
	decodeErr := json.Unmarshal(body, &in)
	call := Call{Operation: operation, Queue: in.queue(), Request: body}
	if s.options.Before != nil {
		s.options.Before(call)
	}
	f := s.fault(operation)
	var out any
	switch {
	case f.kind == fails:
	case decodeErr != nil:
		call.Err = fault(
			CodeInvalidParameterValue, "The request is not valid JSON for %s: %v.", operation, decodeErr,
		)
	default:
		out, call.Err = s.perform(r.Context(), operation, in)
	}
	if f.kind == fails || f.kind == failsAfter && call.Err == nil {
		call.Err = fault(f.code, "This fault was injected.")
	}
	if s.options.After != nil {
		s.options.After(call)
	}
	if f.kind == loses {
		panic(http.ErrAbortHandler) // closes the connection
	}
	respond(w, out, call.Err)
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

// perform performs one operation. Operations that wait lock the machine themselves.
func (s *Server) perform(ctx context.Context, operation string, in request) (any, error) {
	switch operation {
	case "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListDeadLetterSourceQueues",
		"ListMessageMoveTasks", "ListQueues", "ListQueueTags", "PurgeQueue", "RemovePermission",
		"SetQueueAttributes", "TagQueue", "UntagQueue":
		return nil, fault(CodeUnsupportedOperation, "%s is not supported by sqstest.", operation)
	case "GetQueueUrl":
		return s.getQueueURL(in)
	case "StartMessageMoveTask":
		return s.startMessageMoveTask(in)
	}
	if in.QueueURL == "" {
		return nil, missing("QueueUrl")
	}
	switch operation {
	case "ReceiveMessage":
		return s.receiveMessage(ctx, in)
	case "SendMessageBatch":
		return s.batch(in, sendEntry)
	case "DeleteMessageBatch":
		return s.batch(in, deleteEntry)
	case "ChangeMessageVisibilityBatch":
		return s.batch(in, changeEntry)
	}
	return s.performAlone(operation, in)
}

// performAlone performs the operations that are one call of the machine.
func (s *Server) performAlone(operation string, in request) (out any, err error) {
	out = struct{}{}
	s.Machine(func(m *Machine, now time.Time) {
		switch operation {
		case "SendMessage":
			out, err = sendEntry(m, now, in.queue(), in)
		case "DeleteMessage":
			_, err = deleteEntry(m, now, in.queue(), in)
		case "ChangeMessageVisibility":
			_, err = changeEntry(m, now, in.queue(), in)
		case "GetQueueAttributes":
			out, err = getAttributes(m, now, in)
		default:
			err = fault(CodeInvalidAction, "The action %q is not valid for this endpoint.", operation)
		}
	})
	return out, err
}

// sent is the response to SendMessage, and an entry in that to SendMessageBatch.
type sent struct {
	ID                     string `json:"Id,omitempty"`
	MessageID              string `json:"MessageId"`
	MD5OfMessageBody       string
	MD5OfMessageAttributes string `json:",omitempty"`
	SequenceNumber         string `json:",omitempty"`
}

func sendEntry(m *Machine, now time.Time, queue string, in request) (any, error) {
	if len(in.MessageSystemAttributes) > 0 {
		return nil, fault(CodeUnsupportedOperation, "MessageSystemAttributes are not supported by sqstest.")
	}
	got, err := m.Send(now, queue, in.draft())
	return sent{
		ID: in.ID, MessageID: got.ID, MD5OfMessageBody: bodyMD5(got.Body),
		MD5OfMessageAttributes: attributesMD5(got.Attributes), SequenceNumber: got.Sequence,
	}, err
}

// draft returns the message of a SendMessage or of an entry in a SendMessageBatch.
func (r request) draft() Draft {
	d := Draft{
		Delay: duration(r.DelaySeconds), Group: r.MessageGroupID, DeduplicationID: r.MessageDeduplicationID,
	}
	if r.MessageBody != nil {
		d.Body = *r.MessageBody
	}
	d.Attributes = attributesOf(r.MessageAttributes)
	return d
}

func attributesOf(wire map[string]wireAttribute) map[string]Attribute {
	if len(wire) == 0 {
		return nil
	}
	out := make(map[string]Attribute, len(wire))
	for name, a := range wire {
		out[name] = Attribute{Type: a.DataType, Text: a.StringValue, Binary: a.BinaryValue}
	}
	return out
}

// done is an entry in the response to a batch that returns only ids.
type done struct {
	ID string `json:"Id"`
}

func deleteEntry(m *Machine, now time.Time, queue string, in request) (any, error) {
	if in.ReceiptHandle == "" {
		return nil, missing("ReceiptHandle")
	}
	return done{in.ID}, m.Delete(now, queue, in.ReceiptHandle)
}

func changeEntry(m *Machine, now time.Time, queue string, in request) (any, error) {
	switch {
	case in.ReceiptHandle == "":
		return nil, missing("ReceiptHandle")
	case in.VisibilityTimeout == nil:
		return nil, missing("VisibilityTimeout")
	}
	return done{in.ID}, m.ChangeVisibility(now, queue, in.ReceiptHandle, *duration(in.VisibilityTimeout))
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
func (s *Server) batch(in request, do func(*Machine, time.Time, string, request) (any, error)) (any, error) {
	if err := checkBatch(in.Entries); err != nil {
		return nil, err
	}
	out := struct {
		Successful []any    `json:",omitempty"`
		Failed     []failed `json:",omitempty"`
	}{}
	var err error
	s.Machine(func(m *Machine, now time.Time) {
		var q *queue
		if q, err = m.open(now, in.queue()); err != nil {
			return
		}
		if err = checkFIFOBatch(q.settings, in.Entries); err != nil {
			return
		}
		for _, e := range in.Entries {
			done, err := do(m, now, in.queue(), e)
			if sqsErr, ok := errors.AsType[*Error](err); ok {
				out.Failed = append(out.Failed, failed{
					e.ID, sqsErr.blame() == "Sender", sqsErr.queryCode(), sqsErr.Message,
				})
			} else {
				out.Successful = append(out.Successful, done)
			}
		}
	})
	return out, err
}

// checkFIFOBatch rejects a whole batch for a FIFO queue if an entry has no group or no
// deduplication id, with another code than SendMessage (LocalStack's suite, recorded
// against AWS: test_send_batch_missing_message_group_id_for_fifo_queue,
// test_send_batch_missing_deduplication_id_for_fifo_queue).
func checkFIFOBatch(queue Settings, entries []request) error {
	for _, e := range entries {
		if !queue.FIFO || e.MessageBody == nil { // nothing to send
			continue
		}
		if e.MessageGroupID == "" {
			return fault(CodeInvalidParameterValue, "The request must contain the parameter MessageGroupId.")
		}
		if e.MessageDeduplicationID == "" && !queue.ContentDeduplication {
			return noDeduplication()
		}
	}
	return nil
}

// checkBatch rejects a whole batch.
func checkBatch(entries []request) error {
	switch {
	case len(entries) == 0:
		return fault(CodeEmptyBatchRequest, "There should be at least one entry in the request.")
	case len(entries) > 10:
		return fault(
			CodeTooManyEntriesInBatchRequest, "Maximum number of entries per request are 10. You have sent %d.",
			len(entries),
		)
	}
	size, seen := 0, map[string]bool{}
	for _, e := range entries {
		if e.ID == "" || len(e.ID) > 80 || strings.Trim(e.ID, wordCharacters+"-") != "" {
			return fault(
				CodeInvalidBatchEntryID,
				"A batch entry id %q is not 1 to 80 alphanumeric characters, hyphens and underscores.", e.ID,
			)
		}
		if seen[e.ID] {
			return fault(CodeBatchEntryIDsNotDistinct, "Id %q repeated.", e.ID)
		}
		seen[e.ID] = true
		size += e.draft().size()
	}
	if size > 1<<20 {
		return fault(
			CodeBatchRequestTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			1<<20, size,
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
	if t := in.WaitTimeSeconds; t != nil && (*t < 0 || *t > 20) {
		return nil, outside("WaitTimeSeconds", *t, "Must be >= 0 and <= 20, if provided.")
	}
	var got []Message
	var err error
	long := false
	w := &waiter{}
	w.try = func(now time.Time) bool {
		if w.until.IsZero() {
			wait := s.waitTime(in)
			w.until, long = now.Add(wait), wait > 0
		}
		got, err = s.machine.Receive(now, in.queue(), limit, duration(in.VisibilityTimeout))
		if sqsErr, ok := errors.AsType[*Error](err); ok && long && sqsErr.Code == CodeOverLimit {
			// "If you use long polling, Amazon SQS returns no error messages" (SQS developer
			// guide, "standard queue quotas").
			err = nil
		}
		return err != nil || len(got) > 0
	}
	if err := orElse(s.await(ctx, w), &err); err != nil {
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

// waitTime returns the wait time of the request, or else of the queue.
func (s *Server) waitTime(in request) time.Duration {
	if in.WaitTimeSeconds != nil {
		return *duration(in.WaitTimeSeconds)
	}
	settings, err := s.machine.Settings(in.queue())
	if err != nil {
		return 0
	}
	return settings.Wait
}

// wire returns a message with the requested attributes, which alone count for the digest.
func wire(m Message, in request) wireMessage {
	requested := map[string]Attribute{}
	for name, a := range m.Attributes {
		if wanted(name, in.MessageAttributeNames) {
			requested[name] = a
		}
	}
	out := wireMessage{
		MessageID: m.ID, ReceiptHandle: m.Receipt, Body: m.Body,
		MD5OfBody: bodyMD5(m.Body), MD5OfMessageAttributes: attributesMD5(requested),
		Attributes: m.systemAttributes(), MessageAttributes: make(map[string]wireAttribute, len(requested)),
	}
	for name, a := range requested {
		out.MessageAttributes[name] = wireAttribute{DataType: a.Type, StringValue: a.Text, BinaryValue: a.Binary}
	}
	for name := range out.Attributes {
		if !wanted(name, in.AttributeNames) && !wanted(name, in.MessageSystemAttributeNames) {
			delete(out.Attributes, name)
		}
	}
	return out
}

// wanted reports whether a list requests a name: with All, .*, a prefix and .*, or the
// name (API reference, ReceiveMessage).
func wanted(name string, list []string) bool {
	for _, want := range list {
		prefix, all := strings.CutSuffix(want, ".*")
		if want == "All" || want == name || all && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func duration(seconds *int) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(*seconds) * time.Second)
}

func missing(parameter string) *Error {
	return fault(CodeMissingParameter, "The request must contain the parameter %s.", parameter)
}
