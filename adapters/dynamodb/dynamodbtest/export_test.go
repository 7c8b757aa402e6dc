package dynamodbtest

import "testing"

// LocateFrom is Locate under another environment, from another directory.
func LocateFrom(tb testing.TB, getenv func(string) string, dir string) Location {
	tb.Helper()
	return locate(tb, getenv, dir)
}
