package system

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
)

// The settings of the functions that work on no queue of orders. The function of the
// schedule keeps 7 s of its own for the last orders: a call to Stripe, and two writes.
const (
	requestTime    = 10 * time.Second // of those that answer requests, and of the stream's
	lookTime       = 30 * time.Second
	laterStripe    = 3 * time.Second
	webhooksAtOnce = 4 // processes, for a machine with little memory

	firstRefundInstance = 100 // less one
)

type variables = map[string]string

// function is a function of the system: where System keeps it, how it is started, and the
// parts of its environment.
type function struct {
	host **lambdatest.Host
	lambdatest.Options

	env []variables
}

// functions are all that a system can have, each with what it needs and no more.
func (s *System) functions() []function {
	o := s.Options
	tables := variables{"AWS_ENDPOINT_URL_DYNAMODB": s.Proxy.URL, "ORDERS_TABLE": o.Table}
	stock := variables{"STOCK_TABLE": s.Stock}
	bus, mail := variables{}, variables{}
	if s.Bus != nil {
		bus = variables{"AWS_ENDPOINT_URL_EVENTBRIDGE": s.Bus.URL, "EVENT_BUS": EventBus}
	}
	if s.Mail != nil {
		mail = variables{
			"AWS_ENDPOINT_URL_DYNAMODB": s.Proxy.URL, "RECEIPTS_TABLE": s.ReceiptsTable,
			"AWS_ENDPOINT_URL_SESV2": s.Mail.URL, "SES_TIMEOUT": mailWaits.String(), "RECEIPT_FROM": receiptFrom,
			"RECEIPT_CONFIGURATION_SET": configurationSet,
		}
	}
	ofOrders, ofRefunds := s.consumer(o.Binary), s.consumer(o.Refund)
	ofOrders.Observe = o.ObserveInstance
	ofRefunds.Observe = s.observeRefunds
	return []function{
		{&s.Webhook, lambdatest.Options{
			Binary: o.Webhook, Timeout: requestTime, Instances: min(o.Instances, webhooksAtOnce),
		}, []variables{tables, stock, s.stripe(laterStripe), {"WEBHOOK_SECRETS": webhookSecret}}},
		{&s.Intake, lambdatest.Options{
			Binary: o.Intake, Timeout: requestTime, Instances: o.Instances,
		}, []variables{tables, stock, s.sends(s.pair(OrderQueue))}},
		{&s.Reconcile, lambdatest.Options{
			Binary: o.Reconcile, Timeout: lookTime,
		}, []variables{tables, stock, s.stripe(laterStripe), {"STRIPE_RATE": "200"}}},
		{&s.Publish, lambdatest.Options{Binary: o.Publish, Timeout: requestTime}, []variables{bus}},
		{&s.Receipt, s.consumer(o.Receipt), []variables{
			mail, s.stripe(StripeWaits), s.consumes(s.pair(ReceiptQueue), receiptBudget),
		}},
		{&s.Function, ofOrders, []variables{
			tables, stock, s.stripe(StripeWaits), s.consumes(s.pair(OrderQueue), orderBudget),
		}},
		{&s.Refund, ofRefunds, []variables{
			tables, s.stripe(StripeWaits), s.consumes(s.pair(RefundQueue), orderBudget),
		}},
	}
}

// startFunctions starts each function whose binary is in the options, with what Lambda
// sets, its environment and Options.Env.
func (s *System) startFunctions(context.Context) error {
	if s.Options.Receipt != "" && s.Options.Publish == "" {
		return errors.New("the receipt function needs the publish function")
	}
	for _, f := range s.functions() {
		if f.Binary == "" {
			continue
		}
		f.Output, f.Env = s.Options.Output, s.environment(f)
		host, err := lambdatest.Start(f.Options)
		if err != nil {
			return err
		}
		*f.host = host
		s.closers = append(s.closers, host.Close)
	}
	return nil
}

func (s *System) environment(f function) variables {
	env := variables{
		"AWS_REGION": sqstest.Region, "AWS_ACCESS_KEY_ID": "pretend", "AWS_SECRET_ACCESS_KEY": "pretend",
		"SCOPE": Scope,
	}
	for _, more := range append(f.env, s.Options.Env) {
		maps.Copy(env, more)
	}
	return env
}

// FunctionEnv returns the environment of the order function, as NAME=value, for a process
// that works beside it.
func (s *System) FunctionEnv() (env []string) {
	for _, f := range s.functions() {
		if f.host == &s.Function {
			for name, value := range s.environment(f) {
				env = append(env, name+"="+value)
			}
		}
	}
	return env
}

func (s *System) consumer(binary string) lambdatest.Options {
	o := lambdatest.Options{
		Binary: binary, Timeout: s.Options.FunctionTimeout, Instances: s.Options.Instances,
	}
	if s.Options.Travels {
		o.Now = s.now
	}
	return o
}

func (s *System) observeRefunds(e lambdatest.Event) {
	if s.Options.ObserveInstance != nil {
		e.Instance += firstRefundInstance
		s.Options.ObserveInstance(e)
	}
}

func (s *System) stripe(timeout time.Duration) variables {
	return variables{
		"STRIPE_SECRET_KEY": PretendKey, "STRIPE_API_BASE": s.Stripe.URL, "STRIPE_TIMEOUT": timeout.String(),
	}
}

func (s *System) sends(p pair) variables {
	return variables{"AWS_ENDPOINT_URL_SQS": s.SQS.URL, "QUEUE_URL": s.SQS.QueueURL(p.live)}
}

// consumes is what the function of a queue needs, with the time that one message may
// take.
func (s *System) consumes(p pair, budget time.Duration) variables {
	env := s.sends(p)
	maps.Copy(env, variables{
		"DEAD_LETTER_QUEUE_URL": s.SQS.QueueURL(p.dead), "ORDER_BUDGET": budget.String(),
		"ANSWER_TIME": answerTime.String(), "FIRST_DELAY": firstDelay.String(),
	})
	return env
}

// background runs f until the function that it returns is called, or Close.
func (s *System) background(ctx context.Context, f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // not until Start's context ends
	var run sync.WaitGroup
	var failed error
	run.Go(func() { failed = f(ctx) })
	stop = func() error {
		cancel()
		run.Wait()
		return failed
	}
	s.closers = append(s.closers, stop)
	return stop
}

// Until calls done again and again until it reports true or an error, or the context
// ends.
func Until(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if over, err := done(); over || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const soon = 10 * time.Millisecond

func (s *System) consumers() []*lambdatest.Host {
	if s.Refund == nil {
		return []*lambdatest.Host{s.Function}
	}
	return []*lambdatest.Host{s.Function, s.Refund}
}

// Kill kills the busy instances of both functions whose payload matches, see
// lambdatest.Host.
func (s *System) Kill(match func(payload []byte) bool) (killed int) {
	for _, h := range s.consumers() {
		killed += h.Kill(match)
	}
	return killed
}

// Freeze freezes the busy instances of both functions whose payload matches, see
// lambdatest.Host.
func (s *System) Freeze(d time.Duration, match func(payload []byte) bool) (frozen int) {
	for _, h := range s.consumers() {
		frozen += h.Freeze(d, match)
	}
	return frozen
}

// Invoke invokes the function of a message.
func (s *System) Invoke(ctx context.Context, m sqstest.Message) ([]byte, error) {
	host, queue := s.Function, s.queueOf(m.Body)
	if queue == s.pair(RefundQueue).live {
		host = s.Refund
	}
	return host.Invoke(ctx, sqstest.Event(queue, []sqstest.Message{m}))
}

// UntilExit returns a context that ends when one of the two functions exits by itself,
// see lambdatest.Host.
func (s *System) UntilExit(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := func() {}
	for _, h := range s.consumers() {
		next, cancel := h.UntilExit(ctx)
		before := ends
		ctx, ends = next, func() { cancel(); before() }
	}
	return ctx, ends
}
