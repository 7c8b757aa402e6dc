package play

import (
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
)

// Message is a message of a script.
type Message struct {
	Name, OrderID, Body string
	Invalid, Other      bool
}

// Messages returns the messages of an order.
func (s Script) Messages(n int) (all []Message) {
	for _, m := range s.messages(n) {
		all = append(all, Message{m.name(), orderID(m.order), m.body, m.content == invalid, m.content == other})
	}
	return all
}

// Judge counts one order of a script with its ledger and the names of its dead letters.
func Judge(s Script, n int, row Row, ledger []stripetest.Charge, dead ...string) Count {
	b := &books{script: s, decoder: sqs.NewDecoder(), dead: map[string]sqstest.Message{}}
	for _, name := range dead {
		b.dead[name] = sqstest.Message{}
	}
	b.judge(row, s.messages(n), ledger)
	return b.count
}
