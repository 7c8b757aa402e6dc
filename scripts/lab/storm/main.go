// Command storm plays the same storm with our function and with the designs that people copy: thousands of orders, kills,
// duplicates and outages over the real binaries. It compares every account that there is and prints what became of the orders.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

func main() {
	var c storm
	k := kong.Parse(&c, kong.Name("storm"), kong.UsageOnError(), kong.Description(about))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(err)
}

const about = `The compiled order function in many processes, fed from a queue that delivers twice and loses deletes, over a DynamoDB engine
and a pretend Stripe that throttle, fail, lose answers before and after the effect, get slow, and are gone for a while.
Processes are killed at any moment and a new version is rolled out in the middle. Dead letters come back after 25 hours, 5
days and 20 days. Then the weather is fine, and the ledger, the table, its events and the queues are compared.

It ends with status 1 if our function breaks an invariant of docs/design.md.`
