// Package system runs all of orderonce on one machine: the compiled function under a
// Runtime API host, with a queue, a DynamoDB-compatible engine and a pretend Stripe.
// Package invariants checks the books of such a system at rest. Programs and end-to-end
// tests use it; nothing that is deployed imports it.
package system

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/apigateway/apigatewaytest"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
)

// Names and times of the local system. The secrets are valid nowhere.
const (
	OrderQueue         = "orders"
	DeadLetters        = "orders-dead"
	RefundQueue        = "refunds"
	ReceiptQueue       = "receipts"
	ReceiptDeadLetters = "receipts-dead"
	EventBus           = "orders-events"
	Scope              = "local"
	PretendKey         = "sk_test_pretend"
	StripeWaits        = 600 * time.Millisecond

	webhookSecret    = "whsec_pretend"
	receiptFrom      = "Pretend Shop <receipts@shop.invalid>"
	configurationSet = "receipts"
	mailWaits        = 600 * time.Millisecond
	orderBudget      = 800 * time.Millisecond
	receiptBudget    = 1500 * time.Millisecond // a call to Stripe, one to SES, and two writes
	answerTime       = 200 * time.Millisecond
	firstDelay       = time.Second
)

// Options configure a system. The zero value is a small one.
type Options struct {
	Binary    string // the order function, built for this machine; see lambdatest.Build
	Refund    string // the function of the refund queue; "" for none
	Webhook   string // the webhook function; "" for none
	Intake    string // the function of the entrance by HTTP; "" for none
	Reconcile string // the function of the schedule; "" for none
	Publish   string // the function of the table's stream; "" for none
	Receipt   string // the function of the receipt queue; "" for none. It needs Publish
	Engine    dynamodbtest.Location
	Table     string // default "orders", see TableIn
	// Stock is how many units of each SKU there are at the start; nil means that the
	// functions do not track stock.
	Stock     map[string]int64
	Instances int // execution environments, and invocations, at once; default 2
	BatchSize int // default 10
	// MaxReceives is the queue's maxReceiveCount; by default the one that the function
	// expects.
	MaxReceives int
	// FunctionTimeout and Visibility are short by default, 2 s and 3 s, so that an order
	// recovers from a crash within seconds.
	FunctionTimeout, Visibility time.Duration
	Rules                       stripetest.Rules
	Output                      io.Writer // the function's log lines
	BeforeStripe, AfterStripe   func(stripetest.Call)
	Observe                     func(sqstest.Batch) // of every queue
	Duplicate                   func(sqstest.Message) sqstest.Twice
	LoseDelete                  func(sqstest.Message) bool
	// Deliveries plans the deliveries of Stripe's events, see stripetest.Webhooks.
	Deliveries func(stripetest.Event) []time.Duration
	// ObserveWebhook is called after each request to the webhook function, see
	// stripetest.Webhooks.
	ObserveWebhook func(stripetest.Sent)
	// ObserveInstance is called with each change of an instance of the order function, and
	// of the refund function, whose instances have numbers from 101; see lambdatest.Options.
	ObserveInstance func(lambdatest.Event)
	// RefuseEvent makes the bus refuse events, see eventbridgetest.Options.
	RefuseEvent func(eventbridgetest.Event) (code string)
	// BeforeMail and AfterMail, if set, are called with the number of a request to SES when
	// it arrives and before its response.
	BeforeMail, AfterMail func(number int)
	// LoseMailEvent reports whether an event of SES is lost; nil loses none.
	LoseMailEvent func(event json.RawMessage) bool
	Env           map[string]string // further variables of the functions
	FIFO          bool              // the queues of orders and of refunds
	// Travels makes the function's deadlines follow Advance, for a function that takes its
	// clock from them.
	Travels bool
}

func (o Options) withDefaults() Options {
	o.Instances = cmp.Or(o.Instances, 2)
	o.BatchSize = cmp.Or(o.BatchSize, 10)
	o.MaxReceives = cmp.Or(o.MaxReceives, sqs.DefaultPolicy().MaxReceives)
	o.FunctionTimeout = cmp.Or(o.FunctionTimeout, 2*time.Second)
	o.Visibility = cmp.Or(o.Visibility, 3*time.Second)
	if o.Table == "" {
		o.Table = TableIn(o.Engine, "orders")
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	return o
}

// TableIn returns the name of a table: the plain one in an engine that this process
// starts, and a unique one in an engine that runs already, because other systems may use
// it too.
func TableIn(engine dynamodbtest.Location, plain string) string {
	if engine.Endpoint == "" {
		return plain
	}
	return plain + "-" + rand.Text()
}

// System is a running system. Close ends it.
type System struct {
	Options       Options
	Engine        *dynamodbtest.Engine
	Proxy         *dynamodbtest.Proxy // between function and engine
	Stripe        *stripetest.Server
	SQS           *sqstest.Server
	Events        *stripetest.Webhooks    // nil without Options.Webhook
	API           *apigatewaytest.Server  // nil without Options.Webhook and Options.Intake
	Bus           *eventbridgetest.Server // nil without Options.Publish
	Mail          *sestest.Server         // nil without Options.Receipt, as the two below
	Receipts      *receipttable.Store     // past the proxy
	ReceiptsTable string
	Store         *dynamodb.Store  // past the proxy
	Payments      *charge.Payments // as an operator uses it
	Stock         string           // the stock table; "" without Options.Stock

	// The functions. Each is nil without its option.
	Function, Refund, Webhook, Reconcile, Intake, Publish, Receipt *lambdatest.Host

	ahead   atomic.Int64   // how far Advance moved the queue's clock
	working atomic.Int64   // invocations under way or waiting for an instance
	stream  *stream        // nil without Options.Publish
	stops   []func() error // end the event source mappings of orders and refunds
	closers []func() error

	put      sync.Mutex
	requests []invariants.Request // of PutOrder
}

// Start starts everything, the event source mappings and the stream last.
func Start(ctx context.Context, o Options) (*System, error) {
	s := &System{Options: o.withDefaults()}
	for _, step := range []func(context.Context) error{
		s.startEngine, s.startStripe, s.startQueue, s.startBus, s.startMail,
		s.startFunctions, s.startAPI, s.startEvents, s.startMappings, s.startStream,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close ends everything in reverse order.
func (s *System) Close() error {
	var errs []error
	for _, end := range slices.Backward(s.closers) {
		errs = append(errs, end())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *System) startEngine(ctx context.Context) error {
	engine, err := dynamodbtest.Start(ctx, s.Options.Engine)
	if err != nil {
		return err
	}
	s.Engine = engine
	s.closers = append(s.closers, engine.Close)
	config := s.pastProxy()
	s.Store = dynamodb.New(config, s.Options.Table)
	// In dynoxide 1.2.1 each record in the table's stream makes writes slower: after 8,000
	// records a transaction of two writes took 8.5 ms, and 0.7 ms without a stream.
	orders := dynamodbtest.TableDefinition(s.Options.Table)
	orders.StreamSpecification = nil
	if err := s.create(ctx, orders); err != nil {
		return err
	}
	if s.Options.Stock != nil {
		s.Stock = TableIn(s.Options.Engine, "stock")
		if err := s.create(ctx, dynamodbtest.StockTableDefinition(s.Stock)); err != nil {
			return err
		}
		s.Store = s.Store.WithStock(s.Stock)
	}
	for sku, n := range s.Options.Stock {
		if _, err := s.Store.AddStock(ctx, sku, n); err != nil {
			return err
		}
	}
	if s.Options.Receipt != "" {
		s.ReceiptsTable = TableIn(s.Options.Engine, "receipts")
		s.Receipts = receipttable.New(config, s.ReceiptsTable)
		if err := s.create(ctx, dynamodbtest.ReceiptsDefinition(s.ReceiptsTable)); err != nil {
			return err
		}
	}
	s.Proxy, err = dynamodbtest.NewProxy(ctx, engine.Endpoint)
	if err == nil {
		s.closers = append(s.closers, s.Proxy.Close)
	}
	return err
}

func (s *System) create(ctx context.Context, table *sdk.CreateTableInput) error {
	if err := dynamodbtest.Create(ctx, s.Client(), table); err != nil {
		return fmt.Errorf("engine at %s: %w", s.Engine.Endpoint, err)
	}
	s.DropOnClose(ctx, *table.TableName)
	return nil
}

// DropOnClose makes Close drop a table. It does nothing if the engine ends with the
// system.
func (s *System) DropOnClose(ctx context.Context, table string) {
	if s.Options.Engine.Endpoint == "" {
		return
	}
	afterwards := context.WithoutCancel(ctx)
	s.closers = append(s.closers, func() error { return dynamodbtest.DropTable(afterwards, s.Client(), table) })
}

// OnClose makes Close call end before it ends what was started earlier.
func (s *System) OnClose(end func() error) { s.closers = append(s.closers, end) }

// pastProxy returns the configuration of a client that needs no faults.
func (s *System) pastProxy() aws.Config {
	return dynamodbtest.Config(s.Engine.Endpoint, func(string) string { return "" })
}

// Client returns a client of the tables, past the proxy.
func (s *System) Client() *sdk.Client { return sdk.NewFromConfig(s.pastProxy()) }

func (s *System) startStripe(context.Context) error {
	server, err := stripetest.Serve(stripetest.Options{
		Rules: s.Options.Rules, Before: s.Options.BeforeStripe, After: s.Options.AfterStripe,
	})
	if err != nil {
		return err
	}
	s.Stripe = server
	s.closers = append(s.closers, server.Close)
	s.Payments = charge.New(stripe.Options{
		Key: PretendKey, BaseURL: server.URL, Scope: order.Scope(Scope),
		Timeout: 10 * time.Second, Transport: http.DefaultTransport,
	})
	return nil
}

func (s *System) startQueue(context.Context) error {
	server, err := sqstest.Serve(sqstest.Options{Now: s.now})
	if err != nil {
		return err
	}
	s.SQS = server
	s.closers = append(s.closers, server.Close)
	for _, p := range []pair{s.pair(OrderQueue), s.pair(RefundQueue), s.pair(ReceiptQueue)} {
		err = errors.Join(err, s.createQueues(p))
	}
	return err
}

func (s *System) now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// OperatorEnv returns the environment of scripts/orders and of the AWS CLI, as
// NAME=value, and API, the URL of the HTTP API.
func (s *System) OperatorEnv() []string {
	env := []string{
		"AWS_DEFAULT_REGION=" + sqstest.Region, // the AWS CLI does not read AWS_REGION
		"AWS_REGION=" + sqstest.Region,
		"AWS_ACCESS_KEY_ID=pretend",
		"AWS_SECRET_ACCESS_KEY=pretend",
		"AWS_ENDPOINT_URL_DYNAMODB=" + s.Engine.Endpoint,
		"AWS_ENDPOINT_URL_SQS=" + s.SQS.URL,
		"ORDERS_TABLE=" + s.Options.Table,
		"STOCK_TABLE=" + s.Stock,
		"RECEIPTS_TABLE=" + s.ReceiptsTable,
		"QUEUE_URL=" + s.SQS.QueueURL(s.OrderQueue()),
		"DEAD_LETTER_QUEUE_URL=" + s.SQS.QueueURL(s.pair(OrderQueue).dead),
		"REFUND_QUEUE_URL=" + s.SQS.QueueURL(s.pair(RefundQueue).live),
		"REFUND_DEAD_LETTER_QUEUE_URL=" + s.SQS.QueueURL(s.pair(RefundQueue).dead),
		"SCOPE=" + Scope,
		"STRIPE_SECRET_KEY=" + PretendKey,
		"STRIPE_API_BASE=" + s.Stripe.URL,
	}
	if s.Bus != nil {
		env = append(env, "AWS_ENDPOINT_URL_EVENTBRIDGE="+s.Bus.URL, "EVENT_BUS="+EventBus)
	}
	if s.API != nil {
		env = append(env, "API="+s.API.URL)
	}
	if s.Webhook != nil {
		env = append(env, "WEBHOOK_URL="+s.API.URL+"/stripe/webhook")
	}
	if s.Intake != nil {
		env = append(env, "INTAKE_URL="+s.API.URL+"/orders")
	}
	return env
}

// Advance moves the clocks of the queue and of Stripe. The function uses this machine's.
func (s *System) Advance(d time.Duration) {
	s.Stripe.Advance(d)
	s.ahead.Add(int64(d))
	s.SQS.Wake()
}
