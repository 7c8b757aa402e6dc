package incidents

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// OperatePage has a section for each of Others.
const OperatePage = "docs/guides/operate.md"

// Others returns incidents that have no runbook, each with the heading of its section.
func Others() []Runbook { return []Runbook{rejectedWebhooks(), lostEvents()} }

// rejectedWebhooks has a bank that pays, and a webhook function with the secret of
// another endpoint.
func rejectedWebhooks() Runbook {
	return Runbook{
		Title: "webhooks. Webhook signatures are rejected",
		Seen: `The alarm webhook-signatures. Stripe's Dashboard shows that deliveries fail with 400. The bank
of ORD-1 has paid, as Stripe shows.`,
		takes: time.Hour,
		options: func(i *Incident, o *system.Options) {
			o.Webhook, o.Env["WEBHOOK_SECRETS"] = i.built("webhook"), "whsec_other"
		},
		happens: func(i *Incident) {
			i.post(Sale("ORD-1", 2400, Takes))
			paid := i.intent("ORD-1")
			i.Stripe.Machine(func(m *stripetest.Machine) { must(m.Settle(i.Stripe.Now(), paid, true)) })
			must(i.Heard(i.ctx))
		},
		events: []Event{{Name: "the right secret is stored, and events are resent", happens: func(i *Incident) {
			program := filepath.Join(i.setup.Folder, "with-secret")
			script := fmt.Sprintf("#!/bin/sh\nWEBHOOK_SECRETS=%s exec '%s'\n", i.Events.Secret, i.built("webhook"))
			must(os.WriteFile(program, []byte(script), 0o700)) //nolint:gosec // G306: a program
			must(i.Webhook.Replace(program))
			i.Advance(time.Hour)
			must(i.Heard(i.ctx))
			for _, broken := range accepted(i, invariants.Books{}) {
				must(errors.New(broken))
			}
		}}},
		leads: map[order.ID]order.Status{"ORD-1": order.Paid},
		over:  accepted,
	}
}

// accepted reports whether the webhook function rejected Stripe's last event.
func accepted(i *Incident, _ invariants.Books) (broken []string) {
	sent := i.Events.Sent()
	if last := sent[len(sent)-1].Status; last != 200 {
		broken = append(broken, fmt.Sprintf("the webhook function answers Stripe with %d", last))
	}
	return broken
}

// lostEvents has an event bus that refused the events of two orders for longer than the
// stream keeps them.
func lostEvents() Runbook {
	var refuses, refused atomic.Bool
	return Runbook{
		Title: "events. Events were not published",
		Seen: `The alarm events-unpublished. EventBridge has refused events for a day, and the oldest are not
in the stream any more. A consumer asks for ORD-2 and ORD-3.`,
		options: func(i *Incident, o *system.Options) {
			o.Publish = i.built("publish")
			o.RefuseEvent = func(e eventbridgetest.Event) (code string) {
				if refuses.Load() {
					refused.CompareAndSwap(false, strings.Contains(string(e.Detail), "ORD-3"))
					return "InternalFailure"
				}
				return ""
			}
		},
		happens: func(i *Incident) {
			i.post(Sale("ORD-1", 2400, Pays))
			must(i.Published(i.ctx))
			refuses.Store(true)
			i.post(Sale("ORD-2", 2400, Pays), Sale("ORD-3", 2400, Pays))
			must(system.Until(i.ctx, time.Millisecond, func() (bool, error) { return refused.Load(), nil }))
			i.ExpireEvents()
		},
		events: []Event{
			{Name: "EventBridge accepts events again", happens: func(*Incident) { refuses.Store(false) }},
		},
		leads: map[order.ID]order.Status{"ORD-1": order.Paid, "ORD-2": order.Paid, "ORD-3": order.Paid},
	}
}
