package attack

import (
	"slices"

	"orderonce/scripts/local/console"
)

// Guard is a safeguard of the order function that a visitor can remove, and the invariant
// of docs/design.md that the page then shows broken. The order function is compiled
// without it by guards/build of scripts/lab; the other functions stay as they are.
type Guard struct {
	console.Guard

	Invariant string
}

// The attacks that only guards need. Each is about one order that it posts itself, so
// that it needs no luck.
const (
	// KillAndWait kills the instance when Stripe has executed the order's confirmation,
	// and moves the clocks 25 hours ahead at once: Stripe has forgotten the idempotency
	// keys when the message comes back. No webhook settles the order meanwhile, because
	// its lease runs.
	KillAndWait = "kill-25h"
	// LoseBindAndWait loses every request of DynamoDB that binds the order's intent until
	// its first delivery has ended, and then moves the clocks 25 hours ahead.
	LoseBindAndWait = "lose-bind-25h"
	// LoseFinish loses every request of DynamoDB that records the order as paid, until its
	// first delivery has ended.
	LoseFinish = "lose-finish"
	// KillAfterFinish kills the instance when DynamoDB has executed the transaction that
	// records the order as paid, before its response.
	KillAfterFinish = "kill-after-finish"
	// AgainAndKill holds Stripe's response to the order's first request, makes the
	// message visible again, and kills the first instance when the second one has
	// answered the queue.
	AgainAndKill = "again-kill"
	// BankTakesDays posts an order that is paid by a bank transfer of several days.
	BankTakesDays = "days"
	// MalformedUnparked posts a message that is no order while the dead-letter queue
	// accepts no messages, until its first delivery has ended.
	MalformedUnparked = "malformed-unparked"
)

// Guards returns the guards that the page offers, in its order. The other patches need
// more than one attack, or break what no light shows.
func Guards() []Guard { return slices.Concat(chargers(), keepers(), recorders()) }

// chargers are the guards of money: one charge, and a row that agrees with it.
func chargers() []Guard {
	return []Guard{
		{Invariant: "I1", Guard: console.Guard{
			Name: "bind", Title: "Bind the intent first",
			Missing: "the conditional write that ties one PaymentIntent to the row before money moves",
			Breaks: "The second attempt finds no intent in the row, Stripe has forgotten the key, " +
				"and the customer pays twice.",
			Attack: KillAndWait,
		}},
		{Invariant: "I1", Guard: console.Guard{
			Name: "uncertain-bind", Title: "Confirm only what is surely bound",
			Missing: "the stop after a Bind that DynamoDB did not answer",
			Breaks: "The intent is confirmed although the row does not name it. The next attempt makes another one, " +
				"and the customer pays twice.",
			Attack: LoseBindAndWait,
		}},
		{Invariant: "I4", Guard: console.Guard{
			Name: "no-read-on-takeover", Title: "Read the bound intent",
			Missing: "the request to Stripe that reads the bound intent before the order is settled",
			Breaks: "Stripe never got the confirmation. The next attempt finds an intent in the row and calls the " +
				"order paid: it will ship, and nobody was charged.",
			Attack: "lose-stripe-before",
		}},
		{Invariant: "I4", Guard: console.Guard{
			Name: "processing-as-paid", Title: "Pending is not paid",
			Missing: "the status pending, for a payment that the bank has not decided",
			Breaks:  "The order is paid at once, days before the bank decides. Nobody was charged.",
			Attack:  BankTakesDays,
		}},
		{Invariant: "I4", Guard: console.Guard{
			Name: "ack-before-finish", Title: "Record, then acknowledge",
			Missing: "the check that the outcome is in the table before the message is deleted",
			Breaks: "The customer is charged, the row is open, and the message is gone. " +
				"Only the schedule finds the order, about a minute later.",
			Attack: LoseFinish,
		}},
	}
}

// keepers are the guards of messages: each ends in a row or in the dead-letter queue.
func keepers() []Guard {
	return []Guard{
		{Invariant: "I3", Guard: console.Guard{
			Name: "twin-as-done", Title: "Retry what Stripe turned away",
			Missing: "the redelivery after Stripe turned a request away",
			Breaks:  "The message is deleted although nothing was charged, and the order is open for ever.",
			Attack:  "stripe-down",
		}},
		{Invariant: "I3", Guard: console.Guard{
			Name: "in-progress-as-done", Title: "A running lease is not a result",
			Missing: "the redelivery of a message whose order another worker holds",
			Breaks: "The second delivery deletes the message, because another worker has the order. " +
				"That worker dies, and the order is open for ever.",
			Attack: AgainAndKill,
		}},
		{Invariant: "I3", Guard: console.Guard{
			Name: "park-unsent", Title: "Park, then acknowledge",
			Missing: "the check that the dead-letter queue has the message before it is deleted",
			Breaks:  "The message is neither in a queue nor in the table: nobody will ever look at it.",
			Attack:  MalformedUnparked,
		}},
		{Invariant: "I9", Guard: console.Guard{
			Name: "conflict-as-done", Title: "Park what contradicts the order",
			Missing: "the dead letter for a message with other content under a known order id",
			Breaks:  "The second message has another amount. It is deleted like a duplicate, and nobody is told.",
			Attack:  "conflict",
		}},
	}
}

// recorders are the guards of events: one for each transition.
func recorders() []Guard {
	return []Guard{
		{Invariant: "I8", Guard: console.Guard{
			Name: "dynamodb-event", Title: "Write the event with the status",
			Missing: "the event in the transaction that settles the order",
			Breaks:  "The order is paid, but no event says so: the bus stays silent, and no receipt is sent.",
			Attack:  "post",
		}},
		{Invariant: "I8", Guard: console.Guard{
			Name: "dynamodb-transaction", Title: "Both writes or none",
			Missing: "the transaction that holds the status and its event together",
			Breaks:  "The instance dies between two writes. The order is paid, and its event is missing for ever.",
			Attack:  KillAfterFinish,
		}},
	}
}

// Offered returns the guards as the page lists them.
func Offered() (all []console.Guard) {
	for _, g := range Guards() {
		all = append(all, g.Guard)
	}
	return all
}
