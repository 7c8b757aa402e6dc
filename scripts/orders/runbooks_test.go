package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	gocmp "github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// runbooksPage has a runbook under each heading with a number. TestEveryRunbook runs its
// console blocks. Write their output anew with UPDATE_SESSIONS=1.
const runbooksPage = "../../docs/guides/runbooks.md"

// runbook is how the local system comes into the situation of a runbook, and what happens
// on the way out.
type runbook struct {
	options func(*incident, *system.Options)
	happens func(*incident)
	// events are what happens outside this tool: what AWS, Stripe or their consoles do.
	// The page names each in a comment, where it happens.
	events map[string]func(*incident)
	leads  map[order.ID]order.Status // of every row, at the end
	over   func(*incident, invariants.Books)
}

// TestEveryRunbook puts the local system, which runs the compiled function, into the
// situation of each runbook of the page, runs the commands of the runbook, compares what
// they print, and audits the books afterwards.
func TestEveryRunbook(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	text, err := os.ReadFile(runbooksPage)
	must(t, err)
	runbooks := map[string]runbook{
		"1. An order is stuck":                       stuck(),
		"2. Dead letters arrived":                    deadLettersArrived(),
		"3. Stripe was down":                         stripeDown(),
		"4. A customer says they were charged twice": chargedTwice(),
		"5. The table was restored from a backup":    restoredTable(),
		"6. The Stripe key leaked":                   leakedKey(),
		"7. A producer sent 10,000 wrong orders":     wrongOrders(),
		"8. A bad release was deployed":              badRelease(kit.BuildPatched, kit.Binary),
		"9. A receipt is doubtful": doubtfulReceipt(
			kit.Build(t, "functions/publish"), kit.Build(t, "functions/receipt")),
		"10. A SKU is sold out, or its stock does not add up": soldOut(),
	}
	sections := strings.Split(string(text), "\n## ")
	for n, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		book, found := runbooks[title]
		if !found {
			continue
		}
		delete(runbooks, title)
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			sections[n] = book.run(t, kit, section)
		})
	}
	for title := range runbooks {
		t.Errorf("%s: no heading %q", runbooksPage, title)
	}
	t.Cleanup(func() { // after the parallel subtests
		if os.Getenv("UPDATE_SESSIONS") != "" && !t.Failed() {
			must(t, os.WriteFile(runbooksPage, []byte(strings.Join(sections, "\n## ")), 0o600))
		}
	})
}

// run runs the commands and events of a runbook, and returns the section with what the
// commands printed.
func (b runbook) run(t *testing.T, kit systemtest.Kit, section string) string {
	t.Helper()
	i := &incident{t: t, folder: t.TempDir(), foreign: map[string]bool{}}
	o := unhurried(system.Options{Instances: 1, BatchSize: 1}) // dead letters in the order of their posting
	if b.options != nil {
		b.options(i, &o)
	}
	s, log := kit.Start(t, o)
	i.System, i.log = s, log
	i.running.Store(s)
	b.happens(i)
	r := newRecorder(s)
	parts := regexp.MustCompile("(?ms)^ *```console\\n.*?```$|<!-- .*? -->")
	got := parts.ReplaceAllStringFunc(section, func(part string) string {
		if name, is := strings.CutPrefix(part, "<!-- "); is {
			name = strings.TrimSuffix(name, " -->")
			event, found := b.events[name]
			if !found {
				t.Fatalf("no event %q", name)
			}
			delete(b.events, name)
			event(i)
			return part
		}
		return r.block(part, i.types)
	})
	for name := range b.events {
		t.Errorf("the runbook does not say where %q happens", name)
	}
	if diff := gocmp.Diff(got, section); diff != "" && os.Getenv("UPDATE_SESSIONS") == "" {
		t.Errorf("%s (-got +want):\n%s", runbooksPage, diff)
	}
	b.audit(i)
	return got
}

// audit checks every invariant of the local system at the end of a runbook. What another
// system charged is not this one's.
func (b runbook) audit(i *incident) {
	i.t.Helper()
	i.drain()
	books, err := i.Collect(i.t.Context(), i.posted, i.log)
	must(i.t, err)
	for id, charges := range books.Charges {
		foreign := func(c invariants.Charge) bool { return i.foreign[string(c.Intent)] }
		if slices.ContainsFunc(charges, foreign) {
			books.Charges[id], books.Refunds[id] = slices.DeleteFunc(charges, foreign), nil
		}
	}
	for _, c := range books.Audit() {
		for _, broken := range c.Broken {
			i.t.Errorf("%s (%s): %s", c.ID, c.Claim, broken)
		}
	}
	if n := len(books.Parked); n != 0 {
		i.t.Errorf("%d messages are left in the dead-letter queue, want none", n)
	}
	got := map[order.ID]order.Status{}
	for r, err := range i.Orders(i.t.Context()) {
		must(i.t, err)
		got[r.OrderID] = r.Status
	}
	if diff := gocmp.Diff(got, b.leads); diff != "" {
		i.t.Errorf("orders (-got +want):\n%s", diff)
	}
	if b.over != nil {
		b.over(i, books)
	}
}

// incident is a local system in the situation of a runbook.
type incident struct {
	*system.System
	t       *testing.T
	running atomic.Pointer[system.System] // for what runs while Start has not returned
	log     *system.Log
	posted  []invariants.Message // the messages that the runbook must not discard
	foreign map[string]bool      // the intents that another system charged
	stopped bool                 // messages wait, so no command waits for an empty queue
	folder  string               // of the files that commands write
}

// types runs one command at a terminal. The clock is that of Stripe and the queue, a
// second later, because the times of PaymentIntents have whole seconds.
func (i *incident) types(c command) string {
	i.t.Helper()
	environ := i.OperatorEnv()
	for _, v := range environ {
		if value, is := strings.CutPrefix(v, c.like+"="); is && c.variable != "" {
			environ = append(environ, c.variable+"="+value)
		}
	}
	sh := testShell(environ)
	sh.Terminal, sh.Now = true, func() time.Time { return i.Stripe.Now().Add(time.Second) }
	printed, _ := runs(i.t, sh, strings.ReplaceAll(c.line, "--save ", "--save "+i.folder+"/"), c.typed)
	i.drain()
	return printed
}

// post sends messages and waits until each is settled or parked.
func (i *incident) post(bodies ...string) {
	i.t.Helper()
	decoder := jobs.NewDecoder()
	for n, id := range i.send(bodies...) {
		i.posted = append(i.posted, invariants.NewMessage(decoder, bodies[n], id))
	}
	i.drain()
}

// send sends messages.
func (i *incident) send(bodies ...string) (ids []string) {
	i.t.Helper()
	drafts := make([]sqstest.Draft, len(bodies))
	for n, body := range bodies {
		drafts[n].Body = body
	}
	ids, err := i.Post(drafts)
	must(i.t, err)
	return ids
}

// drain waits until the queue is empty, unless messages wait for the end of an outage.
func (i *incident) drain() {
	i.t.Helper()
	if i.stopped {
		return
	}
	ctx, cancel := i.Function.UntilExit(i.t.Context())
	defer cancel()
	must(i.t, drained(ctx, i.System))
}

// outage makes every message wait from now on.
func (i *incident) outage(faults ...stripetest.Fault) {
	i.stopped = true
	for _, f := range faults {
		i.Stripe.Fail(f)
	}
}

// ends ends an outage. The messages are delivered again.
func (i *incident) ends() {
	i.t.Helper()
	i.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
	i.Advance(time.Hour)
	i.stopped = false
	i.drain()
}

// waits waits until the rows of orders show why their last attempt failed.
func (i *incident) waits(ids ...order.ID) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, id := range ids {
		for {
			if r, err := i.Store.Load(ctx, id); err == nil && r.LastError != "" && r.Owner == "" {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				i.t.Fatalf("order %s: no attempt failed: %v", id, ctx.Err())
			}
		}
	}
}

// stops stops processing, resumes starts it again.
func (i *incident) stops() {
	i.t.Helper()
	i.stopped = true
	must(i.t, i.StopProcessing())
}

func (i *incident) resumes() {
	i.t.Helper()
	must(i.t, i.ResumeProcessing(i.t.Context()))
	i.stopped = false
	i.drain()
}

// intent returns the intent of an order's row.
func (i *incident) intent(id order.ID) string {
	i.t.Helper()
	r, err := i.Store.Load(i.t.Context(), id)
	must(i.t, err)
	return string(r.Intent)
}

// slowRetries lets a message wait for a minute after its first failure, so that a test
// sees one attempt.
func slowRetries(_ *incident, o *system.Options) { o.Env["FIRST_DELAY"] = "1m" }

// stuck kills the function twice, each time with the message lost as well: once when
// Stripe has charged the order, once when it has not.
func stuck() runbook {
	at := map[string]stripetest.Endpoint{"ORD-1001": stripetest.Confirm, "ORD-1002": stripetest.Create}
	kills := func(i *incident, o *system.Options) {
		o.FunctionTimeout, o.Visibility, o.Env = 0, 0, nil // the shortest lease
		o.AfterStripe = func(c stripetest.Call) {
			if at[c.OrderID] != c.Endpoint || i.running.Load() == nil {
				return
			}
			delete(at, c.OrderID)
			i.running.Load().Purge(func(m sqstest.Message) bool { return strings.Contains(m.Body, c.OrderID) })
			i.running.Load().Function.Kill(nil)
		}
	}
	return runbook{
		options: kills,
		happens: func(i *incident) {
			i.post(sale("ORD-1001", 2400, pays))
			i.post(sale("ORD-1002", 2400, pays))
			i.post(sale("ORD-1003", 2400, asks))
			i.Advance(2 * time.Hour) // the workers' leases are over
		},
		leads: map[order.ID]order.Status{
			"ORD-1001": order.Paid, "ORD-1002": order.Paid, "ORD-1003": order.Canceled,
		},
	}
}

// deadLettersArrived has a message for each verdict but look. The queue's retention is so
// short that an order that meets an outage is parked at once.
func deadLettersArrived() runbook {
	return runbook{
		options: func(_ *incident, o *system.Options) {
			o.Env["FIRST_DELAY"], o.Env["QUEUE_RETENTION"] = "1m", "24h0m0.001s"
		},
		happens: func(i *incident) {
			i.Stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
			i.post(sale("ORD-2001", 2400, pays))
			i.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
			i.send(sale("ORD-2002", 2400, missing))
			i.drain()
			i.post(sale("ORD-2003", 2400, pays))
			i.send(sale("ORD-2003", 9900, pays))
			i.drain()
			i.post(sale("ORD-2004", 2400, declines))
			i.types(command{line: "cancel ORD-2004 --yes"})
			i.send(`{"type":"refund","orderId":"ORD-2004","refundId":"R-1","amount":500,"reason":"duplicate"}`)
			i.send(`{"orderId":"ORD-2005","currency":"usd"}`)
			i.drain()
		},
		leads: map[order.ID]order.Status{
			"ORD-2001": order.Paid, "ORD-2002": order.Canceled, "ORD-2003": order.Paid, "ORD-2004": order.Canceled,
		},
	}
}

// stripeDown has orders that Stripe did not answer, one of them after it was charged.
func stripeDown() runbook {
	return runbook{
		options: slowRetries,
		happens: func(i *incident) {
			i.outage(
				stripetest.Fault{Kind: stripetest.Unavailable, OrderID: "ORD-3001", Times: -1},
				stripetest.Fault{Kind: stripetest.Unavailable, OrderID: "ORD-3002", Times: -1},
				stripetest.Fault{Kind: stripetest.LoseResponse, OrderID: "ORD-3003", On: stripetest.Confirm, Times: -1},
			)
			i.post(sale("ORD-3001", 2400, pays), sale("ORD-3002", 2400, pays), sale("ORD-3003", 2400, pays))
			i.waits("ORD-3001", "ORD-3002", "ORD-3003")
		},
		events: map[string]func(*incident){"Stripe answers again": (*incident).ends},
		leads: map[order.ID]order.Status{
			"ORD-3001": order.Paid, "ORD-3002": order.Paid, "ORD-3003": order.Paid,
		},
	}
}

// chargedTwice has a customer who ordered twice, one whose payment only holds the money,
// and one whom another system charged as well.
func chargedTwice() runbook {
	var other string
	return runbook{
		happens: func(i *incident) {
			i.post(
				sale("ORD-4001", 2400, pays), sale("ORD-4002", 2400, pays),
				sale("ORD-4003", 2400, asks), sale("ORD-4004", 2400, pays),
			)
			i.Stripe.Machine(func(m *stripetest.Machine) {
				other = chargeElsewhere(i.t, m, i.Stripe.Now(), system.PretendKey, "ORD-4004", system.Scope, 2400, true)
			})
			i.foreign[other] = true
		},
		events: map[string]func(*incident){"the other payment is refunded in the Dashboard": func(i *incident) {
			i.Stripe.Machine(func(m *stripetest.Machine) {
				_, err := m.RefundInDashboard(i.Stripe.Now(), other, 2400)
				must(i.t, err)
			})
		}},
		leads: map[order.ID]order.Status{
			"ORD-4001": order.Paid, "ORD-4002": order.Refunded, "ORD-4003": order.ActionRequired, "ORD-4004": order.Paid,
		},
	}
}

// restoredTable restores the table to a moment before one order was paid and another one
// arrived. A message of each is delivered again afterwards, when Stripe has forgotten
// every idempotency key.
func restoredTable() runbook {
	bodies := []string{
		sale("ORD-5001", 2400, pays), sale("ORD-5002", 84900, takes), sale("ORD-5003", 2400, pays),
		sale("ORD-5004", 2400, pays),
	}
	var closed []system.Item
	return runbook{
		happens: func(i *incident) {
			i.post(bodies[:2]...)
			backup := i.items()
			i.Stripe.Machine(func(m *stripetest.Machine) { must(i.t, m.Settle(i.Stripe.Now(), i.intent("ORD-5002"), true)) })
			i.types(command{line: "refresh ORD-5002"})
			i.post(bodies[2])
			i.begin(bodies[3])
			i.types(command{line: "cancel ORD-5004 --yes"})
			i.stops()
			i.post(bodies...)
			i.Advance(48 * time.Hour)
			i.Stripe.Machine(func(m *stripetest.Machine) { m.ForgetKeys() })
			closed = i.closed()
			i.rows().remove(i.items()...)
			i.rows().put(backup...)
		},
		events: map[string]func(*incident){
			"the closed orders are copied from the damaged table": func(i *incident) { i.copies(closed) },
			"processing is resumed":                               (*incident).resumes,
		},
		leads: map[order.ID]order.Status{
			"ORD-5001": order.Paid, "ORD-5002": order.Paid, "ORD-5003": order.Paid, "ORD-5004": order.Canceled,
		},
	}
}

// begin claims an order as a worker does that dies before it prepares a payment.
func (i *incident) begin(body string) {
	i.t.Helper()
	job, err := jobs.NewDecoder().Decode(body)
	must(i.t, err)
	now := i.Stripe.Now()
	_, err = order.Begin(i.t.Context(), i.Store, job.Order, order.Lease{Owner: "died", From: now, Until: now}, nil)
	must(i.t, err)
}

// documented returns the expression of an option of the commands that copy the closed
// orders, with its names and values.
func (i *incident) documented(option string) (expression *string, names map[string]string, values system.Item) {
	i.t.Helper()
	guide, err := os.ReadFile(runbooksPage)
	must(i.t, err)
	found := regexp.MustCompile("(?s)" + option + ` [\\\s]*"([^"]+)"[\\\s]*--expression-attribute-names '(.*?)'` +
		`[\\\s]*--expression-attribute-values[\\\s]*'(.*?)'`).FindSubmatch(guide)
	if found == nil {
		i.t.Fatalf("%s has no %s", runbooksPage, option)
	}
	var texts map[string]struct{ S string }
	must(i.t, json.Unmarshal(found[2], &names))
	must(i.t, json.Unmarshal(found[3], &texts))
	values = system.Item{}
	for name, text := range texts {
		values[name] = &types.AttributeValueMemberS{Value: text.S}
	}
	return new(string(found[1])), names, values
}

// closed returns the items of the orders that the documented scan selects, each row
// before its events.
func (i *incident) closed() (all []system.Item) {
	i.t.Helper()
	filter, names, values := i.documented("--filter-expression")
	out, err := i.rows().client.Scan(i.t.Context(), &sdk.ScanInput{
		TableName: &i.Options.Table, FilterExpression: filter, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	must(i.t, err)
	for _, row := range out.Items {
		items := i.rows().of(order.ID(system.Text(row, "orderId")))
		slices.Reverse(items)
		all = append(all, items...)
	}
	return all
}

// copies puts items under the documented condition.
func (i *incident) copies(items []system.Item) {
	i.t.Helper()
	condition, names, values := i.documented("--condition-expression")
	for _, item := range items {
		_, err := i.rows().client.PutItem(i.t.Context(), &sdk.PutItemInput{
			TableName: &i.Options.Table, Item: item, ConditionExpression: condition,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		})
		must(i.t, err)
	}
}

func (i *incident) items() (all []system.Item) {
	i.t.Helper()
	for item, err := range i.Items(i.t.Context(), i.Options.Table) {
		must(i.t, err)
		all = append(all, item)
	}
	return all
}

// leakedKey has a thief who gave money of an order back. The key is rolled before the
// function has the new one.
func leakedKey() runbook {
	return runbook{
		options: slowRetries,
		happens: func(i *incident) {
			i.post(sale("ORD-6001", 2400, pays))
			i.Stripe.Machine(func(m *stripetest.Machine) {
				_, err := m.RefundInDashboard(i.Stripe.Now(), i.intent("ORD-6001"), 2000)
				must(i.t, err)
			})
		},
		events: map[string]func(*incident){
			"the old key expires": func(i *incident) {
				i.outage(stripetest.Fault{Kind: stripetest.Unauthorized, Times: -1})
				i.post(sale("ORD-6002", 2400, pays))
				i.waits("ORD-6002")
			},
			"the new key is deployed": (*incident).ends,
		},
		leads: map[order.ID]order.Status{"ORD-6001": order.PartiallyRefunded, "ORD-6002": order.Paid},
	}
}

// wrongOrders represents 10,000 orders with 60: 20 that no release can read, 5 that were
// charged a hundredfold, and 35 of the same kind that wait behind them, among them two
// right ones.
func wrongOrders() runbook {
	const charged, waiting, unreadable = 5, 35, 20
	wrong := func(n int) order.ID { return order.ID(fmt.Sprintf("WRONG-%03d", n)) }
	want := map[order.ID]order.Status{"ORD-7001": order.Paid, "ORD-7002": order.Paid}
	return runbook{
		happens: func(i *incident) {
			for n := range unreadable {
				i.send(fmt.Sprintf(`{"orderId":%q,"currency":"usd"}`, wrong(n+100)))
			}
			for n := range charged {
				i.post(sale(wrong(n), 240000, pays))
				want[wrong(n)] = order.Refunded
			}
			i.stops()
			i.post(sale("ORD-7001", 2400, pays), sale("ORD-7002", 2400, pays))
			for n := range waiting {
				body := sale(wrong(n+charged), 240000, pays)
				if n%2 == 0 {
					body = strings.ReplaceAll(body, ":", ": ") // another program's JSON
				}
				i.send(body)
			}
		},
		events: map[string]func(*incident){
			"processing is resumed": (*incident).resumes,
			"the refunds are posted": func(i *incident) {
				for r, err := range i.Orders(i.t.Context()) {
					must(i.t, err)
					if r.Total.Amount == 240000 && r.Status == order.Paid {
						i.post(fmt.Sprintf(`{"type":"refund","orderId":%q,"refundId":"wrong-price","amount":240000,`+
							`"reason":"requested_by_customer"}`, r.OrderID))
					}
				}
			},
		},
		leads: want,
		over: func(i *incident, b invariants.Books) {
			for id, o := range b.Orders {
				if o.Status == order.Refunded && o.Left != 0 {
					i.t.Errorf("%s: %d left, want all refunded", id, o.Left)
				}
			}
		},
	}
}

// badRelease deploys a release that reads no order in dollars.
func badRelease(build func(t testing.TB, file, before, after string) string, lastGood string) runbook {
	return runbook{
		happens: func(i *incident) {
			bad := build(i.t, "../../domain/order/order.go", "check(ValidCurrency(d.Currency)", `check(d.Currency == "eur"`)
			i.post(sale("ORD-8001", 2400, pays))
			must(i.t, i.Function.Replace(bad))
			i.post(sale("ORD-8002", 2400, pays), sale("ORD-8003", 2400, pays))
		},
		events: map[string]func(*incident){"the last good version is live": func(i *incident) {
			must(i.t, i.Function.Replace(lastGood))
		}},
		leads: map[order.ID]order.Status{"ORD-8001": order.Paid, "ORD-8002": order.Paid, "ORD-8003": order.Paid},
	}
}

// doubtfulReceipt kills the receipt function twice: once when SES has accepted the
// e-mail, whose events are lost, and once before the request arrives.
func doubtfulReceipt(publish, receipts string) runbook {
	const sent, unsent = "ORD-9001", "ORD-9002"
	var killed atomic.Int64 // requests
	return runbook{
		options: func(i *incident, o *system.Options) {
			o.Publish, o.Receipt = publish, receipts
			o.FunctionTimeout, o.Visibility = 6*time.Second, 7*time.Second // the test waits for two leases
			o.Env = map[string]string{"STRIPE_TIMEOUT": "2s", "SES_TIMEOUT": "2s", "ORDER_BUDGET": "5s"}
			o.BeforeMail = func(number int) {
				if number == 2 {
					i.kill(&killed)
				}
			}
			o.AfterMail = func(number int) {
				if number == 1 {
					i.kill(&killed)
				}
			}
			o.LoseMailEvent = func(event json.RawMessage) bool {
				return strings.Contains(string(event), system.MailTag(sent))
			}
		},
		happens: func(i *incident) {
			i.post(sale(sent, 2400, pays))
			i.Mail.Fail(sestest.Fault{Kind: sestest.LoseBefore})
			i.post(sale(unsent, 2400, pays))
		},
		leads: map[order.ID]order.Status{sent: order.Paid, unsent: order.Paid},
		over: func(i *incident, b invariants.Books) {
			if len(b.Mail) != 2 || len(b.Doubts) != 0 || killed.Load() != 2 {
				i.t.Errorf("got %d e-mails, %d doubts and %d kills, want 2, none and 2", len(b.Mail), len(b.Doubts), killed.Load())
			}
		},
	}
}

// kill kills the receipt function.
func (i *incident) kill(count *atomic.Int64) {
	if s := i.running.Load(); s != nil {
		count.Add(1)
		s.Receipt.Kill(nil)
	}
}

// soldOut has two records on vinyl: one is sold, and a customer who must authenticate
// holds the other one. Of another SKU, somebody deletes the item.
func soldOut() runbook {
	of := func(id order.ID, sku, method string) string {
		return strings.ReplaceAll(sale(id, 2400, method), "BOOK", sku)
	}
	return runbook{
		options: func(_ *incident, o *system.Options) { o.Stock = map[string]int64{"VINYL": 2, "POSTER": 5} },
		happens: func(i *incident) {
			i.post(of("ORD-9101", "VINYL", pays))
			i.post(of("ORD-9102", "VINYL", asks))
			i.post(of("ORD-9103", "VINYL", pays), of("ORD-9104", "POSTER", asks))
			stock := i.rows()
			stock.table = i.Stock
			stock.remove(system.Item{"sku": dynamodb.Text("POSTER")})
		},
		events: map[string]func(*incident){
			"the customer orders again": func(i *incident) {
				i.Options.Stock["VINYL"] += 10 // came in, as the audit must know
				i.post(of("ORD-9105", "VINYL", pays))
			},
		},
		leads: map[order.ID]order.Status{
			"ORD-9101": order.Paid, "ORD-9102": order.Canceled, "ORD-9103": order.OutOfStock,
			"ORD-9104": order.Canceled, "ORD-9105": order.Paid,
		},
	}
}

// rows returns the table of orders, as an administrator sees it.
func (i *incident) rows() rows {
	client := sdk.NewFromConfig(dynamodbtest.Config(i.Engine.Endpoint, func(string) string { return "" }))
	return rows{i.t, client, i.Options.Table}
}

// TestTheRunbookOfDeadLettersHasEveryReason compares the table of the runbook with the
// reasons for which a message is parked.
func TestTheRunbookOfDeadLettersHasEveryReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(runbooksPage)
	must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## 2. ")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, r := range slices.Concat(order.Reasons(), sqs.Reasons(), refund.Reasons()) {
		parks := !slices.Contains([]order.Reason{
			order.ReasonSettled, order.ReasonDuplicate, sqs.ReasonParkFailed, refund.ReasonRefused,
		}, r)
		if has := regexp.MustCompile("(?m)^ *\\|[^|]*`" + string(r) + "`").MatchString(section); has != parks {
			t.Errorf("reason %s: in the table %v, want %v", r, has, parks)
		}
	}
}

// TestThePagesQuoteWhatTheProgramsPrint compares the log lines, errors and statuses that
// the pages for operators quote with the texts of the sources. A phrase that begins with
// a command is not one of them.
func TestThePagesQuoteWhatTheProgramsPrint(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	must(t, fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.Name() == "node_modules", err == nil && name == "build":
			return fs.SkipDir
		case err != nil, !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return err
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		sources.Write(text)
		return err
	}))
	found := 0
	for _, page := range []string{runbooksPage, "../../docs/guides/operate.md"} {
		text, err := os.ReadFile(page)
		must(t, err)
		prose := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(string(text), "")
		commands := regexp.MustCompile(`^(audit|aws|make|orders|redrive|discard|terraform) `)
		for _, m := range regexp.MustCompile("`([a-z]+( [a-z-]+)+)`").FindAllStringSubmatch(prose, -1) {
			phrase := strings.TrimPrefix(m[1], "refund ") // of a mismatch: refund and the field
			if commands.MatchString(phrase) {
				continue
			}
			if found++; !strings.Contains(sources.String(), phrase) {
				t.Errorf("%s quotes %q, which no program prints", page, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d quotes, want more", found)
	}
}
