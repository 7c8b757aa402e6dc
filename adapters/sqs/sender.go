package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/domain/order"
)

// EncodeOrder returns the message of an order: the same bytes for the same order.
func EncodeOrder(o order.Order) (string, error) {
	lines := o.Lines()
	m := message{
		OrderID: string(o.ID()), CustomerID: o.CustomerID(), Currency: string(o.Total().Currency),
		Lines:   make([]line, len(lines)),
		Payment: payment{Customer: o.Payment().Customer, Method: o.Payment().Method},
	}
	for i, l := range lines {
		m.Lines[i] = line{SKU: l.SKU, Quantity: &l.Quantity, UnitAmount: &l.UnitAmount}
	}
	body, err := json.Marshal(m)
	return string(body), err
}

// DeduplicationID returns the deduplication id of a message on a FIFO queue: a hash of
// its body, so that SQS drops what was sent twice within five minutes.
func DeduplicationID(body string) string {
	hash := sha256.Sum256([]byte(body))
	return hex.EncodeToString(hash[:])
}

// fifoSuffix ends the names of FIFO queues, and of no others (SQS developer guide, "FIFO
// queue and message identifiers").
const fifoSuffix = ".fifo"

// Sender sends orders to the order queue. It is safe for concurrent use.
type Sender struct {
	client *sqs.Client
	url    string
}

// NewSender returns the sender to the queue at a URL. It needs the permission
// sqs:SendMessage.
func NewSender(cfg aws.Config, url string) *Sender {
	return &Sender{client: sqs.NewFromConfig(cfg), url: url}
}

// Send sends an order with the time when it was first put, and with its trace unless that
// is "". On a FIFO queue, each order has a message group of its own. After an error the
// queue may have the message.
func (s *Sender) Send(ctx context.Context, o order.Order, first time.Time, t order.Trace) error {
	body, err := EncodeOrder(o)
	if err != nil {
		return fmt.Errorf("encode order %q: %w", o.ID(), err)
	}
	in := &sqs.SendMessageInput{
		QueueUrl: &s.url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			AttrFirstSent: stringValue(first.UTC().Format(time.RFC3339)),
		},
	}
	if t != "" {
		in.MessageAttributes[AttrTrace] = stringValue(string(t))
	}
	if strings.HasSuffix(s.url, fifoSuffix) { // a standard queue rejects the second parameter
		in.MessageGroupId = aws.String(string(o.ID()))
		in.MessageDeduplicationId = aws.String(DeduplicationID(body))
	}
	if _, err := s.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("send order %q: %w", o.ID(), err)
	}
	return nil
}
