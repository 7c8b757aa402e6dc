// Command smoke is `make smoke`, the last step of a deployment: it posts one order to the real queue, in Stripe's test mode,
// waits until its row says paid, and compares the row with Stripe. It refuses a live key. `smoke check` is the first step of a
// deployment: it says what Terraform would stumble over.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"

	"orderonce/adapters/lambda"
)

type commands struct {
	Order run   `cmd:"" default:"withargs" help:"Post one order and wait until it is paid. Needs the environment of scripts/orders."`
	Check check `cmd:"" help:"Say what make deploy needs and this machine lacks."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("smoke"), kong.UsageOnError(), kong.Description(
		"Post one order to a deployment, in Stripe's test mode, and wait until it is paid. The environment is that of scripts/orders."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(hint(err))
}

// hint says where an environment comes from.
func hint(err error) error {
	if _, ok := errors.AsType[*lambda.EnvError](err); ok {
		return fmt.Errorf("%w\nnames of the deployment: . ./build/deploy/env, which make deploy wrote"+
			"\nAWS profiles and SSO: eval \"$(aws configure export-credentials --format env)\""+
			"\nthe system that `make up` runs: . ./build/local/env", err)
	}
	return err
}
