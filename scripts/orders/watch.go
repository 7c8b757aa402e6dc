package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/watch"
)

type watchCommand struct {
	Every time.Duration `default:"5s" help:"The time between two looks."`
	Scan  bool          `help:"Also count all orders by status, by scans of the whole table, one after the other."`
	Rate  int           `default:"5" help:"With --scan: at most so many pages of 1 MB per second."`
}

// Run shows the deployment.
func (w watchCommand) Run(ctx context.Context, d cloud.Deployment) error {
	if w.Every < time.Second || w.Rate < 1 {
		return errors.New("--every: want at least 1s; --rate: want at least 1")
	}
	sources := d.Watched()
	if w.Scan {
		pace := cloud.NewPace(float64(w.Rate))
		sources.Scan = func(ctx context.Context) (map[order.Status]int, error) { return d.CountAll(ctx, pace) }
	}
	if !d.Terminal || d.JSON {
		return once(ctx, d.Shell, sources)
	}
	title := fmt.Sprintf("table %s and queue %s in %s", d.Table, d.Queue, d.AWS.Region)
	return watch.Screen{Title: title, Sources: sources, Every: w.Every}.Show(ctx)
}

// once prints one snapshot.
func once(ctx context.Context, sh shell.Shell, s watch.Sources) error {
	n := s.Read(ctx)
	if s.Scan != nil {
		orders, err := s.Scan(ctx)
		if err != nil {
			return err
		}
		n.Scanned = &watch.Scanned{At: sh.Now(), Orders: orders}
	}
	if err := sh.Result(n.Text(watch.Snapshot{}), n); err != nil || len(n.Errors) == 0 {
		return err
	}
	return errors.New("not everything could be read")
}
