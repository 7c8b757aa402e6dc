package main

import (
	"bufio"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
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
		"lines for people and empty ones are none":   {"# a\n{\n\n#}\n", [][]string{{"{"}}},
		"what comes later is a wave of its own":      {"{\n#! later\n}\n", [][]string{{"{"}, {"}"}}},
		"a long message is read":                     {strings.Repeat("x", 1<<20-1), [][]string{{strings.Repeat("x", 1<<20-1)}}},
		"an empty file has one wave without message": {"", [][]string{nil}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			got, err := readWaves(file(t, tt.text))
			if err != nil {
				t.Fatal(err)
			}
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
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTallyCountsEveryDelivery(t *testing.T) {
	t.Parallel()
	tally := &tally{deliveries: map[string]int{}}
	a, b := sqstest.Message{ID: "a"}, sqstest.Message{ID: "b"}
	tally.observe(sqstest.Batch{Messages: []sqstest.Message{a, b, a}})
	tally.observe(sqstest.Batch{Messages: []sqstest.Message{b}, Err: lambdatest.ErrCrashed})
	tally.observe(sqstest.Batch{Messages: []sqstest.Message{b}})
	if diff := cmp.Diff(tally.deliveries, map[string]int{"a": 2, "b": 3}); diff != "" || tally.crashes != 1 {
		t.Errorf("%d crashes, want 1; - got, + want:\n%s", tally.crashes, diff)
	}
}

func TestTheKillerWaitsForOneCallOfOneOrder(t *testing.T) {
	t.Parallel()
	host, err := lambdatest.Start(lambdatest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() }) // nothing runs in it
	k := &killer{orderID: "A"}
	k.system.Store(&system.System{Function: host})
	for _, c := range []stripetest.Call{
		{Endpoint: stripetest.Create, OrderID: "A"}, {Endpoint: stripetest.Confirm, OrderID: "B"},
	} {
		k.afterStripe(c)
	}
	if got := k.victim(); got != "" {
		t.Errorf("killed the function of order %q, want nobody's yet", got)
	}
	k.afterStripe(stripetest.Call{Endpoint: stripetest.Confirm, OrderID: "A"})
	if got := k.victim(); got != "A" {
		t.Errorf("killed the function of order %q, want A's", got)
	}
}

func TestOrdersAreListedOnceAsTheyCame(t *testing.T) {
	t.Parallel()
	var posted []system.Posted
	for _, id := range []string{"B", "A", "not an id", "B"} {
		body := `{"orderId":"` + id + `","customerId":"C","currency":"usd","lines":[{"sku":"MUG","quantity":1,"unitAmount":900}],` +
			`"payment":{"customer":"cus_1","method":"pm_1"}}`
		posted = append(posted, system.NewPosted(sqs.NewDecoder(), body, "1"))
	}
	if diff := cmp.Diff(orderIDs(posted), []order.ID{"B", "A"}); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
}

func TestUpNamesThePortThatIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // it was only held
	port := taken.Addr().(*net.TCPAddr).Port
	for flag, u := range map[string]up{
		"--dynamodb-port=PORT": {DynamoDB: port}, "--sqs-port=PORT": {SQS: port}, "--stripe-port=PORT": {Stripe: port},
	} {
		if err := u.Run(t.Context()); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("error = %v, want one that names %s", err, flag)
		}
	}
}

func TestTheEnvironmentFileNamesEverything(t *testing.T) {
	t.Parallel()
	s := &system.System{
		Options: system.Options{Table: "orders"}, Engine: &dynamodbtest.Engine{Endpoint: "http://engine"},
		SQS: &sqstest.Server{URL: "http://queue"}, Stripe: &stripetest.Server{URL: "http://stripe"},
	}
	text := environment(s)
	for _, want := range []string{
		"export AWS_ENDPOINT_URL_DYNAMODB=http://engine\n", "export AWS_ENDPOINT_URL_SQS=http://queue\n",
		"export STRIPE_API_BASE=http://stripe\n", "export ORDERS_TABLE=orders\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestCloseClosesTheLog(t *testing.T) {
	t.Parallel()
	log, err := os.Create(file(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	l := &local{System: &system.System{}, file: log}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString("late"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error = %v, want that the file is closed", err)
	}
}
