package dynamodbtest

import "testing"

// LocateFrom is Locate with another environment and directory.
func LocateFrom(tb testing.TB, getenv func(string) string, dir string) Location {
	tb.Helper()
	return locate(tb, getenv, dir)
}
