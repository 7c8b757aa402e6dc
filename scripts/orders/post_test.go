package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
)

// line returns a valid order.
func line(id string) string {
	return `{"orderId":"` + id + `","customerId":"me","currency":"usd","lines":[{"sku":"BOOK","quantity":1,"unitAmount":2400}],` +
		`"payment":{"customer":"cus_canary","method":"pm_canary"}}`
}

const refundLine = `{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1000,"reason":"duplicate"}`

func lines(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = line(fmt.Sprintf("ORD-%d", i+1))
	}
	return all
}

// orderQueue is a queue that counts the calls to it.
type orderQueue struct {
	*sqstest.Server
	calls int
}

// newOrderQueue returns a queue whose second call fails with a code, unless that is "".
func newOrderQueue(t *testing.T, second string) *orderQueue {
	t.Helper()
	q := &orderQueue{}
	s, err := sqstest.Serve(sqstest.Options{Before: func(c sqstest.Call) {
		if q.calls++; q.calls == 2 && second != "" {
			q.Fail(c.Operation, 1, second)
		}
	}})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	s.Machine(func(m *sqstest.Machine, now time.Time) { err = m.Create(now, "orders", sqstest.DefaultSettings()) })
	must(t, err)
	q.Server = s
	return q
}

func (q *orderQueue) environ() []string {
	return environment("AWS_ENDPOINT_URL_SQS="+q.URL, "QUEUE_URL="+q.QueueURL("orders"))
}

// bodies returns the bodies in the queue, in the order of their posting.
func (q *orderQueue) bodies(t *testing.T) (all []string) {
	t.Helper()
	q.Machine(func(m *sqstest.Machine, now time.Time) {
		messages, err := m.Messages(now, "orders")
		if err != nil {
			t.Error(err)
		}
		for _, message := range messages {
			all = append(all, message.Body)
		}
	})
	return all
}

func TestPost(t *testing.T) {
	t.Parallel()
	const broken = "{\"orderId\":\"\x01\"}" // no message may hold this character
	good := lines(25)
	mixed := append(append(append([]string{broken}, good[:10]...), broken), good[10:12]...)
	for claim, tt := range map[string]struct {
		in           []string
		file         bool // in is a file's text, and not that of standard input
		allowInvalid bool
		fails        string // the second call, with this code
		held         []string
		calls        int
		printed      string
		err          []string
	}{
		"eleven orders take two calls": {in: good[:11], held: good[:11], calls: 2, printed: "messages posted: 11\n"},
		"a refund is posted": {
			in: []string{refundLine}, held: []string{refundLine}, calls: 1, printed: "messages posted: 1\n",
		},
		"ten orders take one call": {in: good[:10], held: good[:10], calls: 1, printed: "messages posted: 10\n"},
		"comments, blank lines and space around a body are not posted": {
			in: []string{"# mine", "", "  " + good[0] + "\t", "   ", "#" + good[1], good[2]}, held: []string{good[0], good[2]}, calls: 1,
			printed: "messages posted: 2\n",
		},
		"a file is read":                {in: good[:1], file: true, held: good[:1], calls: 1, printed: "messages posted: 1\n"},
		"nothing to post needs no call": {in: []string{"# nothing"}, printed: "messages posted: 0\n"},
		"invalid orders are posted with --allow-invalid": {
			in: []string{good[0], `{"orderId":"ORD-2"`}, allowInvalid: true, held: []string{good[0], `{"orderId":"ORD-2"`}, calls: 1,
			printed: "messages posted: 2\n",
		},
		"every message that the queue refuses is named by its line": {
			in: append([]string{"# a comment"}, mixed...), allowInvalid: true, held: good[:12], calls: 2,
			err: []string{
				"12 of 14 messages posted to http", "\nstandard input:2: InvalidMessageContents: ",
				"\nstandard input:13: InvalidMessageContents: ",
			},
		},
		"a call that fails hides no message that was refused before": {
			in: mixed, allowInvalid: true, fails: sqstest.CodeOverLimit, held: good[:9], calls: 2,
			err: []string{
				"9 of 14 messages posted to http", "\nstandard input:1: InvalidMessageContents: ",
				"\nstandard input:11 to 14: may be posted",
			},
		},
		"a call that fails ends it, and the error says what is unknown": {
			in: good, fails: sqstest.CodeOverLimit, held: good[:10], calls: 2,
			err: []string{
				"10 of 25 messages posted to http", "\nstandard input:11 to 20: may be posted, the lines after them are not", "OverLimit",
			},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			q := newOrderQueue(t, tt.fails)
			var out strings.Builder
			command := post{File: "-", AllowInvalid: tt.allowInvalid}
			sh := testShell(q.environ(), strings.Join(tt.in, "\n"), &out)
			if tt.file {
				command.File, sh.In = ordersFile(t, strings.Join(tt.in, "\n")), strings.NewReader("not this")
			}
			err := command.Run(t.Context(), sh)
			if (err == nil) != (tt.err == nil) || out.String() != tt.printed {
				t.Errorf("error %v, printed %q, want %q, %q", err, &out, tt.err, tt.printed)
			}
			for _, want := range tt.err {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
			if diff := cmp.Diff(q.bodies(t), tt.held); diff != "" {
				t.Errorf("- in the queue, + want:\n%s", diff)
			}
			if q.calls != tt.calls {
				t.Errorf("%d calls, want %d", q.calls, tt.calls)
			}
			if strings.Contains(fmt.Sprint(err)+out.String(), "canary") {
				t.Error("a payer or a payment method is printed")
			}
		})
	}
}

func ordersFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "orders.jsonl")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestPostSendsNothingIfALineIsInvalid(t *testing.T) {
	t.Parallel()
	pretty := strings.NewReplacer("{", "{\n", ",", ",\n", "}", "\n}").Replace(line("ORD-1"))
	const notLines = "nothing posted: orders.jsonl: not JSON lines: want one order per line, got "
	for claim, tt := range map[string]struct {
		text string
		want []string
	}{
		"each invalid line is named": {
			"# mine\n" + line("ORD-1") + "\n" + `{"orderId":"ORD-2"` + "\n\n" + `{"orderId":"ORD-3","discount":1}`,
			[]string{
				"nothing posted: 2 of 3 messages are invalid orders:", "\n  orders.jsonl:3: message body: ",
				"\n  orders.jsonl:5: message body: ", "--allow-invalid",
			},
		},
		"of many invalid lines, the first 20 are named": {
			strings.Repeat("{\n", 22),
			[]string{"22 of 22 messages", "orders.jsonl:20: ", "\n  and 2 more\n"},
		},
		"an order over several lines":      {pretty, []string{notLines + "an order over several lines: jq -c . "}},
		"two orders over several lines":    {pretty + "\n" + pretty, []string{notLines + "an order over several lines: jq -c . "}},
		"an array of orders":               {"[" + line("ORD-1") + "]", []string{notLines + "an array: jq -c '.[]'"}},
		"an array of orders on many lines": {"[\n" + line("ORD-1") + ",\n" + line("ORD-2") + "\n]", []string{notLines + "an array: jq -c '.[]'"}},
		"text":                             {"Dear shop,\nplease send me a book.\n", []string{notLines + `no line that starts with "{"`}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			q := newOrderQueue(t, "")
			var out strings.Builder
			file := ordersFile(t, tt.text)
			err := post{File: file}.Run(t.Context(), testShell(q.environ(), "", &out))
			if err == nil || q.calls > 0 || out.Len() > 0 {
				t.Fatalf("error %v after %d calls, printed %q, want an error alone", err, q.calls, &out)
			}
			got := strings.ReplaceAll(err.Error(), filepath.Dir(file)+"/", "")
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got error\n%s\nwant %q in it", got, want)
				}
			}
			if strings.Contains(got, "canary") || strings.Contains(got, "orders.jsonl:21") {
				t.Errorf("got error\n%s\nwant no payer and at most 20 lines", got)
			}
		})
	}
}

func TestPostSendsNothing(t *testing.T) {
	t.Parallel()
	const noQueue = `QUEUE_URL: want the URL of the order queue, got "orders"`
	for claim, tt := range map[string]struct{ file, in, change, want string }{
		"without its file": {file: "none.jsonl", want: "none.jsonl"},
		"from a line too long": {
			file: "-", in: "#\n" + strings.Repeat("x", 1<<20+1), want: "standard input:2: line too long: want at most 1048576 bytes",
		},
		"to a wrong queue URL": {file: "-", change: "QUEUE_URL=orders", want: noQueue},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			q := newOrderQueue(t, "")
			var out strings.Builder
			sh := testShell(append(q.environ(), tt.change), tt.in, &out)
			err := post{File: tt.file}.Run(t.Context(), sh)
			if err == nil || !strings.Contains(err.Error(), tt.want) || q.calls > 0 || out.Len() > 0 {
				t.Errorf("error %v after %d calls, printed %q, want %q and nothing else", err, q.calls, &out, tt.want)
			}
		})
	}
}

// TestARefusedConnectionAsksWhetherTheLocalSystemRuns runs each command against addresses
// where nothing listens.
func TestARefusedConnectionAsksWhetherTheLocalSystemRuns(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t) // the SDK tries three times
	const closed = "http://127.0.0.1:1"
	environ := environment("AWS_ENDPOINT_URL="+closed, "QUEUE_URL="+closed+"/orders", "STRIPE_API_BASE="+closed)
	payments := cloud.StripeEnv{Scope: "test", Key: config.NewSecret(pretendKey), Address: closed}.Payments()
	sh := func() shell.Shell { return testShell(environ, line("ORD-1"), new(strings.Builder)) }
	for name, run := range map[string]func(context.Context) error{
		"post": func(ctx context.Context) error { return post{File: "-"}.Run(ctx, sh()) },
		"show": func(ctx context.Context) error { return show{"ORD-1"}.Run(ctx, sh()) },
		"Stripe": func(ctx context.Context) error {
			_, err := payments.Read(ctx, "pi_1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cloud.Hint(run(t.Context())); got == nil || !strings.Contains(got.Error(), "is `make up` running?") {
				t.Errorf("got error %v, want the question whether make up is running", got)
			}
		})
	}
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for args, change := range map[string]func(*commands){
		"post":                             func(*commands) {},
		"post orders.json":                 func(c *commands) { c.Post.File = "orders.json" },
		"post --allow-invalid orders.json": func(c *commands) { c.Post = post{File: "orders.json", AllowInvalid: true} },
		"show ORD-1":                       func(c *commands) { c.Show.ID = "ORD-1" },
		"refresh ORD-1":                    func(c *commands) { c.Refresh.ID = "ORD-1" },
		"refresh --scope=old ORD-1":        func(c *commands) { c.Refresh.ID, c.Refresh.Scope = "ORD-1", "old" },
		"refresh --all-due --rate=5":       func(c *commands) { c.Refresh.AllDue, c.Refresh.Rate = true, 5 },
		"republish ORD-1":                  func(c *commands) { c.Republish.ID = "ORD-1" },
		"--json --profile=shop show ORD-1": func(c *commands) { c.JSON, c.Account.Profile, c.Show.ID = true, "shop", "ORD-1" },
		"cancel ORD-1":                     func(c *commands) { c.Cancel.ID = "ORD-1" },
		"restore ORD-1 pi_1":               func(c *commands) { c.Restore = restore{ID: "ORD-1", Intent: "pi_1"} },
		"dead-letters list":                func(*commands) {},
		"dead-letters list --verdict=fix --reason=refused,none --older-than=48h": func(c *commands) {
			c.Dead.List.Verdict = "fix"
			c.Dead.List.Select.Reason, c.Dead.List.Select.OlderThan = []string{"refused", "none"}, 48*time.Hour
		},
		"dead-letters show ORD-1 --body":        func(c *commands) { c.Dead.Show.ID, c.Dead.Show.Body = "ORD-1", true },
		"dead-letters redrive --rate=2 --yes":   func(c *commands) { c.Dead.Redrive.Rate, c.Dead.Redrive.How.Yes = 2, true },
		"dead-letters discard --force --save=f": func(c *commands) { c.Dead.Discard.Force, c.Dead.Discard.Save = true, "f" },
		"check":                                 func(*commands) {},
		"smoke":                                 func(*commands) {},
		"smoke --limit=5s":                      func(c *commands) { c.Smoke.Limit = 5 * time.Second },
		"smoke --customer=c --method=m":         func(c *commands) { c.Smoke.Customer, c.Smoke.Method = "c", "m" },
		"audit --from=8h --repair":              func(c *commands) { c.Audit.From, c.Audit.Repair = "8h", true },
	} {
		want := parse(t, "check") // the defaults
		change(&want)
		if diff := cmp.Diff(parse(t, args), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", args, diff)
		}
	}
}

// parse returns what the command line sets.
func parse(t *testing.T, args string) (c commands) {
	t.Helper()
	k, err := kong.New(&c)
	must(t, err)
	_, err = k.Parse(strings.Fields(args))
	must(t, err)
	return c
}

// A message that was posted again without its age would look younger than a row that
// replaced a lost one.
func TestPostKeepsTheAgeOfASavedMessage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "discarded.jsonl")
	first := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	must(t, batch.Save(file, deadletters.Message{
		ID: "message-1", Body: line("ORD-1"), Reason: order.ReasonRecordLost, FirstSent: first,
		Attributes: map[string]types.MessageAttributeValue{
			sqs.AttrReason: {DataType: aws.String("String"), StringValue: aws.String("record_lost")},
		},
	}))
	q := newOrderQueue(t, "")
	must(t, post{File: file}.Run(t.Context(), testShell(q.environ(), "", new(strings.Builder))))
	q.Machine(func(m *sqstest.Machine, now time.Time) {
		messages, err := m.Messages(now, "orders")
		must(t, err)
		if len(messages) != 1 || messages[0].Body != line("ORD-1") || len(messages[0].Attributes) != 1 ||
			messages[0].Attributes[sqs.AttrFirstSent].Text != first.Format(time.RFC3339) {
			t.Errorf("got %+v, want the order as it was first sent on %s", messages, first)
		}
	})
}

// Each order has a group of its own on a FIFO queue, and a file that is posted twice
// leaves each message once.
func TestPostToAFIFOQueue(t *testing.T) {
	t.Parallel()
	s, err := sqstest.Serve(sqstest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	settings := sqstest.DefaultSettings()
	settings.FIFO = true
	s.Machine(func(m *sqstest.Machine, now time.Time) { must(t, m.Create(now, "orders.fifo", settings)) })
	environ := environment("AWS_ENDPOINT_URL_SQS="+s.URL, "QUEUE_URL="+s.QueueURL("orders.fifo"))
	text := strings.Join(append(lines(12), refundLine, "{}"), "\n")
	for range 2 {
		var out strings.Builder
		must(t, post{File: "-", AllowInvalid: true, Rate: 1000}.Run(t.Context(), testShell(environ, text, &out)))
	}
	s.Machine(func(m *sqstest.Machine, now time.Time) {
		all, err := m.Messages(now, "orders.fifo")
		must(t, err)
		groups := map[string]int{}
		for _, message := range all {
			groups[message.Group]++
		}
		if len(all) != 14 || len(groups) != 13 || groups["ORD-1"] != 2 {
			t.Errorf("got %d messages in the groups %v, want 14 in 13, and two of ORD-1", len(all), groups)
		}
	})
}
