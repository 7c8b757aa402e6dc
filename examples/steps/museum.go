package main

import (
	"fmt"
	"strings"
)

// exhibit is a double charge of a public project, or a bug report of one, on this stage.
// A request, a webhook and a job are messages here; a refund, a capture and a new order
// are charges.
type exhibit struct {
	name     string
	link     string
	happened string
	handle   handler      // in the design that the link describes; not the project's code
	happens  func(*world) // the history that breaks it
	step     int          // of docs/build: the guard that would have saved it
}

// museum is in the order of the steps that teach the guards.
func museum() []exhibit {
	const github = "https://github.com/"
	return []exhibit{{
		"openfoodnetwork: a button pressed twice", github + "openfoodfoundation/openfoodnetwork/pull/7759",
		"A double click on the button of a refund reached two workers at once, and both refunded.",
		lookThenCharge, doubleClick, 2,
	}, {
		"aws-serverless-ecommerce-platform: an id for each run",
		github + "aws-samples/aws-serverless-ecommerce-platform/issues/180",
		"The function makes the order id, so a retry after the order was stored makes another order.",
		idOfTheRun, killedBeforeItReturns, 2,
	}, {
		"woocommerce-payments: a callback for each instance", github + "Automattic/woocommerce-payments/issues/5615",
		"The callback that charges a renewal was registered once for each payment method, and each charged.",
		noLook, twoCallbacks, 2,
	}, {
		"akash console: a slow success", github + "akash-network/console/pull/3449",
		"Each request made a row and an intent, so a customer who repeated a slow purchase paid again.",
		rowOfTheRequest, slowAndRepeated, 4,
	}, {
		"odoo: a transaction that is repeated", github + "odoo/odoo/pull/101243",
		"The card was charged inside a transaction, which was rolled back and repeated, and charged again.",
		transaction, changedMeanwhile, 4,
	}, {
		"powertools-lambda-python: a lock that expires", github + "aws-powertools/powertools-lambda-python/issues/8049",
		"The record in progress expires with the function, so the retry after a timeout does the work again.",
		inProgress, killedAfter, 4,
	}, {
		"medusa: a key that is deleted", github + "medusajs/medusa/issues/16292",
		"The key is the id of a row that a failure deletes, so the retry after a lost response has another.",
		keyOfTheAttempt, lostResponse, 4,
	}, {
		"solidus_stripe: two intents", github + "solidusio/solidus_stripe/issues/44",
		"The browser's intent was charged and not recorded, and the backend charged another.",
		browserAndBackend, browserThenBackend, 5,
	}, {
		"killbill: unknown, so again", github + "killbill/killbill/issues/639",
		"A capture whose outcome was unknown could be repeated under the same key, and succeeded.",
		unknownIsNotPaid, unknownThenAgain, 5,
	}, {
		"invoiceninja: a 500, so again tomorrow", github + "invoiceninja/invoiceninja/issues/11853",
		"A person took an error 500 for a failure and charged again the next day; all charges had succeeded.",
		lookThenCharge, againTomorrow, 5,
	}}
}

// history returns what happens, and that it should charge once.
func (e exhibit) history() history { return history{e.name, e.happens, outcome{1, paid, 0}} }

// transcript returns what happens to the exhibit, and what would have come of it with the
// product.
func (e exhibit) transcript() string {
	h := e.history()
	return h.transcript(e.handle) + "=> with the product: " + h.result(h.play(product)) + "\n"
}

func guide() string {
	var text strings.Builder
	for i, e := range museum() {
		fmt.Fprintf(&text, "\n=== %d. %s\n    %s\n\n%s\nThe guard: docs/build/step-%d.md\n\n%s",
			i+1, e.name, e.link, e.happened, e.step, e.transcript())
	}
	return text.String()
}
