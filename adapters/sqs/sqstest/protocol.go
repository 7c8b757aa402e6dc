package sqstest

import (
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
	otherMembers

	QueueURL string `json:"QueueUrl"`
	Entries  []request
	ID       string `json:"Id"` // of a batch entry

	MessageBody            string
	MessageAttributes      map[string]Attribute
	MessageGroupID         string `json:"MessageGroupId"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`

	ReceiptHandle     string
	VisibilityTimeout *int
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

// serve handles one HTTP request: decode, inject a fault, perform, respond.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the connection broke, or the body is too large
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation == "" && rejectQuery(w) {
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

// The operations that a function of ours calls; operations.go has the others.
const (
	sendMessage                  = "SendMessage"
	changeMessageVisibilityBatch = "ChangeMessageVisibilityBatch"
)

// perform performs one operation. Only ReceiveMessage waits.
func (s *Server) perform(ctx context.Context, operation string, in request) (out any, err error) {
	if in.QueueURL == "" && in.QueueName+in.SourceARN == "" {
		return nil, missing("QueueUrl")
	}
	if operation == receiveMessage {
		return s.receiveMessage(ctx, in)
	}
	s.Machine(func(m *Machine, now time.Time) {
		switch operation {
		case sendMessage:
			out, err = m.sendEntry(now, in.queue(), in)
		case changeMessageVisibilityBatch:
			out, err = m.batch(now, in, m.changeEntry)
		case sendMessageBatch:
			out, err = m.batch(now, in, m.sendEntry)
		case changeMessageVisibility:
			out, err = m.changeEntry(now, in.queue(), in)
		case deleteMessage:
			out, err = struct{}{}, m.Delete(now, in.queue(), in.ReceiptHandle)
		case createQueue:
			out, err = map[string]string{"QueueUrl": s.QueueURL(in.QueueName)}, m.create(now, in)
		case deleteQueue:
			out, err = struct{}{}, m.Drop(now, in.queue())
		case getQueueAttributes:
			out, err = m.attributes(now, in)
		case startMessageMoveTask:
			out, err = m.move(now, in)
		default:
			err = fault(CodeUnsupportedOperation, "%s is not supported by sqstest.", operation)
		}
	})
	return out, err
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
	d := time.Duration(*in.VisibilityTimeout) * time.Second
	return result{ID: in.ID}, m.ChangeVisibility(now, queue, in.ReceiptHandle, d)
}

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
