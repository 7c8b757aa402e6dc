package dynamodbtest_test

import (
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
