package world

import (
	"cmp"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
)

// Case is the initial state of a world, and what can happen in it besides faults of
// calls.
type Case struct {
	Name     string
	Messages []Message
	// Gap is how long after its first delivery a message that was not acknowledged comes
	// back. Below the visibility timeout the queue delivers more than once; above it,
	// there is an outage or a redrive. Beyond the queue's retention the producer sends
	// the message again.
	Gap time.Duration

	Workers     int             // how many deliveries may overlap; 0 is 2
	Rare        bool            // also the faults that the protocol cannot tell from others
	People      bool            // cancel, pay, refresh; and Stripe forgets its keys
	Adversarial bool            // the queue delivers twice and in any order; pauses; early redrives
	Cancels     bool            // operators cancel orders, at any moment
	Mistake     bool            // a person writes an intent into a row that was made for something else
	Neighbor    bool            // another deployment on the same Stripe account has an order with the same id
	Webhooks    bool            // Stripe sends an event for each change of an intent
	Reconcile   bool            // the schedule starts the reconciler
	Publish     bool            // the table's stream delivers the events of its rows, which go to an event bus
	Denials     bool            // one action that the function needs is denied for a while
	Releases    bool            // an older release runs too: other parameters, keys and fingerprints
	Clocks      []time.Duration // the possible errors of a worker's clock
	KeyLife     time.Duration   // as in stripetest.Rules
	Receives    int             // the queue's maxReceiveCount; 0 is the deployed one
	Strict      bool            // no order may be canceled: false, for tests of the search itself
	Adapter     bool            // the Stripe adapter sends its requests through net/http
	Batch       int             // if not 0: the deployed handler with batches of this size, over a pretend SQS
	FIFO        bool            // with Batch: FIFO queues, with the customer as message group
	Variety     int             // decides details that would multiply the schedules if they were choices
}

// Trait is an unusual property of a case.
type Trait struct {
	Name string // as a finding needs it; "" if only the search for the shortest one leaves it out
	// Remove removes it from the case; nil if only fewer messages do.
	Remove func(c *Case)
}

// Traits returns what is unusual about the case before anything has happened in it.
func (c Case) Traits() (all []Trait) {
	add := func(is bool, name string, remove func(c *Case)) {
		if is {
			all = append(all, Trait{name, remove})
		}
	}
	noGap := func(c *Case) { c.Gap = oracle.Visibility }
	add(c.Gap < oracle.Visibility && c.Adversarial, "", noGap)
	add(c.Gap < oracle.Visibility && !c.Adversarial, "delivered again after "+c.Gap.String(), noGap)
	add(c.Gap > oracle.Visibility, "a pause of "+c.Gap.String(), noGap)
	add(c.KeyLife > 0, "keys that live "+c.KeyLife.String(), func(c *Case) { c.KeyLife = 0 })
	add(c.KeyLife < 0, "keys that are never kept", func(c *Case) { c.KeyLife = 0 })
	add(c.Receives > 0, "few receives before the dead-letter queue", func(c *Case) { c.Receives = 0 })
	single := func(c *Case) { c.FIFO, c.Batch = false, 1 }
	add(c.Batch > 1 && !c.FIFO, "a batch", single)
	add(c.FIFO, "a FIFO group", single)
	add(c.Webhooks, "webhooks", func(c *Case) { c.Webhooks = false })
	add(c.Reconcile, "reconcile runs", func(c *Case) { c.Reconcile = false })
	add(c.Publish, "publications", func(c *Case) { c.Publish = false })
	methods := map[string]string{
		Visa: "", Mastercard: "", Declined: "a declined card", NeedsAuth: "a bank that wants the customer",
		TakesDays: "a bank that takes days",
	}
	for i, m := range c.Messages {
		method, known := methods[m.Method]
		if !known {
			method = "a card that does not exist"
		}
		add(m.Poison != "", "a message that is no order", nil)
		add(m.Poison == "" && m.Method != Visa, method, func(c *Case) {
			c.Messages = slices.Clone(c.Messages)
			for i := range c.Messages { // also its copies, which would become conflicts
				if c.Messages[i] == m {
					c.Messages[i].Method = Visa
				}
			}
		})
		for _, earlier := range c.Messages[:i] {
			add(earlier == m, "an order sent twice", nil)
			add(earlier.ID == m.ID && earlier != m, "another content under the same id", nil)
			add(earlier.ID != m.ID, "another order", nil)
		}
	}
	return all
}

func (c *Case) workers() int { return cmp.Or(c.Workers, 2) }

func (c *Case) subject() oracle.Subject {
	return oracle.Subject{
		Loses: c.Gap >= oracle.Retention, Strict: c.Strict, Reconciles: c.Reconcile, Publishes: c.Publish,
	}
}

func (c *Case) sent() []oracle.Sent {
	all := make([]oracle.Sent, len(c.Messages))
	for i := range c.Messages {
		m := &c.Messages[i]
		all[i] = oracle.Sent{
			ID: m.ID, Body: m.Body(), Customer: m.Customer, Payer: m.Payer, Amount: m.Amount(), Currency: m.Currency,
		}
	}
	return all
}

func (c *Case) orders() (ids []order.ID) {
	for _, m := range c.Messages {
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
