// Package sqs connects a queue to what its messages ask for. It decodes each message of a
// batch, runs its task, and acknowledges, redelivers or parks the message. It makes no
// decision about an order, and does not depend on Stripe or DynamoDB.
//
// Handler is the entry point, for tasks of any kind. batch.go runs the messages of a
// batch in lanes, record.go takes one message through its steps, and Decide is what
// happens to it after its result. Orders has the tasks of the order queue, and Decoder
// reads and validates their messages.
package sqs
