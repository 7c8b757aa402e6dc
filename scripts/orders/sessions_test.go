package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

// sessions is the page whose console blocks TestEverySession runs. Write them anew with
// UPDATE_SESSIONS=1.
const sessions = "../../docs/reference/orders.md"

// TestEverySession runs each command of the page against the local system, which runs the
// compiled function, and compares what it prints. The blocks are one session.
func TestEverySession(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	s, _ := kit.Start(t, unhurried(system.Options{Instances: 1, BatchSize: 1})) // dead letters in the order of their posting
	bus, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	environ := append(s.OperatorEnv(), "AWS_ENDPOINT_URL_EVENTBRIDGE="+bus.URL, "EVENT_BUS=orders")
	page, err := os.ReadFile(sessions)
	must(t, err)
	r := recorder{table: s.Options.Table, ids: map[string]string{}, count: map[string]int{}}
	block := regexp.MustCompile("(?s)```console\\n(.*?)```")
	got := block.ReplaceAllStringFunc(string(page), func(text string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.SplitSeq(text, "\n") {
			if typed, is := strings.CutPrefix(line, "$ orders "); is {
				b.WriteString(line + "\n" + r.normalize(session(t, s, environ, strings.Fields(typed))))
			}
		}
		return b.String() + "```"
	})
	if os.Getenv("UPDATE_SESSIONS") != "" {
		must(t, os.WriteFile(sessions, []byte(got), 0o600))
		return
	}
	if diff := gocmp.Diff(got, string(page)); diff != "" {
		t.Errorf("%s (-got +want):\n%s", sessions, diff)
	}
}

// unhurried gives the function time, so that a busy machine makes no second attempt: an
// unanswered refund waits for its lease of 15 minutes.
func unhurried(o system.Options) system.Options {
	o.FunctionTimeout, o.Visibility = 30*time.Second, 40*time.Second
	o.Env = map[string]string{"STRIPE_TIMEOUT": "20s", "ORDER_BUDGET": "24s"}
	return o
}

// session runs one command line and waits until the function has handled what it posted.
func session(t *testing.T, s *system.System, environ, args []string) string {
	t.Helper()
	ctx, cancel := s.Function.UntilExit(t.Context())
	defer cancel()
	sh := testShell(environ, "", nil)
	sh.Now = time.Now
	printed := typeLine(ctx, t, sh, args)
	must(t, drained(ctx, s))
	return printed
}

// typeLine runs one command line in a shell, types the order's or refund's id or the
// command's name where it asks, and returns what a person sees.
func typeLine(ctx context.Context, t *testing.T, sh shell.Shell, args []string) string {
	t.Helper()
	var c commands
	parser, err := newParser(&c)
	must(t, err)
	k, err := parser.Parse(args)
	must(t, err)
	var out strings.Builder
	typed := cmp.Or(c.Refund.Resolve.Refund, c.Refund.Make.Order, c.Cancel.ID, c.Receipts.Resolve.Order, args[min(1, len(args)-1)])
	if c.Audit.Repair {
		typed = "repair"
	}
	sh.In, sh.Out, sh.ErrOut = strings.NewReader(typed+"\n"), &out, &out
	if err := c.run(ctx, k, sh); err != nil {
		out.WriteString("orders: error: " + cloud.Hint(err).Error() + "\n")
	}
	return regexp.MustCompile(`Type [^:]*: `).ReplaceAllString(out.String(), "${0}"+typed+"\n")
}

func drained(ctx context.Context, s *system.System) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := s.Drained(ctx); err != nil {
		return err
	}
	return s.ReceiptsDrained(ctx)
}

// recorder replaces what differs from run to run: times, the numbers of payments,
// requests and messages, and whether the refund's row was seen before it was settled.
type recorder struct {
	table string
	ids   map[string]string // by what was printed
	count map[string]int    // of ids by their format
}

func (r recorder) normalize(text string) string {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, replace := range [][2]string{
		{`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC`, view.Stamp(at)},
		{`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC`, at.Format("2006-01-02 15:04:05 UTC")},
		{`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.]*Z`, at.Format(time.RFC3339)},
		{`first sent \d+m ago`, "first sent 0m ago"},
		{`(?m)^oldest +\w+ `, "oldest              9s "},
		{`scanned at [0-9:]+`, "scanned at 12:00:00"},
		{`(?m)^  (no refund yet|open, .*)\n`, ""},
		{`http://127\.0\.0\.1:\d+/000000000000/`, "https://sqs.us-east-1.amazonaws.com/123456789012/"},
		{"table " + r.table + `\b`, "table orderonce-dev-orders"},
		{`table receipts\S* in`, "table orderonce-dev-receipts in"},
		{`table "stock[^"]*"`, `table "orderonce-dev-stock"`},
	} {
		text = regexp.MustCompile(replace[0]).ReplaceAllString(text, replace[1])
	}
	text = r.number(text, `00000000-0000-4000-8000-[0-9a-f]{12}`, "00000000-0000-4000-8000-%012d")
	text = r.number(text, `req_\d+`, "req_%06d")
	return r.number(text, `pi_\d+`, "pi_%06d")
}

// number replaces each id of a pattern by its number in the session.
func (r recorder) number(text, pattern, format string) string {
	return regexp.MustCompile(pattern).ReplaceAllStringFunc(text, func(id string) string {
		if r.ids[id] == "" {
			r.count[format]++
			r.ids[id] = fmt.Sprintf(format, r.count[format])
		}
		return r.ids[id]
	})
}
