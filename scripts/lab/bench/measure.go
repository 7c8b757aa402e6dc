package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/lab/progress"
	"orderonce/scripts/package/release"
)

// plan is how much is measured: so many rounds of cold starts, batches of fresh orders
// and batches of duplicates. Every figure is a median over the rounds.
type plan struct{ Rounds, ColdStarts, Batches, Duplicates int }

const batchSize = 10

// figures are the results, medians unless they say otherwise.
type figures struct {
	FirstResponseMS float64 // from the start of a process to its first response, for a batch of one order
	Fresh           speed
	Duplicates      speed
	PeakRSSBytes    int64 // of the warm instance, at the end
	ZipBytes        int   // of the measured binary
	CallsPerOrder   float64
	CallsDuplicate  float64
}

// speed is of one instance.
type speed struct {
	PerSecond float64
	CPUMS     float64 // of the function's process per order; 0 if the system does not report it
}

// bench is a running measurement.
type bench struct {
	plan   plan
	binary string
	back   *backends
	warm   *lambdatest.Host
	serial int // of the last order
}

// measure runs the plan. It prints the progress between rounds only, while nothing is
// measured.
func measure(ctx context.Context, p plan, binary string, errOut io.Writer) (f figures, err error) {
	b := &bench{plan: p, binary: binary}
	if f.ZipBytes, err = zipBytes(binary); err != nil {
		return f, err
	}
	if b.back, err = serveBackends(); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.back.Close()) }()
	if b.warm, err = b.start(); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.warm.Close()) }()
	printLine := progress.Every(10*time.Second, errOut, time.Now)
	err = b.rounds(ctx, &f, func(round int) { printLine("%d of %d rounds", round, p.Rounds) })
	f.PeakRSSBytes = b.warm.Report().PeakRSSBytes
	return f, err
}

func zipBytes(binary string) (int, error) {
	executable, err := os.ReadFile(filepath.Clean(binary))
	if err != nil {
		return 0, err
	}
	zipped, err := release.Zip(executable)
	return len(zipped), err
}

func (b *bench) start() (*lambdatest.Host, error) {
	return lambdatest.Start(lambdatest.Options{
		Binary: b.binary, Instances: 1, Timeout: 30 * time.Second,
		Env: map[string]string{
			"AWS_ENDPOINT_URL_DYNAMODB": b.back.dynamodbURL,
			"AWS_ENDPOINT_URL_SQS":      "http://127.0.0.1:1", // nothing is parked or returned
			"ORDERS_TABLE":              "orders",
			"QUEUE_URL":                 "http://127.0.0.1:1/1/orders",
			"DEAD_LETTER_QUEUE_URL":     "http://127.0.0.1:1/1/dead",
			"SCOPE":                     scope,
			"STRIPE_SECRET_KEY":         pretendKey,
			"STRIPE_API_BASE":           b.back.stripeURL,
		},
	})
}

// rounds measures cold starts, fresh orders and duplicates in each round.
func (b *bench) rounds(ctx context.Context, f *figures, done func(round int)) error {
	var firsts []float64
	var fresh, duplicates []speed
	for round := range b.plan.Rounds {
		for range b.plan.ColdStarts {
			first, err := b.coldStart(ctx)
			if err != nil {
				return err
			}
			firsts = append(firsts, first)
		}
		s, calls, err := b.round(ctx, freshPrefix, b.plan.Batches)
		if err != nil {
			return err
		}
		fresh, f.CallsPerOrder = append(fresh, s), calls
		if s, calls, err = b.round(ctx, settledPrefix, b.plan.Duplicates); err != nil {
			return err
		}
		duplicates, f.CallsDuplicate = append(duplicates, s), calls
		done(round + 1)
	}
	f.FirstResponseMS, f.Fresh, f.Duplicates = median(firsts), medianSpeed(fresh), medianSpeed(duplicates)
	return nil
}

func (b *bench) coldStart(ctx context.Context) (firstResponseMS float64, err error) {
	host, err := b.start()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	err = invoke(ctx, host, b.event(freshPrefix, 1))
	return host.Report().FirstResponseMS, err
}

// round sends batches one after the other, all made before the clock starts, and returns
// the calls per order.
func (b *bench) round(ctx context.Context, prefix string, batches int) (s speed, calls float64, err error) {
	events := make([][]byte, batches)
	for i := range events {
		events[i] = b.event(prefix, batchSize)
	}
	callsBefore, cpuBefore, began := b.calls(), b.warm.Report().CPUMS, time.Now()
	for _, e := range events {
		if err := invoke(ctx, b.warm, e); err != nil {
			return speed{}, 0, err
		}
	}
	orders := batches * batchSize
	took, cpu := time.Since(began), b.warm.Report().CPUMS-cpuBefore
	s = speed{PerSecond: float64(orders) / took.Seconds(), CPUMS: cpu / float64(orders)}
	return s, float64(b.calls()-callsBefore) / float64(orders), nil
}

func (b *bench) calls() int64 { return b.back.dynamodbCalls.Load() + b.back.stripeCalls.Load() }

// event returns a batch of orders with unique ids.
func (b *bench) event(prefix string, orders int) []byte {
	now := time.Now()
	messages := make([]sqstest.Message, orders)
	for i := range messages {
		b.serial++
		messages[i] = sqstest.Message{
			ID:      fmt.Sprintf("00000000-0000-4000-8000-%012d", b.serial),
			Receipt: strings.Repeat("r", 180), // as long as SQS makes them
			Body:    fmt.Sprintf(body, prefix, b.serial, total), Sent: now, FirstReceived: now, Receives: 1,
		}
	}
	return sqstest.Event("orders", messages)
}

const body = `{"orderId":"%s%06d","customerId":"CUST-1","currency":"usd",` +
	`"lines":[{"sku":"TSHIRT-M","quantity":1,"unitAmount":%d},{"sku":"STICKER","quantity":3,"unitAmount":0}],` +
	`"payment":{"customer":"cus_Bench","method":"pm_card_visa"}}`

// errNotSettled means that the function did not settle an order, which makes the figures
// useless.
var errNotSettled = errors.New("orders not settled")

func invoke(ctx context.Context, host *lambdatest.Host, event []byte) error {
	response, err := host.Invoke(ctx, event)
	if err != nil {
		return err
	}
	return errors.Join(settled(response), ctx.Err())
}

// settled returns an error if the response has a batch item failure.
func settled(response []byte) error {
	if string(response) != `{"batchItemFailures":[]}` {
		return fmt.Errorf("%w: %s", errNotSettled, response)
	}
	return nil
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

func medianSpeed(all []speed) speed {
	var perSecond, cpu []float64
	for _, s := range all {
		perSecond, cpu = append(perSecond, s.PerSecond), append(cpu, s.CPUMS)
	}
	return speed{PerSecond: median(perSecond), CPUMS: median(cpu)}
}
