package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/storm/play"
	"orderonce/scripts/local/system"
)

func TestABrokenInvariantEndsTheRunWithItsName(t *testing.T) {
	t.Parallel()
	outcomes := two()
	err := storm{}.conclude(outcomes, cost{})
	if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), ": I9") {
		t.Errorf("error = %v, want errBroken that names I9", err)
	}
	outcomes[0].Checks[1].Broken = nil
	if err := (storm{}).conclude(outcomes, cost{}); err != nil {
		t.Errorf("error = %v, want none: what others do wrong is no error", err)
	}
	outcomes[0].Count.ToldWrong = 3
	if err := (storm{}).conclude(outcomes, cost{}); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "3 orders are wrong") {
		t.Errorf("error = %v, want errBroken for a figure that no invariant names", err)
	}
}

func TestTheBrokenRunIsWrittenAllTheSame(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	if err := os.Mkdir(filepath.Join(docs, "reference"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (storm{Docs: docs}).conclude(two(), cost{}); !errors.Is(err, errBroken) {
		t.Errorf("error = %v, want errBroken", err)
	}
	for _, name := range []string{"storm.svg", "reference/storm.md"} {
		if _, err := os.Stat(filepath.Join(docs, name)); err != nil {
			t.Error(err)
		}
	}
	if err := (storm{Docs: filepath.Join(docs, "nothing")}).conclude(two(), cost{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error = %v, want that there is no folder", err)
	}
}

func TestDocsAreNotWrittenOfABrokenProduct(t *testing.T) {
	t.Parallel()
	err := storm{Docs: "docs", Without: "bind"}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "leave out --without") {
		t.Errorf("error = %v, want that the two do not go together", err)
	}
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	var designed []string
	for _, d := range baselines.All() {
		designed = append(designed, d.Name)
	}
	for claim, tt := range map[string]struct {
		c    storm
		want []string
	}{
		"ours comes first, and then every design": {storm{Others: 1}, append([]string{ourName}, designed...)},
		"ours plays alone without others":         {storm{}, []string{ourName}},
		"ours plays alone by its name":            {storm{Others: 1, Only: ourName}, []string{ourName}},
		"another one plays alone by its name":     {storm{Others: 1, Only: "short-lock"}, []string{"short-lock"}},
		"without a guard, ours plays alone":       {storm{Others: 1, Without: "bind"}, []string{ourName}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			handlers, err := tt.c.handlers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(names(outcomesOf(handlers)), func(n string) bool { return n == "powertools-typescript" }) // needs npm
			slices.Reverse(got)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
		})
	}
}

func outcomesOf(handlers []play.Handler) []play.Outcome {
	all := make([]play.Outcome, len(handlers))
	for i, h := range handlers {
		all[i].Handler = h
	}
	return all
}

func TestAnUnknownNameIsToldTheKnownOnes(t *testing.T) {
	t.Parallel()
	_, err := storm{Others: 1, Only: "no-such"}.handlers(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"no-such", want one of orderonce, check-then-act, `) {
		t.Errorf("error = %v, want one that names the handlers", err)
	}
	if _, err := (storm{Without: "no-such"}).handlers(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("error = %v, want one that names the guard", err)
	}
}

func TestAHandlerWithoutAGuardSaysSo(t *testing.T) {
	t.Parallel()
	h, err := withoutGuard(t.Context(), "bind")
	if err != nil || !strings.HasPrefix(h.Does, "without bind: ") {
		t.Errorf("pattern %q, %v, want what is taken away", h.Does, err)
	}
}

func TestTheProgramOfAllDesignsIsBuiltOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	all := baselineHandlers("orderonce/scripts/lab/storm/no-such-package", folder)
	_, _, first := all[0].Build(t.Context(), t.TempDir())
	_, _, second := all[1].Build(t.Context(), t.TempDir())
	if first == nil || !errors.Is(second, first) {
		t.Errorf("built twice: %v and %v, want one attempt for all", first, second)
	}
}

func TestEachDesignIsToldWhichOneItIs(t *testing.T) {
	t.Parallel()
	for _, h := range baselineHandlers("pkg", "folder") {
		o := system.Options{FunctionTimeout: 2 * time.Second}
		h.Options(&o)
		want := map[string]string{"BASELINE": h.Name, "ORDERS_TABLE": "baselines", "FUNCTION_TIMEOUT": "2s"}
		if diff := cmp.Diff(o.Env, want); diff != "" {
			t.Errorf("%s: - got, + want:\n%s", h.Name, diff)
		}
	}
}

func TestBaselineRow(t *testing.T) {
	t.Parallel()
	item := func(id, status string) system.Item {
		i := system.Item{baselines.ID: &types.AttributeValueMemberS{Value: id}, "amount": &types.AttributeValueMemberN{Value: "1999"}}
		if status != "" {
			i["status"] = &types.AttributeValueMemberS{Value: status}
		}
		return i
	}
	for claim, tt := range map[string]struct {
		item  system.Item
		want  play.Row
		order bool
	}{
		"a paid order": {
			item("order#A", string(baselines.Paid)), play.Row{OrderID: "A", Settled: true, Status: order.Paid, Amount: 1999}, true,
		},
		"an order with another status is one whose customer is told no": {
			item("order#A", string(baselines.Failed)), play.Row{OrderID: "A", Settled: true, Status: order.Declined, Amount: 1999}, true,
		},
		"an order without a status is not settled": {item("order#A", ""), play.Row{OrderID: "A", Status: order.Declined, Amount: 1999}, true},
		"a lock is no order":                       {item("lock#A", ""), play.Row{OrderID: "lock#A", Status: order.Declined, Amount: 1999}, false},
	} {
		if got, isOrder := baselineRow(tt.item); got != tt.want || isOrder != tt.order {
			t.Errorf("%s: got %+v, %t, want %+v, %t", claim, got, isOrder, tt.want, tt.order)
		}
	}
}

func TestPowertoolsSayWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := powertools(); err == nil || !strings.Contains(err.Error(), "no node on PATH") {
		t.Errorf("error = %v, want that there is no node", err)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("PATH"), "node"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := powertools(); err == nil || !strings.Contains(err.Error(), "make storm-powertools") { // a test has another folder
		t.Errorf("error = %v, want how to install it", err)
	}
}

func TestTheSecondVersionIsAnotherFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary, next, err := build(t.Context(), lambdatest.Program{Package: "orderonce/scripts/lab/storm/no-such-package"}, dir)
	if err == nil || binary == next || !strings.HasPrefix(next, dir) {
		t.Errorf("%s and %s, %v, want two files and what the compiler says", binary, next, err)
	}
}

func TestChecksAreShownInPart(t *testing.T) {
	t.Parallel()
	var broken []string
	for n := range 7 {
		broken = append(broken, fmt.Sprintf("order storm-%06d", n))
	}
	var b strings.Builder
	showChecks(&b, play.Outcome{Checks: []system.Check{{ID: "I1", Claim: "at most one", Broken: broken}}})
	if text := b.String(); strings.Contains(text, broken[5]) || !strings.HasSuffix(text, broken[4]+"\n              and 2 more\n") {
		t.Errorf("printed\n%s\nwant five of the seven and how many more", text)
	}
}

func TestFiguresPerHundred(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.04: "< 0.1", 0.1: "0.1", 9.94: "9.9", 10: "10", 318.4: "318"} {
		if got := perHundred(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

func TestMemoryCountsThisProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		if n := inUse(); n != 0 {
			t.Errorf("%d bytes, want 0 where nobody tells", n)
		}
		return
	}
	if n := inUse(); n < 1<<20 || n > 1<<33 {
		t.Errorf("%d bytes, want at least a MiB and no more than a machine has", n)
	}
	if n := share(-1); n != 0 {
		t.Errorf("a process that is not there has %d bytes", n)
	}
}

func TestTheBarOfATerminalAddsUpTheStorms(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "err"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBar(file)
	b.terminal = true
	b.of("orderonce")(play.Progress{Phase: "storm", Done: 1, Total: 10})
	b.of("short-lock")(play.Progress{Phase: "storm", Done: 2, Total: 5})
	b.of("orderonce")(play.Progress{Phase: "5 days later", Done: 4, Total: 10})
	if s := b.bar.State(); s.Max != 15 || s.CurrentNum != 6 {
		t.Errorf("%d of %d messages, want 6 of 15", s.CurrentNum, s.Max)
	}
	if err := errors.Join(b.end(), file.Close()); err != nil {
		t.Error(err)
	}
}
