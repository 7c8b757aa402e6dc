package watch

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

// The limits of what is shown and kept.
const (
	shownOrders = 200  // in a picture
	shownLines  = 50   // of the log, in a picture
	timelines   = 1000 // orders that keep their entries
	longest     = 300  // entries of a timeline
)

// Tick is how often the picture changes.
const Tick = 100 * time.Millisecond

// Watch is the picture of one system. Hook connects its taps, Run reads what has no tap.
// It is safe for concurrent use.
type Watch struct {
	now     func() time.Time
	decoder *jobs.Decoder

	mu        sync.Mutex
	lines     map[string]*line // by order id
	byN       []*line
	nameless  *line            // of the messages that name no order
	messages  map[string]*line // of the order queue, by id
	dirty     map[*line]bool   // their row may have changed
	instances map[int]*instance
	intents   []*stripetest.Intent
	refunds   []*stripetest.Refund
	ledger    int // entries that were read
	mails     int // likewise
	totals    Totals
	lights    lights
	latest    Picture // that was published
	number    uint64  // of it, 1 for the first
	shown     Picture // all but orders, instances, totals and log. What a list in it holds never changes
	log       []Line  // the latest ones
	logged    int     // lines so far
}

// New returns the picture of a system that has not started. now returns this machine's
// time.
func New(now func() time.Time) *Watch {
	w := &Watch{
		now: now, decoder: jobs.NewDecoder(), nameless: newLine("", 0), lines: map[string]*line{},
		messages: map[string]*line{}, dirty: map[*line]bool{}, instances: map[int]*instance{},
		lights: newLights(),
	}
	w.shown = Picture{Lights: []Light{}, Dead: []Dead{}, Faults: []Fault{}}
	w.publish()
	return w
}

// Picture returns the latest picture and its number. Nothing in it changes later.
func (w *Watch) Picture() (p Picture, number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest, w.number
}

// Run reads the queue, Stripe's books and the changed rows of a system again and again,
// and publishes what has changed, until the context ends.
func (w *Watch) Run(ctx context.Context, s *system.System) {
	tick := time.NewTicker(Tick)
	defer tick.Stop()
	for n := 0; ; n++ {
		w.Refresh(ctx, s)
		if n%10 == 0 {
			w.readMail(s)
			w.audit(ctx, s)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Refresh is one round of Run, without the parts that need no hurry.
func (w *Watch) Refresh(ctx context.Context, s *system.System) {
	w.readQueue(s)
	w.readStripe(s)
	w.readRows(ctx, s)
	w.publish()
}

// publish replaces the picture if something in it has changed.
func (w *Watch) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append([]Line{}, w.log[max(0, len(w.log)-shownLines):]...)
	p, recent := w.shown, max(0, len(w.byN)-shownOrders)
	p.Instances, p.Totals, p.Log, p.Orders = w.instancesNow(), w.totalsNow(), w.log, []Order{}
	for i, l := range w.byN {
		if i >= recent || len(l.broken()) > 0 { // what is broken stays in view
			p.Orders = append(p.Orders, l.summary())
		}
	}
	if !reflect.DeepEqual(p, w.latest) {
		w.latest = p
		w.number++
	}
}

// Timeline returns an order and what happened to it.
func (w *Watch) Timeline(id string) (Timeline, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lines[id]
	if l == nil {
		return Timeline{}, false
	}
	return Timeline{Order: l.summary(), Entries: slices.Clone(l.entries), Dropped: l.dropped}, true
}

// Find returns the newest order that matches.
func (w *Watch) Find(match func(Order) bool) (Order, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range slices.Backward(w.byN) {
		if o := l.summary(); match(o) {
			return o, true
		}
	}
	return Order{}, false
}

// Say adds a line to the log.
func (w *Watch) Say(tone Tone, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say(tone, text)
}

func (w *Watch) say(tone Tone, text string) {
	w.logged++
	w.log = append(w.log, Line{N: w.logged, At: w.now().UnixMilli(), Tone: tone, Text: text})
}

// SetControl changes what the visitor has set.
func (w *Watch) SetControl(change func(*Control)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.shown.Control)
}

// SetFaults replaces the faults that are shown.
func (w *Watch) SetFaults(faults []Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown.Faults = append([]Fault{}, faults...)
}
