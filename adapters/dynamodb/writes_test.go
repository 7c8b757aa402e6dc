package dynamodb_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// page shows the write of each transition. Write it anew with -update.
const page = "../../docs/reference/row.md"

var update = flag.Bool("update", false, "write the page anew") //nolint:gochecknoglobals // a flag of the test

// writes is a store in memory that keeps the expressions of the last write.
type writes struct {
	*ordertest.Memory

	last string
}

// Save keeps the expressions of the write that the memory accepts.
func (w *writes) Save(ctx context.Context, before, after order.Record) (order.Record, error) {
	now, err := w.Memory.Save(ctx, before, after)
	if err == nil {
		condition, update := dynamodb.Write(before, after)
		update = strings.ReplaceAll(update, " REMOVE", "\nREMOVE")
		lines := []string{"IF"}
		for part := range strings.SplitSeq(condition, " AND ") {
			last := lines[len(lines)-1]
			ends := strings.Contains(last, "leaseUntil") || strings.Contains(last, "stock")
			if len(last)+len(part) < 95 && !ends {
				lines[len(lines)-1] = strings.Replace(last+" AND "+part, "IF AND", "IF", 1)
			} else {
				lines = append(lines, "   AND "+part)
			}
		}
		w.last = update + "\n" + strings.Join(lines, "\n") + "\n"
	}
	return now, err
}

func TestThePageShowsEachWrite(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	fixture{T: t}.must(err)
	before, rest, found := strings.Cut(string(text), "\n## The writes\n")
	_, after, ends := strings.Cut(rest, "\n## ")
	if !found || !ends {
		t.Fatalf("%s: no section of the writes", page)
	}
	want := before + "\n## The writes\n" + section(t) + "\n## " + after
	if *update {
		fixture{T: t}.must(os.WriteFile(page, []byte(want), 0o600))
		return
	}
	if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("%s (-page +code); write it anew with -update:\n%s", page, diff)
	}
}

func section(t *testing.T) string {
	t.Helper()
	w := &writes{Memory: new(ordertest.Memory)}
	o := ordertest.Order("ORD-1")
	must := fixture{T: t}.must
	begin := func(owner string, from time.Duration) order.Claim {
		c, err := order.Begin(t.Context(), w, o, order.Lease{Owner: owner, From: at(from), Until: at(from + time.Minute)}, nil)
		must(err)
		return c
	}
	var b strings.Builder
	b.WriteString("\nOne function makes every write of an order: it sets and removes what differs, on the condition that nothing\n" +
		"else changed it. A value with a 0 at its end is the one that was read, or that the last write left.\n")
	show := func(title string) { fmt.Fprintf(&b, "\n### %s\n\n```text\n%s```\n", title, w.last) }
	c := begin("first", 0)
	show("Begin, of a new order")
	must(c.Release(t.Context(), w, order.ReasonUnavailable, at(time.Second)))
	show("Release")
	begin("second", time.Minute)
	c = begin("third", time.Hour)
	show("Begin, of an order whose lease has expired")
	must(c.Bind(t.Context(), w, prepared(), at(time.Hour+time.Second)))
	c.Intent = intent
	show("Bind")
	must(c.Finish(t.Context(), w, asPaid(), at(time.Hour+2*time.Second)))
	show("Finish, in a transaction with its event")
	r, err := w.Load(t.Context(), "ORD-1")
	must(err)
	d := order.Dispute{ID: "du_pretend", Status: order.DisputeOpen, CreatedAt: at(48 * time.Hour)}
	must(settle.RecordDispute(t.Context(), w, r, d, at(2*time.Hour)))
	show("A dispute, in a transaction with its event")
	return b.String()
}
