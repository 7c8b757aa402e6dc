package lambdatest

import (
	"os"
	"testing"
)

// FullOnly skips a test that compiles binaries, runs other processes or takes more than a
// second, unless ORDERONCE_ALL=1. `go test ./...` is quick and offline without these
// tests; `make test` and CI set the variable, and count a skip as a failure.
func FullOnly(tb testing.TB) {
	tb.Helper()
	if os.Getenv("ORDERONCE_ALL") != "1" { //nolint:forbidigo // a test has no composition root; FullOnly is one
		tb.Skip("compiles binaries, or takes more than a second: set ORDERONCE_ALL=1, or run make test")
	}
}
