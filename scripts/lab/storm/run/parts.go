package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Parts is what the product's other functions did: of the entrance by HTTP, the stock,
// the publisher and the receipts.
type Parts struct {
	Put        int // orders by HTTP
	Requests   int // for them
	OutOfStock int // orders
	Published  int // events on the bus, with repetitions
	Mails      int // that SES accepted
	Doubts     int // receipts that may have been sent, and wait for a person
}

// parts counts during a storm.
type parts struct {
	put, requests atomic.Int64
	kills         atomic.Int64 // of the functions beside that of the order queue
	turn          int
}

const (
	// httpShare is the share of the orders that are put by HTTP.
	httpShare = 0.2
	// scarceShare is the share of the orders for stock of which there are half as many as
	// are ordered.
	scarceShare = 0.02
	// kinds is the number of other stock, and scarceKinds of scarce ones: so many that few
	// transactions meet at one.
	kinds       = 200
	scarceKinds = 4
	plenty      = 1_000_000
)

// byHTTP reports whether an order is put by HTTP, and not sent to the queue.
func (s Workload) byHTTP(n int) bool {
	messages := s.messages(n)
	return s.Later && len(messages) == 1 && messages[0].content == original && !s.loses(n) &&
		s.dice(httpDice, n).Float64() < httpShare
}

// scarce reports whether there may be nothing left of what an order buys.
func (s Workload) scarce(n int) bool { return s.Later && s.dice(stockDice, n).Float64() < scarceShare }

func (s Workload) sku(n int) string {
	if s.scarce(n) {
		return fmt.Sprintf("LAST-%d", n%scarceKinds)
	}
	return fmt.Sprintf("TSHIRT-%d", n%kinds)
}

// stock returns how many units of each SKU there are.
func (s Workload) stock() map[string]int64 {
	all := map[string]int64{}
	for n := range kinds {
		all[fmt.Sprintf("TSHIRT-%d", n)] = plenty
	}
	for n := range s.Orders {
		if s.scarce(n) {
			all[s.sku(n)]++ // an order buys two on average
		}
	}
	return all
}

// put puts an order by HTTP until it gets an answer that is not "try again".
func (st *storm) put(ctx context.Context, s *system.System, n int) error {
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		st.parts.requests.Add(1)
		a, err := s.PutOrder(ctx, orderID(n), st.Workload.messages(n)[0].body)
		switch {
		case err != nil:
			return err
		case a.Status < http.StatusBadRequest:
			return nil
		case a.Status < http.StatusInternalServerError && a.Status != http.StatusTooManyRequests:
			return fmt.Errorf("PUT /orders/%s: %d: %s", orderID(n), a.Status, a.Body)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// clients is how many clients put orders at once.
const clients = 4

// enter puts orders by HTTP.
func (st *storm) enter(ctx context.Context, s *system.System, orders []int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for _, n := range orders {
		group.Go(func() error { return st.put(ctx, s, n) })
	}
	return group.Wait()
}

// partsOptions adds the parts to the options, with the faults of the bus and of SES.
func (st *storm) partsOptions(o *system.Options) {
	p := st.programs
	o.Webhook, o.Reconcile, o.Publish = p.Webhook, p.Reconcile, p.Publish
	o.Receipt, o.Intake, o.Refund = p.Receipt, p.Intake, p.Refund
	o.Stock = st.Workload.stock()
	o.RefuseEvent = func(eventbridgetest.Event) string {
		if st.faults.happens(0.05) {
			return eventbridgetest.CodeThrottling
		}
		return ""
	}
	o.LoseMailEvent = func(json.RawMessage) bool { return st.faults.happens(0.2) }
	o.BeforeMail = func(int) {
		faults := []sestest.Fault{
			{Kind: sestest.Refuse, Status: http.StatusTooManyRequests, Code: "TooManyRequestsException"},
			{Kind: sestest.LoseBefore},
			{Kind: sestest.LoseAfter},
			{Kind: sestest.Garble},
		}
		if s := st.system.Load(); s != nil && st.faults.happens(0.1) {
			s.Mail.Fail(faults[st.parts.requests.Load()%int64(len(faults))])
		}
	}
}

// killPart kills a busy process of another function in turn, if a kill is due.
func (st *storm) killPart(s *system.System) {
	if !st.Workload.Later || st.parts.kills.Load() >= st.kills.Load()/killsPerPart {
		return
	}
	st.parts.turn++
	hosts := []*lambdatest.Host{s.Webhook, s.Intake, s.Publish, s.Receipt}
	st.parts.kills.Add(int64(hosts[st.parts.turn%len(hosts)].Kill(one())))
}

// settleParts waits until every event is published and every receipt has ended. It moves
// dead letters of the receipts back until there are none: after two weeks SQS would
// delete them.
func (st *storm) settleParts(ctx context.Context, s *system.System) error {
	if !st.Workload.Later {
		return nil
	}
	if err := s.Published(ctx); err != nil {
		return err
	}
	for {
		var err error
		s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
			_, err = m.Redrive(now, system.ReceiptDeadLetters, system.ReceiptQueue)
		})
		if err = errors.Join(err, drainReceipts(ctx, s)); err != nil {
			return err
		}
		if dead, err := s.DeadReceipts(); err != nil || len(dead) == 0 {
			return err
		}
	}
}

// drainReceipts waits until the receipt queue is empty.
func drainReceipts(ctx context.Context, s *system.System) error {
	tick := time.NewTicker(idleAfter)
	defer tick.Stop()
	for {
		var counts sqstest.Counts
		var err error
		s.SQS.Machine(func(m *sqstest.Machine, now time.Time) { counts, err = m.Counts(now, system.ReceiptQueue) })
		if err != nil || counts.Empty() {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if counts.Visible == 0 {
			s.Advance(time.Second) // also while a receipt is sent: then it is delivered twice
		}
	}
}

// partsOutcome counts what the parts did.
func (st *storm) partsOutcome(b *invariants.Books) Parts {
	out := Parts{
		Put: int(st.parts.put.Load()), Requests: int(st.parts.requests.Load()), Published: len(b.Bus),
		Mails: len(b.Mail), Doubts: len(b.Doubts),
	}
	for _, o := range b.Orders {
		countIf(&out.OutOfStock, o.Status == order.OutOfStock)
	}
	return out
}

// isReceipt reports whether a message is one of the receipt queue, an event.
func isReceipt(m sqstest.Message) bool { return strings.Contains(m.Body, `"detail-type"`) }
