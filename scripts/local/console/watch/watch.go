package watch

import (
	"cmp"
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
	shownOrders = 200  // in the whole picture
	shownLines  = 100  // of the log, in the whole picture
	timelines   = 1000 // orders that keep their entries
	longest     = 300  // entries of a timeline
	lineBurst   = 20   // lines of the log in one frame
)

// Tick is how often the picture changes.
const Tick = 100 * time.Millisecond

// Watch is the picture of one system. Hook connects its taps, Run reads what has no tap.
// It is safe for concurrent use.
type Watch struct {
	feed    *Feed
	now     func() time.Time
	decoder *jobs.Decoder

	mu        sync.Mutex
	lines     map[string]*line // by order id
	byN       []*line
	nameless  *line // of the messages that name no order
	messages  map[string]*message
	changed   map[*line]bool // since the last frame
	dirty     map[*line]bool // their row may have changed
	instances map[int]*instance
	intents   []*stripetest.Intent
	refunds   []*stripetest.Refund
	ledger    int // entries that were read
	mails     int // likewise
	totals    Totals
	lights    lights
	missing   string // the guard that the deployed program lacks, in words
	shown     Frame  // all but orders and log. What a pointer or a list in it holds never changes
	sent      Frame  // the same, as the frames have said
	log       []Line // the latest ones
	logged    int    // lines so far
	unsent    int    // of them, since the last frame
	skipped   int    // lines that did not fit into the frame
}

// New returns the picture of a system that has not started. now returns this machine's
// time.
func New(now func() time.Time) *Watch {
	w := &Watch{
		now: now, decoder: jobs.NewDecoder(), nameless: newLine("", 0), lines: map[string]*line{},
		messages: map[string]*message{}, changed: map[*line]bool{}, dirty: map[*line]bool{},
		instances: map[int]*instance{}, lights: newLights(),
	}
	w.shown = Frame{
		Clock: &Clock{}, Queue: &Queue{}, Instances: []Instance{}, Totals: &Totals{Rows: []Row{}},
		Lights: []Light{}, Dead: []Dead{}, Faults: []Fault{}, Control: &Control{},
	}
	w.sent = w.shown
	w.feed = NewFeed(w.picture)
	return w
}

// Feed returns the frames of the picture.
func (w *Watch) Feed() *Feed { return w.feed }

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
	w.feed.Publish(w.frame)
}

// frame returns what has changed since the last frame, and false if nothing has.
func (w *Watch) frame() (Frame, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown.Instances, w.shown.Totals = w.instancesNow(), w.totalsNow()
	if w.skipped > 0 {
		w.add(Line{Tone: Plain, Text: count(w.skipped, "line", "lines") + " more in this moment"})
		w.skipped = 0
	}
	was, is := w.sent, w.shown
	f := Frame{
		Clock: ifNew(was.Clock, is.Clock), Queue: ifNew(was.Queue, is.Queue), Totals: ifNew(was.Totals, is.Totals),
		Instances: ifNew(was.Instances, is.Instances), Lights: ifNew(was.Lights, is.Lights),
		Dead: ifNew(was.Dead, is.Dead), Faults: ifNew(was.Faults, is.Faults),
		Control: ifNew(was.Control, is.Control),
	}
	for l := range w.changed {
		if l.N > 0 {
			f.Orders = append(f.Orders, l.summary())
		}
	}
	slices.SortFunc(f.Orders, func(a, b Order) int { return cmp.Compare(a.N, b.N) })
	if w.unsent > 0 {
		f.Log = slices.Clone(w.log[max(0, len(w.log)-w.unsent):])
	}
	w.log = slices.Clone(w.log[max(0, len(w.log)-shownLines):])
	w.sent, w.changed, w.unsent = w.shown, map[*line]bool{}, 0
	return f, !reflect.DeepEqual(f, Frame{})
}

// ifNew returns a part of the picture if it has changed, and nothing if not.
func ifNew[T any](was, is T) (changed T) { //nolint:ireturn // T is the type of the part
	if reflect.DeepEqual(was, is) {
		return changed
	}
	return is
}

// picture returns everything that the frames so far have said. The orders may be newer.
func (w *Watch) picture() Frame {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, recent := w.sent, max(0, len(w.byN)-shownOrders)
	f.Log = slices.Clone(w.log[:len(w.log)-w.unsent])
	for i, l := range w.byN {
		if i >= recent || len(l.broken()) > 0 { // what is broken stays in view
			f.Orders = append(f.Orders, l.summary())
		}
	}
	return f
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

// Broken reports whether an order breaks an invariant.
func (w *Watch) Broken(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lines[id]
	return l != nil && len(l.broken()) > 0
}

// Undelivered notes that the answer to an order's latest call did not reach its caller,
// because that was killed between the effect and the answer. It is called before the
// answer is sent.
func (w *Watch) Undelivered(id string, by string) {
	w.about(id, func(l *line) {
		if by == DynamoDB { // its entry is yet to come
			l.undelivered = true
			return
		}
		for i := len(l.entries) - 1; i >= 0; i-- {
			if e := &l.entries[i]; e.Kind == Call && e.To == by {
				e.Kind, e.Answer = Lost, e.Answer+notDelivered
				return
			}
		}
	})
}

const notDelivered = ", not delivered"

// Say adds a line to the log.
func (w *Watch) Say(tone Tone, order, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.say(tone, order, text)
}

// say adds a line, unless the frame has many: then the next frame says how many more.
func (w *Watch) say(tone Tone, order, text string) {
	if w.unsent >= lineBurst && tone != Bad {
		w.skipped++
		return
	}
	w.add(Line{Tone: tone, Order: order, Text: text})
}

func (w *Watch) add(l Line) {
	w.logged++
	w.unsent++
	l.N, l.At = w.logged, w.now().UnixMilli()
	w.log = append(w.log, l)
}

// SetControl changes what the visitor has set. The function gets a copy.
func (w *Watch) SetControl(change func(*Control)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := *w.shown.Control
	change(&c)
	w.shown.Control = &c
}

// SetMissing names the guard that the deployed program lacks, in words, or "".
func (w *Watch) SetMissing(missing string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing = missing
}

// SetFaults replaces the faults that are shown.
func (w *Watch) SetFaults(faults []Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown.Faults = append([]Fault{}, faults...)
}
