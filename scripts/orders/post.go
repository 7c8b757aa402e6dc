package main

import (
	"context"
	"fmt"

	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type post struct {
	File         string            `arg:"" default:"-" help:"Message bodies, one per line, or - for standard input. # starts a comment."`
	CSV          bool              `name:"csv" help:"The file is CSV with a header: one line of an order per row."`
	Column       map[string]string `placeholder:"COLUMN=NAME" mapsep:"none" help:"With --csv: what the header calls a column. Repeatable."`
	Rate         int               `placeholder:"N" help:"At most so many messages per second."`
	AllowInvalid bool              `help:"Post invalid orders too. The function parks them as invalid_order."`
}

// Run posts every line, or none if one of them is neither a valid order nor a refund.
func (p post) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "QUEUE_URL")
	if err != nil {
		return err
	}
	from := batch.Source{File: p.File, CSV: p.CSV, Column: p.Column}
	messages, err := from.Read(sh.In)
	if err != nil {
		return err
	}
	if !p.AllowInvalid {
		if err := batch.Validate(from.Name(), messages); err != nil {
			return err
		}
	}
	batches := batch.Sender{
		Orders: d.QueueAt(d.Queue), Refunds: d.QueueAt(d.RefundQueue),
		File: from.Name(), Rate: p.Rate, Progress: sh.Progress,
	}
	posted, err := batches.SendAll(ctx, messages)
	sh.Progress("")
	if err != nil {
		return fmt.Errorf("%d of %d messages posted to %s\n%w", posted, len(messages), d.Queue, err)
	}
	return sh.Result(fmt.Sprintf("messages posted: %d\n", posted), map[string]int{"posted": posted})
}
