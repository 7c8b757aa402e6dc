package dynamodbtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func TestCloseEndsTheEngine(t *testing.T) {
	engine := start(t, ownEngine(t))
	must(t, engine.Close())
	if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address(t, engine)); err == nil {
		_ = connection.Close()
		t.Error("got a connection after Close, want an error")
	}
	if err := engine.Close(); err != nil {
		t.Errorf("second Close: got %v, want no error", err)
	}
}

func TestAFailedStartIsRetriedOnAnotherPort(t *testing.T) {
	location := ownEngine(t)
	mark := filepath.Join(t.TempDir(), "ran")
	lines := fmt.Sprintf("[ -e %q ] || { touch %q; exit 1; }\nexec %q \"$@\"", mark, mark, location.Binary)
	location.Binary = script(t, lines)
	engine := start(t, location)
	if _, err := client(engine.Endpoint).ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestStartEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent := dynamodbtest.Location{Binary: script(t, "exec sleep 600")}
	_, err := dynamodbtest.Start(ctx, silent)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

func TestAMissingBinaryIsAnError(t *testing.T) {
	missing := dynamodbtest.Location{Binary: filepath.Join(t.TempDir(), "dynoxide")}
	_, err := dynamodbtest.Start(t.Context(), missing)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

// ownEngine finds a binary to start: a running engine cannot be killed or started twice.
func ownEngine(t *testing.T) dynamodbtest.Location {
	t.Helper()
	location, err := dynamodbtest.Find(withoutEndpoint, ".")
	if errors.Is(err, dynamodbtest.ErrNoEngine) {
		t.Skip(err)
	}
	must(t, err)
	return location
}

func withoutEndpoint(name string) string {
	if name == "DYNAMODB_ENDPOINT" {
		return ""
	}
	return os.Getenv(name) //nolint:forbidigo // a test has no composition root
}

func start(t *testing.T, location dynamodbtest.Location) *dynamodbtest.Engine {
	t.Helper()
	engine, err := dynamodbtest.Start(t.Context(), location)
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	return engine
}

func client(endpoint string) *dynamodb.Client {
	return dynamodb.NewFromConfig(dynamodbtest.Config(endpoint, noEnvironment), func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{} // a test sees each response
	})
}

func address(t *testing.T, engine *dynamodbtest.Engine) string {
	t.Helper()
	parsed, err := url.Parse(engine.Endpoint)
	must(t, err)
	return parsed.Host
}

func script(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o700))
	return path
}
