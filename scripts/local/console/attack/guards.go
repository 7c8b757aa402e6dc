package attack

import "orderonce/scripts/local/console"

// Guards returns the guards that the page offers, in its order. The order function is
// compiled without one by guards/break of scripts/lab; the other functions stay as they
// are. The other patches need more than one attack, or break what no light shows.
func Guards() []console.Guard {
	return []console.Guard{
		// of money: one charge, and a row that agrees with it
		guard("I1", "bind", "kill-25h", "Bind the intent first",
			"the conditional write that ties one PaymentIntent to the row before money moves",
			"The second attempt finds no intent in the row, Stripe has forgotten the key, and the customer pays "+
				"twice."),
		guard("I1", "uncertain-bind", "lose-bind-25h", "Confirm only what is surely bound",
			"the stop after a Bind that DynamoDB did not answer",
			"The intent is confirmed although the row does not name it. The next attempt makes another one, and "+
				"the customer pays twice."),
		guard("I4", "no-read-on-takeover", "lose-stripe-before", "Read the bound intent",
			"the request to Stripe that reads the bound intent before the order is settled",
			"Stripe never got the confirmation. The next attempt finds an intent in the row and calls the order "+
				"paid: it will ship, and nobody was charged."),
		guard("I4", "processing-as-paid", "days", "Pending is not paid",
			"the status pending, for a payment that the bank has not decided",
			"The order is paid at once, days before the bank decides. Nobody was charged."),
		guard("I4", "ack-before-finish", "lose-finish", "Record, then acknowledge",
			"the check that the outcome is in the table before the message is deleted",
			"The customer is charged, the row is open, and the message is gone. Only the schedule finds the "+
				"order, about a minute later."),
		// of messages: each ends in a row or in the dead-letter queue
		guard("I3", "twin-as-done", "stripe-down", "Retry what Stripe turned away",
			"the redelivery after Stripe turned a request away",
			"The message is deleted although nothing was charged, and the order is open for ever."),
		guard("I3", "in-progress-as-done", "again-kill", "A running lease is not a result",
			"the redelivery of a message whose order another worker holds",
			"The second delivery deletes the message, because another worker has the order. That worker dies, and "+
				"the order is open for ever."),
		guard("I3", "park-unsent", "malformed-unparked", "Park, then acknowledge",
			"the check that the dead-letter queue has the message before it is deleted",
			"The message is neither in a queue nor in the table: nobody will ever look at it."),
		guard("I9", "conflict-as-done", "conflict", "Park what contradicts the order",
			"the dead letter for a message with other content under a known order id",
			"The second message has another amount. It is deleted like a duplicate, and nobody is told."),
		// of events: one for each transition
		guard("I8", "dynamodb-event", "post", "Write the event with the status",
			"the event in the transaction that settles the order",
			"The order is paid, but no event says so: the bus stays silent, and no receipt is sent."),
		guard("I8", "dynamodb-transaction", "kill-after-finish", "Both writes or none",
			"the transaction that holds the status and its event together",
			"The instance dies between two writes. The order is paid, and its event is missing for ever."),
	}
}

func guard(invariant, name, attack, title, missing, breaks string) console.Guard {
	return console.Guard{
		Name: name, Invariant: invariant, Title: title, Missing: missing, Breaks: breaks, Attack: attack,
	}
}
