package infra_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the folder infra, whose files they read. They are not in it,
// because a parser of Terraform is nothing that the product requires.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../infra"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
