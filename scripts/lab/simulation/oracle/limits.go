package oracle

import (
	"time"

	"orderonce/domain/order"
)

// Day is 24 hours.
const Day = 24 * time.Hour

// The limits of the deployment, each from a source outside the product. Packages order
// and sqs have constants of their own, so the oracle detects a wrong one there.
const (
	FunctionTime  = time.Minute      // function timeout, within infra/terraform/variables.tf
	Visibility    = 6 * FunctionTime // visibility timeout: the minimum of infra/terraform/queue.tf
	MaxReceives   = 1000             // deliveries after which the queue parks without a reason (order.tf)
	Retention     = 7 * Day          // of the queue (queue.tf)
	DeadRetention = 14 * Day         // of the dead-letter queue (queue.tf)

	// From docs/design.md, "What each answer means".
	LastDay     = Day // a message this close to its retention is parked, whatever it waits for
	maxFailures = 20  // deliveries after which an order that fails without an outage is parked

	// lastChances is how many deliveries before the queue parks a message the code may park
	// it. No document gives the number. With only one, a worker that dies would leave a dead
	// letter without a reason.
	lastChances = 10

	// HonestSkew is the largest error of an honest clock, because AWS rejects requests that
	// are signed further off. IAM user guide, "Signature Version 4": "a request must reach
	// AWS within five minutes of the time stamp in the request".
	HonestSkew = 5 * time.Minute

	// longestRun is the longest run of a function, and so the longest lease (Lambda
	// developer guide, "Lambda quotas": 900 seconds).
	longestRun = 15 * time.Minute

	// ConfirmTime is how long a confirmation may take (adapters/stripe, DefaultTimeout).
	ConfirmTime = 15 * time.Second

	// mostCalm is how many deliveries a message may need when nothing goes wrong.
	mostCalm = 2

	// mostUsual is how many steps a world may take without a deviation. The longest orders
	// need some hundred.
	mostUsual = 3000

	// mostAfter is how many steps a world continues after a noted violation, because a more
	// serious one may follow.
	mostAfter = 100
)

// recheckAfter returns how long after its last change an order is due in the index
// (docs/reference/row.md, "Index open").
func recheckAfter(s order.Status) (after time.Duration, waits bool) {
	switch s {
	case order.Open:
		return 15 * time.Minute, true
	case order.Pending:
		return time.Hour, true
	case order.ActionRequired, order.Declined:
		return Day, true
	case order.Paid, order.Canceled, order.Refused, order.PartiallyRefunded, order.Refunded, order.OutOfStock:
	}
	return 0, false
}
