package order_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
)

// readDiagram returns the transitions of the state diagram in docs/design.md. The first
// status follows "".
func readDiagram(t *testing.T) map[order.Status][]order.Status {
	t.Helper()
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```mermaid\nstateDiagram-v2\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/design.md has no mermaid stateDiagram-v2 block")
	}
	arrows := map[order.Status][]order.Status{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(\S+) --> (\w+)`).FindAllStringSubmatch(block, -1) {
		from := order.Status(strings.Trim(m[1], "[*]"))
		arrows[from] = append(arrows[from], order.Status(m[2]))
	}
	return arrows
}

func TestTransitionsMatchTheDiagram(t *testing.T) {
	arrows := readDiagram(t)
	if got, want := arrows[""], []order.Status{order.Open}; !slices.Equal(got, want) {
		t.Errorf("first status: got %v, want %v", got, want)
	}
	for from, nexts := range arrows {
		for _, s := range append([]order.Status{from}, nexts...) {
			if _, err := order.ParseStatus(string(s)); s != "" && err != nil {
				t.Errorf("unknown status %q in the diagram: %v", s, err)
			}
		}
	}
	for _, from := range order.Statuses() {
		for _, to := range order.Statuses() {
			err := from.Transition(to)
			if want := slices.Contains(arrows[from], to); (err == nil) != want {
				t.Errorf("%s -> %s: got error %v, in the diagram: %t", from, to, err, want)
			}
			var e *order.TransitionError
			if err != nil && (!errors.As(err, &e) || e.From != from || e.To != to) {
				t.Errorf("%s -> %s: got %v, want a TransitionError with both", from, to, err)
			}
			if allowed := slices.Contains(from.Next(), to); allowed != (err == nil) {
				t.Errorf("%s -> %s: got %t from Next and %v from Transition, want them to agree", from, to, allowed, err)
			}
		}
	}
}

func TestOnlyWaitingStatusesAreRechecked(t *testing.T) {
	want := map[order.Status]time.Duration{
		order.Open:           15 * time.Minute, // at least MaxLease
		order.Pending:        time.Hour,
		order.ActionRequired: 24 * time.Hour,
		order.Declined:       24 * time.Hour,
	}
	const unknown order.Status = "lost"
	for _, s := range append(order.Statuses(), unknown) {
		got, waits := s.RecheckAfter()
		if _, wantWaits := want[s]; got != want[s] || waits != wantWaits {
			t.Errorf("%s: got %v, %t, want %v, %t", s, got, waits, want[s], wantWaits)
		}
	}
	held := order.Quantities{"TSHIRT-M": 1}
	if _, waits := (order.Record{Status: order.Refused}).RecheckAfter(); waits {
		t.Error("a refused order without stock waits, want it at rest")
	}
	if after, waits := (order.Record{Status: order.Refused, Stock: held}).RecheckAfter(); after != 24*time.Hour || !waits {
		t.Errorf("a refused order that holds stock: got %v, %t, want a day", after, waits)
	}
	if after, waits := (order.Record{Status: order.Pending, Stock: held}).RecheckAfter(); after != time.Hour || !waits {
		t.Errorf("a pending order that holds stock: got %v, %t, want an hour", after, waits)
	}
	if want[order.Open] < order.MaxLease {
		t.Errorf("open: got %v, want at least MaxLease, %v", want[order.Open], order.MaxLease)
	}
	if got := unknown.Next(); got != nil {
		t.Errorf("unknown status: got Next %v, want none", got)
	}
}
