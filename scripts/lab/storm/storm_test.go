package main

import (
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system/systemtest"
)

// two returns an outcome of the product with a broken check, and one of a handler that
// charges twice.
func two() []run.Outcome {
	return []run.Outcome{
		{
			Handler: run.Handler{Name: "orderonce"},
			Figures: run.Figures{
				run.Orders: 980, run.Settled: 980, run.Extra: 2900, run.Kills: 550, run.RefundsAsked: 90,
				run.OutOfStock: 4, "Stripe outage": 7,
			},
			Checks: []invariants.Result{
				{ID: "I1", Claim: "at most one"},
				{ID: "I9", Claim: "parked", Broken: []string{"order storm-000001"}},
			},
		},
		{
			Handler: run.Handler{Name: "other", Version: "2.35.0"},
			Figures: run.Figures{run.Orders: 490, run.Settled: 480, run.ChargedTwice: 49, run.Lost: 10, run.Extra: 50},
		},
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	systemtest.Must(t, os.CopyFS(docs, os.DirFS("../../../docs")))
	a := arguments{Orders: 1000, Baselines: 500, Seed: 9, FIFO: true, Docs: docs}
	err := a.report(two(), usage{took: 90 * time.Second, cpu: 2 * time.Minute, memory: 5 << 20})
	if !errors.Is(err, errBroken) { // a failed run is written too
		t.Errorf("got error %v, want %v", err, errBroken)
	}
	text, err := os.ReadFile(filepath.Join(docs, "reference", "storm.md"))
	systemtest.Must(t, err)
	if svg, err := os.ReadFile(filepath.Join(docs, "storm.svg")); err != nil || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("the chart is not XML: %v\n%s", err, svg)
	}
	for _, want := range []string{
		"| orderonce |  | 980 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 980 | 2900 |\n",
		"| other | 2.35.0 | 490 | 49 | 0 | 10 | 0 | 0 | 0 | 0 | 480 | 50 |\n", "| I9 | parked | 1 |\n", "| Stripe outage | 7 |\n",
		"| processes killed | 550 |\n", "| refunds that were asked for | 90 |\n", "| orders out of stock | 4 |\n",
		"The run took 1m30s, 2m0s of CPU time, and at most 5 MiB of memory in all processes.\n",
		"--seed=9 --orders=1000 --baselines=500 --fifo --docs=../../docs",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	for _, column := range columns() {
		if !strings.Contains(string(text), "- **"+string(column)+"**: ") {
			t.Errorf("the page does not explain the column %q", column)
		}
	}
}

// The bind prevents every second charge, also with an engine that has no other protection
// after a day.
func TestTheStormFindsTheKnownFailures(t *testing.T) {
	t.Parallel()
	o := small(t, 0)
	onNode, err := nodeHandlers("..")
	systemtest.Must(t, err)
	known := map[string]run.Figure{
		"message-id-before": run.Lost, "short-lock": run.ChargedTwice, "fifo": run.ChargedTwice, "restate": run.Settled,
		"powertools": run.Settled, "durable": run.Settled,
	}
	all := slices.Concat(baselineHandlers("scripts/lab/storm/baseline", o.Dir), onNode)
	all = slices.DeleteFunc(all, func(h run.Handler) bool { return known[h.Name] == "" && !hasBind(h) })
	outcomes, err := arguments{Seed: 1, Baselines: 60, Dir: o.Dir}.storms(t.Context(), o.Engine, all)
	systemtest.Must(t, err)
	binds := 0
	for _, out := range outcomes {
		f, name := out.Figures, out.Handler.Name
		switch {
		case !hasBind(out.Handler):
			atLeast(t, out, run.Figures{known[name]: 1})
		case f[run.ChargedTwice] > 0 || f[run.LedgerMismatch] > 0 || f[run.ConflictLost] > 0 || f[run.Settled] < f[run.Orders]*9/10:
			t.Errorf("%s: got %v, want nothing charged twice and most orders settled", name, f)
		default:
			binds++
		}
		if strings.HasPrefix(name, "restate") && f[run.OtherKills] == 0 {
			t.Errorf("%s: got no kill of the process that Restate calls", name)
		}
	}
	if len(outcomes) != len(known)+binds || binds != 6 {
		t.Errorf("got %d handlers, %d with the bind, want %d and 6", len(outcomes), binds, len(known)+6)
	}
}
