package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

func TestABrokenInvariantIsAnErrorWithItsName(t *testing.T) {
	t.Parallel()
	outcomes := two()
	err := arguments{}.report(outcomes, usage{})
	if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), ": I9") {
		t.Errorf("got error %v, want errBroken that names I9", err)
	}
	outcomes[0].Checks[1].Broken = nil
	if err := (arguments{}).report(outcomes, usage{}); err != nil {
		t.Errorf("got error %v, want none: a baseline may fail", err)
	}
	outcomes[0].Count.WrongStatus = 3
	err = arguments{}.report(outcomes, usage{})
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "3 errors that no invariant covers") {
		t.Errorf("got error %v, want errBroken with the number of errors", err)
	}
}

func TestAFailedRunIsWrittenToo(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	must(t, os.Mkdir(filepath.Join(docs, "reference"), 0o700))
	if err := (arguments{Docs: docs}).report(two(), usage{}); !errors.Is(err, errBroken) {
		t.Errorf("got error %v, want errBroken", err)
	}
	for _, name := range []string{"storm.svg", "reference/storm.md"} {
		if _, err := os.Stat(filepath.Join(docs, name)); err != nil {
			t.Error(err)
		}
	}
	err := arguments{Docs: filepath.Join(docs, "nothing")}.report(two(), usage{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want ErrNotExist", err)
	}
}

func TestDocsAreNotWrittenWithoutAGuard(t *testing.T) {
	t.Parallel()
	err := arguments{Docs: "docs", Without: "bind"}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--docs: not possible with --without") {
		t.Errorf("got error %v, want one that names both flags", err)
	}
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	var every []string
	for _, b := range baselines.All() {
		every = append(every, b.Name)
	}
	for claim, tt := range map[string]struct {
		a    arguments
		want []string
	}{
		"the product, then every baseline": {arguments{Baselines: 1}, append([]string{productName}, every...)},
		"no baselines: the product alone":  {arguments{}, []string{productName}},
		"the product alone by its name":    {arguments{Baselines: 1, Only: productName}, []string{productName}},
		"a baseline alone by its name":     {arguments{Baselines: 1, Only: "short-lock"}, []string{"short-lock"}},
		"without a guard: product alone":   {arguments{Baselines: 1, Without: "bind"}, []string{productName}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			handlers, err := tt.a.handlers(t.Context())
			must(t, err)
			var got []string
			for _, h := range handlers {
				if h.Name != "powertools-typescript" { // needs npm
					got = append(got, h.Name)
				}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestAnUnknownHandlerOrGuardIsAnError(t *testing.T) {
	t.Parallel()
	_, err := arguments{Baselines: 1, Only: "no-such"}.handlers(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"no-such", want one of orderonce, check-then-act, `) {
		t.Errorf("got error %v, want one that names the handlers", err)
	}
	if _, err := (arguments{Without: "no-such"}).handlers(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no-such") {
		t.Errorf("got error %v, want one that names the guard", err)
	}
}

func TestAHandlerWithoutAGuardNamesIt(t *testing.T) {
	t.Parallel()
	h, err := withoutGuard(t.Context(), "bind")
	if err != nil || !strings.HasPrefix(h.Does, "without bind: ") {
		t.Errorf("got %q, %v, want the name of the guard", h.Does, err)
	}
}

func TestTheProgramOfTheBaselinesIsBuiltOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	all := baselineHandlers("scripts/lab/storm/no-such-package", folder)
	_, _, first := all[0].Build(t.Context(), t.TempDir())
	_, _, second := all[1].Build(t.Context(), t.TempDir())
	if first == nil || !errors.Is(second, first) {
		t.Errorf("got errors %v and %v, want the same one", first, second)
	}
}

func TestBaselineRow(t *testing.T) {
	t.Parallel()
	item := func(id, status string) system.Item {
		i := system.Item{
			baselines.ID: &types.AttributeValueMemberS{Value: id},
			"amount":     &types.AttributeValueMemberN{Value: "1999"},
		}
		if status != "" {
			i["status"] = &types.AttributeValueMemberS{Value: status}
		}
		return i
	}
	for claim, tt := range map[string]struct {
		item  system.Item
		want  run.Row
		order bool
	}{
		"a paid order": {
			item("order#A", string(baselines.Paid)), run.Row{OrderID: "A", Settled: true, Status: order.Paid, Amount: 1999}, true,
		},
		"another status counts as declined": {
			item("order#A", string(baselines.Failed)), run.Row{OrderID: "A", Settled: true, Status: order.Declined, Amount: 1999}, true,
		},
		"an order without a status is not settled": {item("order#A", ""), run.Row{OrderID: "A", Status: order.Declined, Amount: 1999}, true},
		"a lock is not an order":                   {item("lock#A", ""), run.Row{OrderID: "lock#A", Status: order.Declined, Amount: 1999}, false},
	} {
		if got, isOrder := baselineRow(tt.item); got != tt.want || isOrder != tt.order {
			t.Errorf("%s: got %+v, %t, want %+v, %t", claim, got, isOrder, tt.want, tt.order)
		}
	}
}

func TestPowertoolsIsSkippedWithAReason(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := powertools(); err == nil || !strings.Contains(err.Error(), "no node on PATH") {
		t.Errorf("got error %v, want a missing node", err)
	}
	must(t, os.WriteFile(filepath.Join(os.Getenv("PATH"), "node"), nil, 0o700))
	if _, err := powertools(); err == nil ||
		!strings.Contains(err.Error(), "make storm-powertools") { // a test runs in another folder
		t.Errorf("got error %v, want how to install it", err)
	}
}

func TestMemoryAndCPUTimeAreSampled(t *testing.T) {
	t.Parallel()
	if cpuTime() <= 0 {
		t.Error("got no CPU time of this process")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	low, high := int64(1<<20), int64(1<<33)
	if runtime.GOOS != "linux" {
		low, high = 0, 0
	}
	if n := memory(ended); n < low || n > high {
		t.Errorf("got %d bytes, want %d to %d", n, low, high)
	}
	if n := proportionalSetSize(-1); n != 0 {
		t.Errorf("got %d bytes for an unknown process, want 0", n)
	}
}
