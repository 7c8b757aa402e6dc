package sqstest

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/aws/aws-lambda-go/events"
)

// Event returns the JSON with which Lambda invokes a function for messages of a queue.
func Event(queue string, messages []Message) []byte {
	event := events.SQSEvent{Records: make([]events.SQSMessage, len(messages))}
	for i, m := range messages {
		event.Records[i] = record(queue, m)
	}
	b, err := json.Marshal(event)
	if err != nil {
		panic(err) // only strings and bytes
	}
	return b
}

// record returns one message of a function's event (Lambda developer guide, "Example
// standard queue message event").
func record(queue string, m Message) events.SQSMessage {
	r := events.SQSMessage{
		MessageId: m.ID, ReceiptHandle: m.Handle, Body: m.Body, Attributes: m.systemAttributes(),
		Md5OfBody: digest([]byte(m.Body)), Md5OfMessageAttributes: attributesMD5(m.Attributes),
		MessageAttributes: make(map[string]events.SQSMessageAttribute, len(m.Attributes)),
		EventSource:       "aws:sqs", EventSourceARN: ARN(queue), AWSRegion: Region,
	}
	for name, a := range m.Attributes {
		attribute := events.SQSMessageAttribute{
			BinaryValue: a.Binary, DataType: a.Type, StringListValues: []string{}, BinaryListValues: [][]byte{},
		}
		if a.Binary == nil {
			attribute.StringValue = &a.Text
		}
		r.MessageAttributes[name] = attribute
	}
	return r
}

// Verdict interprets a function's response as Lambda does with ReportBatchItemFailures
// (Lambda developer guide, "Implementing partial batch responses"). It returns the
// messages that Lambda deletes and those that it keeps.
//
// Nothing is deleted after a function error, a response that is not valid JSON, or an
// itemIdentifier that is empty, null, missing, or not in the batch. Everything is deleted
// if the response or its batchItemFailures is null or empty, also because the key is
// misspelled. Chosen, because the guide does not say it: an empty response counts as
// null, and JSON that is not an object is invalid.
func Verdict(ids []string, response []byte, err error) (deleted, failed []string) {
	reported, ok := readFailures(response)
	if err != nil || !ok {
		return nil, ids
	}
	unknown := func(id string) bool { return !slices.Contains(ids, id) } // an empty one is in no batch
	if slices.ContainsFunc(reported, unknown) {
		return nil, ids
	}
	for _, id := range ids {
		if slices.Contains(reported, id) {
			failed = append(failed, id)
		} else {
			deleted = append(deleted, id)
		}
	}
	return deleted, failed
}

// readFailures returns the reported ids, "" for one that is not a string. It decodes into
// maps, because Lambda compares the keys with their case, and struct tags do not.
func readFailures(response []byte) (ids []string, ok bool) {
	if len(bytes.TrimSpace(response)) == 0 {
		return nil, true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(response, &object) != nil {
		return nil, false
	}
	var items []map[string]any
	if raw, exists := object["batchItemFailures"]; exists && json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	for _, item := range items {
		id, _ := item["itemIdentifier"].(string)
		ids = append(ids, id)
	}
	return ids, true
}
