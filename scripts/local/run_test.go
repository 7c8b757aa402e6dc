package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/scripts/local/system"
)

func TestReadWaves(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		text string
		want [][]string
	}{
		"each line is a message":                     {"{\n}\n", [][]string{{"{", "}"}}},
		"the last line needs no end":                 {"{\n}", [][]string{{"{", "}"}}},
		"comments and empty lines are not messages":  {"# a\n{\n\n#}\n", [][]string{{"{"}}},
		"a line #! later starts a new wave":          {"{\n#! later\n}\n", [][]string{{"{"}, {"}"}}},
		"a long message is read":                     {strings.Repeat("x", 1<<20-1), [][]string{{strings.Repeat("x", 1<<20-1)}}},
		"an empty file has one wave without message": {"", [][]string{nil}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			got, err := readWaves(file(t, tt.text))
			must(t, err)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
	if _, err := readWaves(file(t, strings.Repeat("x", 1<<20+1))); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("error = %v, want that a line is too long", err)
	}
	if _, err := readWaves(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error = %v, want that there is no file", err)
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders.jsonl")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRunAnnouncesAKillOnlyOfOrdersInTheFile(t *testing.T) {
	t.Parallel()
	killed, lost, canceled := body("ORD-1"), body("ORD-2"), body("ORD-3")
	r := run{Kill: "ORD-1", Lose: "ORD-2", Cancel: "ORD-3", Refund: "ORD-1"}
	for claim, tt := range map[string]struct{ text, want string }{
		"three orders are in the file": {
			killed + "\n" + lost + "\n" + canceled, "; one function will be killed in the middle of ORD-1, ORD-2 and ORD-3",
		},
		"the order is in the second wave":   {"#! later\n" + killed + "\n" + killed, "; one function will be killed in the middle of ORD-1"},
		"the file has a refund of it":       {refundBody("ORD-1", 1), "; one function will be killed in the middle of a refund of ORD-1"},
		"the file has no such order":        {body("ORD-4"), ""},
		"the order's only message is wrong": {`{"orderId":"ORD-1"`, ""},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			r := r
			r.Files = []string{file(t, tt.text)}
			all, err := r.stages()
			must(t, err)
			if got, want := all[0].announce(), "Posting "+r.Files[0]+tt.want; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// listen occupies a free port.
func listen(t *testing.T) (port int) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // it was only held
	return listener.Addr().(*net.TCPAddr).Port
}

func TestUpNamesAPortInUse(t *testing.T) {
	t.Parallel()
	port := listen(t)
	pinned := dynamodbtest.Location{Binary: "dynoxide"}
	for flag, u := range map[string]up{
		"--dynamodb-port=PORT": {DynamoDB: port}, "--sqs-port=PORT": {SQS: port}, "--stripe-port=PORT": {Stripe: port},
		"--api-port=PORT": {API: port}, "--console-port=PORT": {Page: port},
	} {
		if err := u.portsFree(t.Context(), pinned); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("error = %v, want one that names %s", err, flag)
		}
	}
}

func TestAWrongDynamoDBEndpointIsNamedWithItsValue(t *testing.T) {
	t.Parallel()
	occupied := listen(t) // connections succeed, although nothing accepts them
	for endpoint, want := range map[string]string{
		"localhost:8000":       `DYNAMODB_ENDPOINT "localhost:8000": not a URL: want http or https, host and port`,
		"ftp://127.0.0.1:8000": `DYNAMODB_ENDPOINT "ftp://127.0.0.1:8000": not a URL`,
		"http://":              `DYNAMODB_ENDPOINT "http://": not a URL`,
		"http://127.0.0.1:1":   `DYNAMODB_ENDPOINT "http://127.0.0.1:1": no engine answers: dial tcp 127.0.0.1:1: `,
		"http://[::1]:1":       `DYNAMODB_ENDPOINT "http://[::1]:1": no engine answers: `,
		fmt.Sprintf("http://127.0.0.1:%d", occupied): "",
	} {
		getenv := func(name string) string { return map[string]string{"DYNAMODB_ENDPOINT": endpoint}[name] }
		engine, err := findEngine(t.Context(), getenv)
		if want == "" && (err != nil || engine.Endpoint != endpoint) {
			t.Errorf("%s: got %+v, %v, want no error", endpoint, engine, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error = %v, want %q in it", endpoint, err, want)
		}
	}
}

func TestTheCounterOverwritesOneLineOfATerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	c := counter{&b, true}
	c.show("%d of 16 messages done", 7)
	c.seconds("compiling")() // ends before the first second
	if want := "\r\x1b[K7 of 16 messages done\r\x1b[K"; b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}

func atNoon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.Local) }

func TestUpPrintsTheEventsThatItAccepts(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]struct{ code, printed string }{
		`{"orderId":"ORD-1","seq":2}`: {"", "12:00:00  event 2 of ORD-1: Order Paid\n"},
		`{"orderId":1}`:               {eventbridgetest.CodeMalformedDetail, ""},
	} {
		var b strings.Builder
		code := printEvents(&b, atNoon)(eventbridgetest.Event{
			DetailType: "Order Paid", Detail: json.RawMessage(detail), Time: atNoon().Add(25 * time.Hour), // the queue's clock is ahead
		})
		if code != want.code || b.String() != want.printed {
			t.Errorf("%s: got code %q and printed %q, want %+v", detail, code, b.String(), want)
		}
	}
}

func TestUpPrintsTheFateOfAnEMailWithoutItsAddress(t *testing.T) {
	t.Parallel()
	event := func(detailType string) json.RawMessage {
		return json.RawMessage(`{"detail-type":"` + detailType + `","time":"2026-11-22T14:13:20Z","detail":{"mail":{
			"destination":["buyer@shop.invalid"],"commonHeaders":{"to":["buyer@shop.invalid"],"subject":"Receipt for order ORD-1"},
			"tags":{"orderonce-order":["` + system.MailTag("ORD-1") + `"]}}}}`)
	}
	var b strings.Builder
	loses := printMail(&b, atNoon)
	for _, e := range []json.RawMessage{event("Email Sent"), event("Email Bounced"), json.RawMessage(`{`)} {
		if loses(e) {
			t.Errorf("%s is lost, want every event to arrive", e)
		}
	}
	if want := "12:00:00  e-mail of ORD-1: Email Bounced, Receipt for order ORD-1\n"; b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
