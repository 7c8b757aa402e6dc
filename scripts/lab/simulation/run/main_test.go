package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/simulation"
)

func TestASeedIsToldAgain(t *testing.T) {
	t.Parallel()
	for replay, want := range map[string]string{"42": "0 violations", "pairs/0/01": "0 violations"} {
		var out bytes.Buffer
		err := run(&out, new(bytes.Buffer), options{Replay: replay})
		if err != nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "delivers message 1") {
			t.Errorf("%s: %v\n%s", replay, err, out.String())
		}
	}
	if err := run(new(bytes.Buffer), new(bytes.Buffer), options{Replay: "nope"}); err == nil || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v, want an error that names it", err)
	}
}

func TestAControlThatIsNotCaughtFails(t *testing.T) {
	t.Parallel()
	harmless := baselines.Design{Name: "does-nothing", Handle: func(context.Context, baselines.Env, baselines.Message) error { return nil }}
	err := writeControls(new(strings.Builder), []baselines.Design{harmless}, 20)
	if err == nil || !strings.Contains(err.Error(), `"does-nothing"`) || !strings.Contains(err.Error(), "20 worlds") {
		t.Errorf("got %v, want an error that names the control", err)
	}
}

func TestEveryPlantedBugIsToldWithItsNeedsOrItsTest(t *testing.T) {
	t.Parallel()
	all := []guards.Guard{
		{Name: "one", Promise: "I1", Catcher: guards.Search(), Needs: "429; action denied: dynamodb:PutItem"},
		{Name: "two", Promise: "I4", Catcher: guards.Random(), Worlds: "99", Needs: "nothing unusual"},
		{Name: "three", Promise: "I8", Catcher: guards.Catcher{Test: "TestRows", Pkg: "./x"}},
	}
	r := simulation.Report{Tally: simulation.Tally{
		Faults: map[simulation.Fault]int{"429": 3, "503": 2}, Events: map[string]int{"action denied": 1},
	}}
	var out bytes.Buffer
	if err := showBugs(&out, all, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"│ one         │ I1     │ 429; action denied: dynamodb:PutItem ", "│ two         │ I4     │ nothing unusual ",
		"│ three                             │ I8     │ TestRows in ./x ",
		"3 planted bugs: the worlds see 2, and no world can see 1 ", "kinds of trouble that no planted bug needs: 503\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", out.String(), want)
		}
	}
}

func TestFlagsSayHowFarARunGoes(t *testing.T) {
	t.Parallel()
	type bounds struct{ Most, Worlds int }
	for flags, want := range map[string]bounds{
		"":                      {2, 1_000_000},
		"--worlds=5":            {2, 5},
		"--triples":             {3, 1_000_000},
		"--triples --worlds=5":  {3, 5},
		"--long":                {3, 100_000_000},
		"--resume=x --seed=9":   {2, 1_000_000},
		"--page=x --worlds=200": {2, 200},
	} {
		var o options
		p, err := kong.New(&o)
		if err == nil {
			_, err = p.Parse(strings.Fields(flags))
		}
		if err != nil {
			t.Fatal(err)
		}
		most, worlds := o.bounds()
		if got := (bounds{most, worlds}); got != want {
			t.Errorf("%q: got %+v, want %+v", flags, got, want)
		}
	}
}

func TestAFileHearsOfProgressOnlyNowAndThen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBar(&out, "worlds", 10)
	b.set(1)
	b.told = b.told.Add(-tellEvery)
	b.set(2)
	b.set(3)
	b.end()
	if got := out.String(); got != "worlds: 2 of 10\n" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyTheTableOfAStoryIsKept(t *testing.T) {
	t.Parallel()
	got := tableOf("Without x:\n  diff │\n┌─\n│ a\n└─\n\nI1 broken for order ORD-1: 2\n\nCaught\n")
	if want := "  diff │\n┌─\n│ a\n└─\nI1 broken for order ORD-1: 2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThePageTellsOfEveryControl(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	var b strings.Builder
	if err := writeControls(&b, baselines.All(), controlWorlds); err != nil {
		t.Fatal(err)
	}
	for _, d := range baselines.All() {
		if !strings.Contains(b.String(), "| "+d.Name+" | "+d.Pattern+" | I1 | ") || !strings.Contains(b.String(), "### "+d.Name+"\n") {
			t.Errorf("%s is missing in\n%s", d.Name, b.String())
		}
	}
}
