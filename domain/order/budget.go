package order

import "time"

// Budget is how much time the parts of one attempt may take.
type Budget struct {
	Order    time.Duration // from Begin to Finish
	Provider time.Duration // one call to the payment provider; less than Order
	Write    time.Duration // one attempt to write to the store
	Response time.Duration // the response to the queue, after the order
}

// ConfirmTime returns the time that must be left of the lease when an order is confirmed:
// one call to the provider, the write of the outcome and the response to the queue. See
// Processor.ConfirmTime.
//
// The write gets half of what Order holds beyond the provider's call, but no more than
// one attempt needs. The other half is for what comes before. So an order that begins
// with exactly its budget left can still be confirmed.
func (b Budget) ConfirmTime() time.Duration {
	return b.Provider + min((b.Order-b.Provider)/2, b.Write) + b.Response
}
