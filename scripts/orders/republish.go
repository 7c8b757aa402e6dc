package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/adapters/eventbridge"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type republish struct {
	ID    string    `arg:"" optional:"" help:"The orderId."`
	Since time.Time `placeholder:"TIME" help:"Instead: the events of all orders from that time (RFC 3339) on. It scans the table."`
	Rate  int       `default:"10" help:"With --since: at most so many orders per second."`
}

// Validate returns an error unless the command line names one order, or a time.
func (r republish) Validate() error {
	if (r.ID == "") == r.Since.IsZero() {
		return errors.New("want either an orderId or --since")
	}
	if r.Rate < 1 {
		return shell.ErrRate
	}
	return nil
}

// Run publishes the events of one order, or of all since a time.
func (r republish) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "ORDERS_TABLE", "EVENT_BUS", "SCOPE")
	if err != nil {
		return err
	}
	fmt.Fprintf(d.People(), "table %s and event bus %s in %s, scope %s\n\n",
		d.Table, d.Bus, d.AWS.Region, d.Scope)
	p := republisher{
		Deployment: d, Publisher: outbox.Publisher{Bus: eventbridge.New(d.AWS, d.Bus, d.Scope)}, since: r.Since,
	}
	if r.ID != "" {
		err = p.order(ctx, order.ID(r.ID))
	} else {
		err = p.all(ctx, r.Rate)
	}
	if err != nil {
		return fmt.Errorf("%w\nevents published before: %d", d.Explain(err), p.published)
	}
	text := fmt.Sprintf("events published to %s: %d\n", d.Bus, p.published)
	err = sh.Result(text, map[string]int{"published": p.published, "unreadable": p.unreadable})
	if err == nil && p.unreadable > 0 {
		err = shell.Left("orders that cannot be read, with events not published: %d", p.unreadable)
	}
	return err
}

// all publishes the events of every order that changed since a time.
func (p *republisher) all(ctx context.Context, rate int) error {
	pace := cloud.NewPace(float64(rate))
	for row, err := range p.Rows(ctx, 0) {
		switch {
		case err != nil && row.OrderID == "":
			return err
		case err == nil && row.UpdatedAt.Before(p.since):
			continue
		}
		if err := pace.Wait(ctx, 1); err != nil {
			return err
		}
		if err := p.orderOrReport(ctx, row.OrderID); err != nil {
			return err
		}
	}
	p.Progress("")
	return nil
}

// republisher publishes the events of rows again.
type republisher struct {
	cloud.Deployment
	outbox.Publisher

	since      time.Time
	published  int
	unreadable int // orders
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

// order publishes the events of one order.
func (p *republisher) order(ctx context.Context, id order.ID) error {
	found, err := p.Store().Load(ctx, id)
	if err != nil {
		return fmt.Errorf("republish order %q: %w", id, err)
	}
	var events []outbox.Event
	for _, e := range found.Events {
		if !e.At.Before(p.since) {
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
