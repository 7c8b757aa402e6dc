package watch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/orders/watch"
)

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func snapshot() watch.Snapshot {
	return watch.Snapshot{
		At: noon(), Orders: watch.Depth{Waiting: 12, InFlight: 3, Delayed: 1}, DeadLetters: watch.Depth{Waiting: 4},
		Reasons: map[string]int{"conflict": 1, "mismatch": 1, "invalid_order": 2},
		Waiting: map[order.Status]int{order.Pending: 4, order.Open: 1}, Due: 2, More: true,
		Oldest:  watch.Oldest{ID: "ORD-1", Status: order.Pending, Since: noon().Add(-51 * time.Hour)},
		Scanned: &watch.Scanned{At: noon(), Orders: map[order.Status]int{order.Paid: 100, order.Declined: 3}},
	}
}

func TestTextShowsWhatThereIs(t *testing.T) {
	before := watch.Snapshot{
		At: noon().Add(-30 * time.Second), Orders: watch.Depth{Waiting: 26},
		Scanned: &watch.Scanned{At: noon().Add(-time.Minute), Orders: map[order.Status]int{order.Paid: 53}},
	}
	failed := watch.Snapshot{At: noon(), Errors: []string{"queues: no such queue"}}
	for claim, tt := range map[string]struct {
		now, before watch.Snapshot
		want        []string
	}{
		"everything": {snapshot(), before, []string{
			"queue               16   12 waiting, 3 in flight, 1 delayed, -20 per minute",
			"dead letters         4   invalid_order 2, conflict 1, mismatch 1",
			"waiting             5+   pending 4, open 1; 2 due",
			"oldest            2d3h   ORD-1, pending",
			"all orders         103   paid 100, declined 3, +50 per minute, scanned at 12:00:00",
		}},
		"the first look": {snapshot(), watch.Snapshot{}, []string{"queue               16   12 waiting, 3 in flight, 1 delayed"}},
		"an error":       {failed, watch.Snapshot{}, []string{"ERROR                    queues: no such queue"}},
	} {
		t.Run(claim, func(t *testing.T) {
			got := tt.now.Text(tt.before)
			for _, want := range tt.want {
				if !strings.Contains(got, want+"\n") {
					t.Errorf("got\n%s\nwant the line %q", got, want)
				}
			}
		})
	}
}

// A part that cannot be read leaves the others.
func TestReadKeepsWhatItCouldRead(t *testing.T) {
	for _, broken := range []string{"", "queues: refused", "waiting orders: refused", "dead letters: refused"} {
		fails := func(part string) error {
			if strings.HasPrefix(broken, part) {
				return errors.New("refused")
			}
			return nil
		}
		n := watch.Sources{
			Now: noon,
			Depths: func(context.Context) (orders, dead watch.Depth, err error) {
				return watch.Depth{Waiting: 1}, watch.Depth{Waiting: 2}, fails("queues")
			},
			Waiting: func(_ context.Context, n *watch.Snapshot) error {
				n.Due = 7
				return fails("waiting")
			},
			Reasons: func(context.Context) (map[string]int, error) {
				return map[string]int{"conflict": 2}, fails("dead letters")
			},
		}.Read(t.Context())
		if got := strings.Join(n.Errors, ";"); got != broken || n.Due != 7 || n.Orders.Waiting != 1 || n.Reasons["conflict"] != 2 {
			t.Errorf("got %+v, want the error %q and all parts", n, broken)
		}
	}
}

func TestTheScreenFitsTheTerminal(t *testing.T) {
	var m tea.Model = watch.Screen{Title: "table orders", Every: time.Second}
	if !strings.Contains(m.View().Content, "reading ...") {
		t.Errorf("got %q before the first look", m.View().Content)
	}
	m, next := m.Update(snapshot())
	if next == nil || !strings.Contains(m.View().Content, "invalid_order 2") {
		t.Errorf("got\n%s\nwant the snapshot and another look", m.View().Content)
	}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 30, Height: 4})
	want := "table orders\n\nqueue               16   12 w…\ndead letters         4   inva…"
	if diff := cmp.Diff(m.View().Content, want); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	m, _ = m.Update(errors.New("throttled"))
	m, _ = m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
	if !strings.Contains(m.View().Content, "scan: throttled") {
		t.Errorf("got\n%s\nwant the error of the scan", m.View().Content)
	}
	for key, quits := range map[rune]bool{'q': true, 'x': false} {
		_, command := m.Update(tea.KeyPressMsg{Code: key, Text: string(key)})
		if (command != nil) != quits {
			t.Errorf("key %q: got a command %t, want %t", key, command != nil, quits)
		}
	}
}
