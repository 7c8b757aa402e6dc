package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

const refundLine = `{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1000,"reason":"duplicate"}`

// lines returns the messages of orders from ORD-1 on.
func lines(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = sale(order.ID(fmt.Sprintf("ORD-%d", i+1)), 2400, "pm_canary")
	}
	return all
}

// orderQueue is a queue that counts the calls to it.
type orderQueue struct {
	*sqstest.Server
	person

	calls int
}

// newOrderQueue returns a queue whose second call fails with a code, unless that is "".
func newOrderQueue(t *testing.T, second string) *orderQueue {
	t.Helper()
	q := &orderQueue{person: person{T: t}}
	environ, server := serveQueues(t, sqstest.Options{Before: func(c sqstest.Call) {
		if q.calls++; q.calls == 2 && second != "" {
			q.Fail(c.Operation, 1, second)
		}
	}}, nil)
	q.Server, q.environ = server, environment(append(environ, "REFUND_QUEUE_URL="+server.QueueURL("refunds"))...)
	return q
}

func bodies(all []sqstest.Message) (texts []string) {
	for _, m := range all {
		texts = append(texts, m.Body)
	}
	return texts
}

func TestPost(t *testing.T) {
	t.Parallel()
	const broken = "{\"orderId\":\"\x01\"}" // no message may hold this character
	good := lines(25)
	pretty := strings.NewReplacer("{", "{\n", ",", ",\n", "}", "\n}").Replace(good[0])
	const notLines = "nothing posted: standard input: not JSON lines: want one order per line: jq -c . "
	mixed := append(append(append([]string{broken}, good[:10]...), broken), good[10:12]...)
	for claim, tt := range map[string]struct {
		in    []string
		flags string
		fails string // the second call, with this code
		held  []string
		calls int
		want  string // what is printed, in parts
		code  int
	}{
		"eleven orders take two calls": {in: good[:11], held: good[:11], calls: 2, want: "messages posted: 11\n"},
		"a refund is posted":           {in: []string{refundLine}, held: []string{refundLine}, calls: 1, want: "messages posted: 1\n"},
		"comments, blank lines and space around a body are not posted": {
			in:   []string{"# mine", "", "  " + good[0] + "\t", "   ", "#" + good[1], good[2]},
			held: []string{good[0], good[2]}, calls: 1, want: "messages posted: 2\n",
		},
		"nothing to post needs no call": {in: []string{"# nothing"}, want: "messages posted: 0\n"},
		"invalid orders are posted with --allow-invalid": {
			in: []string{good[0], `{"orderId":"ORD-2"`}, flags: "--allow-invalid", held: []string{good[0], `{"orderId":"ORD-2"`},
			calls: 1, want: "messages posted: 2\n",
		},
		"every message that the queue refuses is named by its line": {
			in: append([]string{"# a comment"}, mixed...), flags: "--allow-invalid", held: good[:12], calls: 2, code: 1,
			want: "12 of 14 messages posted to http\nstandard input:2: InvalidMessageContents: \n" +
				"standard input:13: InvalidMessageContents: ",
		},
		"a call that fails hides no message that was refused before": {
			in: mixed, flags: "--allow-invalid", fails: sqstest.CodeOverLimit, held: good[:9], calls: 2, code: 1,
			want: "9 of 14 messages posted to http\nstandard input:1: InvalidMessageContents: \n" +
				"standard input:11 to 14: may be posted",
		},
		"a call that fails ends it, and the error says what is unknown": {
			in: good, fails: sqstest.CodeOverLimit, held: good[:10], calls: 2, code: 1,
			want: "10 of 25 messages posted to http\n" +
				"standard input:11 to 20: may be posted, the lines after them are not\nOverLimit",
		},
		"each invalid line is named": {
			in: []string{"# mine", good[0], `{"orderId":"ORD-2"`, "", `{"orderId":"ORD-3","discount":1}`}, code: 1,
			want: "nothing posted: 2 of 3 messages are invalid orders:\nstandard input:3: message body: \n" +
				"standard input:5: message body: \n--allow-invalid",
		},
		"of many invalid lines, the first 20 are named": {
			in: append(good[:1:1], slices.Repeat([]string{"{"}, 22)...), code: 1,
			want: "22 of 23 messages\nstandard input:21: \n  and 2 more",
		},
		"an order over several lines":      {in: []string{pretty}, code: 1, want: notLines},
		"an array of orders":               {in: []string{"[" + good[0] + "]"}, code: 1, want: notLines},
		"an array of orders on many lines": {in: []string{"[", good[0] + ",", good[1], "]"}, code: 1, want: notLines},
		"text":                             {in: []string{"Dear shop,", "please send me a book."}, code: 1, want: notLines},
		"a file that does not exist":       {flags: "none.jsonl", code: 1, want: "none.jsonl"},
		"a line too long": {
			in: []string{"#", strings.Repeat("x", 1<<20+1)}, code: 1,
			want: "standard input:2: line too long: want at most 1048576 bytes",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			q := newOrderQueue(t, tt.fails)
			q.steps(step{line: "post --yes " + tt.flags, typed: strings.Join(tt.in, "\n"), want: tt.want, code: tt.code})
			if diff := cmp.Diff(bodies(messagesOf(t, q.Server, "orders", "refunds")), tt.held); diff != "" || q.calls != tt.calls {
				t.Errorf("%d calls, want %d; in the queue (-got +want):\n%s", q.calls, tt.calls, diff)
			}
		})
	}
}

// A person sees what a file charges, and where, before anybody is charged.
func TestPostAsks(t *testing.T) {
	t.Parallel()
	q := newOrderQueue(t, "")
	q.terminal = true
	euros := strings.Replace(sale("ORD-3", 84900, "pm_1"), `"usd"`, `"eur"`, 1)
	text := strings.Join(append(lines(2), euros, "{}"), "\n")
	file, one := q.file(text), q.file(euros)
	const sums = "/orders in us-east-1, Stripe in test mode\norders        1, which charge 849.00 EUR\n" +
		"orders        2, which charge 48.00 USD\ninvalid       1, which the function parks\n"
	for _, tt := range []struct {
		file, in, want string
		held, code     int
	}{
		{"-", text, "reading messages from standard input\n" + sums + "nothing posted: no answer can come from standard input", 0, 1},
		{file, "yes\n", sums + "nothing was changed", 0, 1},
		{file, "post\n", sums + "Type post to post 4 messages: post\nmessages posted: 4", 4, 0},
		{one, "post\n", "Type post to post 1 message: post\nmessages posted: 1", 5, 0},
	} {
		q.steps(step{line: "post --allow-invalid " + tt.file, typed: tt.in, want: tt.want, code: tt.code})
		if held := len(messagesOf(t, q.Server, "orders")); held != tt.held {
			t.Errorf("%s: got %d messages, want %d", tt.want, held, tt.held)
		}
	}
}

// Each order has a group of its own on a FIFO queue, and a file that is posted twice
// leaves each message once.
func TestPostToAFIFOQueue(t *testing.T) {
	t.Parallel()
	q := newOrderQueue(t, "")
	q.environ = append(q.environ, "QUEUE_URL="+q.QueueURL("orders.fifo"))
	for range 2 {
		q.steps(step{line: "post --yes --allow-invalid --rate 1000", typed: strings.Join(append(lines(12), "{}"), "\n")})
	}
	all, groups := messagesOf(t, q.Server, "orders.fifo"), map[string]int{}
	for _, message := range all {
		groups[message.Group]++
	}
	if len(all) != 13 || len(groups) != 13 || groups["ORD-1"] != 1 {
		t.Errorf("got %d messages in the groups %v, want 13 in as many, and one of ORD-1", len(all), groups)
	}
}

// A refund is counted beside the orders, and has the group of its order on a queue of its
// own.
func TestPostCountsRefunds(t *testing.T) {
	t.Parallel()
	q := newOrderQueue(t, "")
	q.terminal = true
	q.environ = append(q.environ, "REFUND_QUEUE_URL="+q.QueueURL("refunds.fifo"))
	for range 2 {
		q.steps(step{
			line: "post " + q.file(lines(1)[0]+"\n"+refundLine), typed: "post\n",
			want: "orders        1, which charge 24.00 USD\nrefunds       1\nType post to post 2 messages: post\nmessages posted: 2",
		})
	}
	if all := messagesOf(t, q.Server, "refunds.fifo"); len(all) != 1 || all[0].Group != "ORD-1" {
		t.Errorf("got %v, want one refund in the group of ORD-1", all)
	}
}

// A person forgot to start the local system.
func TestARefusedConnectionAsksWhetherTheLocalSystemRuns(t *testing.T) {
	t.Parallel()
	p := person{T: t, environ: environment("AWS_MAX_ATTEMPTS=1", "QUEUE_URL=http://127.0.0.1:1/orders")}
	p.steps(
		step{line: "post --yes", typed: lines(1)[0], code: 1, want: "is `make up` running?"},
		step{line: "list --due", code: 1, want: "is `make up` running?"},
	)
}
