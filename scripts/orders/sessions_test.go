package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
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
	s, _ := kit.Start(t, incidents.Unhurried(system.Options{Instances: 1, BatchSize: 1})) // dead letters in the order of their posting
	bus, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	sh := testShell(append(s.OperatorEnv(), "AWS_ENDPOINT_URL_EVENTBRIDGE="+bus.URL, "EVENT_BUS=orders"))
	sh.Now = time.Now
	page, err := os.ReadFile(sessions)
	must(t, err)
	r := newRecorder(s)
	got := regexp.MustCompile("(?s)```console\\n.*?```").ReplaceAllStringFunc(string(page), func(block string) string {
		return r.block(block, func(c command) string {
			ctx, cancel := s.UntilExit(t.Context())
			defer cancel()
			printed, _ := runs(ctx, t, sh, c.line, c.typed)
			must(t, incidents.Drained(ctx, s, 5*time.Minute))
			return printed
		})
	})
	if os.Getenv("UPDATE_SESSIONS") != "" {
		must(t, os.WriteFile(sessions, []byte(got), 0o600))
	} else if diff := gocmp.Diff(got, string(page)); diff != "" {
		t.Errorf("%s (-got +want):\n%s", sessions, diff)
	}
}

// command is one command of a console block.
type command struct {
	variable, like string // a variable to set to the value of another one, or ""
	line, typed    string
}

// block runs the commands of a console block, which may be indented, and returns the
// block with what they print. A line "..." of it stands for lines that it leaves out.
func (r recorder) block(block string, run func(command) string) string {
	indent := block[:strings.Index(block, "`")]
	plain := regexp.MustCompile("(?m)^"+indent).ReplaceAllString(block, "")
	var b strings.Builder
	b.WriteString("```console\n")
	syntax := regexp.MustCompile(`^(?:(\w+)="\$(\w+)" )?orders (.*)\n`)
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(plain, "```console\n$ "), "\n```"), "\n$ ") {
		part += "\n"
		m := syntax.FindStringSubmatch(part)
		c, shown := command{m[1], m[2], m[3], "\n"}, part[len(m[0]):]
		if at := asked.FindStringIndex(shown); at != nil {
			c.typed, _, _ = strings.Cut(shown[at[1]:], "\n")
			c.typed += "\n"
		}
		printed := r.normalize(run(c))
		if elides(shown, printed) {
			printed = shown
		}
		b.WriteString("$ " + m[0] + printed)
	}
	return regexp.MustCompile(`(?m)^.`).ReplaceAllString(b.String()+"```", indent+"$0")
}

// elides reports whether text is what was printed, apart from the lines that it leaves
// out.
func elides(text, printed string) bool {
	left := regexp.MustCompile(`(?m)^\\\.\\\.\\\.\n`)
	pattern := left.ReplaceAllString(regexp.QuoteMeta(strings.TrimRight(text, "\n")+"\n"), "(?:.*\n)*?")
	return regexp.MustCompile("^" + pattern + "\n*$").MatchString(printed)
}

// recorder replaces what differs from run to run: times, the numbers of payments,
// requests and messages, and whether the refund's row was seen before it was settled.
type recorder struct {
	table string
	ids   map[string]string // by what was printed
	count map[string]int    // of ids by their format
}

func newRecorder(s *system.System) recorder {
	return recorder{table: s.Options.Table, ids: map[string]string{}, count: map[string]int{}}
}

func (r recorder) normalize(text string) string {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, replace := range [][2]string{
		{`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC`, view.Stamp(at)},
		{`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC`, at.Format("2006-01-02 15:04:05 UTC")},
		{`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.]*Z`, at.Format(time.RFC3339)},
		{`"receives":\d+,"timesParked":2`, `"receives":2,"timesParked":2`}, // the tool may see it come back
		{`first sent \d+m ago`, "first sent 0m ago"},
		{`(?m)^oldest +\w+ `, "oldest              9s "},
		{`scanned at [0-9:]+`, "scanned at 12:00:00"},
		{`(?m)^  (no refund yet|open, .*)\n`, ""},
		{`http://127\.0\.0\.1:\d+/000000000000/`, "https://sqs.us-east-1.amazonaws.com/123456789012/"},
		{`table orders[\w-]*`, "table orderonce-dev-orders"},
		{`table receipts\S* in`, "table orderonce-dev-receipts in"},
		{`table stock\S* in`, "table orderonce-dev-stock in"},
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
