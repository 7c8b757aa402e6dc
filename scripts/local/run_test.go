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
	long := strings.Repeat("x", 1<<20-1)
	for text, want := range map[string][][]string{
		"# a\n{\n\n#}\n}":  {{"{", "}"}},
		"{\n#! later\n}\n": {{"{"}, {"}"}},
		long:               {{long}},
		"":                 {nil},
	} {
		got, err := readWaves(file(t, text))
		must(t, err)
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("- got, + want:\n%s", diff)
		}
	}
	if _, err := readWaves(file(t, long+"xx")); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("error = %v, want that a line is too long", err)
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
	for text, want := range map[string]string{
		"#! later\n" + killed + "\n" + lost + "\n" + canceled: "; one function will be killed in the middle of ORD-1, ORD-2 and ORD-3",
		refundBody("ORD-1", 1):                                "; one function will be killed in the middle of a refund of ORD-1",
		body("ORD-4"):                                         "",
		`{"orderId":"ORD-1"`:                                  "",
	} {
		r := r
		r.Files = []string{file(t, text)}
		all, err := r.stages()
		must(t, err)
		if got := all[0].announce(); got != "Posting "+r.Files[0]+want {
			t.Errorf("%s: got %q, want %q in it", text, got, want)
		}
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
		"localhost:8000":                             `DYNAMODB_ENDPOINT "localhost:8000": not a URL: want http or https, host and port`,
		"http://127.0.0.1:1":                         `DYNAMODB_ENDPOINT "http://127.0.0.1:1": no engine answers: dial tcp 127.0.0.1:1: `,
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
