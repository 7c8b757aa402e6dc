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

// plan is how much is measured of each binary: so many rounds of cold starts, batches of
// fresh orders and batches of duplicates.
type plan struct{ Rounds, ColdStarts, Batches, Duplicates int }

const batchSize = 10

// figures are those of one binary: one sample a round, or one in all.
type figures struct {
	FirstResponseMS  []float64 // from the start of a process to its first response, for a batch of one order
	Fresh            speed
	Duplicates       speed
	PeakRSS, ZipSize []float64 // bytes; the memory is that of the warm instance at the end
}

// speed is of one instance.
type speed struct {
	PerSecond []float64
	CPUMS     []float64 // of the function's process per order; 0 if the system does not report it
	Calls     float64   // to DynamoDB and Stripe per order
}

// instance is one binary that is measured.
type instance struct {
	*backends

	binary string
	warm   *lambdatest.Host
	figures
}

// measure runs the plan for all binaries. They take turns, in another order each round,
// so that a busier machine does not count against one. It prints the progress between
// rounds only, while nothing is measured.
func measure(ctx context.Context, p plan, binaries []string, errOut io.Writer) (all []figures, err error) {
	b, err := serveBackends()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var instances []*instance
	for _, binary := range binaries {
		in := &instance{backends: b, binary: binary}
		if in.ZipSize, err = zipSize(binary); err != nil {
			return nil, err
		}
		if in.warm, err = in.start(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, in.warm.Close()) }()
		instances = append(instances, in)
	}
	printLine := progress.Every(10*time.Second, errOut, time.Now)
	for round := range p.Rounds {
		for _, in := range instances {
			if err := in.round(ctx, p); err != nil {
				return nil, err
			}
		}
		slices.Reverse(instances)
		printLine("%d of %d rounds", round+1, p.Rounds)
	}
	if p.Rounds%2 == 1 {
		slices.Reverse(instances)
	}
	for _, in := range instances {
		in.PeakRSS = []float64{float64(in.warm.Report().PeakRSSBytes)}
		all = append(all, in.figures)
	}
	return all, nil
}

func zipSize(binary string) ([]float64, error) {
	executable, err := os.ReadFile(filepath.Clean(binary))
	if err != nil {
		return nil, err
	}
	zipped, err := release.Zip(executable)
	return []float64{float64(len(zipped))}, err
}

func (in *instance) start() (*lambdatest.Host, error) {
	return lambdatest.Start(lambdatest.Options{
		Binary: in.binary, Instances: 1, Timeout: 30 * time.Second,
		Env: map[string]string{
			"AWS_ENDPOINT_URL_DYNAMODB": in.dynamodbURL,
			"AWS_ENDPOINT_URL_SQS":      "http://127.0.0.1:1", // nothing is parked or returned
			"ORDERS_TABLE":              "orders",
			"QUEUE_URL":                 "http://127.0.0.1:1/1/orders",
			"DEAD_LETTER_QUEUE_URL":     "http://127.0.0.1:1/1/dead",
			"SCOPE":                     scope,
			"STRIPE_SECRET_KEY":         pretendKey,
			"STRIPE_API_BASE":           in.stripeURL,
		},
	})
}

// round measures cold starts, fresh orders and duplicates once.
func (in *instance) round(ctx context.Context, p plan) error {
	var firsts []float64
	for range p.ColdStarts {
		first, err := in.coldStart(ctx)
		if err != nil {
			return err
		}
		firsts = append(firsts, first)
	}
	in.FirstResponseMS = append(in.FirstResponseMS, median(firsts))
	if err := in.send(ctx, freshPrefix, p.Batches, &in.Fresh); err != nil {
		return err
	}
	return in.send(ctx, settledPrefix, p.Duplicates, &in.Duplicates)
}

func (in *instance) coldStart(ctx context.Context) (firstResponseMS float64, err error) {
	host, err := in.start()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	err = invoke(ctx, host, in.event(freshPrefix, 1))
	return host.Report().FirstResponseMS, err
}

// send sends batches one after the other, all made before the clock starts, and adds the
// sample.
func (in *instance) send(ctx context.Context, prefix string, batches int, s *speed) error {
	events := make([][]byte, batches)
	for i := range events {
		events[i] = in.event(prefix, batchSize)
	}
	callsBefore, cpuBefore, began := in.calls(), in.warm.Report().CPUMS, time.Now()
	for _, e := range events {
		if err := invoke(ctx, in.warm, e); err != nil {
			return err
		}
	}
	orders := float64(batches * batchSize)
	took, cpu := time.Since(began), in.warm.Report().CPUMS-cpuBefore
	s.PerSecond = append(s.PerSecond, orders/took.Seconds())
	s.CPUMS = append(s.CPUMS, cpu/orders)
	s.Calls = float64(in.calls()-callsBefore) / orders
	return nil
}

// event returns a batch of orders with unique ids.
func (b *backends) event(prefix string, orders int) []byte {
	now := time.Now()
	messages := make([]sqstest.Message, orders)
	for i := range messages {
		b.serial++
		messages[i] = sqstest.Message{
			ID:     fmt.Sprintf("00000000-0000-4000-8000-%012d", b.serial),
			Handle: strings.Repeat("r", 180), // as long as SQS makes them
			Draft:  sqstest.Draft{Body: fmt.Sprintf(body, prefix, b.serial, total)},
			Sent:   now, FirstReceived: now, Receives: 1,
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

// change returns the median of the rounds' changes since base, in percent.
func change(now, base []float64) float64 {
	var changes []float64
	for i := range now {
		changes = append(changes, (now[i]/base[i]-1)*100)
	}
	return median(changes)
}
