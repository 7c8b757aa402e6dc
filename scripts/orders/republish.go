package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/eventbridge"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type republish struct {
	ID    string       `arg:"" optional:"" help:"The orderId."`
	Since shell.Moment `placeholder:"T" help:"Instead: the events of all orders from then on: 2026-11-01, 2026-11-01T08:00:00Z, or how long ago, such as 26h. It scans the table."`
	Until shell.Moment `placeholder:"T" help:"With --since: the events before then, likewise. Default: now."`
	Rate  int          `default:"10" help:"With --since: at most so many orders per second."`
	Yes   bool         `help:"With --since: do not ask, for scripts."`
}

// Validate returns an error unless the command line names one order, or a time.
func (r republish) Validate() error {
	if (r.ID == "") != r.Since.Typed() || r.ID != "" && r.Until.Typed() {
		return errors.New("want either an orderId or --since, and --until with --since alone")
	}
	if r.Rate < 1 {
		return shell.ErrRate
	}
	return nil
}

// Run publishes the events of one order, or of all in a period.
func (r republish) Run(ctx context.Context, d cloud.Deployment) error {
	fmt.Fprintf(d.People(), "table %s and event bus %s in %s, scope %s\n\n",
		d.Table, d.Bus, d.AWS.Region, d.Scope)
	p := republisher{Deployment: d, Publisher: outbox.Publisher{Bus: eventbridge.New(d.AWS, d.Bus, d.Scope)}}
	p.since, p.until = r.Since.At(d.Now()), d.Now()
	if r.Until.Typed() {
		p.until = r.Until.At(d.Now())
	}
	var err error
	if r.ID != "" {
		p.until = p.until.AddDate(1, 0, 0) // the clock of a worker may be ahead
		err = p.order(ctx, order.ID(r.ID))
	} else {
		err = p.all(ctx, r)
	}
	if errors.Is(err, shell.ErrNotConfirmed) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\nevents published before: %d", d.Explain(err), p.published)
	}
	text := fmt.Sprintf("events published to %s: %d\n", d.Bus, p.published)
	err = d.Result(text, map[string]int{"published": p.published, "unreadable": p.unreadable})
	if err == nil && p.unreadable > 0 {
		err = shell.Left("orders that cannot be read, with events not published: %d", p.unreadable)
	}
	return err
}

// all counts the events of a period, asks, and publishes them.
func (p *republisher) all(ctx context.Context, r republish) error {
	events, ids, err := p.find(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.People(), "%d events of %d orders, from %s to %s\n", events, len(ids),
		p.since.UTC().Format(time.RFC3339), p.until.UTC().Format(time.RFC3339))
	ask := "Type republish to send them to every consumer again: "
	if events > 0 && !r.Yes && !p.Confirms(ask, "republish") {
		return shell.ErrNotConfirmed
	}
	pace := cloud.NewPace(float64(r.Rate))
	for n, id := range ids {
		err := pace.Wait(ctx, 1)
		if err == nil {
			p.Progress("%d of %d orders", n, len(ids))
			err = p.orderOrReport(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	p.Progress("")
	return nil
}

// find scans the table for the events of the period, and returns how many there are and
// their orders. An event whose time cannot be read counts, so that its order is named.
func (p *republisher) find(ctx context.Context) (events int, ids []order.ID, err error) {
	pages := sdk.NewScanPaginator(p.Store().DB, &sdk.ScanInput{
		TableName:                &p.Table,
		FilterExpression:         aws.String("begins_with(sk, :event) AND NOT #at < :since AND NOT #at >= :until"),
		ExpressionAttributeNames: map[string]string{"#at": "at"},
		ExpressionAttributeValues: dynamodb.Item{
			":event": dynamodb.Text(dynamodb.EventRow),
			":since": dynamodb.Millis(p.since), ":until": dynamodb.Millis(p.until),
		},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, nil, err
		}
		for _, item := range page.Items { // those of an order are neighbors
			id := order.ID(dynamodb.TextOf(item, "orderId"))
			if events++; len(ids) == 0 || ids[len(ids)-1] != id {
				ids = append(ids, id)
			}
		}
		p.Progress("%d events found", events)
	}
	p.Progress("")
	return events, ids, nil
}

type republisher struct {
	cloud.Deployment
	outbox.Publisher

	since, until time.Time
	published    int
	unreadable   int // orders
}

// orderOrReport publishes the events of one order. It reports an order that cannot be
// read, because no retry gets past it, and the orders behind it would never be published.
func (p *republisher) orderOrReport(ctx context.Context, id order.ID) error {
	err := p.order(ctx, id)
	switch {
	case errors.Is(err, order.ErrNotFound): // erased since
		return nil
	case errors.Is(err, order.ErrCorrupt), errors.Is(err, order.ErrUnknownVersion):
		p.unreadable++
		p.Progress("")
		fmt.Fprintln(p.People(), err)
		return nil
	}
	return err
}

func (p *republisher) order(ctx context.Context, id order.ID) error {
	found, err := p.Store().Load(ctx, id)
	if err != nil {
		return fmt.Errorf("republish order %q: %w", id, err)
	}
	var events []outbox.Event
	for _, e := range found.Events {
		if !e.At.Before(p.since) && e.At.Before(p.until) {
			events = append(events, outbox.Event{
				OrderID: found.OrderID, Total: found.Total, Trace: found.Trace, Event: e,
			})
		}
	}
	n, err := p.Publish(ctx, events)
	p.published += n
	if err != nil {
		return fmt.Errorf("republish order %q: %w", id, err)
	}
	return nil
}
