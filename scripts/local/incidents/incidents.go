package incidents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Page has a runbook under each heading with a number.
const Page = "docs/guides/runbooks.md"

// Runbook is how the local system comes into the situation of a runbook, and what happens
// on the way out.
type Runbook struct {
	Title   string // its heading
	Seen    string // by whoever is on call, before they do anything
	options func(*Incident, *system.Options)
	happens func(*Incident)
	// events are what happens outside this tool: what AWS, Stripe or their consoles do.
	// The page names each in a comment, where it happens, in this order.
	events []Event
	leads  map[order.ID]order.Status // of every row, at the end
	takes  time.Duration             // that its clocks move: it begins so long ago
	over   func(*Incident, invariants.Books) (broken []string)
}

// Event is what happens once. Only stopping and resuming may happen again.
type Event struct {
	Name     string
	Happened bool
	happens  func(*Incident)
}

// Runbooks returns all runbooks, in the order of the page.
func Runbooks() []Runbook {
	return []Runbook{
		stuck(), deadLettersArrived(), stripeDown(), chargedTwice(), restoredTable(), leakedKey(), wrongOrders(),
		badRelease(), doubtfulReceipt(), soldOut(),
	}
}

// Setup is what an incident takes from the program that starts it.
type Setup struct {
	Root, Folder string        // of the repository, and an absolute one for files
	Patience     time.Duration // with a queue that does not become empty
	Engine       dynamodbtest.Location
	Log          io.Writer // nil: none
	Build        func(function string) (path string, err error)
	Operate      func(i *Incident, line string) error // runs orders with arguments
}

// Incident is a local system in the situation of a runbook.
type Incident struct {
	*system.System

	runbook Runbook
	setup   Setup
	ctx     context.Context
	running atomic.Pointer[system.System] // for what runs while Start has not returned
	log     system.Log
	posted  []invariants.Message // the messages that the runbook must not discard
	foreign map[string]bool      // the intents that another system charged
	stopped bool                 // messages wait, so nothing waits for an empty queue
	halted  bool                 // because processing is stopped
}

// Start starts a system, which Close ends, and puts it into the situation.
func (b Runbook) Start(ctx context.Context, setup Setup) (i *Incident, err error) {
	i = &Incident{runbook: b, setup: setup, ctx: ctx, foreign: map[string]bool{}, log: system.Log{To: setup.Log}}
	err = attempt(func() {
		o := Unhurried(system.Options{Instances: 1, BatchSize: 1}) // dead letters in the order of their posting
		if b.options != nil {
			b.options(i, &o)
		}
		o.Engine, o.Binary, o.Refund, o.Output = setup.Engine, i.built("order"), i.built("refund"), &i.log
		i.System, err = system.Start(ctx, o)
		must(err)
		i.running.Store(i.System)
		i.Advance(-b.takes - 2*time.Second) // the times of PaymentIntents have whole seconds
		b.happens(i)
	})
	if err != nil && i.System != nil {
		err = errors.Join(err, i.Close())
	}
	return i, err
}

// Unhurried gives the function time, unless its environment says otherwise: on a busy
// machine, a call that timed out would be repeated, and an unanswered refund waits for a
// lease of 15 minutes.
func Unhurried(o system.Options) system.Options {
	o.FunctionTimeout, o.Visibility = 30*time.Second, 40*time.Second
	env := map[string]string{"STRIPE_TIMEOUT": "20s", "ORDER_BUDGET": "24s"}
	maps.Copy(env, o.Env)
	o.Env = env
	return o
}

// What can happen in every incident.
const (
	Stopped = "you stop processing"
	resumed = "you resume processing"
)

// CanHappen returns the runbook's events, and that processing is stopped or resumed. An
// event keeps its place.
func (i *Incident) CanHappen() []Event {
	always := Event{Name: Stopped, happens: (*Incident).stops}
	if i.halted {
		always = Event{Name: resumed, happens: (*Incident).resumes}
	}
	return append(slices.Clone(i.runbook.events), always)
}

// Happen lets an event happen. One of the runbook happens once.
func (i *Incident) Happen(event string) error {
	all := i.CanHappen()
	n := slices.IndexFunc(all, func(e Event) bool { return e.Name == event })
	if n < 0 || all[n].Happened {
		return fmt.Errorf("no event %q that can happen now", event)
	}
	err := attempt(func() { all[n].happens(i) })
	if n < len(i.runbook.events) {
		i.runbook.events[n].Happened = err == nil
	}
	return err
}

// Name returns what make drill calls the runbook, and its heading without it.
func (b Runbook) Name() (name, title string) {
	name, title, _ = strings.Cut(b.Title, ". ")
	return name, title
}

// Settle waits until the queue is empty, unless messages wait for the end of an outage.
func (i *Incident) Settle() error { return attempt(i.drain) }

// Audit checks every invariant of the local system at the end of a runbook, and what the
// runbook leads to. What another system charged is not this one's.
func (i *Incident) Audit() (results []invariants.Result, err error) {
	err = attempt(func() {
		i.drain()
		books, err := i.Collect(i.ctx, i.posted, &i.log)
		must(err)
		i.leaveOutForeign(books)
		letters := invariants.Result{ID: "dead", Claim: "no message is left in a dead-letter queue"}
		for id, m := range books.Parked {
			letters.Broken = append(letters.Broken, fmt.Sprintf("message %s: %s", id, m.Reason))
		}
		slices.Sort(letters.Broken)
		leads := invariants.Result{ID: "end", Claim: "every order has the status that the runbook leads to"}
		leads.Broken = i.differ()
		if i.runbook.over != nil {
			leads.Broken = append(leads.Broken, i.runbook.over(i, books)...)
		}
		results = append(books.Check(), letters, leads)
	})
	return results, err
}

// leaveOutForeign takes what another system charged, and what went back of that, out of
// the books.
func (i *Incident) leaveOutForeign(books invariants.Books) {
	back := map[refund.ProviderID]bool{}
	i.Stripe.Machine(func(m *stripetest.Machine) {
		for _, r := range m.Refunds() {
			back[refund.ProviderID(r.ID)] = i.foreign[r.Intent]
		}
	})
	for id, charges := range books.Charges {
		charged := func(c invariants.Charge) bool { return i.foreign[string(c.Intent)] }
		returned := func(r invariants.Refund) bool { return back[r.ID] }
		books.Charges[id] = slices.DeleteFunc(charges, charged)
		books.Refunds[id] = slices.DeleteFunc(books.Refunds[id], returned)
	}
}

func (i *Incident) differ() (all []string) {
	left := maps.Clone(i.runbook.leads)
	for r, err := range i.Orders(i.ctx) {
		must(err)
		if want := left[r.OrderID]; r.Status != want {
			all = append(all, fmt.Sprintf("order %s is %q, want %q", r.OrderID, r.Status, want))
		}
		delete(left, r.OrderID)
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		all = append(all, fmt.Sprintf("order %s has no row, want %q", id, left[id]))
	}
	return all
}

// failedError ends a course of events, and attempt returns it.
type failedError struct{ error }

func must(err error) {
	if err != nil {
		panic(failedError{err})
	}
}

func attempt(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failedError:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

func (i *Incident) operate(line string) { must(i.setup.Operate(i, line)) }

// built returns the absolute path of a function's binary: instances have folders of
// their own.
func (i *Incident) built(function string) (path string) {
	path, err := i.setup.Build(function)
	must(err)
	path, err = filepath.Abs(path)
	must(err)
	return path
}

// post sends messages and waits until each is settled or parked.
func (i *Incident) post(bodies ...string) {
	posted, err := i.PostMessages(system.Drafts(bodies...))
	must(err)
	i.posted = append(i.posted, posted...)
	i.drain()
}

// send sends messages that the runbook may discard.
func (i *Incident) send(bodies ...string) {
	_, err := i.Post(system.Drafts(bodies...))
	must(err)
}

// drain waits until the queue is empty, unless messages wait for the end of an outage. It
// is not an error if they still wait when the patience is over: the audit says so.
func (i *Incident) drain() {
	if i.stopped {
		return
	}
	ctx, cancel := i.Function.UntilExit(i.ctx)
	defer cancel()
	if err := Drained(ctx, i.System, i.setup.Patience); !errors.Is(err, context.DeadlineExceeded) {
		must(err)
	}
}

// Drained waits until the queues of a system are empty.
func Drained(ctx context.Context, s *system.System, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Drained(ctx); err != nil {
		return err
	}
	return s.ReceiptsDrained(ctx)
}

// outage makes every message wait from now on.
func (i *Incident) outage(faults ...stripetest.Fault) {
	i.stopped = true
	for _, f := range faults {
		i.Stripe.Fail(f)
	}
}

func (i *Incident) ends() {
	i.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
	i.Advance(time.Hour)
	i.stopped = i.halted
	i.drain()
}

func (i *Incident) waits(ids ...order.ID) {
	ctx, cancel := context.WithTimeout(i.ctx, 5*time.Minute)
	defer cancel()
	for _, id := range ids {
		must(system.Until(ctx, time.Millisecond, func() (bool, error) {
			r, err := i.Store.Load(ctx, id)
			return err == nil && r.LastError != "" && r.Owner == "", nil
		}))
	}
}

// stops stops processing, resumes starts it again.
func (i *Incident) stops() {
	i.stopped, i.halted = true, true
	must(i.StopProcessing())
}

func (i *Incident) resumes() {
	if i.halted {
		must(i.ResumeProcessing(i.ctx))
	}
	i.stopped, i.halted = false, false
	i.drain()
}

func (i *Incident) intent(id order.ID) string {
	r, err := i.Store.Load(i.ctx, id)
	must(err)
	return string(r.Intent)
}

func (i *Incident) items() (all []system.Item) {
	for item, err := range i.Items(i.ctx, i.Options.Table) {
		must(err)
		all = append(all, item)
	}
	return all
}

func (i *Incident) put(table string, items ...system.Item) {
	for _, item := range items {
		_, err := i.Client().PutItem(i.ctx, &sdk.PutItemInput{TableName: &table, Item: item})
		must(err)
	}
}

func (i *Incident) remove(table string, items ...system.Item) {
	for _, item := range items {
		key := maps.Clone(item)
		maps.DeleteFunc(key, func(name string, _ types.AttributeValue) bool {
			return !slices.Contains([]string{"orderId", "sk", "sku"}, name)
		})
		_, err := i.Client().DeleteItem(i.ctx, &sdk.DeleteItemInput{TableName: &table, Key: key})
		must(err)
	}
}

// slowRetries lets a message wait for a minute after its first failure, so that a test
// sees one attempt.
func slowRetries(_ *Incident, o *system.Options) { o.Env["FIRST_DELAY"] = "1m" }
