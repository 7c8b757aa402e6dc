package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"orderonce/domain/order"
)

// probe posts one order to a deployment and watches its row.
type probe struct {
	send  func(ctx context.Context, id order.ID, body string) error
	load  func(context.Context, order.ID) (order.Record, error)
	read  func(context.Context, order.IntentID) (order.Intent, error)
	scope order.Scope
	now   func() time.Time
	every time.Duration
	out   io.Writer
}

// follow posts an order, waits until it is settled, and returns an error unless the row
// is paid and the intent at Stripe matches it.
func (p probe) follow(ctx context.Context, o order.Order, body string, limit time.Duration) error {
	if err := p.send(ctx, o.ID(), body); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "Posted order %s, waiting up to %s ...\n", o.ID(), limit)
	r, err := p.wait(ctx, o.ID(), limit)
	if err != nil {
		return err
	}
	bound := cmp.Or(string(r.Intent), "no intent bound")
	fmt.Fprintf(p.out, "row     %s, %s, attempt %d, %s\n", r.Status, r.Total, r.Attempt, bound)
	var intent order.Intent
	if r.Intent != "" {
		if intent, err = p.read(ctx, r.Intent); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "charge  %s, %s, %s\n", intent.State, intent.Total, intent.ID)
	}
	return p.compare(o, r, intent)
}

// wait loads the row until it is settled, and prints each change.
func (p probe) wait(ctx context.Context, id order.ID, limit time.Duration) (order.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	began, printed := p.now(), ""
	for {
		r, err := p.load(ctx, id)
		if err != nil && !errors.Is(err, order.ErrNotFound) && ctx.Err() == nil {
			return r, fmt.Errorf("load order %q: %w", id, err)
		}
		if s := summary(r); s != printed && ctx.Err() == nil {
			fmt.Fprintf(p.out, "  %5.1f s  %s\n", p.now().Sub(began).Seconds(), s)
			printed = s
		}
		if r.Status != "" && r.Status != order.Open {
			return r, nil
		}
		select {
		case <-ctx.Done():
			took := p.now().Sub(began).Round(time.Second)
			return r, fmt.Errorf("order %q: not settled after %s: %s%s", id, took, summary(r), advice(r))
		case <-tick.C:
		}
	}
}

// summary describes a row in one line.
func summary(r order.Record) string {
	if r.Status == "" {
		return "no row yet"
	}
	words := []string{string(r.Status)}
	if r.Failure != "" {
		words = append(words, r.Failure)
	}
	if r.Status == order.Open {
		words = append(words, fmt.Sprintf("attempt %d", r.Attempt), cmp.Or(string(r.Intent), "no intent bound"))
	}
	if r.LastError != "" {
		words = append(words, "last error "+r.LastError)
	}
	return strings.Join(words, ", ")
}

// advice says where to look next.
func advice(r order.Record) string {
	switch {
	case r.Status == "":
		return ": check the function's log, that its event source mapping is enabled, " +
			"and that ORDERS_TABLE is its table"
	case r.LastError != "":
		return ": see docs/reference/failures.md"
	}
	return ""
}

// compare returns an error unless the order, its row and its intent agree.
func (p probe) compare(o order.Order, r order.Record, i order.Intent) error {
	switch {
	case !r.Status.Charged():
		return fmt.Errorf("order %q: status %s: want paid", o.ID(), summary(r))
	case r.Total != o.Total():
		return fmt.Errorf("order %q: amount mismatch: the row has %s, want %s", o.ID(), r.Total, o.Total())
	case i.State != order.Succeeded || i.Total != o.Total() || i.OrderID != o.ID() || i.Scope != p.scope:
		return fmt.Errorf("order %q: ledger mismatch: intent %s is %s, %s, order %q, scope %q: want %s, %s, %q, %q",
			o.ID(), i.ID, i.State, i.Total, i.OrderID, i.Scope, order.Succeeded, o.Total(), o.ID(), p.scope)
	}
	return nil
}
