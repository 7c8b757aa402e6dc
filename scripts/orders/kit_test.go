package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/caarlos0/env/v11"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

const (
	scope      = order.Scope("test")
	pretendKey = "sk_test_pretend"
	day        = 24 * time.Hour
)

// Payment methods of the Stripe double.
const (
	pays     = incidents.Pays
	declines = incidents.Declines
	takes    = incidents.Takes
	asks     = incidents.Asks
	missing  = incidents.Missing
)

// noon is when the orders of these tests were created.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// environment returns a valid environment with changes, the last of which counts.
// Nothing listens at its addresses.
func environment(changes ...string) []string {
	return append([]string{
		"AWS_REGION=" + sqstest.Region, "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=canary",
		"AWS_ENDPOINT_URL=http://127.0.0.1:1", "ORDERS_TABLE=orders", "QUEUE_URL=https://sqs.example/1/orders",
		"SCOPE=" + string(scope), "STRIPE_SECRET_KEY=" + pretendKey,
	}, changes...)
}

// testShell returns a shell without a terminal, which takes region, credentials and
// endpoints from environ alone.
func testShell(environ []string) shell.Shell {
	return shell.Shell{
		Environ: environ, In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard, Now: noon,
		AWS: func(context.Context) (aws.Config, error) {
			c, err := config.Read[config.AWS](environ)
			cfg := c.Config("", cloud.HTTPClient())
			cfg.ConfigSources = []any{endpoints(env.ToMap(environ))}
			return cfg, err
		},
	}
}

// endpoints finds AWS_ENDPOINT_URL_SQS and the like, as the SDK's own sources do.
type endpoints map[string]string

//
//nolint:unparam // the SDK's interface
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, sdkID string) (string, bool, error) {
	url, found := e["AWS_ENDPOINT_URL_"+strings.ToUpper(strings.ReplaceAll(sdkID, " ", "_"))]
	return url, found, nil
}

// runs runs a command line as main does, and returns what is on the screen at the end and
// the exit code. typed is standard input.
func runs(ctx context.Context, t *testing.T, sh shell.Shell, line, typed string) (printed string, code int) {
	t.Helper()
	var c commands
	var out strings.Builder
	exited := false
	parser, err := newParser(&c, kong.Writers(&out, &out), kong.Exit(func(int) { exited = true }))
	must(t, err)
	k, err := parser.Parse(strings.Fields(line))
	if exited { // it goes on after Exit
		return out.String(), 0
	}
	if err == nil {
		sh.In, sh.Out, sh.ErrOut = strings.NewReader(typed), &out, &out
		err = c.run(ctx, k, sh)
	}
	if err = usage(err); err != nil {
		fmt.Fprintf(&out, "orders: error: %v\n", cloud.Hint(err))
	}
	return onScreen(asked.ReplaceAllString(out.String(), "${0}"+typed)), exitCode(err)
}

// asked is a question, behind which a terminal shows what is typed.
var asked = regexp.MustCompile(`Type [^:\n]*: `)

// onScreen returns what is left on a terminal of text whose progress lines were
// overwritten.
func onScreen(text string) string {
	parts := strings.Split(text, "\r\x1b[K")
	for n, part := range parts[:len(parts)-1] {
		parts[n] = part[:strings.LastIndex(part, "\n")+1]
	}
	return strings.Join(parts, "")
}

// exitCode returns the exit code of the program after an error.
func exitCode(err error) int {
	var coded kong.ExitCoder
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return 1
}

// missingPart returns the first line of parts that text does not have behind the ones
// before it, or "".
func missingPart(text, parts string) string {
	for part := range strings.SplitSeq(parts, "\n") {
		_, after, found := strings.Cut(text, part)
		if !found {
			return part
		}
		text = after
	}
	return ""
}

// step is one command line of a person, and what happens before it.
type step struct {
	claim   string
	before  func()
	ctx     context.Context // nil: that of the test
	line    string
	typed   string
	environ string // a change of the environment
	later   time.Duration
	want    string // parts of what is printed, one a line, in their order
	lacks   string // what is not printed, likewise
	code    int
}

// person types command lines.
type person struct {
	*testing.T

	environ  []string
	terminal bool // the person reads what is printed
}

// runs runs the command line of a step, and returns what runs does.
func (p *person) runs(s step) (printed string, code int) {
	p.Helper()
	sh := testShell(append(slices.Clone(p.environ), s.environ))
	sh.Now, sh.Terminal = func() time.Time { return noon().Add(s.later) }, p.terminal
	return runs(cmp.Or(s.ctx, p.Context()), p.T, sh, s.line, s.typed)
}

// file writes a file with these lines, and returns its name.
func (p *person) file(lines ...string) string {
	p.Helper()
	name := filepath.Join(p.TempDir(), "file")
	must(p.T, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return name
}

// steps runs command lines one after the other. None prints who pays, how, or a secret.
func (p *person) steps(steps ...step) {
	p.Helper()
	for _, s := range steps {
		if s.before != nil {
			s.before()
		}
		printed, code := p.runs(s)
		if part := missingPart(printed, s.want); part != "" || code != s.code {
			p.Errorf("%s: orders %s: exit code %d, want %d, and %q in\n%s", s.claim, s.line, code, s.code, part, printed)
		}
		lacks := strings.FieldsFunc(s.lacks, func(r rune) bool { return r == '\n' })
		if !strings.Contains(s.line, "--body") {
			lacks = append(lacks, "CUST987", "canary", pretendKey, "cus_")
		}
		for _, part := range lacks {
			if strings.Contains(printed, part) {
				p.Errorf("%s: orders %s: printed %s:\n%s", s.claim, s.line, part, printed)
			}
		}
	}
}

// deployment is a table in the engine and a pretend Stripe, as the commands and the
// function use them.
type deployment struct {
	*testing.T
	person
	rows

	stripe   *stripetest.Server
	store    *dynamodb.Store
	payments *charge.Payments
	engine   *dynamodbtest.Harness
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	return deployWith(t, stripetest.Options{})
}

func deployWith(t *testing.T, o stripetest.Options) *deployment {
	t.Helper()
	h := dynamodbtest.Open(t)
	o.Key, o.Now = pretendKey, noon
	s, err := stripetest.Serve(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	credentials, err := h.Config.Credentials.Retrieve(t.Context())
	must(t, err)
	environ := environment(
		"STRIPE_API_BASE="+s.URL, "AWS_ENDPOINT_URL_DYNAMODB="+h.Proxy.URL, "ORDERS_TABLE="+h.Table,
		"AWS_REGION="+h.Config.Region, "AWS_ACCESS_KEY_ID="+credentials.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY="+credentials.SecretAccessKey, "AWS_SESSION_TOKEN="+credentials.SessionToken,
	)
	payments := charge.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: s.URL})
	return &deployment{
		T: t, person: person{T: t, environ: environ}, rows: rows{t, h.Client, h.Table}, stripe: s,
		store: dynamodb.New(h.Config, h.Table), payments: payments, engine: h,
	}
}

// create creates a table beside that of the orders, and returns its name.
func (d *deployment) create(name string, definition func(name string) *sdk.CreateTableInput) string {
	d.Helper()
	name = d.table + "-" + name
	must(d.T, dynamodbtest.Create(d.Context(), d.client, definition(name)))
	return name
}

// process processes an order of 39.98 USD once, with a payment method.
func (d *deployment) process(method string, ids ...order.ID) {
	d.Helper()
	for _, id := range ids {
		d.deliver(ordertest.OrderWith(id, method), noon())
	}
}

// deliver processes an order's message at a time. The producer has just sent it, so that
// its age prevents nothing.
func (d *deployment) deliver(o order.Order, now time.Time) {
	p := &order.Processor{
		Store: d.store, Payments: d.payments, Scope: scope, Now: func() time.Time { return now }, ConfirmTime: time.Second,
		TracksStock: d.store.TracksStock(),
	}
	lease := order.Lease{Owner: fmt.Sprint("owner-", o.ID(), now.Unix()), From: now, Until: now.Add(time.Minute)}
	p.Process(d.Context(), o, now, lease)
}

// atStripe returns what changes the Stripe double.
func (d *deployment) atStripe(change func(m *stripetest.Machine, now time.Time) error) func() {
	return func() {
		d.Helper()
		d.stripe.Machine(func(m *stripetest.Machine) { must(d.T, change(m, d.stripe.Now())) })
	}
}

// banks returns what lets the bank pay an intent.
func (d *deployment) banks(intent string) func() {
	return d.atStripe(func(m *stripetest.Machine, now time.Time) error { return m.Settle(now, intent, true) })
}

// givesBack returns what refunds so many cents in Stripe's Dashboard.
func (d *deployment) givesBack(intent string, cents int64) func() {
	return d.atStripe(func(m *stripetest.Machine, now time.Time) error {
		_, err := m.RefundInDashboard(now, intent, cents)
		return err
	})
}

// another creates a second intent of an order at Stripe, confirmed or not.
func (d *deployment) another(id order.ID, scope string, confirm bool) {
	d.Helper()
	d.stripe.Machine(func(m *stripetest.Machine) {
		_, err := incidents.ChargeElsewhere(m, d.stripe.Now(), pretendKey, id, scope, 3998, confirm)
		must(d.T, err)
	})
}

type rows struct {
	*testing.T

	client *sdk.Client
	table  string
}

// of returns the items of an order, its events first and its row last.
func (r rows) of(id order.ID) []dynamodb.Item {
	r.Helper()
	out, err := r.client.Query(r.Context(), &sdk.QueryInput{
		TableName: &r.table, KeyConditionExpression: new("orderId = :id"), ConsistentRead: new(true),
		ExpressionAttributeValues: dynamodb.Item{":id": dynamodb.Text(string(id))},
	})
	must(r.T, err)
	return out.Items
}

func (r rows) put(items ...dynamodb.Item) {
	r.Helper()
	for _, item := range items {
		_, err := r.client.PutItem(r.Context(), &sdk.PutItemInput{TableName: &r.table, Item: item})
		must(r.T, err)
	}
}

func (r rows) remove(items ...dynamodb.Item) {
	r.Helper()
	for _, item := range items {
		key := maps.Clone(item)
		maps.DeleteFunc(key, func(name string, _ types.AttributeValue) bool {
			return !slices.Contains([]string{"orderId", "sk", "sku"}, name)
		})
		_, err := r.client.DeleteItem(r.Context(), &sdk.DeleteItemInput{TableName: &r.table, Key: key})
		must(r.T, err)
	}
}

// edit sets attributes of an order's row; nil removes one.
func (r rows) edit(id order.ID, attributes dynamodb.Item) {
	r.Helper()
	items := r.of(id)
	row := items[len(items)-1]
	for name, value := range attributes {
		if row[name] = value; value == nil {
			delete(row, name)
		}
	}
	r.put(row)
}

// erase deletes an order's row, and keeps its events.
func (r rows) erase(id order.ID) {
	r.Helper()
	items := r.of(id)
	r.remove(items[len(items)-1])
}

// serveQueues serves queues with the settings of infra/terraform, apart from a change. It
// returns the variables that name those of orders.
func serveQueues(
	t *testing.T, o sqstest.Options, change func(orders, dead *sqstest.Settings),
) (environ []string, s *sqstest.Server) {
	t.Helper()
	s, err := sqstest.Serve(o)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	orders, dead := sqstest.DefaultSettings(), sqstest.DefaultSettings()
	orders.Retention, orders.DeadLetters, orders.MaxReceives, dead.Retention = 7*day, "dead", 1000, 14*day
	if change != nil {
		change(&orders, &dead)
	}
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		must(t, m.Create(now, "dead", dead))
		for _, name := range []string{"orders", "refunds", "orders.fifo", "refunds.fifo"} {
			if strings.HasSuffix(name, ".fifo") {
				orders.DeadLetters = ""
			}
			must(t, m.Create(now, name, orders))
		}
	})
	return []string{
		"AWS_ENDPOINT_URL_SQS=" + s.URL, "QUEUE_URL=" + s.QueueURL("orders"), "DEAD_LETTER_QUEUE_URL=" + s.QueueURL("dead"),
	}, s
}

// messagesOf returns the messages in queues, in the order of their posting.
func messagesOf(t *testing.T, s *sqstest.Server, queues ...string) (all []sqstest.Message) {
	t.Helper()
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, name := range queues {
			messages, err := m.Messages(now, name)
			must(t, err)
			all = append(all, messages...)
		}
	})
	return all
}

// sale returns the message of an order of one book that costs so many cents.
func sale(id order.ID, cents int64, method string) string { return incidents.Sale(id, cents, method) }

// sendDead puts a message into the dead-letter queue.
func sendDead(t *testing.T, s *sqstest.Server, d sqstest.Draft) {
	t.Helper()
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Send(now, "dead", d)
		must(t, err)
	})
}

// bodyOf returns the message of the order that process processes.
func bodyOf(id order.ID, method string) string {
	return orders.Encode(ordertest.DraftWith(id, method))
}
