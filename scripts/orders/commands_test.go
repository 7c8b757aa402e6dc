package main

import (
	"context"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	refundtable "orderonce/adapters/dynamodb/refunds"
	registrationtable "orderonce/adapters/dynamodb/registrations"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/intake"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/batch"
)

// The error is what a person reads, so it comes first and no list of all flags hides it.
func TestAWrongCommandLineIsAnsweredInAFewLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"refund ORD-1 --amount 1,999 --reason duplicate":   `--amount: amount "1,999": want 19.99, or the same in minor units: 1999`,
		"refund ORD-1 --amount= --reason duplicate":        `--amount: amount "": want 19.99, or the same`,
		"refund ORD-1 --reason duplicate":                  "missing flags: --amount=N or --all",
		"refund ORD-1 --all --amount 1 --reason duplicate": "--amount and --all can't be used together",
		"refund ORD-1 --all":                               "missing flags: --reason=R",
		"refund ORD-1 --all --reason mine":                 `--reason must be one of "duplicate","fraudulent","requested_by_customer" but got`,
		"refund resolve ORD-1 R-1":                         "missing flags: --made=RE_ID or --not-made",
		"receipts resolve ORD-1 paid":                      "missing flags: --sent or --not-sent",
		"receipts resolve ORD-1 paid --sent --not-sent":    "--sent and --not-sent can't be used together",
		"list --statsu paid":                               "unknown flag --statsu",
		"list --status closed":                             `--status "closed": want one of open, paid, `,
		"lsit":                                             "unexpected argument lsit",
		"dead-letters list --field sku":                    "--field: ",
		"refresh":                                          "want either an orderId or --all-due",
		"refresh ORD-1 --all-due":                          "want either an orderId or --all-due",
		"refresh --all-due --rate 0":                       "--rate: want at least 1",
		"republish":                                        "want either an orderId or --since",
		"republish --since 2026-11-21T08:00:00Z --rate 0":  "--rate: want at least 1",
		"republish ORD-1 --until 1h":                       "--until with --since alone",
		"republish --since yesterday":                      `--since: time "yesterday": want 2026-11-01, `,
		"stock MUG --recount=-1":                           "--recount -1: want 0 to 1000000000 units",
		"stock MUG --add=1000000001":                       "--add 1000000001: want at most 1000000000 units at once",
		"stock MUG --add=-1000000001":                      "--add -1000000001: want at most 1000000000 units at once",
		"watch --every 1ms":                                "--every: want at least 1s",
		"audit --from 1h --to 2h":                          "audit: --from 1h is not before --to 2h",
		"audit --from yesterday":                           `--from: time "yesterday": want 2026-11-01, `,
		"dead-letters redrive --verdict other":             "--verdict must be one of ",
		"post --csv --column order=x testdata/orders.csv":  "--column order: want one of orderId, ",
		"refresh ORD-1 --scope NotAScope":                  `scope "NotAScope"`,
		"smoke":                                            "got a live one, which refuses the smoke test's cards",
	} {
		environ := environment("DEAD_LETTER_QUEUE_URL=https://sqs.example/1/dead", "STRIPE_SECRET_KEY=sk_live_canary")
		printed, code := runs(t.Context(), t, testShell(environ), line, "")
		lines := strings.Split(strings.TrimSpace(printed), "\n")
		at := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "orders: error: ") })
		if at < 0 || !strings.Contains(lines[at], want) || code == 0 || len(lines) > 5 || strings.Contains(printed, "canary") {
			t.Errorf("orders %s: got exit code %d and\n%s\nwant %q in at most five lines", line, code, printed, want)
		}
	}
}

// A new command asks, and has --yes for scripts, or its help says why it need not.
func TestEveryCommandAsksOrSaysWhyNot(t *testing.T) {
	parser, err := newParser(new(commands))
	must(t, err)
	for _, leaf := range parser.Model.Leaves(false) {
		asks := slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool { return f.Name == "yes" })
		says := regexp.MustCompile(`It\s+changes\s+nothing|It\s+does\s+not\s+ask`).MatchString(leaf.Detail)
		if !asks && !says {
			t.Errorf("orders %s: has no --yes, and its help has neither %q nor %q", leaf.Path(), "It changes nothing", "It does not ask")
		}
	}
}

func TestTheVersionNamesTheCommit(t *testing.T) {
	build := debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "750ed151"}}}
	want := "orders " + config.Version
	if got, want := describe(&build), want+", revision 750ed151, go1.26"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if printed, code := runs(t.Context(), t, testShell(nil), "--version", ""); code != 0 || !strings.HasPrefix(printed, want+", ") {
		t.Errorf("got exit code %d and %q, want %q first", code, printed, want)
	}
}

func TestTheHelpOfPostNamesTheColumns(t *testing.T) {
	if columns := strings.Join(batch.CSVColumns(), ", "); !strings.Contains(help, columns) {
		t.Errorf("the help of post lacks the columns %s", columns)
	}
}

// The sessions of the pages show what these commands print when all is well.
func TestShowRefreshAndRestore(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(takes, "ORD-1")                 // pi_000001
	d.process(declines, "ORD-2")              // pi_000002
	d.process(pays, "ORD-3", "ORD-4", "LOST") // to pi_000005
	d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create})
	d.process(pays, "NONE")
	d.steps(step{
		line: "show ORD-4", claim: "while Stripe's search lags", want: "charged    once\nat Stripe  pi_000004, succeeded, 39.98 USD",
	})
	d.stripe.Advance(2 * time.Minute)
	const notFound = "not delivered yet\naws sqs get-queue-attributes\n" + "orders list --status not_sent\n" +
		"orders dead-letters list\nORDERS_TABLE, --region and --profile"
	d.steps(
		step{
			line: "--json show ORD-3", claim: "as one line of JSON, without the customer",
			want: `{"orderId":"ORD-3","status":"paid","amount":3998,"currency":"usd","paymentIntentId":"pi_000003","attempts":1,` +
				`"createdAt":"2026-11-21T12:00:00.123Z","updatedAt":"2026-11-21T12:00:00.123Z","events":[{"seq":1,"type":"order.paid",` +
				`"from":"open","to":"paid","at":"2026-11-21T12:00:00.123Z"}],"charges":1,"atStripe":[{"paymentIntentId":"pi_000003",` +
				`"state":"succeeded","amount":3998,"bound":true,"dashboard":"https://dashboard.stripe.com/test/payments/pi_000003"}],` +
				`"next":["nothing: it is settled; a refund that is missing here may be parked: orders dead-letters show ORD-3"]}`,
		},
		step{
			line: "show ORD-3", claim: "the order, if the receipts cannot be read", environ: "RECEIPTS_TABLE=none", code: 1,
			want: "status     paid\ncharged    once\nread the receipts of order \"ORD-3\"\n_TABLE, --region",
		},
		step{
			line: "show ORD-3", claim: "the order, if Stripe cannot be read", environ: "STRIPE_API_BASE=http://127.0.0.1:1",
			want: "status     paid\nread the payments of order \"ORD-3\" at Stripe\nis `make up` running?", code: 1,
		},
		step{
			line: "refresh ORD-1", claim: "another scope", environ: "SCOPE=other", code: 1,
			before: d.banks("pi_000001"), want: "SCOPE must be that of the deployment",
		},
		step{line: "show ORD-1", claim: "the row lacks the charge", code: 2, want: "next       orders refresh ORD-1: the row is pending"},
		step{
			line: "refund ORD-1 --all --reason duplicate", code: 1, environ: "REFUND_QUEUE_URL=http://127.0.0.1:1",
			want: "order is pending: nothing can be refunded\nif Stripe shows that the customer paid, first: orders refresh",
		},
		step{
			line: "refresh ORD-1 --scope test", claim: "a scope on the command line replaces the environment's",
			environ: "SCOPE=other", want: "scope test\nsettled: paid, it was pending\n\norder      ORD-1\nstatus     paid",
		},
		step{
			line: "refresh ORD-2", want: "settled: paid, it was declined",
			before: d.atStripe(func(m *stripetest.Machine, now time.Time) error { return m.CustomerPays(now, "pi_000002") }),
		},
		step{
			line: "refresh ORD-3", before: d.givesBack("pi_000003", 998), claim: "somebody gave money back in the Dashboard",
			want: "changes of refunds recorded: 1; the order is partially_refunded, it was paid\n\n" +
				"order      ORD-3\nstatus     partially_refunded\nby others  9.98 USD",
		},
		step{line: "show ORD-3", claim: "nothing is left for a person", want: "next       nothing: it is settled"},
		step{line: "refresh ORD-3", claim: "again", want: "unchanged\nrefunded   9.98 USD\nby others  9.98 USD"},
		step{line: "refresh NONE", claim: "no intent", code: 1, want: "no intent bound: no money has moved"},
		step{line: "refresh ORD-9", code: 1, want: "refresh order \"ORD-9\": \norder not found in table\n" + notFound},
		step{line: "show ORD-9", code: 1, want: "show order \"ORD-9\": \norder not found in table\n" + notFound},
		step{line: "cancel ORD-9 --yes", code: 1, want: "cancel order \"ORD-9\": \norder not found in table\n" + notFound},
		step{
			line: "refresh ORD-1", claim: "a key of another account", environ: "STRIPE_SECRET_KEY=sk_test_another", code: 1,
			want: "STRIPE_SECRET_KEY must be a valid key of the account and the mode",
		},
		step{
			line: "refresh ORD-1", claim: "another table", environ: "ORDERS_TABLE=another", code: 1,
			want: "no such table in this region and account",
		},
		step{
			line: "show LOST", claim: "a payment without a row, as after a restore from backup", code: 2,
			before: func() {
				d.erase("LOST")
				_, err := d.payments.Prepare(t.Context(), ordertest.Order("LOST"), order.PrepareAgainKey(scope, "LOST", 1))
				must(t, err) // the newest intent is not the one that was charged
				d.stripe.Advance(2 * time.Minute)
			},
			want: "charged    once\npi_000005, succeeded, 39.98 USD, not bound\norders restore LOST pi_000005: \norder \"LOST\" waits for a person",
		},
		step{
			line: "restore LOST pi_000005 --yes", before: d.givesBack("pi_000005", 998),
			want: "restored: the row names pi_000005 and is paid\n\nstatus     partially_refunded\nby others  9.98 USD",
		},
		step{line: "restore ORD-4 pi_000004 --yes", claim: "a row that is there", want: "restored: the row names pi_000004 and is paid"},
		step{line: "restore ORD-4 pi_000005 --yes", claim: "a row with another intent", code: 1, want: "restore order \"ORD-4\": from intent"},
	)
}

func TestNothingIsSentWithAWrongEnvironment(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.steps(
		step{
			line: "refresh ORD-1", environ: "STRIPE_SECRET_KEY=sk_live_canary", code: 1,
			want: "STRIPE_SECRET_KEY: live key with another base URL: a live key may be sent to Stripe only\nbuild/up/env",
		},
		step{line: "refresh ORD-1", environ: "SCOPE=Prod EU", code: 1, want: `SCOPE: scope "Prod EU": want ` + order.ScopeRule},
		step{
			line: "refresh ORD-1", environ: "SCOPE=", code: 1, claim: "every problem at once",
			before: func() { d.environ = append(d.environ, "ORDERS_TABLE=", "STRIPE_API_BASE=localhost") },
			want: "ORDERS_TABLE: want the name of the orders table, got empty\nSCOPE: want the deployment's scope, got empty\n" +
				`STRIPE_API_BASE: want a URL, or nothing for Stripe itself, got "localhost"`,
		},
	)
	if sent := d.stripe.Arrived(); sent > 0 {
		t.Errorf("%d requests were sent", sent)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(declines, "DECLINED")
	d.process(pays, "PAID")
	d.steps(
		step{
			line: "cancel DECLINED", typed: "yes\n", claim: "a word that is not the order id", code: 1,
			want: "status     declined\nnothing was changed: the word was not typed",
		},
		step{line: "cancel DECLINED", claim: "the end of the input", code: 1, want: "nothing was changed"},
		step{line: "--json cancel DECLINED --yes", want: `{"orderId":"DECLINED","status":"canceled",`},
		step{line: "cancel DECLINED --yes", claim: "again", want: "canceled: it was canceled"},
		step{line: "cancel PAID --yes", code: 1, want: "status     paid\nnot canceled: the order is paid"},
	)
}

func TestList(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(pays, "ORD-1")
	d.process(takes, "ORD-2")
	d.process(asks, "ORD-3")
	d.process(declines, "ORD-4")
	put := ordertest.Order("ORD-5")
	_, err := (&registrationtable.Store{Orders: d.store}).Register(t.Context(), intake.Registration{
		OrderID: put.ID(), Fingerprint: put.Fingerprint(), Total: put.Total(), Caller: "shop", At: noon(),
	})
	must(t, err)
	for _, tt := range []struct {
		line  string
		later time.Duration
		want  []string // ids and statuses, sorted
	}{
		{"list --status pending --status action_required", 0, []string{"ORD-2 pending", "ORD-3 action_required"}},
		{"list --due", 0, []string{"no such"}},
		{"list --due", 2 * time.Hour, []string{"ORD-2 pending", "ORD-5 not_sent"}},
		{"list --status not_sent", 0, []string{"ORD-5 not_sent"}},
		{"list --scan", 0, []string{"ORD-1 paid", "ORD-2 pending", "ORD-3 action_required", "ORD-4 declined", "a scan"}},
		{"list --scan --status paid", 0, []string{"ORD-1 paid", "a scan"}},
		{"list --scan --since 2026-11-21T13:00:00Z", 0, []string{"a scan", "no such"}},
		{"list --scan --updated-since 1h --status paid", 30 * time.Minute, []string{"ORD-1 paid", "a scan"}},
		{"list --status pending --status not_sent --limit 1", 0, []string{"ORD-2 pending", "the first"}},
		{"list --status pending --status not_sent --limit 2", 0, []string{"ORD-2 pending", "ORD-5 not_sent"}},
		{"list --status pending --status not_sent --limit 0", 0, []string{"ORD-2 pending", "ORD-5 not_sent"}},
	} {
		printed, _ := d.runs(step{line: tt.line, later: tt.later})
		var got []string
		for row := range strings.Lines(printed) {
			got = append(got, strings.Join(strings.Fields(row)[:2], " "))
		}
		slices.Sort(got)
		if diff := cmp.Diff(got, tt.want); diff != "" {
			t.Errorf("orders %s (-got +want):\n%s", tt.line, diff)
		}
	}
	d.steps(
		step{line: "list --status paid", code: 1, want: "read request units: add --scan; what waits needs none: --status open"},
		step{
			line: "list --scan --status partially_refunded --created-since 2026-11-21 --created-until 2026-11-21T13:00:00Z", claim: "created then",
			before: func() { d.refund("ORD-1", func() time.Time { return noon().Add(2 * time.Hour) }) },
			want:   "ORD-1 \ncreated 2026-11-21 12:00:00.123 UTC",
		},
		step{
			line: "list --scan --status partially_refunded --since 1h --until 1m", later: 150 * time.Minute, claim: "changed then",
			want: "ORD-1 \nupdated 2026-11-21 14:00:00.123 UTC",
		},
		step{line: "list --scan --status partially_refunded --created-since 1h", later: 150 * time.Minute, want: "no such order"},
		step{line: "list --scan --status partially_refunded --until 1h", later: 150 * time.Minute, want: "no such order"},
		step{
			line: "--json list --scan --status partially_refunded", claim: "JSON has the refunds",
			want: `"refunded":1000,"refunds":[{"refundId":"R-1","status":"succeeded","amount":1000,`,
		},
		step{
			line: "--json list --due --status partially_refunded", later: 10 * day, claim: "also of those that wait",
			before: func() { d.process("pm_card_pendingRefund", "ORD-6"); d.refund("ORD-6", noon) },
			want:   `"orderId":"ORD-6"` + "\n" + `"refunded":1000,"refunds":[{"refundId":"R-1","status":"pending","amount":1000,`,
		},
		step{
			line: "list --scan --status pending --status declined", code: 1, claim: "a corrupt row is named behind the others",
			before: func() { d.edit("ORD-4", dynamodb.Item{"fingerprint": nil}) },
			want:   "ORD-2 \norders: error: order \"ORD-4\": \ncorrupt record",
		},
	)
}

// A reconcile run begins at a shard of the index that the time chooses. A list does not.
func TestTwoListsHaveTheSameOrder(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(takes, "ORD-1", "ORD-2", "ORD-3", "ORD-4", "ORD-5", "ORD-6")
	first := ""
	for minute := range 16 {
		printed, _ := d.runs(step{line: "list --status pending", later: time.Duration(minute) * time.Minute})
		if first == "" {
			first = printed
		}
		if diff := cmp.Diff(printed, first); diff != "" {
			t.Errorf("after %d minutes (-got +first):\n%s", minute, diff)
		}
	}
}

// Those that disagree and those that fail are named, and hide no other.
func TestRefreshAllDue(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(takes, "ORD-1", "ORD-2")
	d.process("pm_card_pendingRefund", "REFUNDED")
	d.refund("REFUNDED", noon)
	d.process(takes, "LIVE") // of the other mode: left to a live key
	d.edit("LIVE", dynamodb.Item{"stripeMode": dynamodb.Text("live")})
	fails := func(kind stripetest.FaultKind, times int) func() {
		return func() { d.stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Read, Times: times}) }
	}
	const due = "--json refresh --all-due --rate 1000"
	d.steps(
		step{line: due, claim: "nothing is due", want: `{"results":{}}`},
		step{
			line: due, claim: "another scope", environ: "SCOPE=other", later: 2 * time.Hour, code: 2,
			before: d.banks("pi_000001"), want: `"mismatched":["ORD-1","ORD-2"]` + "\n2 orders disagree with Stripe",
		},
		step{
			line: due, later: 6 * time.Hour, code: 2, before: fails(stripetest.Forbidden, 2),
			want: `"failed":{"ORD-1":"` + "\nmisconfigured: \n" + `,"ORD-2":"` + "\n2 orders could not be looked at",
		},
		step{
			line: "refresh --all-due", claim: "Stripe is down", later: 12 * time.Hour, code: 2,
			before: fails(stripetest.Unavailable, -1), want: "FAILED       ORD-\nthe store or the provider does not answer",
		},
		step{
			line: due, later: 2 * day, want: `{"results":{"foreign":1,"settled":1,"unchanged":1}}`,
			before: d.atStripe(func(m *stripetest.Machine, _ time.Time) error {
				m.Heal()
				return m.ChangeRefund(m.Refunds()[0].ID, stripetest.RefundSucceeded)
			}),
		},
	)
	account, err := refundtable.New(d.store).Load(t.Context(), "REFUNDED")
	must(t, err)
	if account.Items[0].Status != refund.Succeeded {
		t.Errorf("got the refund %+v, want it succeeded", account.Items[0])
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	d.engine.Proxy.Before(func(dynamodbtest.Call) { interrupt() })
	d.steps(step{line: due, ctx: interrupted, later: 9 * day, code: 2, want: "interrupted: orders that were not looked at are still due"})
}

// refund refunds 10.00 USD of an order, as the function does.
func (d *deployment) refund(id order.ID, now func() time.Time) {
	d.Helper()
	d.makes(refundOf(d.T, id, "R-1", 1000), now)
}

// makes makes a refund as the function does.
func (d *deployment) makes(r refund.Request, now func() time.Time) {
	d.Helper()
	p := refund.Processor{
		Store: refundtable.New(d.store), Scope: scope, Now: now,
		Provider: striperefund.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: d.stripe.URL, Now: time.Now}),
	}
	p.Process(d.Context(), r, order.Lease{Owner: "refund", From: now(), Until: now().Add(time.Minute)})
}

// The events of an order are sent again in order, those of an order that cannot be read
// do not hide those behind it.
func TestRepublish(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	bus, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	d.environ = append(d.environ, "AWS_ENDPOINT_URL_EVENTBRIDGE="+bus.URL, "EVENT_BUS=orders")
	d.process(takes, "ORD-1")
	d.process(pays, "ORD-2")
	d.process(declines, "ORD-3")
	const since = "--json republish --rate 1000 --yes --since "
	d.steps(
		step{
			line: "refresh ORD-1", later: time.Hour, before: d.banks("pi_000001"), want: "settled: paid",
		},
		step{line: "republish ORD-1", want: "events published to orders: 2"},
		step{line: since + "2026-11-21T12:00:00Z", later: day, want: `{"published":4,"unreadable":0}`},
		step{
			line: "republish --since 2026-11-21", claim: "it counts before it asks", typed: "yes\n", code: 1, later: 2 * time.Hour,
			want: "event bus orders in us-east-1, scope test\n4 events of 3 orders, from 2026-11-21T00:00:00Z to 2026-11-21T14:00:00Z\n" +
				"Type republish to send them to every consumer again: yes\nnothing was changed",
		},
		step{
			line: "republish --since 26h", typed: "republish\n", later: 2 * time.Hour,
			want: "4 events of 3 orders\nevents published to orders: 4",
		},
		step{line: since + "2026-11-21 --until 2026-11-21T13:00:00Z", want: "3 events\n" + `{"published":3,"unreadable":0}`},
		step{line: since + "2026-11-21T13:00:00Z", later: day, want: `{"published":1,"unreadable":0}`},
		step{line: since + "2026-11-21T14:00:00Z", want: `{"published":0,"unreadable":0}`},
		step{
			line: since + "2026-11-21T12:00:00Z", later: day, code: 2, claim: "a corrupt row, and one of a newer release",
			before: func() {
				d.edit("ORD-2", dynamodb.Item{"status": dynamodb.Text("")})
				d.edit("ORD-3", dynamodb.Item{"status": dynamodb.Text("shipped")})
			},
			want: "republish order \"ORD-\nrepublish order \"ORD-\n" + `{"published":2,"unreadable":2}`,
		},
		step{
			line: "republish ORD-1", before: func() { bus.Fail("ThrottlingException", 10) }, code: 1,
			want: "republish order \"ORD-1\": publish event 1 of order ORD-1\nevents published before: 0",
		},
	)
	var sent []string
	for _, e := range bus.Archive()[:2] {
		sent = append(sent, e.DetailType)
	}
	if diff := cmp.Diff(sent, []string{"Order Pending", "Order Paid"}); diff != "" {
		t.Errorf("events of ORD-1 (-got +want):\n%s", diff)
	}
}
