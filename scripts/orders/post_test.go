package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// line is an order's message, whose body is good.
func line(id string) string {
	return `{"orderId":"` + id + `","customerId":"me","currency":"usd","lines":[{"sku":"BOOK","quantity":1,"unitAmount":2400}],` +
		`"payment":{"customer":"cus_canary","method":"pm_canary"}}`
}

func lines(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = line(fmt.Sprintf("ORD-%d", i+1))
	}
	return all
}

// office is an order queue and the environment of whoever posts to it.
type office struct {
	*sqstest.Server
	calls int
}

// openOffice opens one whose second call fails with a code, unless that is "".
func openOffice(t *testing.T, second string) *office {
	t.Helper()
	o := &office{}
	s, err := sqstest.Serve(sqstest.Options{Before: func(c sqstest.Call) {
		if o.calls++; o.calls == 2 && second != "" {
			o.Fail(c.Operation, 1, second)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Machine(func(m *sqstest.Machine, now time.Time) { err = m.Create(now, "orders", sqstest.DefaultSettings()) })
	if err != nil {
		t.Fatal(err)
	}
	o.Server = s
	return o
}

func (o *office) environ() []string {
	return []string{
		"AWS_REGION=" + sqstest.Region, "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend",
		"AWS_ENDPOINT_URL_SQS=" + o.URL, "QUEUE_URL=" + o.QueueURL("orders"),
	}
}

// bodies are what the queue holds, as they were posted.
func (o *office) bodies(t *testing.T) (all []string) {
	t.Helper()
	o.Machine(func(m *sqstest.Machine, now time.Time) {
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
		in      []string
		fails   string // the second call, with this code
		held    []string
		calls   int
		printed string
		warned  string
		err     []string
	}{
		"eleven orders take two calls": {in: good[:11], held: good[:11], calls: 2, printed: "messages posted: 11\n"},
		"ten orders take one call":     {in: good[:10], held: good[:10], calls: 1, printed: "messages posted: 10\n"},
		"comments, blank lines and space around a body are not posted": {
			in: []string{"# mine", "", "  " + good[0] + "\t", "   ", "#" + good[1], good[2]}, held: []string{good[0], good[2]}, calls: 1,
			printed: "messages posted: 2\n",
		},
		"nothing to post needs no call": {in: []string{"# nothing"}, printed: "messages posted: 0\n"},
		"what is no order is posted, with a warning": {
			in: []string{good[0], `{"orderId":"ORD-2"`}, held: []string{good[0], `{"orderId":"ORD-2"`}, calls: 1,
			printed: "messages posted: 2\n", warned: "message 2 will be parked: message body: truncated JSON\n",
		},
		"every body that the queue refuses is named by its number": {
			in: mixed, held: good[:12], calls: 2, warned: "message 1 will be parked: ",
			err: []string{"12 of 14 messages posted to http", "\nmessage 1: InvalidMessageContents: ", "\nmessage 12: InvalidMessageContents: "},
		},
		"a call that fails hides no body that was refused before": {
			in: mixed, fails: sqstest.CodeOverLimit, held: good[:9], calls: 2, warned: "message 1 will be parked: ",
			err: []string{
				"9 of 14 messages posted to http", "\nmessage 1: InvalidMessageContents: ", "\nmessages 11 to 14 may or may not be posted",
			},
		},
		"a call that fails ends it, and says what is unknown": {
			in: good, fails: sqstest.CodeOverLimit, held: good[:10], calls: 2,
			err: []string{
				"10 of 25 messages posted to http", "\nmessages 11 to 20 may or may not be posted, later ones are not: ", "OverLimit",
			},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, tt.fails)
			var out, warnings strings.Builder
			sh := shell{environ: o.environ(), in: strings.NewReader(strings.Join(tt.in, "\n")), out: &out, warnings: &warnings}
			err := post{File: "-"}.Run(t.Context(), sh)
			if (err == nil) != (tt.err == nil) || out.String() != tt.printed {
				t.Errorf("error %v, printed %q, want %q, %q", err, &out, tt.err, tt.printed)
			}
			for _, want := range tt.err {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
			if diff := cmp.Diff(o.bodies(t), tt.held); diff != "" {
				t.Errorf("- in the queue, + want:\n%s", diff)
			}
			if o.calls != tt.calls || !strings.HasPrefix(warnings.String(), tt.warned) || tt.warned == "" && warnings.Len() > 0 {
				t.Errorf("%d calls, warned %q, want %d, %q", o.calls, &warnings, tt.calls, tt.warned)
			}
			if strings.Contains(fmt.Sprint(err)+out.String()+warnings.String(), "canary") {
				t.Error("a payer or a payment method is printed")
			}
		})
	}
}

func TestPostReadsAFile(t *testing.T) {
	t.Parallel()
	o := openOffice(t, "")
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	if err := os.WriteFile(file, []byte(line("ORD-1")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, warnings strings.Builder
	sh := shell{environ: o.environ(), in: strings.NewReader("not this"), out: &out, warnings: &warnings}
	if err := (post{File: file}).Run(t.Context(), sh); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(o.bodies(t), []string{line("ORD-1")}); diff != "" || warnings.Len() > 0 {
		t.Errorf("warned %q, - in the queue, + want:\n%s", &warnings, diff)
	}
}

func TestPostSendsNothing(t *testing.T) {
	t.Parallel()
	const noQueue = `QUEUE_URL: want the URL of the order queue, got "orders"`
	for claim, tt := range map[string]struct{ file, in, change, want string }{
		"without its file":               {file: "none.jsonl", want: "none.jsonl"},
		"of a line that is no message's": {file: "-", in: strings.Repeat("x", 1<<20+1), want: "read -: bufio.Scanner: token too long"},
		"to what is no queue":            {file: "-", change: "QUEUE_URL=orders", want: noQueue},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, "")
			var out strings.Builder
			sh := shell{environ: append(o.environ(), tt.change), in: strings.NewReader(tt.in), out: &out, warnings: &out}
			err := post{File: tt.file}.Run(t.Context(), sh)
			if err == nil || !strings.Contains(err.Error(), tt.want) || o.calls > 0 || out.Len() > 0 {
				t.Errorf("error %v after %d calls, printed %q, want %q and nothing else", err, o.calls, &out, tt.want)
			}
		})
	}
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for args, change := range map[string]func(*commands){
		"post":                          func(*commands) {},
		"post orders.json":              func(c *commands) { c.Post.File = "orders.json" },
		"show ORD-1":                    func(c *commands) { c.Show.ID = "ORD-1" },
		"refresh ORD-1":                 func(c *commands) { c.Refresh.ID = "ORD-1" },
		"refresh --scope=old ORD-1":     func(c *commands) { c.Refresh = refresh{ID: "ORD-1", Scope: "old"} },
		"restore ORD-1 pi_1":            func(c *commands) { c.Restore = restore{ID: "ORD-1", Intent: "pi_1"} },
		"check":                         func(*commands) {},
		"smoke":                         func(*commands) {},
		"smoke --limit=5s":              func(c *commands) { c.Smoke.Limit = 5 * time.Second },
		"smoke --customer=c --method=m": func(c *commands) { c.Smoke.Customer, c.Smoke.Method = "c", "m" },
	} {
		want := commands{Post: post{File: "-"}, Smoke: smoke{Limit: 2 * time.Minute}} // the defaults
		change(&want)
		var got commands
		k, err := kong.New(&got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Parse(strings.Fields(args)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", args, got, err, want)
		}
	}
}
