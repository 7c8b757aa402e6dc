package dynamodbtest_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// The first start fails, as if another process had taken its port.
func TestAnEngineIsStartedAgainOnAnotherPortAndEndsWithClose(t *testing.T) {
	location := dynamodbtest.Locate(t)
	if location.Endpoint != "" {
		t.Skip("unset DYNAMODB_ENDPOINT: a running engine is not started")
	}
	mark := filepath.Join(t.TempDir(), "ran")
	location.Binary = script(t, fmt.Sprintf("[ -e %q ] || { touch %q; exit 1; }\nexec %q \"$@\"", mark, mark, location.Binary))
	engine, err := dynamodbtest.Start(t.Context(), location)
	must(t, err)
	config := dynamodbtest.Config(engine.Endpoint, func(string) string { return "" })
	if _, err := dynamodb.NewFromConfig(config).ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for range 2 { // a second one changes nothing
		must(t, engine.Close())
	}
	address := strings.TrimPrefix(engine.Endpoint, "http://")
	if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
		_ = connection.Close()
		t.Error("got a connection after Close, want an error")
	}
}

func TestAStartThatFailsIsAnError(t *testing.T) {
	missing := dynamodbtest.Location{Binary: filepath.Join(t.TempDir(), "dynoxide")}
	if _, err := dynamodbtest.Start(t.Context(), missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing binary: got %v, want %v", err, os.ErrNotExist)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent := dynamodbtest.Location{Binary: script(t, "exec sleep 600")}
	if _, err := dynamodbtest.Start(ctx, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent engine: got %v, want %v", err, context.DeadlineExceeded)
	}
}

func script(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o700))
	return path
}

// recorder records how a test ends, and continues.
type recorder struct {
	testing.TB

	end string
}

func (*recorder) Helper() {}

func (w *recorder) Skip(args ...any) { w.end = "skip " + fmt.Sprint(args...) }

func (w *recorder) Fatal(args ...any) { w.end = "fail " + fmt.Sprint(args...) }

func TestLocate(t *testing.T) {
	const installed = "adapters/dynamodb/dynamodbtest/engine/node_modules/@dynoxide/linux-x64/dynoxide"
	root, empty := t.TempDir(), t.TempDir()
	onPath := filepath.Join(root, "path/dynoxide")
	for path, mode := range map[string]os.FileMode{
		filepath.Join(root, "go.mod"): 0o600, filepath.Join(root, installed): 0o700, onPath: 0o700,
		filepath.Join(root, "plain/dynoxide"): 0o600, filepath.Join(root, "scripts/lab/go.mod"): 0o600,
		filepath.Join(empty, "go.mod"): 0o600,
	} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		must(t, os.WriteFile(path, nil, mode))
	}
	own := dynamodbtest.Location{Binary: filepath.Join(root, installed)}
	for name, tt := range map[string]struct {
		env  string // NAME=VALUE
		dir  string // "" is a folder of a module with an engine
		want dynamodbtest.Location
		end  string // how the test ends; "" if it runs
	}{
		"an endpoint in the environment comes first": {
			"DYNAMODB_ENDPOINT=http://127.0.0.1:8000", "", dynamodbtest.Location{Endpoint: "http://127.0.0.1:8000"}, "",
		},
		"a program on PATH comes before the installed one": {
			"PATH=/nowhere:" + filepath.Dir(onPath), "", dynamodbtest.Location{Binary: onPath}, "",
		},
		"the installed one is found from any folder of the module": {want: own},
		"it is found from a nested module":                         {dir: filepath.Join(root, "scripts/lab"), want: own},
		"a file that is not executable is ignored":                 {env: "PATH=" + filepath.Join(root, "plain"), want: own},
		"without an engine a test is skipped with instructions":    {dir: empty, end: "skip no DynamoDB engine found"},
		"it fails if all tests must run":                           {"ORDERONCE_ALL=1", empty, own, "fail no DynamoDB engine found"},
		"it fails in CI":                                           {"CI=true", empty, own, "fail no DynamoDB engine found"},
		"a failed search is not a missing engine":                  {dir: t.TempDir(), end: "fail module root above"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"DYNAMODB_ENDPOINT", "PATH", "ORDERONCE_ALL", "CI"} {
				t.Setenv(name, "")
			}
			if name, value, set := strings.Cut(tt.env, "="); set {
				t.Setenv(name, value)
			}
			t.Chdir(stdcmp.Or(tt.dir, filepath.Join(root, "adapters/dynamodb")))
			w := &recorder{}
			got := dynamodbtest.Locate(w)
			if !strings.HasPrefix(w.end, tt.end) || (w.end == "") != (tt.end == "") || w.end == "" && got != tt.want {
				t.Errorf("got %+v and %q, want %+v and %q", got, w.end, tt.want, tt.end)
			}
		})
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
