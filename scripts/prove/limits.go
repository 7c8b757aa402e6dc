package prove

import "time"

const day = 24 * time.Hour

// What the worlds and the oracle know of limits, each from a source outside the product. Packages order and sqs have the same
// numbers once more, in constants of their own: a wrong one there is right here, and so a search can see it.
const (
	functionTime  = time.Minute      // the function's time-out: one of those that infra/terraform/variables.tf takes
	visibility    = 6 * functionTime // for which the queue hides what it has delivered: the least that infra/terraform/queue.tf takes
	maxReceives   = 1000             // deliveries, after which the queue parks without a reason (the same)
	retention     = 7 * day          // of the queue (the same)
	deadRetention = 14 * day         // of the dead-letter queue (the same)

	// From docs/design.md, "What each answer means".
	lastDay     = day // of a message in the queue, in which it is parked whatever it waits for
	maxFailures = 20  // deliveries, after which an order that fails through no outage is parked

	// lastChances is how many deliveries before the queue parks the code may do it, whatever the order waits for. No document says
	// how many: with one alone, a worker that dies would leave a dead letter without a reason.
	lastChances = 10

	// honestSkew is how far off an honest clock can be. AWS refuses what a clock signs that is further off, within minutes:
	// IAM user guide, "Signature Version 4": "a request must reach AWS within five minutes of the time stamp in the request".
	honestSkew = 5 * time.Minute
)
