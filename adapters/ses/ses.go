// Package ses sends e-mails through Amazon SES and reads the events that SES publishes
// about them. It implements receipt.Mailer. It does not know what an e-mail says, whether
// it may be sent, and what a report changes.
//
// A request is sent once: neither the SDK nor net/http repeats it, because SES has no
// idempotency key, and a repetition whose first answer was lost is a second e-mail
// (https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html). net/http
// resends a POST only if nothing of it was written, and the transport of package config
// uses HTTP/1.1, where no server can ask for a repetition.
package ses

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

var _ receipt.Mailer = (*Mailer)(nil)

// Options are how e-mails are sent. All fields are required.
type Options struct {
	From string // an address of a verified identity, such as "Shop <receipts@shop.example>"
	// ConfigurationSet has an event destination for the default event bus, or no doubt is
	// resolved by itself.
	ConfigurationSet string
	Scope            order.Scope // of the deployment; a tag of every e-mail
}

// Mailer sends e-mails. It is safe for concurrent use.
type Mailer struct {
	client  *sesv2.Client
	options Options
}

// New returns a Mailer. It needs the permission ses:SendEmail on the identity and on the
// configuration set.
func New(cfg aws.Config, o Options) *Mailer {
	client := sesv2.NewFromConfig(cfg, func(c *sesv2.Options) {
		c.Retryer = aws.NopRetryer{} // a retry of a lost answer is a second e-mail
		c.RetryMaxAttempts = 0       // otherwise a number in cfg would add retries
	})
	return &Mailer{client: client, options: o}
}

// The tags of an e-mail, which its events repeat. The ids are encoded, because a tag has
// only letters, digits, '_' and '-', at most 256 of them, and an order id may have a '.'
// (https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html). 64
// characters become 86.
const (
	tagScope   = "orderonce-scope"
	tagOrder   = "orderonce-order"
	tagReceipt = "orderonce-receipt"
	tagAttempt = "orderonce-attempt"
)

func encodeTag(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func decodeTag(s string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return string(b), err
}

var errNoMessageID = errors.New("response without a MessageId")

// Send implements receipt.Mailer with one SendEmail.
func (m *Mailer) Send(ctx context.Context, mail receipt.Mail) (receipt.MessageID, error) {
	out, err := m.client.SendEmail(ctx, m.input(mail))
	if err != nil {
		return "", classify(err)
	}
	if aws.ToString(out.MessageId) == "" {
		return "", &receipt.SendError{Kind: order.KindUnknown, Err: errNoMessageID}
	}
	return receipt.MessageID(*out.MessageId), nil
}

func (m *Mailer) input(mail receipt.Mail) *sesv2.SendEmailInput {
	content := func(s string) *types.Content { return &types.Content{Data: &s, Charset: aws.String("UTF-8")} }
	tag := func(name, value string) types.MessageTag { return types.MessageTag{Name: &name, Value: &value} }
	return &sesv2.SendEmailInput{
		FromEmailAddress: &m.options.From, ConfigurationSetName: &m.options.ConfigurationSet,
		Destination: &types.Destination{ToAddresses: []string{mail.To.Reveal()}},
		Content: &types.EmailContent{Simple: &types.Message{
			Subject: content(mail.Subject),
			Body:    &types.Body{Text: content(mail.Text), Html: content(mail.HTML)},
		}},
		EmailTags: []types.MessageTag{
			tag(tagScope, string(m.options.Scope)),
			tag(tagOrder, encodeTag(string(mail.OrderID))),
			tag(tagReceipt, encodeTag(string(mail.Key))),
			tag(tagAttempt, strconv.Itoa(mail.Attempt)),
		},
	}
}
