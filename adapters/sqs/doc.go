// Package sqs is where orders come in: it decodes a batch of messages, hands each order to the processor,
// and answers the queue with a partial batch response, back-off or the dead-letter queue. It decides nothing about
// orders, and it knows nothing of Stripe or DynamoDB.
package sqs
