package attack

import (
	"slices"

	"orderonce/scripts/local/console"
)

// Guards returns the guards that the page offers, in its order. The order function is
// compiled without one by guards/break of scripts/lab; the other functions stay as they
// are. The other patches need more than one attack, or break what no light shows.
func Guards() []console.Guard { return slices.Concat(chargers(), keepers(), recorders()) }

// chargers are the guards of money: one charge, and a row that agrees with it.
func chargers() []console.Guard {
	return []console.Guard{
		{
			Name: "bind", Invariant: "I1", Title: "Bind the intent first",
			Missing: "the conditional write that ties one PaymentIntent to the row before money moves",
			Breaks: "The second attempt finds no intent in the row, Stripe has forgotten the key, " +
				"and the customer pays twice.",
			Attack: "kill-25h",
		},
		{
			Name: "uncertain-bind", Invariant: "I1", Title: "Confirm only what is surely bound",
			Missing: "the stop after a Bind that DynamoDB did not answer",
			Breaks: "The intent is confirmed although the row does not name it. The next attempt makes another one, " +
				"and the customer pays twice.",
			Attack: "lose-bind-25h",
		},
		{
			Name: "no-read-on-takeover", Invariant: "I4", Title: "Read the bound intent",
			Missing: "the request to Stripe that reads the bound intent before the order is settled",
			Breaks: "Stripe never got the confirmation. The next attempt finds an intent in the row and calls the " +
				"order paid: it will ship, and nobody was charged.",
			Attack: "lose-stripe-before",
		},
		{
			Name: "processing-as-paid", Invariant: "I4", Title: "Pending is not paid",
			Missing: "the status pending, for a payment that the bank has not decided",
			Breaks:  "The order is paid at once, days before the bank decides. Nobody was charged.",
			Attack:  "days",
		},
		{
			Name: "ack-before-finish", Invariant: "I4", Title: "Record, then acknowledge",
			Missing: "the check that the outcome is in the table before the message is deleted",
			Breaks: "The customer is charged, the row is open, and the message is gone. " +
				"Only the schedule finds the order, about a minute later.",
			Attack: "lose-finish",
		},
	}
}

// keepers are the guards of messages: each ends in a row or in the dead-letter queue.
func keepers() []console.Guard {
	return []console.Guard{
		{
			Name: "twin-as-done", Invariant: "I3", Title: "Retry what Stripe turned away",
			Missing: "the redelivery after Stripe turned a request away",
			Breaks:  "The message is deleted although nothing was charged, and the order is open for ever.",
			Attack:  "stripe-down",
		},
		{
			Name: "in-progress-as-done", Invariant: "I3", Title: "A running lease is not a result",
			Missing: "the redelivery of a message whose order another worker holds",
			Breaks: "The second delivery deletes the message, because another worker has the order. " +
				"That worker dies, and the order is open for ever.",
			Attack: "again-kill",
		},
		{
			Name: "park-unsent", Invariant: "I3", Title: "Park, then acknowledge",
			Missing: "the check that the dead-letter queue has the message before it is deleted",
			Breaks:  "The message is neither in a queue nor in the table: nobody will ever look at it.",
			Attack:  "malformed-unparked",
		},
		{
			Name: "conflict-as-done", Invariant: "I9", Title: "Park what contradicts the order",
			Missing: "the dead letter for a message with other content under a known order id",
			Breaks:  "The second message has another amount. It is deleted like a duplicate, and nobody is told.",
			Attack:  "conflict",
		},
	}
}

// recorders are the guards of events: one for each transition.
func recorders() []console.Guard {
	return []console.Guard{
		{
			Name: "dynamodb-event", Invariant: "I8", Title: "Write the event with the status",
			Missing: "the event in the transaction that settles the order",
			Breaks:  "The order is paid, but no event says so: the bus stays silent, and no receipt is sent.",
			Attack:  "post",
		},
		{
			Name: "dynamodb-transaction", Invariant: "I8", Title: "Both writes or none",
			Missing: "the transaction that holds the status and its event together",
			Breaks:  "The instance dies between two writes. The order is paid, and its event is missing for ever.",
			Attack:  "kill-after-finish",
		},
	}
}
