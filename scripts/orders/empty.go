package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

// emptying are the flags of the commands that empty the queue.
type emptying struct {
	DryRun bool `help:"List what would be done, and do nothing. The default when standard output is not a terminal, unless --yes."`
	Yes    bool `help:"Do not ask, for scripts. Messages with another verdict are only moved after the word was typed."`
}

type redriveDead struct {
	Select  selection `embed:""`
	How     emptying  `embed:""`
	Verdict string    `enum:"redrive,discard,fix,look,any" default:"redrive" help:"Those with this verdict; fix once the cause is corrected."`
	Rate    int       `default:"10" help:"Messages per second, 1 to 1000. The function processes each at once."`
}

// Run redrives messages.
func (r redriveDead) Run(ctx context.Context, on cloud.Deployment) error {
	d := openTriage(on, r.Select.All)
	pace := cloud.NewPace(float64(min(max(r.Rate, 1), 1000)))
	return d.empty(ctx, task{
		verb: "redrive", does: "send %s back", done: "redriven",
		then:      "; list again in a minute: what the function rejects is parked again",
		selection: r.Select, emptying: r.How,
		asks:  r.Verdict != string(deadletters.Redrive),
		takes: func(l deadletters.Letter) bool { return r.Verdict == "any" || r.Verdict == string(l.Action) },
		do: func(ctx context.Context, l deadletters.Letter) error {
			if err := pace.Wait(ctx, 1); err != nil {
				return err
			}
			return d.queue.Redrive(ctx, l.Message)
		},
	})
}

type discardDead struct {
	Select selection `embed:""`
	How    emptying  `embed:""`
	Force  bool      `help:"Delete the selected messages whatever their verdict, after the word was typed."`
	Save   string    `placeholder:"FILE" help:"Append each message to this file, as a line of JSON, before it is deleted."`
}

// Run deletes messages.
func (c discardDead) Run(ctx context.Context, on cloud.Deployment) error {
	d := openTriage(on, c.Select.All)
	return d.empty(ctx, task{
		verb: "discard", does: "delete %s", done: "discarded",
		selection: c.Select, emptying: c.How, asks: c.Force,
		takes: func(l deadletters.Letter) bool {
			if why := l.Kept(c.Save != ""); c.Force && why != "" {
				d.Progress("")
				fmt.Fprintf(d.People(), "kept     %s  %s\n", cmp.Or(l.OrderID(), "no order"), why)
				return false
			}
			return c.Force || l.Action == deadletters.Discard
		},
		do: func(ctx context.Context, l deadletters.Letter) error {
			if err := batch.Save(c.Save, l.Message); err != nil {
				return err
			}
			return d.queue.Delete(ctx, l.Message)
		},
	})
}

// task is one way to empty the queue.
type task struct {
	selection
	emptying

	verb, does, done string // what a person types, and reads before and afterwards
	then             string // what to do after something was done
	asks             bool   // even with --yes
	takes            func(deadletters.Letter) bool
	do               func(context.Context, deadletters.Letter) error
}

// errLeft reports that selected messages are still in the queue.
var errLeft = errors.New("selected messages are left, or were not seen, in the dead-letter queue")

// empty lists the selected messages whose verdict allows the task and, if the person
// agrees, takes them. Between the two it does not hold them, because a person may think
// for an hour.
func (d *triage) empty(ctx context.Context, t task) error {
	kind := "dead-letter queue"
	if d.DeadLetters == d.Queue {
		kind = "order queue"
	}
	fmt.Fprintf(d.People(), "%s %s\n", kind, d.DeadLetters)
	if d.DeadRefunds != "" {
		fmt.Fprintf(d.People(), "dead-letter queue %s\n", d.DeadRefunds)
	}
	d.Where()
	chosen := map[string]bool{}
	choose := func(_ context.Context, l deadletters.Letter) (bool, error) {
		if !t.takes(l) {
			return false, nil
		}
		chosen[l.ID] = true
		return false, d.print(l)
	}
	counts, err := d.each(ctx, t.Limit, t.filter(d.Now()), nil, choose)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.People(), "\n%s\n", d.describe(counts))
	if len(chosen) > 0 && (t.DryRun || !d.Terminal && !t.Yes) {
		fmt.Fprintf(d.People(), "dry run: %s would be %s\n", view.Messages(len(chosen)), t.done)
		return shell.LeftError{Err: errLeft}
	}
	question := fmt.Sprintf("Type %s to "+t.does+": ", t.verb, view.Messages(len(chosen)))
	if len(chosen) > 0 && (t.asks || !t.Yes) && !d.Confirms(question, t.verb) {
		return shell.ErrNotConfirmed
	}
	took, met, err := d.take(ctx, t, chosen)
	if err != nil {
		return fmt.Errorf("%d of %s %s, the others are left: run the same command again: %w",
			took, view.Messages(len(chosen)), t.done, err)
	}
	left, unseen := counts.matched-took, counts.pages.Unseen
	text := fmt.Sprintf("%s: %s, left: %d", t.done, view.Messages(took), left)
	if gone := len(chosen) - met; gone > 0 {
		text += fmt.Sprintf(", of which %d were not seen again: hidden or taken by another reader", gone)
	}
	if took > 0 {
		text += t.then
	}
	text += d.unseen(counts.pages) + "\n"
	if err := d.Result(text, map[string]int{t.done: took, "left": left, "unseen": unseen}); err != nil {
		return err
	}
	if left > 0 || !counts.pages.Ended || unseen > 0 {
		return shell.LeftError{Err: errLeft}
	}
	return nil
}

// take does the task with each chosen message whose verdict still allows it. It returns
// their number, and that of the chosen messages that it met.
func (d *triage) take(ctx context.Context, t task, chosen map[string]bool) (took, met int, err error) {
	if len(chosen) == 0 {
		return 0, 0, nil
	}
	if d.full() {
		d.left = pageSize // those that stay after all
	}
	visit := func(ctx context.Context, l deadletters.Letter) (bool, error) {
		if !t.takes(l) { // it is another one by now
			return false, d.print(l)
		}
		if err := t.do(ctx, l); err != nil {
			return false, err
		}
		took++
		d.Progress("%d of %s %s", took, view.Messages(len(chosen)), t.done)
		return true, nil
	}
	counts, err := d.each(ctx, t.Limit, deadletters.Filter{IDs: chosen}, nil, visit)
	return took, counts.matched, err
}
