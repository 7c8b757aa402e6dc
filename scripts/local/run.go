package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

type run struct{}

const (
	// receiptKilled is the order whose receipt is sent by a function that is killed before
	// it can record that.
	receiptKilled = order.ID("ORD-1016")
	// reconciled is the order that only the function of the schedule can settle.
	reconciled = order.ID("ORD-1014")
	limit      = time.Minute // of a file, and of what follows it
)

// stage is a file of messages, and the kill while they are processed.
type stage struct {
	file   string
	waves  [][]string
	killer *killer
}

// Run posts each file, wave by wave, shows what became of every message, and checks the
// invariants.
func (run) Run(ctx context.Context) error {
	stages, err := readStages()
	if err != nil {
		return err
	}
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return err
	}
	began, postman := time.Now(), &postman{victim: receiptKilled}
	options := system.Options{
		AfterStripe: stages.afterStripe, Deliveries: stages.deliveries, Instances: 1,
		AfterMail: postman.afterMail, LoseMailEvent: postman.loses,
	}
	if options.Stock, err = stages.stock(); err != nil {
		return err
	}
	s, err := start(ctx, runFolder, engine, options)
	if err != nil {
		return err
	}
	postman.system.Store(s.System)
	ready := time.Now()
	fmt.Printf("Ready after %.1f s. ", ready.Sub(began).Seconds())
	result, err := postAll(ctx, s, stages)
	if err == nil {
		err = enter(ctx, s, &result)
	}
	if err == nil {
		s.RepeatEvents() // to the receipt function, as EventBridge may
		err = s.collect(ctx, &result)
	}
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	result.dynamoDB, result.stripe = s.Proxy.Total(), s.Stripe.Arrived()
	result.webhooks = len(s.Events.Sent())
	showRest(os.Stdout, result)
	fmt.Println(result.published())
	fmt.Printf("All done in %.1f s. The functions' log: %s\n", time.Since(ready).Seconds(), s.folder.log())
	if err := showChecks(os.Stdout, result.Check()); err != nil {
		return err
	}
	fmt.Println("\nNow take a guard away and watch the double charge: make break GUARD=bind")
	return nil
}

func readStages() (all stages, err error) {
	for _, s := range []struct {
		file    string
		victims []victim
	}{
		{"examples/orders.jsonl", []victim{
			{id: "ORD-1012", at: stripetest.Confirm},
			{id: reconciled, at: stripetest.Confirm, lost: true},
			{id: "ORD-1015", at: stripetest.Create, lost: true},
		}},
		{"examples/refunds.jsonl", []victim{{id: "ORD-1003", at: stripetest.CreateRefund}}},
	} {
		waves, err := readWaves(s.file)
		if err != nil {
			return nil, err
		}
		all = append(all, stage{s.file, waves, &killer{victims: s.victims, killed: make(chan struct{})}})
	}
	return all, nil
}

type stages []stage

func (all stages) afterStripe(c stripetest.Call) {
	for _, s := range all {
		s.killer.afterStripe(c)
	}
}

// deliveries loses the webhooks of lost orders, see stripetest.Webhooks.
func (all stages) deliveries(e stripetest.Event) []time.Duration {
	for _, s := range all {
		if s.killer.loses(e) {
			return nil
		}
	}
	return []time.Duration{0}
}

func postAll(ctx context.Context, l *local, all stages) (summary, error) {
	result := summary{later: map[order.ID]string{}}
	for _, s := range all {
		s.killer.system.Store(l.System)
		fmt.Printf("%s ...\n", s.announce())
		posted, err := l.post(ctx, s)
		if err != nil {
			return summary{}, err
		}
		result.Messages = append(result.Messages, posted...)
		ending, cancel := context.WithTimeout(ctx, limit)
		err = errors.Join(l.later(ending, s.killer.deaths(), result.later), l.collect(ending, &result))
		cancel()
		if err != nil {
			return summary{}, err
		}
		result.killed = append(result.killed, s.killer.deaths()...)
		show(os.Stdout, result, posted)
	}
	return result, nil
}

func (l *local) collect(ctx context.Context, s *summary) (err error) {
	s.Books, err = l.Collect(ctx, s.Messages, l.log)
	s.log = l.log.Lines()
	l.tally.mu.Lock()
	defer l.tally.mu.Unlock()
	s.deliveries, s.crashes = maps.Clone(l.tally.deliveries), l.tally.crashes
	return err
}

// announce returns what is posted, and whose function will be killed.
func (s stage) announce() string {
	var ids []string
	for _, v := range s.killer.victims {
		id := string(v.id)
		if v.at == stripetest.CreateRefund {
			id = "a refund of " + id
		}
		ids = append(ids, id)
	}
	last := len(ids) - 1
	if last > 0 {
		ids = []string{strings.Join(ids[:last], ", "), ids[last]}
	}
	return fmt.Sprintf("Posting %s; one function will be killed in the middle of %s",
		s.file, strings.Join(ids, " and "))
}

// readWaves reads message bodies, one per line. A line "#! later" starts a new wave.
func readWaves(path string) ([][]string, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	waves := [][]string{nil}
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case line == "#! later":
			waves = append(waves, nil)
		case line != "" && !strings.HasPrefix(line, "#"):
			waves[len(waves)-1] = append(waves[len(waves)-1], line)
		}
	}
	return waves, nil
}

// post sends each wave once the queue is empty, and returns when it is empty again.
func (l *local) post(ctx context.Context, s stage) (posted []invariants.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	attended := l.attend(ctx, s.killer)
	for _, wave := range s.waves {
		messages, err := l.PostMessages(system.Drafts(wave...))
		if err != nil {
			return nil, err
		}
		posted = append(posted, messages...)
		if err := l.Drained(ctx); err != nil {
			return nil, fmt.Errorf("the queue is not empty, see %s: %w", l.folder.log(), err)
		}
		if err := attended(); err != nil {
			return nil, err
		}
	}
	return posted, nil
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

func orderIDs(posted []invariants.Message) []order.ID {
	var ids []order.ID
	seen := map[order.ID]bool{}
	for _, p := range posted {
		if id := p.Order.ID(); id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}
