package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// run is `local run`.
type run struct {
	File  string        `arg:"" default:"examples/orders.jsonl" help:"Message bodies, one per line."`
	Kill  order.ID      `default:"ORD-1012" help:"The order whose function is killed between Stripe's charge and the row's update."`
	Lose  order.ID      `default:"ORD-1014" help:"The same, and the order's message and webhooks are lost."`
	Limit time.Duration `default:"60s" help:"Fail if the messages, or what follows them, take longer."`
}

// Run posts the file, wave by wave, shows what became of every message, and checks the
// invariants.
func (r run) Run(ctx context.Context) error {
	waves, err := readWaves(r.File)
	if err != nil {
		return err
	}
	engine, err := findEngine(ctx, os.Getenv)
	if err != nil {
		return err
	}
	began := time.Now()
	tally, killer := &tally{deliveries: map[string]int{}}, newKiller(waves, r.Kill, r.Lose)
	s, err := start(ctx, runFolder, engine, system.Options{
		AfterStripe: killer.afterStripe, Deliveries: killer.deliveries, Observe: tally.observe, Instances: 1,
	})
	if err != nil {
		return err
	}
	killer.system.Store(s.System)
	ready := time.Now()
	fmt.Printf("Ready after %.1f s. %s ...\n", ready.Sub(began).Seconds(), r.announce(killer))
	posted, err := s.post(ctx, waves, r.Limit)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	ending, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	victims, lost := killer.dead()
	later, err := s.later(ending, lost)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	books, err := s.Collect(ending, posted, s.log)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	result := summary{
		Books: books, deliveries: tally.deliveries, crashes: tally.crashes, killed: victims, later: later,
		dynamoDB: s.Proxy.Total(), stripe: len(s.Stripe.Calls()), webhooks: len(s.Events.Sent()),
	}
	show(os.Stdout, result)
	fmt.Printf("All done in %.1f s; %s. The functions' log: %s\n",
		time.Since(ready).Seconds(), result.published(), s.folder.log())
	if err := showChecks(os.Stdout, books.Audit()); err != nil {
		return err
	}
	fmt.Println("\nNow take a guard away and watch the double charge: make break GUARD=bind")
	return nil
}

// announce says what is posted, and the orders whose function will be killed, if any.
func (r run) announce(k *killer) string {
	if len(k.orders) == 0 {
		return "Posting " + r.File
	}
	var ids []string
	for _, id := range k.orders {
		ids = append(ids, string(id))
	}
	return fmt.Sprintf("Posting %s; one function will be killed in the middle of %s",
		r.File, strings.Join(ids, " and "))
}

// readWaves reads message bodies, one per line. A line "#! later" starts a new wave.
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

// post sends each wave once the queue is empty, and returns when it is empty again.
func (l *local) post(ctx context.Context, waves [][]string, limit time.Duration) ([]system.Posted, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	decoder := sqs.NewDecoder()
	var posted []system.Posted
	total, c := len(slices.Concat(waves...)), newCounter(os.Stderr)
	defer c.clear()
	for _, wave := range waves {
		drafts := make([]sqstest.Draft, len(wave))
		for i, body := range wave {
			drafts[i].Body = body
		}
		ids, err := l.Post(drafts)
		if err != nil {
			return nil, err
		}
		for i, body := range wave {
			posted = append(posted, system.NewPosted(decoder, body, ids[i]))
		}
		show := func(waiting int) { c.show("%d of %d messages done", len(posted)-waiting, total) }
		if err := l.drain(ctx, show); err != nil {
			return nil, err
		}
	}
	return posted, nil
}

// drain waits for an empty queue and reports how many messages it holds in the meantime.
func (l *local) drain(ctx context.Context, progress func(waiting int)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	drained := make(chan error, 1)
	go func() { drained <- l.Drained(ctx) }()
	for {
		select {
		case err := <-drained:
			if err != nil {
				return fmt.Errorf("the queue is not empty, see %s: %w", l.folder.log(), err)
			}
			return nil
		case <-tick.C:
			progress(l.Waiting())
		}
	}
}

// tally counts deliveries by message, and invocations that ended without a response.
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
