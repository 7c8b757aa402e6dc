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
	Config aws.Config       // of clients that use the proxy
	Client *dynamodb.Client // uses the proxy
	Table  string           // not used by another test
}

// Locate finds the engine of a test that starts one itself. Without an engine it skips
// the test, or fails it if ORDERONCE_ALL=1 or CI=true is set.
func Locate(tb testing.TB) Location {
	tb.Helper()
	getenv := os.Getenv //nolint:forbidigo // a test has no composition root; Locate is one
	location, err := Find(getenv, ".")
	switch {
	case errors.Is(err, ErrNoEngine) && getenv("ORDERONCE_ALL") != "1" && getenv("CI") != "true":
		tb.Skip(err)
	case err != nil:
		tb.Fatal(err)
	}
	return location
}

// Open starts an engine for this test only and closes it with the test. Without an engine
// it skips or fails the test, as Locate does.
func Open(tb testing.TB) *Harness {
	tb.Helper()
	getenv := os.Getenv //nolint:forbidigo // a test has no composition root; Open is one
	location := Locate(tb)
	engine, err := Start(tb.Context(), location)
	if err != nil {
		tb.Fatal(err)
	}
	closeWith(tb, engine.Close)

	table := "orders-" + rand.Text() // an engine named by $DYNAMODB_ENDPOINT is shared by all test binaries
	create(tb, engine, TableDefinition(table))
	proxy, err := NewProxy(tb.Context(), engine.Endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	closeWith(tb, proxy.Close)
	config := Config(engine.Endpoint, getenv) // with the credentials for the engine's endpoint
	config.BaseEndpoint = aws.String(proxy.URL)
	return &Harness{engine, proxy, config, dynamodb.NewFromConfig(config), table}
}

// OpenStock creates an empty stock table beside the orders table, drops it with the test,
// and returns its name.
func (h *Harness) OpenStock(tb testing.TB) string {
	tb.Helper()
	table := "stock-" + rand.Text()
	create(tb, h.Engine, StockTableDefinition(table))
	return table
}

// create creates a table and drops it with the test. It does not use the proxy, which
// counts the test's calls only.
func create(tb testing.TB, engine *Engine, definition *dynamodb.CreateTableInput) {
	tb.Helper()
	direct := dynamodb.NewFromConfig(Config(engine.Endpoint, os.Getenv)) //nolint:forbidigo // as in Open
	if err := Create(tb.Context(), direct, definition); err != nil {
		tb.Fatal(err)
	}
	afterwards := context.WithoutCancel(tb.Context())
	closeWith(tb, func() error { return DropTable(afterwards, direct, *definition.TableName) })
}

func closeWith(tb testing.TB, end func() error) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := end(); err != nil {
			tb.Error(err)
		}
	})
}
