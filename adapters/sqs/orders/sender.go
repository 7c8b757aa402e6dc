package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// Encode returns the message of a draft, which may be invalid: the same bytes for the
// same draft, with the fields in the order of docs/reference/message.md.
func Encode(d order.Draft) string {
	m := message{
		OrderID: &d.ID, CustomerID: d.CustomerID, Currency: d.Currency, Lines: make([]line, len(d.Lines)),
		Payment: payment{Customer: d.Payment.Customer, Method: d.Payment.Method},
	}
	for i, l := range d.Lines {
		m.Lines[i] = line{SKU: l.SKU, Quantity: &l.Quantity, UnitAmount: &l.UnitAmount}
	}
	body, _ := json.Marshal(m) // only strings and numbers
	return string(body)
}

// Sender sends orders to the order queue. It is safe for concurrent use.
type Sender struct {
	client *sdk.Client
	url    string
}

// NewSender returns the sender to the queue at a URL. It needs the permission
// sqs:SendMessage.
func NewSender(cfg aws.Config, url string) *Sender { return &Sender{sdk.NewFromConfig(cfg), url} }

// Send sends an order with the time when it was first put, and with its trace unless
// that is "". On a FIFO queue, each order has a message group of its own. After an error
// the queue may have the message.
func (s *Sender) Send(ctx context.Context, o order.Order, first time.Time, t order.Trace) error {
	body := Encode(order.Draft{
		ID: string(o.ID()), CustomerID: o.CustomerID(), Currency: string(o.Total().Currency), Lines: o.Lines(),
		Payment: o.Payment(),
	})
	text := func(value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	in := &sdk.SendMessageInput{
		QueueUrl: &s.url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			sqs.AttrFirstSent: text(first.UTC().Format(time.RFC3339)),
		},
	}
	if t != "" {
		in.MessageAttributes[sqs.AttrTrace] = text(string(t))
	}
	if sqs.FIFO(s.url) { // a standard queue rejects the second parameter
		in.MessageGroupId = aws.String(string(o.ID()))
		in.MessageDeduplicationId = aws.String(sqs.DeduplicationID(body))
	}
	if _, err := s.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("send order %q: %w", o.ID(), err)
	}
	return nil
}
