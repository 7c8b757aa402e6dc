// Package intake reads the orders that clients put by HTTP, and sends them to the order
// queue. It decides nothing about an order.
package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/intake"
	"orderonce/domain/order"
)

var _ intake.Queue = (*Sender)(nil)

// NewDecoder returns a function that decodes an order whose id is known, for example from
// a URL. The rules are those of a message, but for two: the order may lack an orderId,
// and its orderId may be no other; it is not wrapped. The errors are those of a message.
func NewDecoder() func(body, id string) (order.Order, error) {
	decoder := orders.NewDecoder()
	return func(body, id string) (order.Order, error) {
		m, err := decoder.Read([]byte(body))
		if err != nil {
			return order.Order{}, err
		}
		got := id
		if m.OrderID != nil {
			got = *m.OrderID
		}
		m.OrderID = &id
		o, err := decoder.Of(m)
		if got != id {
			return order.Order{}, otherID(got, err)
		}
		return o, err
	}
}

// otherID returns err, with the problem that the order has another id than expected.
func otherID(got string, err error) error {
	all := []order.Problem{{Field: "orderId", Value: order.Quote(got), Want: "the id of the request, or none"}}
	if invalid, ok := errors.AsType[*order.InvalidError](err); ok {
		all = slices.Concat(all, slices.DeleteFunc(invalid.Problems, func(p order.Problem) bool {
			return p.Field == "orderId" // one problem of it is enough
		}))
	}
	return &order.InvalidError{Of: orders.Type, Problems: all}
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
	body := orders.Encode(order.Draft{
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
