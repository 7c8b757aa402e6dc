// Command storm is `make storm`. It runs the product and the baselines as real binaries
// under load, with kills, duplicates and outages, compares Stripe's ledger, the tables
// and the queues, and prints what became of the orders.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

func main() {
	var a arguments
	k := kong.Parse(&a, kong.Name("storm"), kong.UsageOnError(), kong.Description(about))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(err)
}

const about = `Run the compiled order function in many processes. The queue delivers twice and loses deletes;
the DynamoDB engine and the pretend Stripe throttle, fail, lose responses before and after the effect, get
slow, and have outages. Processes are killed at random, and a new version is deployed in the middle.
Dead letters are redriven after 25 hours, 5, 13 and 20 days, and twice more without faults. Customers and
banks act later, webhooks are lost, late and duplicated, and some messages are deleted after the charge:
the functions webhook and reconcile settle those orders. Then the ledger, the table, its events and the
queues are compared.

The exit status is 1 if the product breaks an invariant of docs/design.md.`
