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
	"orderonce/domain/receipt"
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

// BuildParts builds the functions beside that of the order queue with build, which
// returns the path of a package's program, and returns what adds them to a system.
func BuildParts(build func(pkg string) (path string, err error)) (add func(*system.Options), err error) {
	var o system.Options
	for name, path := range map[string]*string{
		"webhook": &o.Webhook, "reconcile": &o.Reconcile, "publish": &o.Publish, "receipt": &o.Receipt,
		"intake": &o.Intake, "refund": &o.Refund,
	} {
		if *path, err = build("./functions/" + name); err != nil {
			return nil, err
		}
	}
	return func(to *system.Options) {
		to.Webhook, to.Reconcile, to.Publish = o.Webhook, o.Reconcile, o.Publish
		to.Receipt, to.Intake, to.Refund = o.Receipt, o.Intake, o.Refund
	}, nil
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
	st.addParts(o)
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

// ofParts is what the parts have written down, by order.
type ofParts struct {
	invariants.Books

	events   map[order.ID][]invariants.Event
	mails    map[order.ID][]invariants.Email
	requests map[order.ID][]invariants.Request
	receipts func(order.ID) ([]receipt.Item, error)
	stocked  invariants.Books // every order, as far as the stock needs it
}

// readParts reads what the parts have written down.
func (b *audit) readParts(ctx context.Context, s *system.System) error {
	if s.Publish == nil {
		return nil
	}
	all, err := s.CollectParts(ctx)
	if err != nil {
		return err
	}
	p := &ofParts{
		Books: all, events: map[order.ID][]invariants.Event{}, mails: map[order.ID][]invariants.Email{},
		requests: map[order.ID][]invariants.Request{},
		receipts: func(id order.ID) ([]receipt.Item, error) { return s.Receipts.OfOrder(ctx, id) },
	}
	for _, e := range all.Bus {
		p.events[e.OrderID] = append(p.events[e.OrderID], e)
	}
	for _, e := range all.Mail {
		p.mails[e.OrderID] = append(p.mails[e.OrderID], e)
	}
	for _, r := range all.Requests {
		p.requests[r.Order.ID()] = append(p.requests[r.Order.ID()], r)
	}
	p.stocked = invariants.Books{
		Stock: all.Stock, Delivered: all.Delivered, Orders: map[order.ID]invariants.Order{},
		Charges: map[order.ID][]invariants.Charge{},
	}
	b.parts = p
	return nil
}

// addParts adds to books what the parts know of an order that the books have.
func (b *audit) addParts(to *invariants.Books, id order.ID) (err error) {
	p := b.parts
	if p == nil {
		return nil
	}
	if to.Bus == nil {
		to.Bus, to.Requests = []invariants.Event{}, []invariants.Request{}
		to.Receipts = map[order.ID][]receipt.Item{}
		to.Doubts, to.DeadEvents = p.Doubts, p.DeadEvents
	}
	to.Bus = append(to.Bus, p.events[id]...)
	to.Mail = append(to.Mail, p.mails[id]...)
	to.Requests = append(to.Requests, p.requests[id]...)
	o := to.Orders[id]
	p.stocked.Orders[id] = invariants.Order{Record: order.Record{
		OrderID: id, Status: o.Status, Fingerprint: o.Fingerprint, Intent: o.Intent, Stock: o.Stock,
	}}
	p.stocked.Charges[id] = to.Charges[id]
	to.Receipts[id], err = p.receipts(id)
	return err
}

// checkStock checks the stock after every order was added.
func (b *audit) checkStock() {
	if b.parts == nil {
		return
	}
	for _, r := range b.parts.stocked.Audit() {
		if r.ID == "I22" {
			b.report(r.ID, r.Broken...)
		}
	}
}

// partsOutcome counts what the parts did.
func (st *storm) partsOutcome(b *audit) (out Parts) {
	if b.parts == nil {
		return out
	}
	out = Parts{
		Put: int(st.parts.put.Load()), Requests: int(st.parts.requests.Load()), Published: len(b.parts.Bus),
		Mails: len(b.parts.Mail), Doubts: len(b.parts.Doubts),
	}
	for _, o := range b.parts.stocked.Orders {
		if o.Status == order.OutOfStock {
			out.OutOfStock++
		}
	}
	return out
}

// isReceipt reports whether a message is one of the receipt queue, an event.
func isReceipt(m sqstest.Message) bool { return strings.Contains(m.Body, `"detail-type"`) }
