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

	"github.com/schollz/progressbar/v3"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/package/release"
)

// plan says how much is measured.
type plan struct {
	Rounds     int `default:"7" help:"Rounds; every figure is a median over them."`
	ColdStarts int `default:"3" help:"Cold starts in each round."`
	Batches    int `default:"286" help:"Batches of 10 fresh orders in each round; 7 rounds of 286 make 20,000 orders."`
	Duplicates int `default:"100" help:"Batches of 10 duplicates in each round."`
}

const batchSize = 10

var errNothing = errors.New("want at least 1 of rounds, cold starts, batches and duplicates")

// Validate is called by kong.
func (p plan) Validate() error {
	if min(p.Rounds, p.ColdStarts, p.Batches, p.Duplicates) < 1 {
		return errNothing
	}
	return nil
}

func (p plan) orders() int { return p.Rounds * p.Batches * batchSize }

// figures are what was measured, medians unless they say otherwise.
type figures struct {
	FirstAnswerMS  float64 // from the start of a process to the answer of its first batch, of one order
	Fresh          speed
	Duplicates     speed
	PeakRSSBytes   int64 // of the instance that did all the orders, at the end
	ZipBytes       int   // of the very binary that ran
	CallsPerOrder  float64
	CallsDuplicate float64
}

// speed is of one instance.
type speed struct {
	PerSecond float64
	CPUMS     float64 // of the function's process for each order; 0 where the system does not tell
}

// bench is one measurement under way.
type bench struct {
	plan   plan
	binary string
	back   *backends
	warm   *lambdatest.Host
	bar    *progressbar.ProgressBar // of rounds: it prints, so it moves only where no clock runs
	serial int                      // of the last order
}

// measure runs the whole plan and shows on progress how far it is.
func measure(ctx context.Context, p plan, binary string, progress io.Writer) (f figures, err error) {
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
	b.bar = progressbar.NewOptions(p.Rounds, progressbar.OptionSetDescription("rounds"), progressbar.OptionSetWriter(progress),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
	err = b.rounds(ctx, &f)
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

// rounds interleaves the three kinds of work.
func (b *bench) rounds(ctx context.Context, f *figures) error {
	var firsts []float64
	var fresh, duplicates []speed
	for range b.plan.Rounds {
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
		if err := b.bar.Add(1); err != nil {
			return err
		}
	}
	f.FirstAnswerMS, f.Fresh, f.Duplicates = median(firsts), medianSpeed(fresh), medianSpeed(duplicates)
	return nil
}

func (b *bench) coldStart(ctx context.Context) (firstAnswerMS float64, err error) {
	host, err := b.start()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	err = invoke(ctx, host, b.event(freshPrefix, 1))
	return host.Report().FirstAnswerMS, err
}

// round sends batches one after the other, all made before the clock starts, and returns how many calls an order cost.
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
	s = speedOf(orders, time.Since(began), b.warm.Report().CPUMS-cpuBefore)
	return s, float64(b.calls()-callsBefore) / float64(orders), nil
}

// speedOf is what an instance does that took so long over some orders, with so many milliseconds of CPU.
func speedOf(orders int, took time.Duration, cpuMS float64) speed {
	return speed{PerSecond: float64(orders) / took.Seconds(), CPUMS: cpuMS / float64(orders)}
}

func (b *bench) calls() int64 { return b.back.dynamodbCalls.Load() + b.back.stripeCalls.Load() }

// event is a batch of orders with ids that no other has.
func (b *bench) event(prefix string, orders int) []byte {
	now := time.Now()
	messages := make([]sqstest.Message, orders)
	for i := range messages {
		b.serial++
		messages[i] = sqstest.Message{
			ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", b.serial), Receipt: strings.Repeat("r", 180), // as long as SQS makes them
			Body: fmt.Sprintf(body, prefix, b.serial, total), Sent: now, FirstReceived: now, Receives: 1,
		}
	}
	return sqstest.Event("orders", messages)
}

const body = `{"orderId":"%s%06d","customerId":"CUST-1","currency":"usd",` +
	`"lines":[{"sku":"TSHIRT-M","quantity":1,"unitAmount":%d},{"sku":"STICKER","quantity":3,"unitAmount":0}],` +
	`"payment":{"customer":"cus_Bench","method":"pm_card_visa"}}`

// errGivenBack says that the function did not settle an order, so that no figure would mean anything.
var errGivenBack = errors.New("the function gave orders back")

func invoke(ctx context.Context, host *lambdatest.Host, event []byte) error {
	answer, err := host.Invoke(ctx, event)
	if err != nil {
		return err
	}
	return errors.Join(settled(answer), ctx.Err())
}

// settled checks that an answer gives no order back.
func settled(answer []byte) error {
	if string(answer) != `{"batchItemFailures":[]}` {
		return fmt.Errorf("%w: %s", errGivenBack, answer)
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
