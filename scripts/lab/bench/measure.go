package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

// setting is how the back ends respond, and how much is measured in a round.
type setting struct {
	Name             string
	TLS              bool
	DynamoDB, Stripe time.Duration // before each response
	Share            float64       // of a processor; 0: all of them
	ColdStarts       int
	Batches          int // fresh ones; there are twice as many of duplicates
	Singles          int // batches of one order, fresh ones and duplicates
}

const batchSize = 10

// timeout is that of the functions, long enough for a batch of 10,000.
const timeout = 10 * time.Minute

// subject is one function that is measured, in one setting.
type subject struct {
	function
	figures

	*backends
	setting setting
	warm    *lambdatest.Host
	pid     int       // of the newest process
	started time.Time // the newest process, which was invoked first at:
	invoked time.Time
}

// figures has one sample a round, or of times one an invocation.
type figures struct {
	FirstMS, InitMS  []float64 // from the start of a process to its first response, and until it is ready
	Fresh, Duplicate load
	PeakRSS          float64 // bytes, of the warm instance at the end
}

type load struct {
	PerSecond         []float64
	CPUMS             []float64 // of the function's process per order; 0 if the system does not report it
	BatchMS, SingleMS []float64 // an invocation with a batch, and with one order
	Calls             float64   // to DynamoDB and Stripe per order
	StripeCalls       float64   // of them
}

// measurement is of all functions in all settings.
type measurement struct {
	*backends

	settings []setting
	all      [][]*subject // by setting
	notes    []string     // what could not be measured
	close    []func() error
}

// measure runs rounds. The functions take turns, in another order each round, so that a
// busier machine does not count against one. It prints the progress between rounds only,
// while nothing is measured.
func (m *measurement) measure(ctx context.Context, rounds int, errOut io.Writer) error {
	printLine := progress.Every(10*time.Second, errOut, time.Now)
	for round := range rounds {
		for _, subjects := range m.all {
			inTurn := slices.Clone(subjects)
			if round%2 == 1 {
				slices.Reverse(inTurn)
			}
			for _, s := range inTurn {
				if err := s.round(ctx); err != nil {
					return s.failed(err)
				}
			}
		}
		printLine("%d of %d rounds", round+1, rounds)
	}
	for _, s := range slices.Concat(m.all...) {
		s.PeakRSS = float64(s.warm.Report().PeakRSSBytes)
	}
	return nil
}

// add starts the functions in one setting. A share of a processor that the system does
// not give is left out, and noted.
func (m *measurement) add(ctx context.Context, set setting, functions []function) error {
	join := func(int) error { return nil }
	if set.Share > 0 {
		group, err := newCgroup(set.Share)
		if err != nil {
			m.notes = append(m.notes, fmt.Sprintf("not measured, %s: %v", set.Name, err))
			return nil
		}
		m.close, join = append(m.close, group.Close), group.add
	}
	m.settled.Store(false)
	var subjects []*subject
	for _, f := range functions {
		s := &subject{function: f, backends: m.backends, setting: set}
		var err error
		if s.warm, err = s.start(); err != nil {
			return err
		}
		m.close = append(m.close, s.warm.Close)
		if err := invoke(ctx, s.warm, s.event(batchSize)); err != nil {
			return s.failed(err)
		}
		if err := join(s.pid); err != nil { // after the start, for which Lambda gives all of a processor
			return s.failed(err)
		}
		subjects = append(subjects, s)
	}
	m.all, m.settings = append(m.all, subjects), append(m.settings, set)
	return nil
}

func (s *subject) failed(err error) error {
	return fmt.Errorf("%s, %s: %w", s.Name, s.setting.Name, err)
}

// Close ends what was started, in reverse order.
func (m *measurement) Close() (err error) {
	for _, end := range slices.Backward(m.close) {
		err = errors.Join(err, end())
	}
	return err
}

func zipSize(binary string) (float64, error) {
	executable, err := os.ReadFile(filepath.Clean(binary))
	if err != nil {
		return 0, err
	}
	zipped, err := release.Zip(executable)
	return float64(len(zipped)), err
}

func (s *subject) start() (*lambdatest.Host, error) {
	env := map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.dynamodb.url(s.setting.TLS), "STRIPE_API_BASE": s.stripe.url(s.setting.TLS),
		"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1", // nothing is parked or returned
		"QUEUE_URL":            "http://127.0.0.1:1/1/orders", "DEAD_LETTER_QUEUE_URL": "http://127.0.0.1:1/1/dead",
		"ORDERS_TABLE": "orders", "SCOPE": scope, "STRIPE_SECRET_KEY": pretendKey, "SSL_CERT_FILE": s.authorities,
	}
	maps.Copy(env, s.Env)
	return lambdatest.Start(lambdatest.Options{
		Binary: s.Binary, Instances: 1, Timeout: timeout, Env: env,
		Observe: func(e lambdatest.Event) {
			if e.Change == lambdatest.Started {
				s.pid, s.started, s.invoked = e.PID, time.Now(), time.Time{}
			} else if e.Change == lambdatest.Invoked && s.invoked.IsZero() {
				s.invoked = time.Now()
			}
		},
	})
}

func (s *subject) round(ctx context.Context) error {
	s.dynamodb.latency.Store(int64(s.setting.DynamoDB))
	s.stripe.latency.Store(int64(s.setting.Stripe))
	s.settled.Store(false)
	for range s.setting.ColdStarts {
		if err := s.coldStart(ctx); err != nil {
			return err
		}
	}
	err := errors.Join(
		s.send(ctx, s.setting.Singles, 1, &s.Fresh, &s.Fresh.SingleMS),
		s.send(ctx, s.setting.Batches, batchSize, &s.Fresh, &s.Fresh.BatchMS),
	)
	s.settled.Store(true)
	return errors.Join(
		err, s.send(ctx, s.setting.Singles, 1, &s.Duplicate, &s.Duplicate.SingleMS),
		s.send(ctx, 2*s.setting.Batches, batchSize, &s.Duplicate, &s.Duplicate.BatchMS),
	)
}

func (s *subject) coldStart(ctx context.Context) (err error) {
	host, err := s.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	err = invoke(ctx, host, s.event(1))
	s.FirstMS = append(s.FirstMS, host.Report().FirstResponseMS)
	s.InitMS = append(s.InitMS, ms(s.invoked.Sub(s.started)))
	return err
}

// send sends batches one after the other, all made before the clock starts, and adds the
// samples. The figures per order are those of full batches.
func (s *subject) send(ctx context.Context, batches, size int, l *load, each *[]float64) error {
	events := make([][]byte, batches)
	for i := range events {
		events[i] = s.event(size)
	}
	callsBefore, stripeBefore := s.calls(), s.stripe.calls.Load()
	cpuBefore, began := s.warm.Report().CPUMS, time.Now()
	for _, e := range events {
		start := time.Now()
		if err := invoke(ctx, s.warm, e); err != nil {
			return err
		}
		*each = append(*each, ms(time.Since(start)))
	}
	if size == 1 {
		return nil
	}
	orders := float64(batches * size)
	took, cpu := time.Since(began), s.warm.Report().CPUMS-cpuBefore
	l.PerSecond = append(l.PerSecond, orders/took.Seconds())
	l.CPUMS = append(l.CPUMS, cpu/orders)
	l.Calls = float64(s.calls()-callsBefore) / orders
	l.StripeCalls = float64(s.stripe.calls.Load()-stripeBefore) / orders
	return nil
}

func (b *backends) event(orders int) []byte {
	now := time.Now()
	messages := make([]sqstest.Message, orders)
	for i := range messages {
		b.serial++
		messages[i] = sqstest.Message{
			ID:     fmt.Sprintf("00000000-0000-4000-8000-%012d", b.serial),
			Handle: strings.Repeat("r", 180), // as long as SQS makes them
			Draft:  sqstest.Draft{Body: fmt.Sprintf(body, orderID(b.serial), total)},
			Sent:   now, FirstReceived: now, Receives: 1,
		}
	}
	return sqstest.Event("orders", messages)
}

func orderID(serial int) string { return fmt.Sprintf("ORDER%08d", serial) }

const body = `{"orderId":"%s","customerId":"CUST-1","currency":"usd",` +
	`"lines":[{"sku":"TSHIRT-M","quantity":1,"unitAmount":%d},{"sku":"STICKER","quantity":3,"unitAmount":0}],` +
	`"payment":{"customer":"cus_Bench","method":"pm_card_visa"}}`

// prepare gives the floor what it repeats: the calls of the first function.
func (m *measurement) prepare(ctx context.Context, functions []function) error {
	recorded, err := m.recordCalls(ctx, functions[0])
	for i := range functions {
		if functions[i].Name == "floor" {
			functions[i].Env = recorded
		}
	}
	return err
}

// recordCalls returns the variables of the floor: the calls of a function for one order,
// and its id.
func (b *backends) recordCalls(ctx context.Context, f function) (env map[string]string, err error) {
	s := &subject{function: f, backends: b}
	host, err := s.start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	var calls []call
	event := s.event(1)
	b.record.Store(&calls)
	defer b.record.Store(nil)
	if err := invoke(ctx, host, event); err != nil {
		return nil, err
	}
	text, err := json.Marshal(calls)
	return map[string]string{"RECORDED_CALLS": string(text), "RECORDED_ID": orderID(b.serial)}, err
}

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

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
