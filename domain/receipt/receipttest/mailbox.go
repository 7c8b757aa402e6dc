package receipttest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// Fate is what happens to one request of a Mailbox.
type Fate string

// The fates.
const (
	Accepts         Fate = "" // and answers
	SendsThenLoses  Fate = "sends the message and loses the answer"
	LosesTheRequest Fate = "loses the request"
	IsThrottled     Fate = "refuses the request because of its quota"
	IsMisconfigured Fate = "refuses the request because of the account"
	Refuses         Fate = "refuses the message"
)

// Mailbox is an e-mail service in memory. The zero value accepts every message.
type Mailbox struct {
	// During, if set, is called when a request has had its effect, before the answer.
	During func(receipt.Mail)

	mu    sync.Mutex
	fates []Fate
	sent  []receipt.Mail
	calls int
}

// Plan sets the fates of the next requests. Requests after them are accepted.
func (b *Mailbox) Plan(fates ...Fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fates = fates
}

// Sent returns the messages that were sent.
func (b *Mailbox) Sent() []receipt.Mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]receipt.Mail(nil), b.sent...)
}

// Calls returns the number of requests.
func (b *Mailbox) Calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

var errMailbox = errors.New("pretend failure")

// Send handles one request. The id of the first message is "message-1".
func (b *Mailbox) Send(_ context.Context, m receipt.Mail) (receipt.MessageID, error) {
	id, err := b.send(m)
	if b.During != nil {
		b.During(m)
	}
	return id, err
}

func (b *Mailbox) send(m receipt.Mail) (receipt.MessageID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	fate := Accepts
	if len(b.fates) > 0 {
		fate, b.fates = b.fates[0], b.fates[1:]
	}
	if fate == Accepts || fate == SendsThenLoses {
		b.sent = append(b.sent, m)
	}
	if fate == Accepts {
		return receipt.MessageID(fmt.Sprintf("message-%d", len(b.sent))), nil
	}
	failure := map[Fate]receipt.SendError{
		SendsThenLoses:  {Kind: order.KindUnknown},
		LosesTheRequest: {Kind: order.KindUnknown},
		IsThrottled:     {Kind: order.KindUnavailable, Code: "TooManyRequestsException"},
		IsMisconfigured: {Kind: order.KindMisconfigured, Code: "SendingPausedException"},
		Refuses:         {Kind: order.KindRefused, Code: "MessageRejected"},
	}[fate]
	failure.Err = errMailbox
	return "", &failure
}

// Payers knows every payer under one address.
type Payers struct {
	Err error // of every look-up, if set

	mu    sync.Mutex
	calls int
}

// Payer returns a payer whose address ends in .invalid.
func (p *Payers) Payer(_ context.Context, id order.IntentID) (receipt.Payer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.Err != nil {
		return receipt.Payer{}, p.Err
	}
	a, err := receipt.NewAddress(string(id) + "@customers.invalid")
	return receipt.Payer{Address: a, Locales: []string{"en-US"}}, err
}

// Calls returns the number of look-ups.
func (p *Payers) Calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}
