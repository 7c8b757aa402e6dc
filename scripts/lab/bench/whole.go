package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// usage is what one function needs, and what it may need.
type usage struct {
	Name                      string
	Calls                     int
	FirstMS, CPUMS, RSS       float64 // CPU of one call; MiB
	MostCPUMS, MostRSS        float64
	AnswerMS, SlowestAnswerMS float64 // what a person waits for: median and p99; 0 if nobody does
}

// burst is how long many messages at once took in the local system.
type burst struct {
	What    string
	Seconds float64
	Charges int
}

// grown is an order's cost with another size of something.
type grown struct {
	What              string
	CPUMS, Ratio, RSS float64 // Ratio: for 1 of the smallest; RSS in MiB, 0 if not measured
}

// whole is a local system with every function, an engine and a pretend Stripe.
type whole struct {
	*system.System

	serial int
}

// startWhole compiles these functions and starts a system with them. They have Lambda's
// time-outs, because nothing fails here.
func startWhole(
	ctx context.Context, root, folder string, engine dynamodbtest.Location, names ...string,
) (*whole, error) {
	o := system.Options{
		Engine: engine, Instances: 10, FunctionTimeout: 30 * time.Second, Visibility: 3 * time.Minute,
		Env: map[string]string{"STRIPE_TIMEOUT": "8s", "ORDER_BUDGET": "10s", "ANSWER_TIME": "3s"},
	}
	binaries := map[string]*string{
		"order": &o.Binary, "refund": &o.Refund, "webhook": &o.Webhook, "intake": &o.Intake,
		"reconcile": &o.Reconcile, "publish": &o.Publish, "receipt": &o.Receipt,
	}
	for _, name := range names {
		*binaries[name] = filepath.Join(folder, name)
		p := lambdatest.Program{Root: root, Package: "functions/" + name}
		if err := p.Build(ctx, *binaries[name]); err != nil {
			return nil, err
		}
	}
	s, err := system.Start(ctx, o)
	return &whole{System: s}, err
}

func (w *whole) charges() (n int) {
	w.Stripe.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			if c.Outcome == stripetest.Charged {
				n++
			}
		}
	})
	return n
}

func (w *whole) newID() string {
	w.serial++
	return orderID(w.serial)
}

func (w *whole) orders(n int) (bodies []string) {
	for range n {
		bodies = append(bodies, fmt.Sprintf(body, w.newID(), total))
	}
	return bodies
}

// post posts messages with these bodies, and waits until all are processed.
func (w *whole) post(ctx context.Context, bodies ...string) error {
	var drafts []sqstest.Draft
	for _, b := range bodies {
		drafts = append(drafts, sqstest.Draft{Body: b})
	}
	if _, err := w.Post(drafts); err != nil {
		return err
	}
	return w.Drained(ctx)
}

// use uses every function: orders by HTTP, one after the other, with their webhooks,
// events and receipts; refunds; and runs of reconcile that find nothing to do.
func (w *whole) use(ctx context.Context) ([]usage, error) {
	const calls = 300
	var answers []float64
	var refunds []string
	for range calls {
		id := w.newID()
		began := time.Now()
		if a, err := w.PutOrder(ctx, id, fmt.Sprintf(body, id, total)); err != nil || a.Status >= 300 {
			return nil, fmt.Errorf("put order %s: status %d %s: %w", id, a.Status, a.Body, err)
		}
		answers = append(answers, ms(time.Since(began)))
		refunds = append(refunds,
			fmt.Sprintf(`{"type":"refund","refundId":"R-%s","orderId":"%s","amount":100}`, id, id))
	}
	err := errors.Join(w.Drained(ctx), w.Heard(ctx), w.post(ctx, refunds...), w.Heard(ctx), w.Published(ctx),
		w.ReceiptsDrained(ctx))
	for range calls / 10 {
		_, invoked := w.Reconcile.Invoke(ctx, []byte(`{}`))
		err = errors.Join(err, invoked)
	}
	if err != nil {
		return nil, err
	}
	all := []usage{
		{Name: "webhook", MostCPUMS: 5, MostRSS: 40},
		{Name: "intake", MostCPUMS: 6, MostRSS: 40},
		{Name: "refund", MostCPUMS: 25, MostRSS: 40},
		{Name: "receipt", MostCPUMS: 15, MostRSS: 45},
		{Name: "publish", MostCPUMS: 12, MostRSS: 35},
		{Name: "reconcile", MostCPUMS: 20, MostRSS: 40},
	}
	hosts := []*lambdatest.Host{w.Webhook, w.Intake, w.Refund, w.Receipt, w.Publish, w.Reconcile}
	for i := range all {
		r := hosts[i].Report()
		all[i].Calls, all[i].FirstMS, all[i].RSS = r.Invocations, r.FirstResponseMS, float64(r.PeakRSSBytes)/(1<<20)
		all[i].CPUMS = r.CPUMS / float64(max(r.Invocations, 1))
	}
	all[1].AnswerMS, all[1].SlowestAnswerMS = median(answers), percentile(answers, 99)[0]
	return all, nil
}

// bursts posts 1,000 orders at once, and 1,000 messages of one order.
func (w *whole) bursts(ctx context.Context) (all []burst, err error) {
	for _, x := range []struct {
		what   string
		bodies []string
	}{
		{"1,000 orders at once", w.orders(1000)},
		{"1,000 messages of one order", slices.Repeat(w.orders(1), 1000)},
	} {
		before, began := w.charges(), time.Now()
		if err := w.post(ctx, x.bodies...); err != nil {
			return nil, err
		}
		all = append(all, burst{x.what, time.Since(began).Seconds(), w.charges() - before})
	}
	return all, nil
}

// rows measures an order with ever more rows in the table, copies of a settled one, in
// turns with another table of the engine that stays small: batches of ten in one
// instance, which calls the canned Stripe.
func (w *whole) rows(
	ctx context.Context, b *backends, small *whole, report func(format string, args ...any), counts ...int,
) (all []grown, err error) {
	var ends []func() error
	defer func() {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
	}()
	subjects := [2]*subject{}
	for i, table := range []string{small.Options.Table, w.Options.Table} {
		s := &subject{backends: b, function: function{Binary: w.Options.Binary, Env: map[string]string{
			"AWS_ENDPOINT_URL_DYNAMODB": w.Engine.Endpoint, "ORDERS_TABLE": table,
		}}}
		if s.warm, err = s.start(); err != nil {
			return nil, err
		}
		ends = append(ends, s.warm.Close)
		if err := invoke(ctx, s.warm, s.event(batchSize)); err != nil {
			return nil, err
		}
		subjects[i] = s
	}
	var row system.Item
	for item, err := range w.Items(ctx, w.Options.Table) {
		if err != nil {
			return nil, err
		}
		if system.Text(item, "sk") == "order" {
			row = item
		}
	}
	db := dynamodb.NewFromConfig(dynamodbtest.Config(w.Engine.Endpoint, func(string) string { return "" }))
	there := 0
	for _, count := range counts {
		for ; there < count; there += copies {
			if err := put(ctx, db, w.Options.Table, row, there); err != nil {
				return nil, err
			}
			report("%d of %d rows", there, counts[len(counts)-1])
		}
		var of [2]load
		for range 8 {
			for i, s := range subjects {
				if err := s.send(ctx, 50, batchSize, &of[i], &of[i].BatchMS); err != nil {
					return nil, err
				}
			}
		}
		all = append(all, grown{
			fmt.Sprintf("%d rows", count), median(of[1].CPUMS), ratio(of[1].CPUMS, of[0].CPUMS), 0,
		})
	}
	return all, nil
}

const copies = 25 // the most that one request may put

func put(ctx context.Context, db *dynamodb.Client, table string, row system.Item, first int) error {
	var puts []types.WriteRequest
	for n := range copies {
		copied := maps.Clone(row)
		copied["orderId"] = &types.AttributeValueMemberS{Value: fmt.Sprint("ROW-", first+n)}
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: copied}})
	}
	_, err := db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{table: puts},
	})
	return err
}

// batches measures an order in ever larger batches, in turns. The back ends respond at
// once.
func (b *backends) batches(ctx context.Context, f function, sizes ...int) (all []grown, err error) {
	const rounds, orders = 3, 5000
	subjects := make([]*subject, len(sizes))
	for i := range sizes {
		s := &subject{function: f, backends: b}
		if s.warm, err = s.start(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.warm.Close()) }()
		subjects[i] = s
	}
	b.dynamodb.latency.Store(0)
	b.stripe.latency.Store(0)
	b.settled.Store(false)
	for range rounds {
		for i, s := range subjects {
			if err := s.send(ctx, max(orders/sizes[i], 1), sizes[i], &s.Fresh, &s.Fresh.BatchMS); err != nil {
				return nil, err
			}
		}
	}
	for i, s := range subjects {
		rss := float64(s.warm.Report().PeakRSSBytes) / (1 << 20)
		all = append(all, grown{
			fmt.Sprintf("batches of %d", sizes[i]), median(s.Fresh.CPUMS),
			ratio(s.Fresh.CPUMS, subjects[0].Fresh.CPUMS), rss,
		})
	}
	return all, nil
}
