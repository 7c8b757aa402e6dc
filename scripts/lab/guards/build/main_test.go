package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

func TestARelativePathIsAnError(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), "bind", "build/order")
	if !errors.Is(err, errRelative) || !strings.Contains(err.Error(), `"build/order"`) {
		t.Errorf("got error %v, want errRelative with the path", err)
	}
}

func TestTheBinaryIsNotTheProducts(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	without, intact := filepath.Join(t.TempDir(), "without"), filepath.Join(t.TempDir(), "intact")
	if err := run(t.Context(), "bind", without); err != nil {
		t.Fatal(err)
	}
	if err := lambdatest.Build(t.Context(), "functions/order", intact); err != nil {
		t.Fatal(err)
	}
	if content(t, without) == content(t, intact) {
		t.Error("got the same bytes with and without the guard, want others")
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
