package main

import (
	"context"
	"errors"
	"fmt"

	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
)

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
func (l listDead) Run(ctx context.Context, sh shell.Shell) error {
	d, err := openDesk(ctx, sh)
	if err != nil {
		return err
	}
	visit := func(_ context.Context, letter deadletters.Letter) (bool, error) {
		if l.Verdict != "any" && l.Verdict != string(letter.Action) {
			return false, nil
		}
		return false, d.print(letter)
	}
	counts, err := d.each(ctx, l.Select.filter(d.Now()), l.Select.Limit, visit)
	if err == nil {
		fmt.Fprintf(d.People(), "\n%s", counts)
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
func (s showDead) Run(ctx context.Context, sh shell.Shell) error {
	d, err := openDesk(ctx, sh)
	if err != nil {
		return err
	}
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
