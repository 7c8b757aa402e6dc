package batch

import (
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
)

// Message is a line of the file to post.
type Message struct {
	line      int
	body      string
	firstSent time.Time // of a saved message; zero otherwise
}

// newMessage returns the message of a line: a body, or a message as save writes it.
func newMessage(line int, text string) Message {
	var s Saved
	if err := json.Unmarshal([]byte(text), &s); err == nil && s.MessageID != "" && s.Body != "" {
		return Message{line, s.Body, s.FirstSent}
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
