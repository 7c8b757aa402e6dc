// Package systemtest starts the local system for a test and ends it with the test. It
// compares nothing.
package systemtest

import (
	"path/filepath"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system"
)

// Kit is what a test needs to start systems: an engine and a compiled function.
type Kit struct {
	Engine dynamodbtest.Location
	Binary string
}

// New finds the engine and compiles functions/order. It skips the test unless
// ORDERONCE_ALL=1, as lambdatest.FullOnly does.
func New(tb testing.TB) Kit {
	tb.Helper()
	return WithFunction(tb, "orderonce/functions/order")
}

// WithFunction is New with the function of another package.
func WithFunction(tb testing.TB, pkg string) Kit {
	tb.Helper()
	lambdatest.FullOnly(tb)
	k := Kit{Engine: dynamodbtest.Locate(tb), Binary: filepath.Join(tb.TempDir(), "bootstrap")}
	if err := lambdatest.Build(tb.Context(), pkg, k.Binary); err != nil {
		tb.Fatal(err)
	}
	return k
}

// Build compiles the function of another package and returns its path.
func (k Kit) Build(tb testing.TB, pkg string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), filepath.Base(pkg))
	if err := lambdatest.Build(tb.Context(), pkg, path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Start starts a system with the kit's engine and function, and closes it with the test.
// The log keeps what the function prints.
func (k Kit) Start(tb testing.TB, o system.Options) (*system.System, *system.Log) {
	tb.Helper()
	log := &system.Log{}
	o.Engine, o.Binary, o.Output = k.Engine, k.Binary, log
	s, err := system.Start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s, log
}
