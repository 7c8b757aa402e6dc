package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

// refundFixture is an order of 39.98 USD with its refunds, in memory, and the function
// that makes them.
type refundFixture struct {
	*testing.T

	orders *ordertest.Memory
	claims *refundtest.Memory
	bank   *refundtest.Bank
	posted []string
	now    time.Time
	worker int
}

func newRefundFixture(t *testing.T, card ordertest.Card) *refundFixture {
	t.Helper()
	w := &refundFixture{T: t, orders: new(ordertest.Memory), now: noon()}
	w.claims = refundtest.NewMemory(w.orders)
	intents := &ordertest.Bank{Scope: scope}
	w.bank = &refundtest.Bank{Intents: intents, Now: w.clock, KeyLife: 24 * time.Hour}
	process(t, w.orders, intents, ordertest.OrderWith("ORD-1", ordertest.PaymentMethod(card)), noon())
	return w
}

func (w *refundFixture) clock() time.Time { return w.now }

// deliver makes a refund as the function does.
func (w *refundFixture) deliver(ctx context.Context, r refund.Request) {
	w.worker++
	p := refund.Processor{Store: w.claims, Provider: w.bank, Scope: scope, Now: w.clock, CreateTime: time.Second}
	p.Process(ctx, r, order.Lease{Owner: fmt.Sprint("worker ", w.worker), From: w.now, Until: w.now.Add(time.Minute)})
}

// send posts a message, which the function handles at once.
func (w *refundFixture) send(ctx context.Context, _ order.ID, body string) error {
	w.posted = append(w.posted, body)
	job, err := jobs.NewDecoder().Decode(body)
	must(w.T, err)
	w.deliver(ctx, job.Refund)
	return nil
}

// run runs `orders refund`, and returns what it printed and its error, as text.
func (w *refundFixture) run(m makeRefund, typed string) string {
	var out strings.Builder
	m.Order, m.Reason = "ORD-1", "requested_by_customer"
	if m.Limit == 0 {
		m.Limit = 20 * time.Millisecond
	}
	c := refundPoster{
		Shell:   shell.Shell{In: strings.NewReader(typed), Out: &out, Now: w.clock},
		account: w.claims.Load, send: w.send, every: time.Millisecond,
		atStripe: func(context.Context, refund.Account) (view.Report, error) { return view.Report{}, nil },
	}
	err := c.refund(w.Context(), m)
	return out.String() + fmt.Sprint(err)
}

// item returns a refund as the table has it.
func (w *refundFixture) item(id refund.ID) refund.Item {
	w.Helper()
	a, err := w.claims.Load(w.Context(), "ORD-1")
	must(w.T, err)
	i, _ := a.Item(id)
	return i
}

// The person repeats a command, or a colleague does: the money goes back once.
func TestRefund(t *testing.T) {
	t.Parallel()
	w := newRefundFixture(t, ordertest.Pays)
	for _, step := range []struct {
		claim   string
		before  func()
		command makeRefund
		typed   string
		want    string // what is printed, in parts, and then the error
		made    []int64
	}{
		{
			claim: "a word that is not the order id", command: makeRefund{Amount: "1000"}, typed: "yes\n",
			want: "charged    39.98 USD\nrefunded   0.00 USD\nleft       39.98 USD\n" +
				"Refund operator-1000 gives back 10.00 USD of 39.98 USD left. Type the order id to make it: \nnothing was changed",
		},
		{
			claim: "the order id", command: makeRefund{Amount: "1000"}, typed: "ORD-1\n",
			want: "make it: Posted refund operator-1000, waiting up to 20ms ...\n  succeeded, re_1, requested_by_customer\n" +
				"order      ORD-1, partially_refunded\ncharged    39.98 USD\nrefunded   10.00 USD\nleft       29.98 USD\n" +
				"refund     10.00 USD, operator-1000, succeeded, re_1, requested_by_customer\n<nil>", // and no warning
			made: []int64{1000},
		},
		{
			claim: "the same command again", command: makeRefund{Amount: "1000", Yes: true}, made: []int64{1000},
			want: "nothing posted: refund operator-1000 was made before; another refund needs another --refund-id\n<nil>",
		},
		{
			claim: "the same amount under another id", command: makeRefund{Amount: "1000", RefundID: "mine", Yes: true},
			want: "WARNING: refund operator-1000 gives 10.00 USD back as well: it is succeeded\n<nil>", made: []int64{1000, 1000},
		},
		{
			claim: "that id with another amount", command: makeRefund{Amount: "500", RefundID: "mine", Yes: true},
			want: errIDTaken.Error(), made: []int64{1000, 1000},
		},
		{
			claim: "all that is left", command: makeRefund{All: true, Yes: true}, want: "left       0.00 USD\n<nil>",
			made: []int64{1000, 1000, 1998},
		},
		{
			claim: "all that is left again", command: makeRefund{All: true, Yes: true}, made: []int64{1000, 1000, 1998},
			want: "nothing posted: refund operator-all was made before\n<nil>",
		},
		{
			claim: "more than is left", command: makeRefund{Amount: "1", RefundID: "more"}, made: []int64{1000, 1000, 1998},
			want: "exceeds the 0.00 USD that is left of the charge: if a refund may have failed since, orders refresh ORD-1",
		},
		{
			claim: "all under another id", command: makeRefund{All: true, RefundID: "rest", Yes: true},
			want: "nothing is left to refund: if a refund may have failed since, orders refresh ORD-1", made: []int64{1000, 1000, 1998},
		},
		{
			claim: "a refund that the bank returned", command: makeRefund{Amount: "1000", Yes: true}, before: func() {
				w.bank.Return()
				f := refund.Refresher{Store: w.claims, Provider: w.bank, Scope: scope, Now: w.clock}
				_, err := f.Refresh(t.Context(), "ORD-1")
				must(t, err)
			},
			want: "not refunded: refund operator-1000 is failed (lost_or_stolen_card): another try needs another --refund-id",
		},
	} {
		if step.before != nil {
			step.before()
		}
		printed := w.run(step.command, step.typed)
		if part := missingPart(printed, step.want); part != "" {
			t.Errorf("%s: printed\n%s\nwant %q in it", step.claim, printed, part)
		}
		var made []int64
		for _, r := range w.bank.Refunds() {
			if r.Status.Counts() {
				made = append(made, r.Total.Amount)
			}
		}
		if diff := cmp.Diff(made, step.made); diff != "" {
			t.Errorf("%s: refunds at Stripe (-got +want):\n%s", step.claim, diff)
		}
	}
	declined := newRefundFixture(t, ordertest.Declines)
	if got := declined.run(makeRefund{All: true, Yes: true}, ""); !strings.HasSuffix(got, "order is declined: nothing can be refunded") {
		t.Errorf("an order that was not charged: got %s", got)
	}
	printed := newRefundFixture(t, ordertest.Pays).run(makeRefund{Amount: "5000"}, "")
	if !strings.HasSuffix(printed, "left of the charge") {
		t.Errorf("too much, and no refund that may have failed: printed\n%s", printed)
	}
}

func TestTheGuideShowsWhatRefundPrints(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/refund.md")
	must(t, err)
	printed := newRefundFixture(t, ordertest.Pays).run(makeRefund{Amount: "1999", Limit: 2 * time.Minute}, "ORD-1\n")
	want := strings.Replace(printed, "to make it: ", "to make it: ORD-1\n", 1) // what the person types
	if !strings.Contains(string(guide), strings.TrimSpace(strings.TrimSuffix(want, "<nil>"))) {
		t.Errorf("got another text in the guide, want\n%s", want)
	}
}

// The first command was interrupted before the function made the refund.
func TestTheSameCommandContinuesAnOpenRefund(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{true, false} {
		w := newRefundFixture(t, ordertest.Pays)
		command := makeRefund{Amount: "1000", All: all, Yes: true}
		w.bank.Fail(refundtest.Read, ordertest.ReturnsUnavailable)
		const want = "not settled after 20ms: open, requested_by_customer, attempt 1, last error provider_unavailable: " +
			"run the same command again. If processing is stopped, it waits in the refund queue. " +
			"It may be parked: orders dead-letters show ORD-1"
		if first := w.run(command, ""); !strings.HasSuffix(first, want) {
			t.Errorf("the first command: printed\n%s\nwant %q", first, want)
		}
		again := w.run(command, "")
		if made := len(w.bank.Refunds()); made != 1 || w.posted[0] != w.posted[1] || !strings.HasSuffix(again, "<nil>") ||
			strings.Contains(again, "WARNING") { // it is the same refund, and not one beside it
			t.Errorf("got %d refunds and messages %q, want one refund\n%s", made, w.posted, again)
		}
	}
}

// lose leaves refund operator-1000 unknown: its request was lost, and Stripe's key
// forgotten.
func (w *refundFixture) lose() {
	w.Helper()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "operator-1000", Amount: 1000, Reason: "requested_by_customer"})
	must(w.T, err)
	w.bank.Fail(refundtest.Create, ordertest.LosesRequest)
	w.deliver(w.Context(), r)
	w.now = w.now.Add(25 * time.Hour)
	w.deliver(w.Context(), r)
	if i := w.item(r.ID()); i.Status != refund.Unknown {
		w.Fatalf("got %+v, want it unknown", i)
	}
}

// resolver returns what resolves a refund. The person types an answer.
func (w *refundFixture) resolver(out io.Writer, typed string) resolver {
	sh := shell.Shell{In: strings.NewReader(typed), Out: out, Now: w.clock}
	return resolver{Shell: sh, store: w.claims, provider: w.bank, scope: scope}
}

// begin claims refund R-1 of 0.01 USD, as a worker does that dies.
func (w *refundFixture) begin() refund.Claim {
	w.Helper()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1, Reason: "duplicate"})
	must(w.T, err)
	lease := order.Lease{Owner: w.now.String(), From: w.now, Until: w.now.Add(time.Minute)}
	c, err := refund.Begin(w.Context(), w.claims, r, lease)
	must(w.T, err)
	return c
}

// A refund that only a person can end is listed until it ends. One that is under way or
// was made is not.
func TestListRefunds(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(pays, "ORD-1001", "ORD-1002", "ORD-1003")
	accounts := refundtable.New(d.store)
	for id, outcome := range map[refund.ID]refund.Outcome{
		"UNKNOWN": {Status: refund.Unknown, Failure: "sent_2026-11-20T12:00:00Z"}, "MADE": {Status: refund.Succeeded, Refund: "re_1"},
	} {
		must(t, d.begin("ORD-1001", id).Finish(t.Context(), accounts, outcome, noon()))
	}
	d.begin("ORD-1002", "OPEN")
	const unknown = "ORD-1001  UNKNOWN  1.00 USD  unknown since 2026-11-21 12:00:00.123 UTC  sent_2026-11-20T12:00:00Z\n" +
		"look for it in Stripe's Dashboard, payment pi_000001, then orders refund resolve ORD-1001 UNKNOWN --made RE_ID"
	d.steps(
		step{line: "refund list", code: 2, want: unknown + ", or --not-made\nrefunds that wait for a person: 1\n1 refunds may have been made"},
		step{
			line: "refund list", later: 25 * time.Hour, code: 2, claim: "an open one without an attempt for a day",
			want: "ORD-1002  OPEN  1.00 USD  open since\nits message may be gone: redrive it, or post\nrefunds that wait for a person: 2",
		},
		step{
			line: "--json refund list", code: 2,
			want: `"refunds":` + "\n" + `{"refundId":"UNKNOWN"` + "\n" + `"updatedAt":"2026-11-21T12:00:00.123Z"}`,
		},
		step{line: "refund resolve ORD-1001 UNKNOWN --not-made --yes", want: "resolved: refund UNKNOWN is refused"},
		step{line: "refund list", want: "refunds that wait for a person: 0"},
		step{
			line: "refund list", code: 1, claim: "a row that cannot be read hides no other",
			before: func() { d.edit("ORD-1002", dynamodb.Item{"fingerprint": nil}) },
			want:   "refunds that wait for a person: 0\nload account of order \"ORD-1002\": \ncorrupt record",
		},
	)
}

// begin claims a refund of 1.00 USD, as a worker does.
func (d *deployment) begin(id order.ID, of refund.ID) refund.Claim {
	d.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(id), RefundID: string(of), Amount: 100, Reason: "duplicate"})
	must(d.T, err)
	lease := order.Lease{Owner: string(of), From: noon(), Until: noon().Add(time.Minute)}
	c, err := refund.Begin(d.Context(), refundtable.New(d.store), r, lease)
	must(d.T, err)
	return c
}

func TestResolve(t *testing.T) {
	t.Parallel()
	const id = "operator-1000"
	const warning = "WARNING: a request for 10.00 USD was sent at 2026-11-21T12:00:00Z and lost. " +
		"Stripe may still execute it, even days later.\n"
	notMade := resolveRefund{NotMade: true, Yes: true}
	ten := order.Money{Amount: 1000, Currency: "usd"}
	completes := func(w *refundFixture) { w.lose(); w.bank.Complete() }
	dashboard := func(w *refundFixture) { w.lose(); w.bank.InDashboard("pi_1", ten) }
	abandons := func(w *refundFixture) { w.begin(); w.now = w.now.Add(25 * time.Hour) }
	for claim, tt := range map[string]struct {
		arrange func(*refundFixture)
		command resolveRefund
		refund  refund.ID // "": operator-1000
		typed   string
		want    string // what is printed, in parts, and then the error
		status  refund.Status
	}{
		"not made, confirmed": {
			arrange: (*refundFixture).lose, command: resolveRefund{NotMade: true}, typed: id + "\n", want: warning, status: refund.Refused,
		},
		"not made, with the order id instead of the refund id": {
			arrange: (*refundFixture).lose, command: resolveRefund{NotMade: true}, typed: "ORD-1\n", want: "nothing was changed",
			status: refund.Unknown,
		},
		"not made, and its amount is free": {
			arrange: (*refundFixture).lose, command: notMade, want: "resolved: refund operator-1000 is refused\n<nil>", status: refund.Refused,
		},
		"not made, but Stripe has made it": {
			arrange: completes, command: notMade, status: refund.Succeeded,
			want: "at Stripe  re_1, 10.00 USD, succeeded, of operator-1000\nStripe contradicts it: re_1 of it is succeeded",
		},
		"not made, and somebody gave it back in the Dashboard": {
			arrange: dashboard, command: notMade, want: "at Stripe  re_1, 10.00 USD, succeeded, of others\n<nil>", status: refund.Refused,
		},
		"made, and Stripe lists it": {
			arrange: completes, command: resolveRefund{Made: "re_1"}, status: refund.Succeeded,
			want: "nothing to resolve: refund operator-1000 is succeeded at Stripe, as you say\n<nil>",
		},
		"made, and Stripe's list lacks it": {
			arrange: func(w *refundFixture) { completes(w); w.bank.Lag = time.Hour }, command: resolveRefund{Made: "re_1"}, typed: id,
			want: "at Stripe  no refund\n<nil>", status: refund.Succeeded,
		},
		"made, but under another id": {
			arrange: completes, command: resolveRefund{Made: "re_2", Yes: true}, status: refund.Succeeded,
			want: "for a day, ends so: operator-1000 is succeeded, re_1",
		},
		"made, but that one is another's": {
			arrange: dashboard, command: resolveRefund{Made: "re_1", Yes: true}, status: refund.Unknown,
			want: `Stripe contradicts it: re_1: intent pi_1: refund scope is "", want "test"`,
		},
		"made, but Stripe does not know it": {
			arrange: (*refundFixture).lose, command: resolveRefund{Made: "re_9", Yes: true}, want: "misconfigured", status: refund.Unknown,
		},
		"another refund": {arrange: (*refundFixture).lose, command: notMade, refund: "R-2", want: errNoRefund.Error()},
		"a refund that was refused": {
			arrange: func(w *refundFixture) { w.bank.Dispute("pi_1"); w.run(makeRefund{Amount: "1000", Yes: true}, "") }, command: notMade,
			want: "for a day, ends so: operator-1000 is refused", status: refund.Refused,
		},
		"an open refund, whose message comes back": {
			arrange: func(w *refundFixture) { w.begin(); w.now = w.now.Add(day - time.Second) }, command: notMade, refund: "R-1",
			want: errNotUnknown.Error() + "\nredrive it from the dead-letter queue", status: refund.Open,
		},
		"an abandoned one, of which no request was sent": {
			arrange: abandons, command: notMade, refund: "R-1", status: refund.Refused,
			want: "Stripe was asked for nothing, or refused each time: it was not made.\n<nil>",
		},
		"an abandoned one, of which a request was lost": {
			arrange: func(w *refundFixture) {
				_, err := w.begin().Mark(w.Context(), w.claims, 1, w.now)
				must(w.T, err)
				w.now = w.now.Add(25 * time.Hour)
			},
			command: notMade, refund: "R-1", want: "WARNING: a request for 0.01 USD was sent at 2026-11-21T\n<nil>", status: refund.Refused,
		},
		"an abandoned one, which was made, and Stripe's list lacks it": {
			arrange: func(w *refundFixture) {
				w.bank.Fail(refundtest.Create, ordertest.LosesResponse)
				w.bank.Lag = 48 * time.Hour
				c := w.begin()
				w.now = w.now.Add(time.Hour)
				w.deliver(w.Context(), c.Request)
				w.now = w.now.Add(25 * time.Hour)
			},
			command: resolveRefund{Made: "re_1", Yes: true}, refund: "R-1",
			want: "resolved: refund R-1 is succeeded\n<nil>", status: refund.Succeeded,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newRefundFixture(t, ordertest.Pays)
			tt.arrange(w)
			if tt.refund == "" {
				tt.refund = id
			}
			tt.command.Order, tt.command.Refund = "ORD-1", string(tt.refund)
			var out strings.Builder
			err := w.resolver(&out, tt.typed).resolve(t.Context(), tt.command)
			if part := missingPart(out.String()+fmt.Sprint(err), tt.want); part != "" {
				t.Errorf("got error %v, printed\n%s\nwant %q in it", err, &out, part)
			}
			i := w.item(tt.refund)
			if i.Status != tt.status || err == nil && i.Status == refund.Refused && i.Failure != "resolved_by_operator" {
				t.Errorf("got %+v, want it %s", i, tt.status)
			}
			free := strings.HasSuffix(w.run(makeRefund{Amount: "3998", Yes: true}, ""), "<nil>")
			if want := strings.Contains(claim, "its amount is free"); want && !free || free && i.Status != refund.Refused {
				t.Errorf("all could be given back: %t, want it if nothing was made", free)
			}
		})
	}
}

// A worker may have sent a request since the person saw the refund, so the decision is
// out of date, also when the worker's lease has ended. A worker that was frozen since the
// person decided sends nothing.
func TestAResolveAndAWorkerExcludeEachOther(t *testing.T) {
	t.Parallel()
	notMade := resolveRefund{Order: "ORD-1", Refund: "R-1", NotMade: true}
	for _, later := range []time.Duration{0, time.Hour} {
		w := newRefundFixture(t, ordertest.Pays)
		w.begin()
		w.now = w.now.Add(25 * time.Hour)
		d := w.resolver(io.Discard, "")
		d.In = arriving{strings.NewReader("R-1\n"), func() { w.begin(); w.now = w.now.Add(later) }}
		err := d.resolve(t.Context(), notMade)
		if i := w.item("R-1"); !errors.Is(err, order.ErrStale) || i.Status != refund.Open {
			t.Errorf("after %v: got %v and %+v, want it open, and %v", later, err, i, order.ErrStale)
		}
	}
	w := newRefundFixture(t, ordertest.Pays)
	frozen := w.begin()
	w.now = w.now.Add(25 * time.Hour)
	must(t, w.resolver(io.Discard, "R-1\n").resolve(t.Context(), notMade))
	if _, err := frozen.Mark(t.Context(), w.claims, 1, w.now); !errors.Is(err, order.ErrClaimLost) {
		t.Errorf("got %v, want %v", err, order.ErrClaimLost)
	}
}

// arriving is the input of a person during whose thought the message comes back.
type arriving struct {
	io.Reader

	message func()
}

func (a arriving) Read(b []byte) (int, error) {
	a.message()
	return a.Reader.Read(b)
}

// Stripe's list catches up between the two looks of the command.
func TestResolveIsContradictedByWhateverStripeHasOfTheRefund(t *testing.T) {
	t.Parallel()
	for _, status := range []refund.Status{refund.Succeeded, refund.Pending, refund.Failed} {
		w := newRefundFixture(t, ordertest.Pays)
		w.lose()
		w.bank.Takes = status != refund.Succeeded
		w.bank.Complete()
		if status == refund.Failed { // a pending one, later
			w.bank.Settle(status)
		}
		w.bank.Lag = time.Hour
		d := w.resolver(io.Discard, "")
		d.provider = refundtest.Intercepted{Provider: w.bank, Intercept: func(_ refundtest.Call, do func() error) error {
			defer func() { w.bank.Lag = 0 }()
			return do()
		}}
		err := d.resolve(t.Context(), resolveRefund{Order: "ORD-1", Refund: "operator-1000", NotMade: true, Yes: true})
		if !errors.Is(err, errContradicted) || !strings.Contains(err.Error(), "re_1 of it is "+string(status)) {
			t.Errorf("%s: got %v, want that Stripe contradicts it", status, err)
		}
		if i := w.item("operator-1000"); i.Status != refund.Unknown {
			t.Errorf("%s: got %+v, want it unknown", status, i)
		}
	}
}

// The person may mean the other payment. Nothing is posted before that is clear.
func TestRefundOfAnOrderThatWasChargedTwice(t *testing.T) {
	t.Parallel()
	d, q := deploy(t), newOrderQueue(t, "")
	d.environ = append(d.environ, q.environ...)
	d.process(pays, "TWICE") // pi_000001
	d.another("TWICE", string(scope), true)
	d.stripe.Advance(2 * time.Minute)
	const line = "refund TWICE --amount 39.98 --reason duplicate --yes --limit 1ms"
	const gives = "Refund operator-3998 gives back 39.98 USD of 39.98 USD left. Posted"
	back := func() { d.givesBack("pi_000002", 3998)(); d.givesBack("pi_000001", 100)() }
	d.steps(
		step{line: line, code: 1, want: "charged twice: refund the other payment\norders show TWICE\n--intent pi_000001"},
		step{line: line + " --intent pi_000002", code: 1, want: "the order's own payment is pi_000001"},
		step{
			line: line, environ: "STRIPE_SECRET_KEY=sk_test_another", code: 1, claim: "a key of another account",
			want: "read the payments of order \"TWICE\" at Stripe\n--intent pi_000001",
		},
	)
	if n := len(messagesOf(t, q.Server, "refunds")); n > 0 {
		t.Errorf("%d refunds posted, want none", n)
	}
	d.steps(
		step{line: line + " --intent pi_000001", code: 1, claim: "insists", want: gives},
		step{line: line, environ: "STRIPE_SECRET_KEY=", code: 1, claim: "without a key", want: "Stripe was not read, \n" + gives},
		step{
			line: line, before: back, code: 1,
			want: "WARNING: 39.98 USD of pi_000002, another payment of this order, went back already: the\n" + gives,
		},
		step{
			line: "refund batch --refund-id R-1 --dry-run " + fileOf(t, "orderId,amount", "TWICE,10.00"), code: 2,
			want: "refund  TWICE R-1\n 10.00 USD  of 39.98 USD left, and 39.98 USD of pi_000002, another payment of this order, went back already",
		},
	)
}
