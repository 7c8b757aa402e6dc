package main

import (
	"context"
	"fmt"

	"orderonce/adapters/eventbridge"
	"orderonce/domain/order"
)

type republish struct {
	ID string `arg:"" help:"The orderId."`
}

// Help explains the command beyond its one line.
func (republish) Help() string {
	return `It sends the events of an order's row to the bus again, with the same sequence numbers, in order:
for a consumer that lost them. A consumer that discards repetitions by orderId and seq, as
docs/reference/events.md asks, processes each once. Other consumers of the bus see them again too.

Example: EVENT_BUS=orderonce-dev-orders orders republish ORD-1001`
}

// busConfig is the environment of `orders republish`.
type busConfig struct {
	Orders tableConfig
	Bus    string `env:"EVENT_BUS,notEmpty" want:"the name or the ARN of the event bus"`
	Scope  string `env:"SCOPE,notEmpty"     want:"the deployment's scope"`
}

// Run publishes the events of one order.
func (r republish) Run(ctx context.Context, sh shell) error {
	c, cfg, err := connect[busConfig](ctx, sh)
	if err != nil {
		return err
	}
	scope, err := order.NewScope(c.Scope)
	if err != nil {
		return err
	}
	found, err := c.Orders.store(cfg).Load(ctx, order.ID(r.ID))
	if err != nil {
		return fmt.Errorf("republish order %q: %w", r.ID, c.Orders.explain(cfg, err))
	}
	events := make([]order.OutboxEvent, len(found.Events))
	for n, e := range found.Events {
		events[n] = order.OutboxEvent{OrderID: found.OrderID, Total: found.Total, Trace: found.Trace, Event: e}
	}
	publisher := order.Publisher{Bus: eventbridge.New(cfg, c.Bus, scope)}
	n, err := publisher.Publish(ctx, events)
	if err != nil {
		return fmt.Errorf("republish order %q: %d of %d events published: %w", r.ID, n, len(events), err)
	}
	text := fmt.Sprintf("events published to %s: %d\n", c.Bus, n)
	return sh.result(text, map[string]any{"orderId": r.ID, "published": n})
}
