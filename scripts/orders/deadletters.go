package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/domain/order"
	"orderonce/scripts/orders/deadletters"
)

// dead is `orders dead-letters`.
type dead struct {
	List    listDead    `cmd:"" help:"List dead letters: what happened to the money, and what to do."`
	Show    showDead    `cmd:"" help:"Show dead letters whole, with their rows."`
	Redrive redriveDead `cmd:"" help:"Send dead letters back to the order queue, if that is safe."`
	Discard discardDead `cmd:"" help:"Delete dead letters, if there is nothing left to do."`
}

// selection are the flags that select messages.
type selection struct {
	Reason    []string            `placeholder:"REASON" help:"Only messages with these reasons; none: those that SQS moved itself."`
	Order     string              `placeholder:"ID" help:"Only the messages of this order."`
	OlderThan time.Duration       `placeholder:"AGE" help:"Only messages that were first sent longer ago, such as 48h."`
	NewerThan time.Duration       `placeholder:"AGE" help:"Only messages that were first sent less long ago."`
	Field     []deadletters.Field `sep:"none" placeholder:"NAME=VALUE" help:"Only bodies with this value, such as lines.unitAmount=1999. Repeatable: all."`
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

// desk is where a person works through the dead letters.
type desk struct {
	shell

	sources deadletters.Sources
	queue   *deadletters.Queue
	env     deadLettersConfig
	cfg     aws.Config
}

// emptyWait is how long one receive waits for messages at the end of the queue.
const emptyWait = time.Second

func openDesk(ctx context.Context, sh shell) (desk, error) {
	// With `| head`, a write fails instead of killing the process, which holds messages.
	signal.Ignore(syscall.SIGPIPE)
	env, cfg, err := connect[deadLettersConfig](ctx, sh)
	if err != nil {
		return desk{}, err
	}
	return desk{
		shell: sh, env: env, cfg: cfg,
		queue: deadletters.NewQueue(cfg, string(env.DeadLetters), string(env.Queue), sh.now, emptyWait),
		sources: deadletters.Sources{
			Orders: env.Stripe.Orders.store(cfg), Accounts: env.Stripe.Orders.refunds(cfg),
			Payments: env.Stripe.payments(), Refunds: env.Stripe.refunds(), Scope: order.Scope(env.Stripe.Scope),
		},
	}, nil
}

// each calls visit with every message that f selects, and counts the verdicts.
func (d desk) each(
	ctx context.Context, f deadletters.Filter, limit int, visit deadletters.Visit[deadletters.Letter],
) (t tally, err error) {
	looked := 0
	wanted := func(m deadletters.Message) bool {
		looked++
		d.progress("%s looked at", messages(looked))
		return f.Matches(m)
	}
	t.actions = map[deadletters.Action]int{}
	t.pages, err = d.sources.Judge(ctx, d.queue, limit, wanted,
		func(ctx context.Context, l deadletters.Letter) (bool, error) {
			t.actions[l.Action]++
			t.matched++
			return visit(ctx, l)
		})
	d.progress("")
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("stopped after %s, which are visible in the queue again: %w", messages(looked), err)
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
	line := strings.TrimSuffix(messages(t.matched)+": "+strings.Join(parts, ", "), ": ")
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

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

type listDead struct {
	Select  selection `embed:""`
	Verdict string    `enum:"redrive,discard,fix,look,any" default:"any" help:"Only messages with this verdict: ${enum}."`
}

// Help explains the command beyond its one line.
func (listDead) Help() string {
	return `For each message: its order, why it was parked, what its row and Stripe say about the money, and a
verdict:

  redrive  Safe: nothing is charged twice, and the message is not parked again at once.
  discard  Nothing is left to do: another delivery would change nothing.
  fix      Correct first what the next line says. A redrive would only park it again.
  look     Find out more: neither the row nor Stripe answers what a person has to know.

The messages are hidden while the command reads the queue, and visible again at the end, also after
Ctrl-C, "kill" or "| head"; after "kill -9", five minutes later. A message can say refused although its
order was paid since: the verdict counts, not the reason.

Examples:

  orders dead-letters list --reason=refused --older-than=24h
  orders dead-letters list --field lines.sku=MUG --field lines.unitAmount=240000
  orders --json dead-letters list | jq -r 'select(.verdict == "look") | .orderId'`
}

// Run lists messages.
func (l listDead) Run(ctx context.Context, sh shell) error {
	d, err := openDesk(ctx, sh)
	if err != nil {
		return err
	}
	return l.list(ctx, d)
}

func (l listDead) list(ctx context.Context, d desk) error {
	visit := func(_ context.Context, letter deadletters.Letter) (bool, error) {
		if l.Verdict != "any" && l.Verdict != string(letter.Action) {
			return false, nil
		}
		return false, d.print(letter)
	}
	counts, err := d.each(ctx, l.Select.filter(d.now()), l.Select.Limit, visit)
	if err == nil {
		fmt.Fprintf(d.people(), "\n%s", counts)
	}
	return err
}

type showDead struct {
	ID   string `arg:"" name:"message-or-order" help:"A message id or an orderId."`
	Body bool   `help:"Print the body and the producer's attributes as they are, with customer and payment method."`
}

// Help explains the command beyond its one line.
func (showDead) Help() string {
	return `It prints every message of the order, or the one with this id (its first id too): verdict,
attributes, body, and the row. Of the body it leaves out who pays and how, unless you add --body.

Exit code 1: the dead-letter queue has no such message.

Example: orders dead-letters show ORD-1001`
}

var errNoDeadLetter = errors.New("the dead-letter queue has no such message: " +
	"it may be in the order queue again, or hidden by another reader for some minutes")

// Run shows the messages of one order.
func (s showDead) Run(ctx context.Context, sh shell) error {
	d, err := openDesk(ctx, sh)
	if err != nil {
		return err
	}
	return s.show(ctx, d)
}

func (s showDead) show(ctx context.Context, d desk) error {
	f := deadletters.Filter{Query: s.ID}
	counts, err := d.each(ctx, f, mostShown, func(_ context.Context, l deadletters.Letter) (bool, error) {
		return false, d.show(l, s.Body)
	})
	if err == nil && counts.matched == 0 {
		err = fmt.Errorf("show %q: %w", s.ID, errNoDeadLetter)
	}
	return err
}

// mostShown is how many messages are looked at to find one: as many as a queue hides.
const mostShown = 100_000
