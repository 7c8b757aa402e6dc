package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/system/systemtest"
)

func start(t *testing.T, folder string) *backends {
	t.Helper()
	b, err := serveBackends(folder)
	systemtest.Must(t, err)
	t.Cleanup(func() { systemtest.Must(t, b.Close()) })
	return b
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// A fresh order takes three DynamoDB calls and two Stripe calls, a duplicate one.
func TestCannedBackEnds(t *testing.T) {
	paid := order.Result{Verdict: order.Done, Status: order.Paid}
	fresh, duplicate := paid, paid
	fresh.Reason, fresh.Attempt, fresh.Intent = order.ReasonSettled, 1, "pi_ORDER1"
	duplicate.Reason, duplicate.Intent = order.ReasonDuplicate, "pi_settled"
	o, err := order.New(order.Draft{
		ID: "ORDER1", CustomerID: "CUST-1", Currency: "usd", Lines: []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: total}},
		Payment: order.Payment{Customer: "cus_Bench", Method: "pm_card_visa"},
	})
	systemtest.Must(t, err)
	for settled, tt := range map[bool]struct {
		want             order.Result
		dynamodb, stripe int64
	}{false: {fresh, 3, 2}, true: {duplicate, 1, 0}} {
		b := start(t, t.TempDir())
		b.settled.Store(settled)
		config := dynamodbtest.Config(b.dynamodb.url(false), func(string) string { return "" })
		processor := order.Processor{
			Store: dynamodb.New(config, "orders"), Scope: scope, ConfirmTime: time.Second, Now: func() time.Time { return noon },
			Payments: charge.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: b.stripe.url(false)}),
		}
		got := processor.Process(t.Context(), o, noon, order.Lease{Owner: "me", From: noon, Until: noon.Add(time.Minute)})
		if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(order.Result{}, "Err", "RequestID")); diff != "" {
			t.Errorf("settled %t: %s %v", settled, diff, got.Err)
		}
		if d, s := b.dynamodb.calls.Load(), b.stripe.calls.Load(); d != tt.dynamodb || s != tt.stripe {
			t.Errorf("settled %t: got %d calls to DynamoDB and %d to Stripe, want %d and %d",
				settled, d, s, tt.dynamodb, tt.stripe)
		}
	}
}

// Every function settles its orders in every setting, with the calls that the page says.
func TestMeasure(t *testing.T) {
	lambdatest.FullOnly(t)
	root, err := guards.Root(t.Context())
	systemtest.Must(t, err)
	folder := t.TempDir()
	functions, _, err := build(t.Context(), root, "", folder, true)
	systemtest.Must(t, err)
	m := &measurement{backends: start(t, folder)}
	t.Cleanup(func() { systemtest.Must(t, m.Close()) })
	systemtest.Must(t, m.prepare(t.Context(), functions))
	for _, set := range (arguments{}).settings() {
		set.ColdStarts, set.Batches, set.Singles = min(set.ColdStarts, 1), 1, min(set.Singles, 1)
		systemtest.Must(t, m.add(t.Context(), set, functions))
	}
	systemtest.Must(t, m.measure(t.Context(), 2, io.Discard))
	want := map[string][3]float64{
		"orderonce": {5, 2, 1}, "plain": {3, 1, 1}, "floor": {5, 2, 1}, "empty": {}, "powertools": {4, 1, 1},
	}
	for _, s := range m.all[0] {
		if len(s.FirstMS) != 2 || len(s.InitMS) != 2 || len(s.Fresh.CPUMS) != 2 || len(s.Duplicate.PerSecond) != 2 ||
			min(median(s.FirstMS), median(s.InitMS), median(s.Fresh.PerSecond), s.PeakRSS, s.ZipSize) <= 0 {
			t.Errorf("got %+v, want every figure, one a round", s.figures)
		}
		if got := [3]float64{s.Fresh.Calls, s.Fresh.StripeCalls, s.Duplicate.Calls}; got != want[s.Name] {
			t.Errorf("%s: got %v calls, those to Stripe, and of a duplicate, want %v", s.Name, got, want[s.Name])
		}
	}
	if len(m.all)+len(m.notes) < 4 {
		t.Errorf("got %d settings and notes %q, want a note for each that was left out", len(m.all), m.notes)
	}
	page := m.generated(more{usage: []usage{{Name: "webhook", CPUMS: 9, MostCPUMS: 5, RSS: 1, MostRSS: 2}}}, 2, time.Second)
	for _, want := range []string{"| orderonce | 3, 2 | 8 |", "| webhook | 0 | 0 | 9.0, over | 5 | 1.0 | 2 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("got the page %s\nwant %q in it", page, want)
		}
	}
}

// Begin of an earlier release reads the row that it wrote.
func TestTheCannedTableEvaluatesAnUpdate(t *testing.T) {
	var w write
	systemtest.Must(t, json.Unmarshal([]byte(`{"Key": {"orderId": {"S": "FRESH1"}, "sk": {"S": "order"}},
		"UpdateExpression": "SET #owner = :owner, attempt = if_not_exists(attempt, :zero) + :one, leaseUntil = :until, `+
		`seq = if_not_exists(seq, :zero) REMOVE parkedAt", "ExpressionAttributeNames": {"#owner": "owner"},
		"ExpressionAttributeValues": {":owner": {"S": "me"}, ":zero": {"N": "0"}, ":one": {"N": "1"}, ":until": {"N": "7"}},
		"ReturnValues": "ALL_NEW"}`), &w))
	_, response := new(backends).respondToUpdate(w)
	want := `{"Attributes":{"attempt":{"N":"1"},"leaseUntil":{"N":"7"},"orderId":{"S":"FRESH1"},` +
		`"owner":{"S":"me"},"seq":{"N":"0"},"sk":{"S":"order"}}}`
	if response != want {
		t.Errorf("got %s, want %s", response, want)
	}
}

func TestABatchItemFailureFailsTheMeasurement(t *testing.T) {
	for response, want := range map[string]error{
		`{"batchItemFailures":[]}`: nil, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`: errNotSettled, ``: errNotSettled,
	} {
		if err := settled([]byte(response)); !errors.Is(err, want) {
			t.Errorf("response %q: got error %v, want %v", response, err, want)
		}
	}
}

// A slower function shows as a ratio of rounds, also if the machine slows down meanwhile.
func TestFiguresAreMediansAndRatiosOfRounds(t *testing.T) {
	now := &subject{figures: figures{Fresh: load{PerSecond: []float64{800, 400, 200}, CPUMS: []float64{1, 2, 4}}}}
	slow := &subject{figures: figures{Fresh: load{PerSecond: []float64{400, 200, 100}, CPUMS: []float64{1.5, 3, 6}}}}
	now.Name, slow.Name = "orderonce", "v1"
	m := &measurement{
		settings: []setting{{Name: instant}}, all: [][]*subject{{now, slow}}, notes: []string{"powertools skipped"},
	}
	var out strings.Builder
	show(&out, m, 3, time.Minute)
	got := strings.NewReplacer("│", "").Replace(out.String())
	got = strings.Join(strings.Fields(got), " ")
	for _, want := range []string{
		"orderonce 400 ± 300 2.000 ± 1.500", "v1 200 ± 150 3.000 ± 2.250", "v1 0.50 1.50", "powertools skipped",
		"Medians of 3 rounds",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
