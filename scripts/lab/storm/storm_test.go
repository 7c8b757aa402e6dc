package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/storm/run"
)

// two returns an outcome of the product with a broken check, and one of a handler that
// charges twice.
func two() []run.Outcome {
	return []run.Outcome{
		{
			Handler: run.Handler{Name: "orderonce"}, Deliveries: 4000, Kills: 500,
			Refunds: run.Refunds{
				Asked: 90, Made: 70, Refused: 2, Unknown: 3, Exceeding: 8, NotCharged: 7, Messages: 180, Deliveries: 800, Kills: 60,
				Canceled: 19,
			},
			Later: run.Later{Webhooks: 900, Runs: 7, Settled: 80, Deleted: 30, Kills: 50},
			Parts: run.Parts{OutOfStock: 4},
			Count: run.Count{Orders: 980, Messages: 1100, Settled: 980, Extra: 2900},
			Checks: []invariants.Result{
				{ID: "I1", Claim: "at most one"},
				{ID: "I9", Claim: "parked", Broken: []string{"order storm-000001"}},
			},
		},
		{
			Handler: run.Handler{Name: "other"}, Deliveries: 600,
			Count: run.Count{Orders: 490, Messages: 550, Settled: 480, ChargedTwice: 49, Lost: 10, Extra: 50},
		},
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	must(t, os.CopyFS(docs, os.DirFS("../../../docs")))
	a := arguments{Orders: 1000, Baselines: 500, Kills: 500, Instances: 16, Duplicates: 0.3, Seed: 9, FIFO: true, NoFaults: true}
	a.Docs = docs
	err := a.report(two(), usage{took: 90 * time.Second, cpu: 2 * time.Minute, memory: 5 << 20})
	if !errors.Is(err, errBroken) { // a failed run is written too
		t.Errorf("got error %v, want %v", err, errBroken)
	}
	text, err := os.ReadFile(filepath.Join(docs, "reference", "storm.md"))
	must(t, err)
	for _, want := range []string{
		"| orderonce | 980 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 980 | 2900 |\n",
		"550 processes killed", "900 webhooks and 7 runs of reconcile, which settled 80 orders; 30 messages deleted after the charge",
		"| other | 490 | 49 | 0 | 10 | 0 | 0 | 0 | 0 | 480 | 50 |\n", "| I9 | parked | 1 |\n",
		"| refunds that were asked for | 90 |\n", "| refunds that Stripe made twice | 0 |\n", "| orders out of stock | 4 |\n",
		"The run took 1m30s, 2m0s of CPU time, and at most 5 MiB of memory in all processes.\n",
		"--seed=9 --orders=1000 --baselines=500 --kills=500 --duplicates=0.3 --instances=16 --fifo --no-faults --docs=../../docs",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	for _, column := range columns() {
		if !strings.Contains(string(text), "- **"+column.name+"**: ") {
			t.Errorf("the page does not explain the column %q", column.name)
		}
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	svg := chart(two())
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the chart is not XML: %v", err)
		}
	}
	for _, want := range []string{
		"prefers-color-scheme: dark", ">orderonce<", ">other<", ">charged twice<", ">extra deliveries<", ">10<", ">2.0<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
}

func TestShowListsViolations(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show(&b, two())
	for _, want := range []string{
		"       90 refunds that were asked for\n", "ok     I1   at most one\n",
		"BROKEN I9   parked\n              order storm-000001\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in:\n%s", want, b.String())
		}
	}
}

// Without faults, check-then-act charges only conflicting orders twice.
func TestTheStormFindsTheKnownFailures(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	engine := dynamodbtest.Locate(t)
	folder := t.TempDir()
	for name, tt := range map[string]struct {
		noFaults bool
		want     func(run.Count) bool
	}{
		"message-id-before": {want: func(c run.Count) bool { return c.Lost > 0 }},
		"short-lock":        {want: func(c run.Count) bool { return c.ChargedTwice > 0 }},
		"check-then-act": {noFaults: true, want: func(c run.Count) bool {
			return c.ChargedTwice <= c.WrongAmount && c.Lost+c.Stuck == 0 && c.Settled == c.Orders
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := baselineHandlers("scripts/lab/storm/baseline", folder)
			h := all[slices.IndexFunc(all, func(h run.Handler) bool { return h.Name == name })]
			o := run.Options{
				Workload: run.Workload{Seed: 1, Orders: 100}, Kills: 30, Instances: 4, NoFaults: tt.noFaults,
				Dir: t.TempDir(), Engine: engine,
			}
			if !tt.noFaults {
				o.Workload.Duplicates = 0.5
			}
			out, err := run.Storm(t.Context(), o, h)
			must(t, err)
			if !tt.want(out.Count) {
				t.Errorf("got %+v", out.Count)
			}
		})
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
