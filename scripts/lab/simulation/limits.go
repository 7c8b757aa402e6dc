package simulation

import (
	"time"

	"orderonce/domain/order"
)

const day = 24 * time.Hour

// What the worlds and the oracle know of limits, each from a source outside the product.
// Packages order and sqs have the same numbers once more, in constants of their own: a
// wrong one there is right here, and so a search can see it.
const (
	functionTime  = time.Minute      // function timeout, within infra/terraform/variables.tf
	visibility    = 6 * functionTime // visibility timeout: the minimum of infra/terraform/queue.tf
	maxReceives   = 1000             // deliveries, after which the queue parks without a reason (the same)
	retention     = 7 * day          // of the queue (the same)
	deadRetention = 14 * day         // of the dead-letter queue (the same)

	// From docs/design.md, "What each answer means".
	lastDay     = day // of a message in the queue, in which it is parked whatever it waits for
	maxFailures = 20  // deliveries, after which an order that fails through no outage is parked

	// lastChances is how many deliveries before the queue parks the code may do it,
	// whatever the order waits for. No document says how many: with one alone, a worker
	// that dies would leave a dead letter without a reason.
	lastChances = 10

	// honestSkew is how far off an honest clock can be. AWS refuses what a clock signs
	// that is further off, within minutes: IAM user guide, "Signature Version 4": "a
	// request must reach AWS within five minutes of the time stamp in the request".
	honestSkew = 5 * time.Minute

	// longestRun is how long a function can run at all, and so the longest lease (Lambda
	// developer guide, "Lambda quotas": 900 seconds).
	longestRun = 15 * time.Minute
)

// nextLook is how long after its last change an order is due in the index
// (docs/reference/row.md, "Index open").
func nextLook(s order.Status) (after time.Duration, waits bool) {
	switch s {
	case order.Open:
		return 15 * time.Minute, true
	case order.Pending:
		return time.Hour, true
	case order.ActionRequired:
		return day, true
	case order.Paid, order.Declined, order.Canceled, order.Refused:
	}
	return 0, false
}
