// Package systemtest starts the local system for a test and ends it with the test. It
// compares nothing.
package systemtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// Kit is what a test needs to start systems: an engine and the compiled functions of the
// two queues.
type Kit struct {
	Engine         dynamodbtest.Location
	Binary, Refund string
}

// New finds the engine and compiles the functions of the queues. It skips the test unless
// ORDERONCE_ALL=1, as lambdatest.FullOnly does.
func New(tb testing.TB) Kit {
	tb.Helper()
	lambdatest.FullOnly(tb)
	k := Kit{Engine: dynamodbtest.Locate(tb)}
	k.Binary, k.Refund = k.Build(tb, "functions/order"), k.Build(tb, "functions/refund")
	return k
}

// compiled holds what has become of each program of this test process, which compiles
// each once.
var compiled sync.Map //nolint:gochecknoglobals // tests share nothing else

// Build compiles the function of another package and returns its path. It is in the
// folder of the test's own program, which go test removes at its end.
func (k Kit) Build(tb testing.TB, pkg string) string {
	tb.Helper()
	own, err := os.Executable()
	path := filepath.Join(filepath.Dir(own), "function-"+filepath.Base(pkg))
	once, _ := compiled.LoadOrStore(path, sync.OnceValue(func() error {
		return lambdatest.Build(context.WithoutCancel(tb.Context()), pkg, path)
	}))
	Must(tb, errors.Join(err, once.(func() error)()))
	return path
}

// Start starts a system with the kit's engine and function, and closes it with the test.
// The log keeps what the function prints.
func (k Kit) Start(tb testing.TB, o system.Options) (*system.System, *system.Log) {
	tb.Helper()
	log := &system.Log{}
	o.Engine, o.Binary, o.Refund, o.Output = k.Engine, k.Binary, k.Refund, log
	s, err := system.Start(tb.Context(), o)
	Must(tb, err)
	tb.Cleanup(func() { Must(tb, s.Close()) })
	return s, log
}

// Doubles returns a system of queues and a Stripe alone, with the hooks of these options.
// Their time is that of now.
func Doubles(tb testing.TB, o system.Options, now func() time.Time) *system.System {
	tb.Helper()
	queues, err := sqstest.Serve(sqstest.Options{Now: now})
	Must(tb, err)
	tb.Cleanup(func() { Must(tb, queues.Close()) })
	stripe, err := stripetest.Serve(stripetest.Options{Now: now, Before: o.BeforeStripe, After: o.AfterStripe})
	Must(tb, err)
	tb.Cleanup(func() { Must(tb, stripe.Close()) })
	queues.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, name := range []string{system.OrderQueue, system.RefundQueue} {
			Must(tb, m.Create(now, name, sqstest.DefaultSettings()))
			Must(tb, m.Create(now, name+"-dead", sqstest.DefaultSettings()))
		}
	})
	return &system.System{SQS: queues, Stripe: stripe}
}

// Folder returns a new folder that looks like a clone of the repository at root, for a
// program that writes into its folder build.
func Folder(tb testing.TB, root string) string {
	tb.Helper()
	root, err := filepath.Abs(root)
	Must(tb, err)
	entries, err := os.ReadDir(root)
	Must(tb, err)
	dir := tb.TempDir()
	for _, e := range entries {
		if e.Name() == "build" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		Must(tb, os.Symlink(filepath.Join(root, e.Name()), filepath.Join(dir, e.Name())))
	}
	return dir
}

// Must ends the test on an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
