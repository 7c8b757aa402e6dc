// Package sqs connects an order queue to the processors of orders and of refunds. It
// decodes each message of a batch, calls the processor, and acknowledges, redelivers or
// parks the message. It makes no decision about an order, and does not depend on Stripe
// or DynamoDB.
//
// Handler is the entry point. batch.go runs the messages of a batch in lanes, record.go
// takes one message through its steps, and Decide is what happens to it after its result.
// Decoder reads and validates the body; another Handler.Decode reads another format.
package sqs
