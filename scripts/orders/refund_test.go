package main

import (
	"encoding/json"
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
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/cloud"
)

// refundOf returns a refund of so many cents.
func refundOf(t *testing.T, of order.ID, id refund.ID, cents int64) refund.Request {
	t.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(of), RefundID: string(id), Amount: cents, Reason: "duplicate"})
	must(t, err)
	return r
}

// begin claims a refund of 1.00 USD, as a worker does that dies.
func (d *deployment) begin(id order.ID, of refund.ID, now time.Time) refund.Claim {
	d.Helper()
	lease := order.Lease{Owner: now.String(), From: now, Until: now.Add(time.Minute)}
	c, err := refund.Begin(d.Context(), refundtable.New(d.store), refundOf(d.T, id, of, 100), lease)
	must(d.T, err)
	return c
}

// queueRefunds serves a queue of refunds. The function makes each at that time, as soon
// as it is posted; nil: never.
func (d *deployment) queueRefunds(now func() time.Time) *sqstest.Server {
	d.Helper()
	environ, s := serveQueues(d.T, sqstest.Options{Before: func(c sqstest.Call) {
		if now == nil {
			return
		}
		var in struct{ MessageBody string }
		must(d.T, json.Unmarshal(c.Request, &in))
		job, err := jobs.NewDecoder().Decode(in.MessageBody)
		must(d.T, err)
		d.makes(job.Refund, now)
	}}, nil)
	d.environ = append(append(d.environ, environ...), "REFUND_QUEUE_URL="+s.QueueURL("refunds"))
	return s
}

// deployRefunds deploys such a queue, and an order of 39.98 USD, ORD-1, which pi_000001
// charged. Stripe's lists lack younger refunds than the lag.
func deployRefunds(t *testing.T, lag time.Duration) (d *deployment, queue *sqstest.Server) {
	t.Helper()
	d = deployWith(t, stripetest.Options{Rules: stripetest.Rules{RefundLag: lag}})
	queue = d.queueRefunds(d.stripe.Now)
	d.process(pays, "ORD-1")
	return d, queue
}

const refundORD1 = "refund ORD-1 --reason requested_by_customer "

// The person repeats a command, or a colleague does: the money goes back once.
func TestRefund(t *testing.T) {
	t.Parallel()
	d, _ := deployRefunds(t, 0)
	d.process(pays, "ORD-2")
	d.process(declines, "ORD-3")
	for _, s := range []struct {
		step

		made []int64 // that count
	}{
		{step{
			claim: "a word that is not the order id", line: refundORD1 + "--amount 1000", typed: "yes\n", code: 1,
			want: "charged    39.98 USD\nrefunded   0.00 USD\nleft       39.98 USD\n" +
				"Refund operator-1000 gives back 10.00 USD of 39.98 USD left. Type the order id to make it: yes\nnothing was changed",
		}, nil},
		{step{
			line: refundORD1 + "--amount 1000", typed: "ORD-1\n", lacks: "WARNING",
			want: "make it: ORD-1\nPosted refund operator-1000, waiting up to 2m0s ...\n  succeeded, re_000001, requested_by_customer\n" +
				"order      ORD-1, partially_refunded\ncharged    39.98 USD\nrefunded   10.00 USD\nleft       29.98 USD\n" +
				"refund     10.00 USD, operator-1000, succeeded, re_000001, requested_by_customer\n",
		}, []int64{1000}},
		{step{
			claim: "again", line: refundORD1 + "--amount 1000 --yes",
			want: "nothing posted: refund operator-1000 was made before; another refund needs another --refund-id\n",
		}, []int64{1000}},
		{step{
			claim: "the same amount under another id", line: refundORD1 + "--amount 10.00 --refund-id mine --yes",
			want: "WARNING: refund operator-1000 gives 10.00 USD back as well: it is succeeded\n",
		}, []int64{1000, 1000}},
		{step{line: refundORD1 + "--amount 500 --refund-id mine --yes", code: 1, want: errIDTaken.Error()}, []int64{1000, 1000}},
		{step{line: refundORD1 + "--all --yes", want: "left       0.00 USD\n"}, []int64{1000, 1000, 1998}},
		{step{
			claim: "again", line: refundORD1 + "--all --yes", want: "nothing posted: refund operator-all was made before\n",
		}, []int64{1000, 1000, 1998}},
		{step{
			line: refundORD1 + "--amount 1 --refund-id more", code: 1,
			want: "exceeds the 0.00 USD that is left of the charge: if a refund may have failed since, orders refresh ORD-1",
		}, []int64{1000, 1000, 1998}},
		{step{
			line: refundORD1 + "--all --refund-id rest --yes", code: 1,
			want: "nothing is left to refund: if a refund may have failed since, orders refresh ORD-1",
		}, []int64{1000, 1000, 1998}},
		{step{
			line: "refresh ORD-1", want: "changes of refunds recorded: 1",
			before: d.atStripe(func(m *stripetest.Machine, _ time.Time) error {
				return m.ChangeRefund("re_000001", stripetest.RefundFailed)
			}),
		}, []int64{1000, 1998}},
		{step{
			claim: "the bank returned it", line: refundORD1 + "--amount 1000 --yes", code: 1,
			want: "not refunded: refund operator-1000 is failed (lost_or_stolen_card): another try needs another --refund-id",
		}, []int64{1000, 1998}},
		{step{
			claim: "no refund may have failed", line: "refund ORD-2 --amount 5000 --reason duplicate", code: 1,
			want: "left of the charge", lacks: "may have failed",
		}, []int64{1000, 1998}},
		{step{
			line: "refund ORD-3 --all --reason duplicate --yes", code: 1, want: "order is declined: nothing can be refunded",
		}, []int64{1000, 1998}},
	} {
		d.steps(s.step)
		var made []int64
		for _, r := range d.refundsMade() {
			made = append(made, r.Amount)
		}
		if diff := cmp.Diff(made, s.made); diff != "" {
			t.Errorf("%s %s: refunds at Stripe (-got +want):\n%s", s.claim, s.line, diff)
		}
	}
}

// refundsMade returns the refunds at Stripe that did not fail.
func (d *deployment) refundsMade() (made []*stripetest.Refund) {
	d.stripe.Machine(func(m *stripetest.Machine) {
		for _, r := range m.Refunds() {
			if r.Status != stripetest.RefundFailed {
				made = append(made, r)
			}
		}
	})
	return made
}

func TestTheGuideShowsWhatRefundPrints(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/refund.md")
	must(t, err)
	d, _ := deployRefunds(t, 0)
	printed, _ := d.runs(step{line: refundORD1 + "--amount 1999", typed: "ORD-1\n"})
	_, printed, _ = strings.Cut(strings.ReplaceAll(printed, "re_000001", "re_1"), "\n\n") // table and queue
	if printed == "" || !strings.Contains(string(guide), strings.TrimSpace(printed)) {
		t.Errorf("got another text in the guide, want\n%s", printed)
	}
}

// The first command was interrupted before the function made the refund.
func TestTheSameCommandContinuesAnOpenRefund(t *testing.T) {
	t.Parallel()
	for _, amount := range []string{"--amount 1000", "--all"} {
		d, queue := deployRefunds(t, 0)
		line := refundORD1 + amount + " --yes"
		d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.CreateRefund})
		d.steps(
			step{
				line: line + " --limit 2s", code: 1,
				want: "not settled after 2s: open, requested_by_customer, attempt 1, last error provider_unavailable: " +
					"run the same command again. If processing is stopped, it waits in the refund queue. " +
					"It may be parked: orders dead-letters show ORD-1",
			},
			step{claim: "it is the same refund, and not one beside it", line: line, lacks: "WARNING"},
		)
		posted := bodies(messagesOf(t, queue, "refunds"))
		if made := len(d.refundsMade()); made != 1 || len(posted) != 2 || posted[0] != posted[1] {
			t.Errorf("%s: got %d refunds and messages %q, want one refund", amount, made, posted)
		}
	}
}

// lose leaves refund operator-1000 open: its request was lost.
func (d *deployment) lose() {
	d.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, On: stripetest.CreateRefund})
	d.makes(refundOf(d.T, "ORD-1", "operator-1000", 1000), d.stripe.Now)
}

// doubt leaves it unknown, a day later: Stripe may still execute the request.
func (d *deployment) doubt() {
	d.lose()
	d.stripe.Advance(25 * time.Hour)
	d.makes(refundOf(d.T, "ORD-1", "operator-1000", 1000), d.stripe.Now)
}

// completes lets Stripe execute the request that was lost.
func (d *deployment) completes() {
	d.atStripe(func(m *stripetest.Machine, now time.Time) error { m.RollForward(now); return nil })()
}

// item returns a refund of ORD-1 as the table has it.
func (d *deployment) item(id refund.ID) refund.Item {
	d.Helper()
	a, err := refundtable.New(d.store).Load(d.Context(), "ORD-1")
	must(d.T, err)
	i, _ := a.Item(id)
	return i
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
		must(t, d.begin("ORD-1001", id, noon()).Finish(t.Context(), accounts, outcome, noon()))
	}
	d.begin("ORD-1002", "OPEN", noon())
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

func TestResolve(t *testing.T) {
	t.Parallel()
	const warning = "WARNING: a request for 10.00 USD was sent at 2026-11-21T12:00:00Z and lost. " +
		"Stripe may still execute it, even days later.\n"
	doubtful := (*deployment).doubt
	completed := func(d *deployment) { d.doubt(); d.completes() }
	dashboard := func(d *deployment) { d.doubt(); d.givesBack("pi_000001", 1000)() }
	abandoned := func(age time.Duration) func(*deployment) {
		return func(d *deployment) { d.begin("ORD-1", "operator-1000", noon()); d.stripe.Advance(age) }
	}
	for claim, tt := range map[string]struct {
		arrange func(*deployment)
		lag     time.Duration
		flags   string
		refund  refund.ID // "": operator-1000
		typed   string
		code    int
		want    string // what is printed, in parts
		status  refund.Status
	}{
		"not made, confirmed": {
			arrange: doubtful, flags: "--not-made", typed: "operator-1000\n", want: warning, status: refund.Refused,
		},
		"not made, with the order id instead of the refund id": {
			arrange: doubtful, flags: "--not-made", typed: "ORD-1\n", code: 1, want: "nothing was changed", status: refund.Unknown,
		},
		"not made, and its amount is free": {
			arrange: doubtful, flags: "--not-made --yes", want: "resolved: refund operator-1000 is refused\n", status: refund.Refused,
		},
		"not made, but Stripe has made it": {
			arrange: completed, flags: "--not-made --yes", status: refund.Succeeded, code: 1,
			want: "at Stripe  re_000001, 10.00 USD, succeeded, of operator-1000\nStripe contradicts it: re_000001 of it is succeeded",
		},
		"not made, and somebody gave it back in the Dashboard": {
			arrange: dashboard, flags: "--not-made --yes", status: refund.Refused,
			want: "at Stripe  re_000001, 10.00 USD, succeeded, of others\n",
		},
		"made, and Stripe lists it": {
			arrange: completed, flags: "--made re_000001", status: refund.Succeeded,
			want: "nothing to resolve: refund operator-1000 is succeeded at Stripe, as you say\n",
		},
		"made, and Stripe's list lacks it": {
			arrange: completed, lag: time.Hour, flags: "--made re_000001", typed: "operator-1000\n",
			want: "at Stripe  no refund\n", status: refund.Succeeded,
		},
		"made, but under another id": {
			arrange: completed, flags: "--made re_000002 --yes", status: refund.Succeeded, code: 1,
			want: "for a day, ends so: operator-1000 is succeeded, re_000001",
		},
		"made, but that one is another's": {
			arrange: dashboard, flags: "--made re_000001 --yes", status: refund.Unknown, code: 1,
			want: `Stripe contradicts it: re_000001: intent pi_000001: refund scope is "", want "test"`,
		},
		"made, but Stripe does not know it": {
			arrange: doubtful, flags: "--made re_9 --yes", code: 1, want: "misconfigured", status: refund.Unknown,
		},
		"another refund": {arrange: doubtful, flags: "--not-made --yes", refund: "R-2", code: 1, want: errNoRefund.Error()},
		"a refund that was refused": {
			arrange: func(d *deployment) {
				d.atStripe(func(m *stripetest.Machine, now time.Time) error {
					_, err := m.OpenDispute(now, "pi_000001")
					return err
				})()
				d.makes(refundOf(d.T, "ORD-1", "operator-1000", 1000), noon)
			},
			flags: "--not-made --yes", code: 1, want: "for a day, ends so: operator-1000 is refused", status: refund.Refused,
		},
		"an open refund, whose message comes back": {
			arrange: abandoned(day - time.Second), flags: "--not-made --yes", code: 1,
			want: errNotUnknown.Error() + "\nredrive it from the dead-letter queue", status: refund.Open,
		},
		"an abandoned one, of which no request was sent": {
			arrange: abandoned(25 * time.Hour), flags: "--not-made --yes", status: refund.Refused,
			want: "Stripe was asked for nothing, or refused each time: it was not made.\n",
		},
		"an abandoned one, of which a request was lost": {
			arrange: func(d *deployment) { d.lose(); d.stripe.Advance(25 * time.Hour) },
			flags:   "--not-made --yes", want: warning, status: refund.Refused,
		},
		"an abandoned one, which was made, and Stripe's list lacks it": {
			arrange: func(d *deployment) {
				d.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, On: stripetest.CreateRefund})
				d.makes(refundOf(d.T, "ORD-1", "operator-1000", 1000), noon)
				d.stripe.Advance(25 * time.Hour)
			},
			lag: 48 * time.Hour, flags: "--made re_000001 --yes", want: "resolved: refund operator-1000 is succeeded\n", status: refund.Succeeded,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			d, _ := deployRefunds(t, tt.lag)
			tt.arrange(d)
			if tt.refund == "" {
				tt.refund = "operator-1000"
			}
			later := d.stripe.Now().Sub(noon())
			line := fmt.Sprintf("refund resolve ORD-1 %s %s", tt.refund, tt.flags)
			d.steps(step{line: line, typed: tt.typed, later: later, code: tt.code, want: tt.want})
			i := d.item(tt.refund)
			if i.Status != tt.status || tt.code == 0 && i.Status == refund.Refused && i.Failure != "resolved_by_operator" {
				t.Errorf("got %+v, want it %s", i, tt.status)
			}
			_, code := d.runs(step{line: refundORD1 + "--amount 39.98 --yes", later: later})
			free := code == 0
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
	d, _ := deployRefunds(t, 0)
	later := noon().Add(25 * time.Hour)
	frozen := d.begin("ORD-1", "R-1", noon())
	opened, err := cloud.OpenStripe(t.Context(), testShell(d.environ))
	must(t, err)
	opened.Now = func() time.Time { return later }
	notMade := resolveRefund{Order: "ORD-1", Refund: "R-1", NotMade: true}
	for _, lease := range []time.Duration{0, time.Hour} { // runs, has ended
		opened.In = arriving{strings.NewReader("R-1\n"), func() { frozen = d.begin("ORD-1", "R-1", later.Add(-lease)) }}
		err := notMade.resolve(t.Context(), opened)
		if i := d.item("R-1"); !errors.Is(err, order.ErrStale) || i.Status != refund.Open {
			t.Errorf("a lease of %v ago: got %v and %+v, want it open, and %v", lease, err, i, order.ErrStale)
		}
		later = later.Add(25 * time.Hour)
	}
	opened.In = strings.NewReader("R-1\n")
	must(t, notMade.resolve(t.Context(), opened))
	if _, err := frozen.Mark(t.Context(), refundtable.New(d.store), 1, later); !errors.Is(err, order.ErrClaimLost) {
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
		var d *deployment
		reads := 0
		d = deployWith(t, stripetest.Options{Rules: stripetest.Rules{RefundLag: time.Hour}, After: func(c stripetest.Call) {
			if c.Endpoint == stripetest.Read && reads > 0 {
				d.stripe.Advance(time.Hour)
			}
			reads--
		}})
		method := pays
		if status != refund.Succeeded {
			method = "pm_card_pendingRefund"
		}
		d.process(method, "ORD-1")
		d.doubt()
		d.completes()
		if status == refund.Failed {
			d.atStripe(func(m *stripetest.Machine, _ time.Time) error {
				return m.ChangeRefund("re_000001", stripetest.RefundFailed)
			})()
		}
		reads = 1
		d.steps(step{
			line: "refund resolve ORD-1 operator-1000 --not-made --yes", later: 25 * time.Hour, code: 1,
			want: "at Stripe  re_000001, 10.00 USD, " + string(status) + "\nStripe contradicts it: re_000001 of it is " + string(status),
		})
		if i := d.item("operator-1000"); i.Status != refund.Unknown {
			t.Errorf("%s: got %+v, want it unknown", status, i)
		}
	}
}

// The person may mean the other payment. Nothing is posted before that is clear.
func TestRefundOfAnOrderThatWasChargedTwice(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	queue := d.queueRefunds(nil)
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
	if n := len(messagesOf(t, queue, "refunds")); n > 0 {
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
			line: "refund batch --refund-id R-1 --dry-run " + d.file("orderId,amount", "TWICE,10.00"), code: 2,
			want: "refund  TWICE R-1\n 10.00 USD  of 39.98 USD left, and 39.98 USD of pi_000002, another payment of this order, went back already",
		},
	)
}
