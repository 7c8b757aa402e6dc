// Command orders is the operator's tool. It posts orders to the queue, shows and settles
// an order's row, and checks a deployment before and after `make deploy`. It reads the
// same environment names as the function and refuses to charge anybody: only the function
// confirms a payment.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/adapters/config"
)

type commands struct {
	Post    post    `cmd:"" help:"Post message bodies to the order queue, one per line. Needs QUEUE_URL."`
	Show    show    `cmd:"" help:"Show an order's row and history. Needs ORDERS_TABLE."`
	Refresh refresh `cmd:"" help:"Settle an order's row from its PaymentIntent; moves no money. Needs ORDERS_TABLE, SCOPE, STRIPE_SECRET_KEY."`
	Cancel  cancel  `cmd:"" help:"Close an order, so that nothing can charge it. Needs what refresh needs."`
	Refund  refunds `cmd:"" help:"Give money of an order back, or end a refund whose result is unknown."`
	Restore restore `cmd:"" help:"Write an order's lost row from its PaymentIntent; moves no money. Needs what refresh needs."`
	Check   check   `cmd:"" help:"List what make deploy needs, and what is missing on this machine."`
	Smoke   smoke   `cmd:"" help:"Post one order in Stripe's test mode and wait until it is paid. Needs QUEUE_URL and what refresh needs."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("orders"), kong.UsageOnError(), kong.Description(
		"Post, show and settle orders, and check a deployment. Credentials and region come from AWS_REGION, AWS_ACCESS_KEY_ID,\n"+
			"AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; with profiles or SSO: eval \"$(aws configure export-credentials --format env)\".\n"+
			"For the system that `make up` runs: . ./build/up/env",
	))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	k.Bind(shell{environ: os.Environ(), in: os.Stdin, out: os.Stdout, now: time.Now})
	err := k.Run()
	stop()
	k.FatalIfErrorf(hint(err))
}

// shell is what a command reads and writes.
type shell struct {
	environ []string
	in      io.Reader
	out     io.Writer
	now     func() time.Time
}

// hint adds to an error what to check first: where the environment comes from, or whether
// the local system runs.
func hint(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w\nis `make up` running? If it is: . ./build/up/env", err)
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return fmt.Errorf("%w\nnames of a deployment: . ./build/deploy/env, which make deploy wrote"+
			"\nAWS profiles and SSO: eval \"$(aws configure export-credentials --format env)\""+
			"\nthe system that `make up` runs: . ./build/up/env", err)
	}
	return err
}
