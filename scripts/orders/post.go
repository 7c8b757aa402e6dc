package main

import (
	"context"
	"errors"
	"fmt"

	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type post struct {
	File         string            `arg:"" default:"-" help:"Message bodies, one per line, or - for standard input. # starts a comment."`
	CSV          bool              `name:"csv" help:"The file is CSV with a header: one line of an order per row."`
	Column       map[string]string `placeholder:"COLUMN=NAME" mapsep:"none" help:"With --csv: what the header calls a column. Repeatable."`
	Rate         int               `placeholder:"N" help:"At most so many messages per second."`
	AllowInvalid bool              `help:"Post invalid orders too. The function parks them as invalid_order."`
	Yes          bool              `help:"Do not ask, for scripts, and for messages on standard input."`
}

var errNoAnswer = errors.New("nothing posted: no answer can come from standard input, " +
	"where the messages are: look at the sums, then add --yes")

// Run asks and posts every line, or none if one of them is neither a valid order nor a
// refund.
func (p post) Run(ctx context.Context, d cloud.Deployment) error {
	from := batch.Source{File: p.File, CSV: p.CSV, Column: p.Column}
	if p.File == "-" && d.Terminal {
		fmt.Fprintln(d.ErrOut, "reading messages from standard input, until Ctrl-D; or orders post FILE")
	}
	messages, err := from.Read(d.In)
	if err != nil {
		return err
	}
	if !p.AllowInvalid {
		if err := batch.Validate(from.Name(), messages); err != nil {
			return err
		}
	}
	if err := p.confirm(d, messages); err != nil {
		return err
	}
	batches := batch.Sender{
		Orders: d.QueueAt(d.Queue), Refunds: d.QueueAt(d.RefundQueue),
		File: from.Name(), Rate: p.Rate, Progress: d.Progress,
	}
	posted, err := batches.SendAll(ctx, messages)
	d.Progress("")
	if err != nil {
		return fmt.Errorf("%d of %d messages posted to %s\n%w", posted, len(messages), d.Queue, err)
	}
	return d.Result(fmt.Sprintf("messages posted: %d\n", posted), map[string]int{"posted": posted})
}

func (p post) confirm(d cloud.Deployment, messages []batch.Message) error {
	if p.Yes || len(messages) == 0 {
		return nil
	}
	fmt.Fprintf(d.People(), "queue %s in %s, Stripe in %s mode\n\n%s\n",
		d.Queue, d.AWS.Region, d.Mode(), batch.Sums(messages))
	if p.File == "-" {
		return errNoAnswer
	}
	if !d.Confirms(fmt.Sprintf("Type post to post %s: ", view.Messages(len(messages))), "post") {
		return shell.ErrNotConfirmed
	}
	return nil
}
