package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type listDead struct {
	Select  selection `embed:""`
	Verdict string    `enum:"redrive,discard,fix,look,any" default:"any" help:"Only messages with this verdict: ${enum}."`
}

// Run lists messages.
func (l listDead) Run(ctx context.Context, sh shell.Shell) error {
	d, err := openTriage(ctx, sh)
	if err != nil {
		return err
	}
	visit := func(_ context.Context, letter deadletters.Letter) (bool, error) {
		if l.Verdict != "any" && l.Verdict != string(letter.Action) {
			return false, nil
		}
		return false, d.print(letter)
	}
	counts, err := d.each(ctx, l.Select.Limit, l.Select.filter(d.Now()).Matches, visit)
	if err == nil {
		fmt.Fprintf(d.People(), "\n%s", counts)
	}
	return err
}

type showDead struct {
	ID   string `arg:"" name:"message-or-order" help:"A message id or an orderId."`
	Body bool   `help:"Print the body and the producer's attributes as they are, with customer and payment method."`
}

var errNoDeadLetter = errors.New("the dead-letter queue has no such message: " +
	"it may be in the order queue again, or hidden by another reader for some minutes")

// Run shows the messages of one order.
func (s showDead) Run(ctx context.Context, sh shell.Shell) error {
	d, err := openTriage(ctx, sh)
	if err != nil {
		return err
	}
	named := deadletters.Filter{Query: s.ID}.Matches
	counts, err := d.each(ctx, mostShown, named, func(_ context.Context, l deadletters.Letter) (bool, error) {
		d.Progress("")
		text, line := view.WholeLetter(l, d.Now(), s.Body)
		return false, d.Result(text, line)
	})
	if err == nil && counts.matched == 0 {
		err = fmt.Errorf("show %q: %w", s.ID, errNoDeadLetter)
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

// triage is where a person works through the dead letters.
type triage struct {
	cloud.Deployment

	sources deadletters.Sources
	queue   *deadletters.Queue
}

func openTriage(ctx context.Context, sh shell.Shell) (triage, error) {
	// With `| head`, a write fails instead of killing the process, which holds messages.
	signal.Ignore(syscall.SIGPIPE)
	d, err := cloud.OpenStripe(ctx, sh, "QUEUE_URL", "DEAD_LETTER_QUEUE_URL")
	if err != nil {
		return triage{}, err
	}
	return triage{
		Deployment: d, queue: d.Letters(),
		sources: deadletters.Sources{
			Orders: d.Store(), Accounts: d.Accounts(), Payments: d.Payments(), Refunds: d.Refunds(), Scope: d.Scope,
		},
	}, nil
}

// each calls visit with every message that is wanted, and counts the verdicts.
func (d triage) each(
	ctx context.Context, limit int, wanted func(deadletters.Message) bool,
	visit deadletters.Visit[deadletters.Letter],
) (t tally, err error) {
	looked := 0
	t.actions = map[deadletters.Action]int{}
	t.pages, err = d.queue.Each(ctx, limit, func(ctx context.Context, m deadletters.Message) (bool, error) {
		looked++
		d.Progress("%s looked at", view.Messages(looked))
		if !wanted(m) {
			return false, nil
		}
		l := d.sources.Letter(ctx, m)
		t.actions[l.Action]++
		t.matched++
		return visit(ctx, l)
	})
	d.Progress("")
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("stopped after %s, which are visible in the queue again: %w", view.Messages(looked), err)
	}
	return t, err
}

// tally counts the verdicts on the messages that were selected.
type tally struct {
	pages   deadletters.Pages
	matched int
	actions map[deadletters.Action]int
}

// String returns the counts as a line for people, and below it what was not seen.
func (t tally) String() string {
	var parts []string
	for _, a := range deadletters.Actions() {
		if n := t.actions[a]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, a))
		}
	}
	line := strings.TrimSuffix(view.Messages(t.matched)+": "+strings.Join(parts, ", "), ": ")
	if other := t.pages.Seen - t.matched; other > 0 {
		line += fmt.Sprintf("; not selected: %d", other)
	}
	if !t.pages.Ended {
		line += "\nthe limit was reached before the end of the queue: see --limit"
	} else if t.pages.Unseen > 0 {
		line += fmt.Sprintf("\nSQS counts about %d more: hidden by another reader or by a response that was lost, "+
			"behind others of their FIFO group, or gone a moment ago; list again in %s",
			t.pages.Unseen, deadletters.HiddenFor)
	}
	return line + "\n"
}

// print prints a dead letter: a paragraph for people.
func (d triage) print(l deadletters.Letter) error {
	d.Progress("")
	return d.Result(view.Letter(l, d.Now()), view.NewLetterJSON(l))
}
