package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// run is `local run`.
type run struct {
	File  string        `arg:"" default:"examples/orders.jsonl" help:"Message bodies, one a line."`
	Kill  string        `default:"ORD-1012" help:"The order whose function is killed after Stripe said yes and before its row was written."`
	Limit time.Duration `default:"60s" help:"Give up when the queue is not empty by then."`
}

// Run posts the file, wave by wave, and closes the books.
func (r run) Run(ctx context.Context) error {
	waves, err := readWaves(r.File)
	if err != nil {
		return err
	}
	began := time.Now()
	fmt.Println("Building functions/order and starting queue, engine and pretend Stripe on 127.0.0.1 ...")
	tally := &tally{deliveries: map[string]int{}}
	killer := &killer{orderID: r.Kill}
	s, err := start(ctx, system.Options{AfterStripe: killer.afterStripe, Observe: tally.observe, Instances: 1})
	if err != nil {
		return err
	}
	killer.system.Store(s.System)
	ready := time.Now()
	fmt.Printf("Ready after %.1f s. Posting %s; one function will be killed in the middle of %s ...\n",
		ready.Sub(began).Seconds(), r.File, r.Kill)
	posted, err := post(ctx, s.System, waves, r.Limit)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	books, err := s.Collect(ctx, posted, s.log)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	show(os.Stdout, account{
		Books: books, deliveries: tally.deliveries, crashes: tally.crashes, killed: killer.victim(),
		dynamoDB: s.Proxy.Total(), stripe: len(s.Stripe.Calls()),
	})
	fmt.Printf("All done in %.1f s. The function's log: %s\n", time.Since(ready).Seconds(), logPath)
	if err := showChecks(os.Stdout, books.Audit()); err != nil {
		return err
	}
	fmt.Println("\nNow take a guard away and watch the double charge: make break GUARD=bind")
	return nil
}

// readWaves reads message bodies. What stands behind a line "#! later" is a wave of its own.
func readWaves(path string) ([][]string, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	waves := [][]string{nil}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "#! later":
			waves = append(waves, nil)
		case line != "" && !strings.HasPrefix(line, "#"):
			waves[len(waves)-1] = append(waves[len(waves)-1], line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return waves, nil
}

// post sends each wave when the queue is empty, and waits for the last to be done.
func post(ctx context.Context, s *system.System, waves [][]string, limit time.Duration) ([]system.Posted, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	decoder := sqs.NewDecoder()
	var posted []system.Posted
	total := 0
	for _, w := range waves {
		total += len(w)
	}
	bar := newBar(total)
	for _, wave := range waves {
		ids, err := s.PostBatch(wave)
		if err != nil {
			return nil, err
		}
		for i, body := range wave {
			posted = append(posted, system.NewPosted(decoder, body, ids[i]))
		}
		if err := drain(ctx, s, bar, len(posted)); err != nil {
			return nil, err
		}
	}
	return posted, bar.Finish()
}

// newBar shows progress to a person, and nothing to a file.
func newBar(total int) *progressbar.ProgressBar {
	info, err := os.Stderr.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return progressbar.NewOptions(total, progressbar.OptionSetDescription("messages done"), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(terminal))
}

// drain waits for an empty queue and shows how far it is.
func drain(ctx context.Context, s *system.System, bar *progressbar.ProgressBar, posted int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	drained := make(chan error, 1)
	go func() { drained <- s.Drained(ctx) }()
	for {
		select {
		case err := <-drained:
			if err != nil {
				return fmt.Errorf("the queue is not empty, see %s: %w", logPath, err)
			}
			return bar.Set(posted)
		case <-tick.C:
			if err := bar.Set(posted - s.Waiting()); err != nil {
				return err
			}
		}
	}
}

// tally counts deliveries by message, and invocations that ended without an answer.
type tally struct {
	mu         sync.Mutex
	deliveries map[string]int
	crashes    int
}

func (t *tally) observe(b sqstest.Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.Err != nil {
		t.crashes++
	}
	for _, m := range b.Messages {
		t.deliveries[m.ID]++
	}
}

// killer kills the function once, at the worst moment.
type killer struct {
	orderID string
	system  atomic.Pointer[system.System]
	killed  atomic.Bool
}

func (k *killer) afterStripe(c stripetest.Call) {
	if c.Endpoint == stripetest.Confirm && c.OrderID == k.orderID && k.killed.CompareAndSwap(false, true) {
		k.system.Load().Function.Kill(nil)
	}
}

// victim is the order whose function was killed, or "".
func (k *killer) victim() order.ID {
	if !k.killed.Load() {
		return ""
	}
	return order.ID(k.orderID)
}

// orderIDs lists the orders of the messages in the order of their first appearance.
func orderIDs(posted []system.Posted) []order.ID {
	var ids []order.ID
	seen := map[order.ID]bool{}
	for _, p := range posted {
		if p.Invalid == nil && !seen[p.Order.ID()] {
			seen[p.Order.ID()] = true
			ids = append(ids, p.Order.ID())
		}
	}
	return ids
}
