package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/view"
)

type listDead struct {
	Select  selection `embed:""`
	Verdict string    `enum:"redrive,discard,fix,look,any" default:"any" help:"Only messages with this verdict: ${enum}."`
}

// Run lists messages.
func (l listDead) Run(ctx context.Context, on cloud.Deployment) error {
	d := openTriage(on, l.Select.All)
	visit := func(_ context.Context, letter deadletters.Letter) (bool, error) {
		if l.Verdict != "any" && l.Verdict != string(letter.Action) {
			return false, nil
		}
		return false, d.print(letter)
	}
	counts, err := d.each(ctx, l.Select.Limit, l.Select.filter(d.Now()), d.full, visit)
	if err == nil {
		fmt.Fprintf(d.People(), "\n%s", d.describe(counts))
	}
	return err
}

type showDead struct {
	ID   string `arg:"" name:"message-or-order" help:"A message id or an orderId."`
	Body bool   `help:"Print the body and the producer's attributes as they are, with customer and payment method."`
}

var errNoDeadLetter = errors.New("the dead-letter queue has no such message: " +
	"it may be in its queue again, where it waits while processing is stopped")

// Run shows the messages of one order.
func (s showDead) Run(ctx context.Context, on cloud.Deployment) error {
	d := openTriage(on, true)
	named := deadletters.Filter{Query: s.ID}
	show := func(_ context.Context, l deadletters.Letter) (bool, error) {
		d.Progress("")
		text, line := view.WholeLetter(l, d.Now(), s.Body)
		return false, d.Result(text, line)
	}
	counts, err := d.each(ctx, mostShown, named, nil, show)
	if err == nil && counts.matched == 0 {
		err = fmt.Errorf("show %q: %w%s", s.ID, errNoDeadLetter, d.unseen(counts.pages))
	}
	return err
}

// mostShown is how many messages are looked at to find one: as many as a queue hides.
const mostShown = 100_000

// selection are the flags that select messages.
type selection struct {
	Reason    []string            `placeholder:"REASON" help:"Only messages with these reasons; none: those that SQS moved itself."`
	Order     string              `placeholder:"ID" help:"Only the messages of this order."`
	OlderThan time.Duration       `placeholder:"AGE" help:"Only messages that were first sent longer ago, such as 48h."`
	NewerThan time.Duration       `placeholder:"AGE" help:"Only messages that were first sent less long ago."`
	Field     []deadletters.Field `sep:"none" placeholder:"NAME=VALUE" help:"Only bodies with this value: lines.unitAmount=1999. Repeatable."`
	Limit     int                 `default:"10000" help:"Look at no more messages than this. The tool keeps 1 KiB of memory for each."`
	All       bool                `help:"Print each message, not only the first 50. --json does."`
}

func (s selection) filter(now time.Time) deadletters.Filter {
	f := deadletters.Filter{Reasons: s.Reason, Query: s.Order, Fields: s.Field}
	if s.OlderThan > 0 {
		f.Before = now.Add(-s.OlderThan)
	}
	if s.NewerThan > 0 {
		f.After = now.Add(-s.NewerThan)
	}
	return f
}

// triage is where a person works through the dead letters. Of thousands it prints the
// first, and then how many there are for each reason.
type triage struct {
	cloud.Deployment

	sources deadletters.Sources
	queue   *deadletters.Queue
	left    int  // so many more are printed; negative: all
	more    bool // some were not printed
}

const pageSize = 50

// full reports whether no other message is printed.
func (d *triage) full() bool {
	d.more = d.more || d.left == 0
	return d.left == 0
}

func openTriage(d cloud.Deployment, all bool) *triage {
	// With `| head`, a write fails instead of killing the process, which holds messages.
	signal.Ignore(syscall.SIGPIPE)
	left := pageSize
	if all || d.JSON {
		left = -1
	}
	return &triage{
		Deployment: d, queue: d.Letters(), left: left,
		sources: deadletters.Sources{
			Orders: d.Store(), Accounts: d.Accounts(), Payments: d.Payments(), Refunds: d.Refunds(), Scope: d.Scope,
		},
	}
}

// each calls visit with every message that f selects, and counts reasons and verdicts.
// Once enough, if there is one, returns true, it only counts reasons, and reads neither
// rows nor Stripe. It fails if no message has a field of f: the name is mistyped.
func (d *triage) each(
	ctx context.Context, limit int, f deadletters.Filter, enough func() bool,
	visit deadletters.Visit[deadletters.Letter],
) (t tally, err error) {
	looked := 0
	t.kinds = map[kind]int{}
	t.pages, err = d.queue.Each(ctx, limit, func(ctx context.Context, m deadletters.Message) (bool, error) {
		looked++
		d.Progress("%s looked at", view.Messages(looked))
		if !f.Matches(m) {
			return false, nil
		}
		t.matched++
		if enough != nil && enough() {
			t.kinds[kind{m.ReasonShown(), unread}]++
			return false, nil
		}
		l := d.sources.Letter(ctx, m)
		t.kinds[kind{m.ReasonShown(), l.Action}]++
		return visit(ctx, l)
	})
	d.Progress("")
	for _, field := range f.Fields {
		if err == nil && looked > 0 && !field.Found {
			err = fmt.Errorf("--field %s: no message that was looked at has a field of this name", field.Name())
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("stopped after %s, which are visible in the queue again: %w", view.Messages(looked), err)
	}
	return t, err
}

// tally counts the messages that were selected.
type tally struct {
	pages   deadletters.Pages
	matched int
	kinds   map[kind]int
}

// kind is a reason, and the verdict on messages with it.
type kind struct {
	reason string
	action deadletters.Action
}

// unread is in place of a verdict if neither row nor Stripe was read.
const unread deadletters.Action = "without a verdict"

// describe returns the counts as a line for people. Below it are the reasons, if not
// every message was printed, and what was not seen.
func (d *triage) describe(t tally) string {
	actions, parts := map[deadletters.Action]int{}, []string{}
	for k, n := range t.kinds {
		actions[k.action] += n
	}
	for _, a := range append(deadletters.Actions(), unread) {
		if n := actions[a]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, a))
		}
	}
	line := strings.TrimSuffix(view.Messages(t.matched)+": "+strings.Join(parts, ", "), ": ")
	if other := t.pages.Seen - t.matched; other > 0 {
		line += fmt.Sprintf("; not selected: %d", other)
	}
	lines := []string{line}
	if d.more {
		for _, k := range slices.SortedFunc(maps.Keys(t.kinds), func(a, b kind) int {
			return cmp.Or(t.kinds[b]-t.kinds[a], cmp.Compare(a.reason, b.reason), cmp.Compare(a.action, b.action))
		}) {
			lines = append(lines, fmt.Sprintf("%8d  %-26s %s", t.kinds[k], k.reason, k.action))
		}
		const more = "printed are the first %d; --all prints each, --reason=REASON those of one reason"
		lines = append(lines, fmt.Sprintf(more, pageSize))
	}
	return strings.Join(lines, "\n") + d.unseen(t.pages) + "\n"
}

// unseen returns what the queue holds beside the messages that were looked at: a line for
// people, or "".
func (d *triage) unseen(p deadletters.Pages) string {
	more := fmt.Sprintf("SQS counts about %d more", p.Unseen)
	switch {
	case !p.Ended:
		return "\nthe limit was reached, and " + more + ": see --limit"
	case p.Unseen == 0:
		return ""
	case strings.HasSuffix(string(d.DeadLetters), ".fifo"):
		more += ": behind the first ten of their message group, which have to be redriven or discarded first, or"
	default:
		more += ":"
	}
	return "\n" + more + " hidden by another reader or by a response that was lost, or gone a moment ago; " +
		"run this again in " + deadletters.HiddenFor.String()
}

// print prints a dead letter, a paragraph for people, if the page has room for it.
func (d *triage) print(l deadletters.Letter) error {
	d.Progress("")
	if d.full() {
		return nil
	}
	d.left--
	return d.Result(view.Letter(l, d.Now()), view.NewLetterJSON(l))
}
