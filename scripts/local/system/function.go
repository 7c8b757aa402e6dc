package system

import (
	"context"
	"maps"
	"sync"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
)

// variables are a part of a function's environment.
type variables = map[string]string

// startHost starts a function with what Lambda sets, the given parts of its environment
// and Options.Env. It returns nil if the options have no binary of it.
func (s *System) startHost(o lambdatest.Options, env ...variables) (*lambdatest.Host, error) {
	if o.Binary == "" {
		return nil, nil //nolint:nilnil // the system has no such part
	}
	o.Output, o.Env = s.Options.Output, variables{
		"AWS_REGION": sqstest.Region, "AWS_ACCESS_KEY_ID": "pretend", "AWS_SECRET_ACCESS_KEY": "pretend",
		"SCOPE": Scope,
	}
	for _, more := range append(env, s.Options.Env) {
		maps.Copy(o.Env, more)
	}
	host, err := lambdatest.Start(o)
	if err == nil {
		s.closers = append(s.closers, host.Close)
	}
	return host, err
}

// startConsumer starts the function of a queue.
func (s *System) startConsumer(
	binary string, observe func(lambdatest.Event), env ...variables,
) (*lambdatest.Host, error) {
	o := lambdatest.Options{
		Binary: binary, Timeout: s.Options.FunctionTimeout, Instances: s.Options.Instances, Observe: observe,
	}
	if s.Options.Travels {
		o.Now = s.now
	}
	return s.startHost(o, env...)
}

// tables are what a function needs for the tables of orders and stock.
func (s *System) tables() variables {
	return variables{
		"AWS_ENDPOINT_URL_DYNAMODB": s.Proxy.URL, "ORDERS_TABLE": s.Options.Table, "STOCK_TABLE": s.Stock,
	}
}

// stripe is what a function needs for Stripe.
func (s *System) stripe(timeout time.Duration) variables {
	return variables{
		"STRIPE_SECRET_KEY": PretendKey, "STRIPE_API_BASE": s.Stripe.URL, "STRIPE_TIMEOUT": timeout.String(),
	}
}

// sends is what a function needs to send to a queue.
func (s *System) sends(p pair) variables {
	return variables{"AWS_ENDPOINT_URL_SQS": s.SQS.URL, "QUEUE_URL": s.SQS.QueueURL(p.live)}
}

// consumes is what the function of a queue needs, with the time that one message may
// take.
func (s *System) consumes(p pair, budget time.Duration) variables {
	env := variables{
		"DEAD_LETTER_QUEUE_URL": s.SQS.QueueURL(p.dead), "ORDER_BUDGET": budget.String(),
		"ANSWER_TIME": AnswerTime.String(), "FIRST_DELAY": FirstBackOff.String(),
	}
	maps.Copy(env, s.sends(p))
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
