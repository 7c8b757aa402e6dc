package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// till is an order of 39.98 USD with its refunds, in memory, and the function that makes
// them.
type till struct {
	*testing.T

	orders *ordertest.Memory
	claims *refundtest.Memory
	bank   *refundtest.Bank
	posted []string
	now    time.Time
	worker int
}

func newTill(t *testing.T, card ordertest.Card) *till {
	t.Helper()
	w := &till{T: t, orders: new(ordertest.Memory), now: noon()}
	w.claims = refundtest.NewMemory(w.orders)
	intents := &ordertest.Bank{Scope: scope}
	w.bank = &refundtest.Bank{Intents: intents, Now: w.clock, KeyLife: 24 * time.Hour}
	process(t, w.orders, intents, "ORD-1", ordertest.PaymentMethod(card))
	return w
}

func (w *till) clock() time.Time { return w.now }

// deliver makes a refund as the function does.
func (w *till) deliver(ctx context.Context, r refund.Request) {
	w.worker++
	p := refund.Processor{Claims: w.claims, Provider: w.bank, Scope: scope, Now: w.clock, CreateTime: time.Second}
	p.Process(ctx, r, order.Lease{Owner: fmt.Sprint("worker ", w.worker), From: w.now, Until: w.now.Add(time.Minute)})
}

// send posts a message, which the function handles at once.
func (w *till) send(ctx context.Context, _ order.ID, body string) error {
	w.posted = append(w.posted, body)
	job, err := jobs.NewDecoder().Decode(body)
	must(w.T, err)
	w.deliver(ctx, job.Refund)
	return nil
}

// run runs `orders refund` and returns what it printed.
func (w *till) run(m makeRefund, typed string) (string, error) {
	var out strings.Builder
	m.Order, m.Reason = "ORD-1", "requested_by_customer"
	if m.Limit == 0 {
		m.Limit = time.Minute
	}
	c := cashier{
		Shell:   shell.Shell{In: strings.NewReader(typed), Out: &out, Now: w.clock},
		account: w.claims.Account, send: w.send, every: time.Millisecond,
	}
	err := c.refund(w.Context(), m)
	return out.String(), err
}

// made returns the amounts that went back.
func (w *till) made() (all []int64) {
	for _, r := range w.bank.Refunds() {
		all = append(all, r.Total.Amount)
	}
	return all
}

// The person repeats a command, or a colleague does: the money goes back once.
func TestRefund(t *testing.T) {
	t.Parallel()
	w := newTill(t, ordertest.Pays)
	for _, step := range []struct {
		claim   string
		command makeRefund
		typed   string
		printed []string
		err     error
		made    []int64
	}{
		{"a word that is not the order id", makeRefund{Amount: 1000}, "yes\n", []string{
			"charged    39.98 USD\nrefunded   0.00 USD\nleft       39.98 USD\n",
			"Refund operator-1000 gives 10.00 USD back. Type the order id to make it: ",
		}, shell.ErrNotConfirmed, nil},
		{"the end of the input", makeRefund{Amount: 1000}, "", nil, shell.ErrNotConfirmed, nil},
		{"the order id", makeRefund{Amount: 1000}, "ORD-1\n", []string{
			"Posted refund operator-1000, waiting up to 1m0s ...\n  succeeded, re_1, requested_by_customer\n",
			"order      ORD-1, partially_refunded\ncharged    39.98 USD\nrefunded   10.00 USD\nleft       29.98 USD\n" +
				"refund     10.00 USD, operator-1000, succeeded, re_1, requested_by_customer\n",
		}, nil, []int64{1000}},
		{"the same command again", makeRefund{Amount: 1000, Yes: true}, "", []string{
			"nothing posted: refund operator-1000 was made before; another refund needs another --refund-id\n",
		}, nil, []int64{1000}},
		{"the same amount under another id", makeRefund{Amount: 1000, RefundID: "mine", Yes: true}, "", []string{
			"WARNING: refund operator-1000 gives 10.00 USD back as well: it is succeeded\n",
		}, nil, []int64{1000, 1000}},
		{"that id with another amount", makeRefund{Amount: 500, RefundID: "mine", Yes: true}, "", nil, errIDTaken, []int64{1000, 1000}},
		{"more than is left", makeRefund{Amount: 1999, Yes: true}, "", nil, &refund.ExceedsError{Amount: 1999, Left: 1998}, []int64{1000, 1000}},
		{"all that is left", makeRefund{All: true, Yes: true}, "", []string{"left       0.00 USD\n"}, nil, []int64{1000, 1000, 1998}},
		{"all that is left again", makeRefund{All: true, Yes: true}, "", []string{
			"nothing posted: refund operator-all was made before",
		}, nil, []int64{1000, 1000, 1998}},
		{"all under another id", makeRefund{All: true, RefundID: "rest", Yes: true}, "", nil, errNothingLeft, []int64{1000, 1000, 1998}},
		{"an invalid id", makeRefund{Amount: 1, RefundID: "a b", Yes: true}, "", nil, &order.InvalidError{}, []int64{1000, 1000, 1998}},
	} {
		printed, err := w.run(step.command, step.typed)
		if step.err == nil && err != nil || step.err != nil && !sameRefundError(err, step.err) {
			t.Errorf("%s: got error %v, want %v", step.claim, err, step.err)
		}
		for _, want := range step.printed {
			if !strings.Contains(printed, want) {
				t.Errorf("%s: printed\n%s\nwant %q in it", step.claim, printed, want)
			}
		}
		if diff := cmp.Diff(w.made(), step.made); diff != "" {
			t.Errorf("%s: refunds at Stripe (-got +want):\n%s", step.claim, diff)
		}
	}
}

func TestTheGuideShowsWhatRefundPrints(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/refund.md")
	must(t, err)
	printed, err := newTill(t, ordertest.Pays).run(makeRefund{Amount: 1999, Limit: 2 * time.Minute}, "ORD-1\n")
	must(t, err)
	want := strings.Replace(printed, "to make it: ", "to make it: ORD-1\n", 1) // what the person types
	if !strings.Contains(string(guide), strings.TrimSpace(want)) {
		t.Errorf("got another text in the guide, want\n%s", want)
	}
}

// sameRefundError compares an error with a type by its text or type, and others by
// identity.
func sameRefundError(got, want error) bool {
	if _, invalid := errors.AsType[*order.InvalidError](want); invalid {
		_, invalid = errors.AsType[*order.InvalidError](got)
		return invalid
	}
	return errors.Is(got, want) || got != nil && got.Error() == want.Error()
}

func TestARefundThatIsNotMadeIsAnError(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card    ordertest.Card
		arrange func(*till)
		want    string
		posts   int
	}{
		"an order that was not charged": {
			card: ordertest.Declines, want: "order is declined: nothing can be refunded",
		},
		"a disputed charge": {
			card: ordertest.Pays, arrange: func(w *till) { w.bank.Dispute("pi_1") }, posts: 1,
			want: "not refunded: refund operator-1000 is refused (charge_disputed): another try needs another --refund-id",
		},
		"a refund that the bank returned": {
			card: ordertest.Pays, arrange: func(w *till) {
				_, err := w.run(makeRefund{Amount: 1000, Yes: true}, "")
				must(w.T, err)
				w.bank.Return()
				f := refund.Refresher{Records: w.claims, Provider: w.bank, Scope: scope, Now: w.clock}
				_, err = f.Refresh(w.Context(), "ORD-1")
				must(w.T, err)
				w.posted = nil
			},
			want: "not refunded: refund operator-1000 is failed (lost_or_stolen_card): another try needs another --refund-id",
		},
		"a refund that is unknown": {
			card: ordertest.Pays, arrange: func(w *till) { w.lose(); w.posted = nil },
			want: "not refunded: refund operator-1000 may have been made: see `orders refund resolve --help`",
		},
		"a refund whose message is lost": {
			card: ordertest.Pays, arrange: func(w *till) { w.bank.Fail(refundtest.Read, ordertest.ReturnsUnavailable) }, posts: 1,
			want: "refund operator-1000: not settled after 20ms: open, requested_by_customer, attempt 1, last error provider_unavailable: " +
				"run the same command again, or look for the message in the dead-letter queue",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newTill(t, tt.card)
			if tt.arrange != nil {
				tt.arrange(w)
			}
			printed, err := w.run(makeRefund{Amount: 1000, Yes: true, Limit: 20 * time.Millisecond}, "")
			if err == nil || err.Error() != tt.want || len(w.posted) != tt.posts {
				t.Errorf("got error %v and %d messages, want %s and %d; printed\n%s", err, len(w.posted), tt.want, tt.posts, printed)
			}
		})
	}
}

// lose leaves refund operator-1000 unknown: its request was lost, and Stripe's key
// forgotten.
func (w *till) lose() refund.Request {
	w.Helper()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "operator-1000", Amount: 1000, Reason: "requested_by_customer"})
	must(w.T, err)
	w.bank.Fail(refundtest.Create, ordertest.LosesRequest)
	w.deliver(w.Context(), r)
	w.now = w.now.Add(25 * time.Hour)
	w.deliver(w.Context(), r)
	a, err := w.claims.Account(w.Context(), "ORD-1")
	must(w.T, err)
	if i, _ := a.Item(r.ID()); i.Status != refund.Unknown {
		w.Fatalf("got %+v, want it unknown", i)
	}
	return r
}

// The first command was interrupted before the function made the refund.
func TestTheSameCommandContinuesAnOpenRefund(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{true, false} {
		w := newTill(t, ordertest.Pays)
		command := makeRefund{Amount: 1000, All: all, Yes: true, Limit: 20 * time.Millisecond}
		w.bank.Fail(refundtest.Read, ordertest.ReturnsUnavailable)
		if _, err := w.run(command, ""); err == nil {
			t.Error("got no error of the first command, want one")
		}
		if printed, err := w.run(command, ""); err != nil || len(w.made()) != 1 || w.posted[0] != w.posted[1] ||
			strings.Contains(printed, "WARNING") { // it is the same refund, and not one beside it
			t.Errorf("got %v, refunds %v and messages %q, want one refund\n%s", err, w.made(), w.posted, printed)
		}
	}
}

// A refund that gave nothing back is no reason to think twice about another one.
func TestRefundWarnsOfNoneThatIsOver(t *testing.T) {
	t.Parallel()
	w := newTill(t, ordertest.Pays)
	w.bank.Dispute("pi_1")
	if _, err := w.run(makeRefund{Amount: 1000, Yes: true}, ""); err == nil {
		t.Error("got no error, want the refund refused")
	}
	w.bank.WinDispute("pi_1")
	printed, err := w.run(makeRefund{Amount: 1000, RefundID: "again", Yes: true}, "")
	if err != nil || strings.Contains(printed, "WARNING") {
		t.Errorf("got %v and printed\n%s\nwant no warning", err, printed)
	}
}

func TestRefundReadsItsCommandLine(t *testing.T) {
	t.Parallel()
	const reason = "--reason=duplicate"
	for _, tt := range []struct {
		line []string
		want string // the chosen command, or the error
	}{
		{[]string{"refund", "ORD-1", "--amount", "1999", reason}, "refund make <order>"},
		{[]string{"refund", "ORD-1", "--all", reason, "--refund-id", "R-1", "--yes"}, "refund make <order>"},
		{[]string{"refund", "resolve", "ORD-1", "R-1", "--made", "re_1"}, "refund resolve <order> <refund>"},
		{[]string{"refund", "resolve", "ORD-1", "R-1", "--not-made"}, "refund resolve <order> <refund>"},
		{[]string{"refund", "ORD-1", reason}, "missing flags: --amount=N or --all"},
		{[]string{"refund", "ORD-1", "--all", "--amount", "1", reason}, "--amount and --all can't be used together"},
		{[]string{"refund", "ORD-1", "--all"}, "missing flags: --reason=R"},
		{
			[]string{"refund", "ORD-1", "--all", "--reason=mine"},
			`--reason must be one of "duplicate","fraudulent","requested_by_customer" but got "mine"`,
		},
		{[]string{"refund", "resolve", "ORD-1", "R-1"}, "missing flags: --made=RE_ID or --not-made"},
	} {
		parser, err := kong.New(new(commands), kong.Writers(io.Discard, io.Discard))
		must(t, err)
		got, err := parser.Parse(tt.line)
		if err != nil && err.Error() != tt.want || err == nil && got.Command() != tt.want {
			t.Errorf("%q: got %v, %v, want %s", tt.line, got, err, tt.want)
		}
	}
}

func TestTheHelpOfRefundHasAnExample(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"refund"}, {"refund", "make"}, {"refund", "resolve"}} {
		var out strings.Builder
		parser, err := kong.New(new(commands), kong.Name("orders"), kong.Writers(&out, io.Discard), kong.Exit(func(int) {}))
		must(t, err)
		_, _ = parser.Parse(append(args, "--help")) // it goes on after Exit, and misses the arguments
		if !regexp.MustCompile(`orders refund (resolve ORD-1001 \S+|ORD-1001) --`).MatchString(out.String()) {
			t.Errorf("%q: got no example in\n%s", args, &out)
		}
	}
}

// On a FIFO queue, the messages of an order have one group, and none is dropped as a
// duplicate of another.
func TestARefundIsPostedToTheGroupOfItsOrder(t *testing.T) {
	t.Parallel()
	s, err := sqstest.Serve(sqstest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	settings := sqstest.DefaultSettings()
	settings.FIFO = true
	s.Machine(func(m *sqstest.Machine, now time.Time) { err = m.Create(now, "orders.fifo", settings) })
	must(t, err)
	c, err := config.Read[cloud.QueueEnv](environment("AWS_ENDPOINT_URL_SQS="+s.URL, "QUEUE_URL="+s.QueueURL("orders.fifo")))
	must(t, err)
	for _, deduplication := range []string{"one", "two"} {
		must(t, cloud.NewQueue(awsOf(t, s.URL), c.Queue).SendAs(t.Context(), "ORD-1", deduplication, "{}"))
	}
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		all, err := m.Messages(now, "orders.fifo")
		if err != nil || len(all) != 2 || all[1].Group != "ORD-1" {
			t.Errorf("got %+v, %v, want two messages of the group ORD-1", all, err)
		}
	})
}

// The table is the engine's and the queue is pretend. The bank made one refund.
func TestRefundCommands(t *testing.T) {
	t.Parallel()
	d, queue := deploy(t), newOrderQueue(t, "")
	bank := &refundtest.Bank{Intents: &ordertest.Bank{Scope: scope}, Now: noon, KeyLife: 24 * time.Hour}
	process(t, d.store, bank.Intents, "ORD-1", ordertest.PaymentMethod(ordertest.Pays))
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "operator-1000", Amount: 1000, Reason: "duplicate"})
	must(t, err)
	p := refund.Processor{Claims: dynamodb.NewRefunds(d.store), Provider: bank, Scope: scope, Now: noon, CreateTime: time.Second}
	p.Process(t.Context(), r, order.Lease{Owner: "worker", From: noon(), Until: noon().Add(time.Minute)})
	environ := append(d.environ, "AWS_ENDPOINT_URL_SQS="+queue.URL, "QUEUE_URL="+queue.QueueURL("orders"))
	give := makeRefund{Order: "ORD-1", Amount: 1000, Reason: "duplicate", Yes: true, Limit: time.Millisecond}
	other, missing := give, give
	other.RefundID, missing.Order = "R-2", "ORD-2"
	for _, step := range []struct {
		claim string
		run   interface {
			Run(context.Context, shell.Shell) error
		}
		printed, err string
		posted       []string
	}{
		{claim: "show prints the refunds", run: show{"ORD-1"}, err: "at Stripe", printed: "" +
			"refund operator-1000 succeeded, 10.00 USD, order partially_refunded\n" +
			"refunded   10.00 USD\nleft       29.98 USD\nrefund     10.00 USD, operator-1000, succeeded, re_1, duplicate\n"},
		{claim: "a refund that was made", run: give, printed: "nothing posted: refund operator-1000 was made before"},
		{claim: "another refund", run: other, printed: "Posted refund R-2", err: "refund R-2: not settled after 1ms", posted: []string{
			`{"amount":1000,"orderId":"ORD-1","reason":"duplicate","refundId":"R-2","type":"refund"}`,
		}},
		{claim: "an order that was not posted", run: missing, err: `refund order "ORD-2": `},
		{
			claim: "resolve, while Stripe cannot be read", run: resolveRefund{Order: "ORD-1", Refund: "R-2"},
			err: `resolve refund "R-2" of order "ORD-1": `,
		},
	} {
		var out strings.Builder
		err := step.run.Run(t.Context(), testShell(environ, "", &out))
		asWanted := err == nil && step.err == "" || err != nil && step.err != "" && strings.Contains(err.Error(), step.err)
		if !asWanted || !strings.Contains(out.String(), step.printed) {
			t.Errorf("%s: got error %v and printed\n%s\nwant %q and %q", step.claim, err, &out, step.err, step.printed)
		}
		if step.posted != nil {
			if diff := cmp.Diff(queue.bodies(t), step.posted); diff != "" {
				t.Errorf("%s: messages (-got +want):\n%s", step.claim, diff)
			}
		}
	}
}
