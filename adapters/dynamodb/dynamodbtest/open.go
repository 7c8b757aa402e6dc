package dynamodbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Harness is an engine with one empty orders table, behind a proxy.
type Harness struct {
	Engine *Engine
	Proxy  *Proxy
	Config aws.Config       // leads through the proxy
	Client *dynamodb.Client // leads through the proxy
	Table  string           // no other test's
}

// Locate finds the engine of a test that starts one itself. Without an engine it skips
// the test, or fails it where ORDERONCE_ALL=1 or CI=true says that a skip is a hole.
func Locate(tb testing.TB) Location {
	tb.Helper()
	return locate(tb, os.Getenv, ".") //nolint:forbidigo // a test has no composition root; Locate is one
}

func locate(tb testing.TB, getenv func(string) string, dir string) Location {
	tb.Helper()
	location, err := Find(getenv, dir)
	switch {
	case errors.Is(err, ErrNoEngine) && getenv("ORDERONCE_ALL") != "1" && getenv("CI") != "true":
		tb.Skip(err)
	case err != nil:
		tb.Fatal(err)
	}
	return location
}

// Open starts an engine for this test alone and ends it with the test. Without an engine
// it does as Locate does.
func Open(tb testing.TB) *Harness {
	tb.Helper()
	getenv := os.Getenv //nolint:forbidigo // a test has no composition root; Open is one
	location := Locate(tb)
	engine, err := Start(tb.Context(), Options{Location: location})
	if err != nil {
		tb.Fatal(err)
	}
	closeWith(tb, engine.Close)

	// The proxy counts the test's calls, so the table is made and dropped past it.
	direct := dynamodb.NewFromConfig(Config(engine.Endpoint, getenv))
	table := "orders-" + rand.Text() // an engine named by $DYNAMODB_ENDPOINT is shared by all test binaries
	if err := CreateTable(tb.Context(), direct, table); err != nil {
		tb.Fatal(err)
	}
	afterwards := context.WithoutCancel(tb.Context())
	closeWith(tb, func() error { return DropTable(afterwards, direct, table) })

	proxy, err := NewProxy(tb.Context(), engine.Endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	closeWith(tb, proxy.Close)
	config := Config(
		engine.Endpoint,
		getenv,
	) // a real account wants its own credentials, through the proxy as well
	config.BaseEndpoint = aws.String(proxy.URL)
	return &Harness{
		Engine: engine,
		Proxy:  proxy,
		Config: config,
		Client: dynamodb.NewFromConfig(config),
		Table:  table,
	}
}

func closeWith(tb testing.TB, end func() error) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := end(); err != nil {
			tb.Error(err)
		}
	})
}
