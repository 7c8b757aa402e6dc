// Package setup starts a Lambda function: it has what every function reads of its
// environment and writes to. It does not know queues or Stripe; see packages consumer and
// provider.
package setup

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
)

// Environment has the variables of every function.
type Environment struct {
	AWS   config.AWS
	Scope Scope `env:"SCOPE,notEmpty" want:"1 to 32 lower-case letters, digits or '-', the first a letter"`
}

// Scope is a deployment's scope.
type Scope order.Scope

// Order returns the scope as the domain has it.
func (s Scope) Order() order.Scope { return order.Scope(s) }

// UnmarshalText validates and sets the scope.
func (s *Scope) UnmarshalText(text []byte) error {
	parsed, err := order.NewScope(string(text))
	*s = Scope(parsed)
	return err
}

// Function is what a function logs, counts and calls with.
type Function struct {
	Environment

	Clients config.Clients
	Log     *slog.Logger
	Meter   *lambda.Meter
}

// Function returns a function that makes up to calls calls to a service at once, and
// loads the certificates for the first address that it will call. If it has a name, its
// metrics have the further dimension Function, so that no alarm of orders counts them.
func (e Environment) Function(out io.Writer, calls int, first config.URL, name string) Function {
	config.LoadCertificates(first)
	dimensions := map[string]string{"Scope": string(e.Scope)}
	if name != "" {
		dimensions["Function"] = name
	}
	meter := lambda.NewMeter(out, "orderonce", dimensions, time.Now)
	return Function{
		Environment: e, Log: lambda.NewLogger(out, slog.LevelInfo), Meter: meter,
		Clients: config.Clients{MaxCalls: calls, Observe: meter.Observe, Now: time.Now},
	}
}

// Config returns the configuration of a service's client.
func (f Function) Config(s config.Service) aws.Config { return f.AWS.Config(s, f.Clients.AWS()) }

// Starting logs the version of a function before anything can fail, so that the log of a
// release that cannot start names it.
func Starting(out io.Writer) {
	lambda.NewLogger(out, slog.LevelInfo).Info("function starting", slog.String("version", config.Version))
}

// Main wires a function in the environment of the process, and serves its invocations
// until the process ends. If the function cannot be wired, it logs why and exits.
func Main[H, In, Out any](
	wire func(ctx context.Context, environ []string, out io.Writer) (H, error),
	serve func(H) func(context.Context, In) (Out, error),
) {
	// AWS bills time and the configured memory. So the collector waits until the heap is
	// five times what lives: 8 MiB for a sixth of the CPU, within the smallest function.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(96 << 20)
	Starting(os.Stdout)
	ctx := context.Background()
	handler, err := wire(ctx, os.Environ(), os.Stdout)
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(ctx, serve(handler))
}
