package batch

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/deadletters"
)

// Message is a line of the file to post, and what it asks for: the zero Job if it is
// invalid.
type Message struct {
	jobs.Job

	line      int
	body      string
	firstSent time.Time // of a saved message; zero otherwise
	invalid   error
}

// newMessage returns the message of a line: a body, or a message as save writes it.
func newMessage(line int, text string) Message {
	var s Saved
	if err := json.Unmarshal([]byte(text), &s); err == nil && s.MessageID != "" && s.Body != "" {
		return Message{line: line, body: s.Body, firstSent: s.FirstSent}
	}
	return Message{line: line, body: text}
}

// attributes returns the time when a saved message was first sent, as Park writes it.
func (m Message) attributes() map[string]types.MessageAttributeValue {
	if m.firstSent.IsZero() {
		return nil
	}
	return map[string]types.MessageAttributeValue{sqs.AttrFirstSent: {
		DataType: aws.String("String"), StringValue: aws.String(m.firstSent.UTC().Format(time.RFC3339)),
	}}
}

// Saved is a message as one line of a file, with attributes in the format of the AWS CLI.
type Saved struct {
	MessageID  string               `json:"messageId"`
	Reason     string               `json:"reason"`
	FirstSent  time.Time            `json:"firstSent"`
	Group      string               `json:"group,omitempty"`
	Attributes map[string]attribute `json:"attributes,omitempty"`
	Body       string               `json:"body"`
}

type attribute struct {
	DataType    *string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

// Save appends a message to a file, unless its name is "", and returns when it is on
// disk.
func Save(name string, m deadletters.Message) (err error) {
	if name == "" {
		return nil
	}
	line := Saved{m.ID, m.ReasonShown(), m.FirstSent, m.Group, map[string]attribute{}, m.Body}
	for name, a := range m.Attributes {
		line.Attributes[name] = attribute{a.DataType, a.StringValue, a.BinaryValue}
	}
	const add = os.O_APPEND | os.O_CREATE | os.O_WRONLY
	file, err := os.OpenFile(name, add, 0o600) //nolint:gosec // G304: the person names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := json.NewEncoder(file).Encode(line); err != nil {
		return err
	}
	return file.Sync()
}
