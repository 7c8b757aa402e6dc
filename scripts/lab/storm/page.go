package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orderonce/scripts/lab/storm/play"
)

// write makes the page and its picture.
func write(docs string, c storm, outcomes []play.Outcome, spent cost) error {
	svg, err := chart(outcomes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "storm.svg"), svg, 0o644); err != nil { //nolint:gosec // G306: everybody may read the documents
		return err
	}
	path := filepath.Join(docs, "reference", "storm.md")
	return os.WriteFile(path, []byte(page(c, outcomes, spent)), 0o644) //nolint:gosec // G306: everybody may read the documents
}

func page(c storm, outcomes []play.Outcome, spent cost) string {
	var b strings.Builder
	b.WriteString(opening)
	b.WriteString("\n## What became of the orders\n\n")
	writeTable(&b, outcomes)
	b.WriteString(columnsExplained)
	for _, o := range outcomes {
		if len(o.Checks) > 0 {
			fmt.Fprintf(&b, "\n## The invariants of %s\n\n%s.\n\n| invariant | | broken |\n|---|---|---:|\n", o.Handler.Name, summary(o))
			for _, check := range o.Checks {
				fmt.Fprintf(&b, "| %s | %s | %d |\n", check.ID, check.Claim, len(check.Broken))
			}
			b.WriteString("\nIts calls were spoiled by:\n\n| weather | calls |\n|---|---:|\n")
			for _, sky := range slices.Sorted(maps.Keys(o.Faults)) {
				fmt.Fprintf(&b, "| %s | %d |\n", sky, o.Faults[sky])
			}
		}
	}
	b.WriteString("\n## The handlers\n\n| handler | what it does | where it fails |\n|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.Handler.Name, o.Handler.Does, o.Handler.Fails)
	}
	fmt.Fprintf(&b, again, c.command(), spent)
	return b.String()
}

func writeTable(b *strings.Builder, outcomes []play.Outcome) {
	b.WriteString("| handler | orders |")
	for _, column := range columns() {
		fmt.Fprintf(b, " %s |", column.name)
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|", len(columns())) + "\n")
	for _, o := range outcomes {
		fmt.Fprintf(b, "| %s | %d |", o.Handler.Name, o.Count.Orders)
		for _, column := range columns() {
			fmt.Fprintf(b, " %d |", column.of(o))
		}
		b.WriteString("\n")
	}
}

// command is the line that plays the same storm.
func (c storm) command() string {
	line := fmt.Sprintf("go -C scripts/lab run ./storm --seed=%d --orders=%d --others=%d --kills=%d --duplicates=%g --instances=%d",
		c.Seed, c.Orders, c.Others, c.Kills, c.Duplicates, c.Instances)
	if c.FIFO {
		line += " --fifo"
	}
	if c.Calm {
		line += " --calm"
	}
	return line + " --docs=../../docs"
}

const opening = `# The storm

This page and its picture are written by the run they describe (scripts/lab/storm, command below). The same storm goes over our
function and over the designs that people copy, each as a real program in many processes, ours at full size and the others at a
smaller one. Messages come twice, in one batch and to two processes at once; deletes are lost; processes are killed at any moment and a
new version is rolled out in the middle; DynamoDB, Stripe and the queue throttle, fail, lose answers before and after the effect, get
slow, let a call arrive when its sender is dead and another has the order, and are gone for a while. Some messages are no order, some
bring other content under an id that is known. What reaches the dead-letter queue, which every handler has after five
receives, is brought back after 25 hours, 5 days, 13 days and 20 days; the last tenth of the orders comes in on the last day, and then
all that is left is brought back twice in fine weather.

A storm packs the accidents of years into a minute. Its figures say where a design breaks, not how often it will.

![Figures per 100 orders, for each handler](../storm.svg)
`

const columnsExplained = `
Orders, not messages, are counted, except for the last column.

- **charged twice**: more than one successful charge.
- **wrong amount**: charged another sum than was sent or than its row says, or two different sums, or charged although the message
  is no order.
- **lost**: its messages are gone, and nothing is settled.
- **stuck**: its messages are still there after the last retries in fine weather, on the same day, and nothing is settled.
- **swallowed**: two contents came under one id, and one of them was acknowledged in silence.
- **books differ**: the table says paid and Stripe does not, or the other way round.
- **told wrong**: the table's last word is not the bank's: declined, although no bank has declined it, or although the bank only wants the
  customer to confirm.
- **settled**: the table has the last word on the order. Being settled does not mean being right.
- **extra deliveries**: what retries, duplicates and redrives cost beyond one delivery a message.

What this storm does not show. Nobody waits long enough for the function's own parking rules (twenty attempts, six days): its clock is this
machine's, while the queue's and Stripe's jump ahead, and every handler's queue gives up after five receives, as AWS advises at least. A
worker that stands still for days before a call, which no redelivery can foresee, is for make prove to search. So are the guards that
only matter when two accidents meet at one moment, such as the fencing conditions: without one of them this storm stays green.
`

const again = `
## Play it again

    %s

The seed decides the messages and the dice; which process meets which fault is the machine's own, so figures differ a little from run
to run. Our violations stay at 0: the command ends with status 1 if an invariant breaks.
%v
`
