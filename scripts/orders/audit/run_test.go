package audit_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

// generated are books of n paid orders. The row of every lostEvery-th order is missing.
type generated struct {
	n, lostEvery int
	failAfter    int // pages until a call fails; 0 means never
	calls        *int
}

var errStopped = errors.New("stopped")

const (
	listPage = 100   // as Stripe's
	scanPage = 1_500 // rows of 700 bytes in 1 MB
)

func (g generated) id(n int) order.ID { return order.ID(fmt.Sprintf("ORD-%09d", n)) }

func (g generated) payment(n int) audit.Payment {
	p := intent(order.IntentID(fmt.Sprintf("pi_3Generated%012d", n)), order.Succeeded)
	p.OrderID, p.Fingerprint = g.id(n), order.Fingerprint("v1:"+strings.Repeat("0", 64))
	return p
}

func (g generated) row(n int) audit.Row {
	r, p := *paid().Row, g.payment(n)
	r.OrderID, r.Intent, r.Fingerprint = p.OrderID, p.ID, p.Fingerprint
	return r
}

func (g generated) lost(n int) bool { return g.lostEvery > 0 && n%g.lostEvery == 0 }

func (g generated) Payments(
	_ context.Context, _ audit.Window, refunded bool, after string,
) iter.Seq2[audit.Page[audit.Payment], error] {
	if refunded {
		return func(func(audit.Page[audit.Payment], error) bool) {}
	}
	return pages(g, after, listPage, g.payment, func(int) bool { return false })
}

func (g generated) Rows(_ context.Context, _ audit.Window, after string) iter.Seq2[audit.Page[audit.Row], error] {
	return pages(g, after, scanPage, g.row, g.lost)
}

// pages generates pages of some size. A position is the number of orders before it.
func pages[T any](g generated, after string, size int, item func(int) T, skip func(int) bool) iter.Seq2[audit.Page[T], error] {
	return func(yield func(audit.Page[T], error) bool) {
		start := 0
		_, _ = fmt.Sscan(after, &start)
		for from := start; from < g.n; from += size {
			if *g.calls++; g.failAfter > 0 && *g.calls > g.failAfter {
				yield(audit.Page[T]{}, errStopped)
				return
			}
			page := audit.Page[T]{}
			if from+size < g.n {
				page.Next = fmt.Sprint(from + size)
			}
			for n := from; n < min(from+size, g.n); n++ {
				if !skip(n) {
					page.Items = append(page.Items, item(n))
				}
			}
			if !yield(page, nil) {
				return
			}
		}
	}
}

func (g generated) Payment(_ context.Context, id order.IntentID) (audit.Payment, error) {
	n := 0
	_, err := fmt.Sscanf(string(id), "pi_3Generated%d", &n)
	return g.payment(n), err
}

func (g generated) Row(_ context.Context, id order.ID) (audit.Row, error) {
	n := 0
	if _, err := fmt.Sscanf(string(id), "ORD-%d", &n); err != nil {
		return audit.Row{}, err
	}
	if g.lost(n) {
		return audit.Row{}, order.ErrNotFound
	}
	return g.row(n), nil
}

func job() audit.Job {
	return audit.Job{
		Window: audit.Window{From: noon().Add(-48 * time.Hour), To: noon()}, Scope: scope, Table: "orders", Mode: order.TestMode,
	}
}

func run(t *testing.T, g generated, dir string, j audit.Job, progress func(audit.Summary)) (audit.Summary, []string, error) {
	t.Helper()
	f, err := audit.Open(dir, j)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	a := &audit.Auditor{Books: g, Scope: scope, Now: noon, Progress: progress}
	s, err := a.Run(t.Context(), f)
	var found []string
	for finding, err := range f.Findings() {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, string(finding.OrderID)+" "+string(finding.Class))
	}
	return s, found, err
}

func quiet(audit.Summary) {}

func TestAnInterruptedAuditContinuesWhereItWas(t *testing.T) {
	const orders = 10_000 // 100 and 7 calls
	calls := 0
	g := generated{n: orders, lostEvery: 1000, calls: &calls}
	want, found, err := run(t, g, t.TempDir(), job(), quiet)
	if err != nil || want.Matched != orders-10 || len(found) != 10 || calls != 107 {
		t.Fatalf("got %+v after %d calls, %v, want 10 findings after 107", want, calls, err)
	}
	for _, stop := range []int{1, 77, 104, 107} { // the last one has finished
		dir, made := t.TempDir(), 0
		g := g
		g.calls, g.failAfter = &made, stop
		if _, _, err := run(t, g, dir, job(), quiet); errors.Is(err, errStopped) != (stop < 107) {
			t.Fatalf("stopped at %d: got %v", stop, err)
		}
		scribble(t, dir)
		made, g.failAfter = 0, 0
		got, again, err := run(t, g, dir, audit.Job{}, quiet)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || !slices.Equal(found, again) {
			t.Errorf("stopped at %d: %v, findings %v (-want +got):\n%s", stop, err, again, diff)
		}
		if made != 107-stop {
			t.Errorf("stopped at %d: made %d calls more, want %d", stop, made, 107-stop)
		}
	}
	if _, err := audit.Open(t.TempDir(), audit.Job{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder without a job: got %v, want ErrNotExist", err)
	}
}

// scribble appends to every file what a killed process may have written after it saved.
func scribble(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("got files %v, %v", names, err)
	}
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(`{"p":{"i":"pi_half`)
		}
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
}

// TestManyOrdersAreAuditedInLittleMemory takes ten seconds: make test-long runs it. Each
// night, ORDERONCE_ORDERS is a million, which take half a minute.
func TestManyOrdersAreAuditedInLittleMemory(t *testing.T) {
	lambdatest.FullOnly(t)
	orders, err := strconv.Atoi(os.Getenv("ORDERONCE_ORDERS")) //nolint:forbidigo // a test has no composition root
	limit := uint64(128 << 20)
	if err != nil {
		orders, limit = 250_000, 32<<20
	}
	calls, most := 0, uint64(0)
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	s, found, err := run(t, generated{n: orders, lostEvery: 10_000, calls: &calls}, t.TempDir(), job(), func(audit.Summary) {
		metrics.Read(sample)
		most = max(most, sample[0].Value.Uint64()-sample[1].Value.Uint64())
	})
	if err != nil || s.Orders != orders || len(found) != orders/10_000 {
		t.Errorf("got %+v, %v, want %d orders and %d findings", s, err, orders, orders/10_000)
	}
	t.Logf("%d orders: %d calls, at most %d MiB", orders, calls, most>>20)
	if most > limit {
		t.Errorf("used %d MiB, want at most %d", most>>20, limit>>20)
	}
}
