package dynamodbtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func TestEnginesDoNotShareTables(t *testing.T) {
	t.Parallel()
	options := dynamodbtest.Options{Location: ownEngine(t)}
	one, other := client(start(t, options).Endpoint), client(start(t, options).Endpoint)
	must(t, dynamodbtest.CreateTable(t.Context(), one, "orders"))
	if err := dynamodbtest.CreateTable(t.Context(), other, "orders"); err != nil {
		t.Errorf("the same name in the second engine: got %v, want no error", err)
	}
}

func TestCloseEndsTheEngine(t *testing.T) {
	t.Parallel()
	engine := start(t, dynamodbtest.Options{Location: ownEngine(t)})
	must(t, engine.Close())
	if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address(t, engine)); err == nil {
		_ = connection.Close()
		t.Error("got a connection after Close, want an error")
	}
	if err := engine.Close(); err != nil {
		t.Errorf("second Close: got %v, want no error", err)
	}
}

func TestAPortInUseIsAnError(t *testing.T) {
	t.Parallel()
	first := start(t, dynamodbtest.Options{Location: ownEngine(t)})
	_, port, err := net.SplitHostPort(address(t, first))
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	_, err = dynamodbtest.Start(t.Context(), dynamodbtest.Options{Location: ownEngine(t), Port: number})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want the engine's error that the port is in use", err)
	}
}

func TestAFailedStartIsRetriedOnAnotherPort(t *testing.T) {
	t.Parallel()
	location := ownEngine(t)
	mark := filepath.Join(t.TempDir(), "ran")
	lines := fmt.Sprintf("[ -e %q ] || { touch %q; exit 1; }\nexec %q \"$@\"", mark, mark, location.Binary)
	location.Binary = script(t, lines)
	engine := start(t, dynamodbtest.Options{Location: location})
	if _, err := client(engine.Endpoint).ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestStartEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent := dynamodbtest.Location{Binary: script(t, "exec sleep 600")}
	_, err := dynamodbtest.Start(ctx, dynamodbtest.Options{Location: silent, Port: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestAMissingBinaryIsAnError(t *testing.T) {
	t.Parallel()
	missing := dynamodbtest.Location{Binary: filepath.Join(t.TempDir(), "dynoxide")}
	_, err := dynamodbtest.Start(t.Context(), dynamodbtest.Options{Location: missing})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

func TestAnEndpointIsUsedUnchanged(t *testing.T) {
	t.Parallel()
	engine := start(t, dynamodbtest.Options{Location: dynamodbtest.Location{Endpoint: "http://127.0.0.1:1"}})
	if engine.Endpoint != "http://127.0.0.1:1" {
		t.Errorf("got %q, want the given endpoint", engine.Endpoint)
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

func start(t *testing.T, options dynamodbtest.Options) *dynamodbtest.Engine {
	t.Helper()
	engine, err := dynamodbtest.Start(t.Context(), options)
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
