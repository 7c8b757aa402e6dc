package main

import (
	"bytes"
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
	"orderonce/scripts/lab/storm/play"
	"orderonce/scripts/local/system"
)

// two outcomes: ours, and one that charges twice.
func two() []play.Outcome {
	return []play.Outcome{
		{
			Handler: play.Handler{Name: "orderonce"}, Deliveries: 4000, Kills: 500,
			Count:  play.Count{Orders: 980, Messages: 1100, Settled: 980, Extra: 2900},
			Checks: []system.Check{{ID: "I1", Claim: "at most one"}, {ID: "I9", Claim: "parked", Broken: []string{"order storm-000001"}}},
		},
		{
			Handler: play.Handler{Name: "other"}, Deliveries: 600,
			Count: play.Count{Orders: 490, Messages: 550, Settled: 480, ChargedTwice: 49, Lost: 10, Extra: 50},
		},
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	if err := os.Mkdir(filepath.Join(docs, "reference"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := storm{Orders: 1000, Others: 500, Kills: 500, Instances: 16, Duplicates: 0.3, Seed: 9, FIFO: true}
	if err := write(docs, c, two(), cost{took: 90 * time.Second, processor: 2 * time.Minute, memory: 5 << 20}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(docs, "reference", "storm.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| orderonce | 980 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 980 | 2900 |\n",
		"| other | 490 | 49 | 0 | 10 | 0 | 0 | 0 | 0 | 480 | 50 |\n",
		"| I9 | parked | 1 |\n",
		"The whole run took 1m30s, 2m0s of processor time, and at most 5 MiB of memory in all its processes.\n",
		"--seed=9 --orders=1000 --others=500 --kills=500 --duplicates=0.3 --instances=16 --fifo --docs=../../docs",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	for _, column := range columns() {
		if !strings.Contains(columnsExplained, "- **"+column.name+"**: ") {
			t.Errorf("the page does not explain the column %q", column.name)
		}
	}
}

func TestChart(t *testing.T) {
	t.Parallel()
	svg, err := chart(two())
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the chart is no XML: %v", err)
		}
	}
	for _, want := range []string{
		"prefers-color-scheme: dark", ">orderonce<", ">other<", ">charged twice<", ">extra deliveries<", ">10<", ">2.0<",
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
}

func TestShowNamesWhatIsBroken(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show(&b, two())
	for _, want := range []string{"ok     I1   at most one\n", "BROKEN I9   parked\n              order storm-000001\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in:\n%s", want, b.String())
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	c := storm{Orders: 10_000, Others: 500, Kills: 500, Instances: 16}
	ours := c.options(dynamodbtest.Location{}, play.Handler{Name: ourName})
	theirs := c.options(dynamodbtest.Location{}, play.Handler{Name: "short-lock"})
	if ours.Script.Orders != 10_000 || ours.Kills != 500 || theirs.Script.Orders != 500 || theirs.Kills != 25 {
		t.Errorf("ours has %d orders and %d kills, another one %d and %d, want 10000, 500, 500 and 25",
			ours.Script.Orders, ours.Kills, theirs.Script.Orders, theirs.Kills)
	}
}

// TestTheStormSees holds the storm itself to something: designs that are known to fail fail in it, and not without it.
func TestTheStormSees(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	engine := dynamodbtest.Locate(t)
	folder := t.TempDir()
	for name, tt := range map[string]struct {
		calm bool
		see  func(play.Count) bool
	}{
		"message-id-before": {see: func(c play.Count) bool { return c.Lost > 0 }},
		"short-lock":        {see: func(c play.Count) bool { return c.ChargedTwice > 0 }},
		// In fine weather it charges twice only what came with two contents.
		"check-then-act": {calm: true, see: func(c play.Count) bool {
			return c.ChargedTwice <= c.WrongAmount && c.Lost+c.Stuck == 0 && c.Settled == c.Orders
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := baselineHandlers("orderonce/scripts/lab/storm/baseline", folder)
			h := all[slices.IndexFunc(all, func(h play.Handler) bool { return h.Name == name })]
			o := play.Options{
				Script: play.Script{Seed: 1, Orders: 100}, Kills: 30, Instances: 4, Calm: tt.calm, Dir: t.TempDir(), Engine: engine,
			}
			if !tt.calm {
				o.Script.Duplicates = 0.5
			}
			out, err := play.Run(t.Context(), o, h)
			if err != nil {
				t.Fatal(err)
			}
			if !tt.see(out.Count) {
				t.Errorf("%+v", out.Count)
			}
		})
	}
}

func TestBarTellsAFileSeldom(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "err"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBar(file)
	b.now = func() time.Time { return time.Unix(0, 0).Add(time.Duration(len(b.told)) * time.Second) }
	for range 3 {
		b.of("orderonce")(play.Progress{Phase: "storm", Done: 1, Total: 2})
	}
	if err := errors.Join(b.end(), file.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if want := "1 of 2 messages done; orderonce, storm: 0 deliveries, 0 kills, 0 faults, 0 wait\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}
