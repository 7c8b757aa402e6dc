package intake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

const (
	alice intake.Caller = "alice"
	bob   intake.Caller = "bob"
)

// world is an intake with its book and its queue. The call named by fails fails after its
// effect.
type world struct {
	*intake.Intake
	intake.Book

	orders *ordertest.Memory
	fails  string
	sent   []order.ID
	first  time.Time   // of the last order
	trace  order.Trace // of the last order
}

func newWorld(owned bool) *world {
	w := &world{orders: new(ordertest.Memory)}
	w.Book = &intaketest.Memory{Orders: w.orders}
	now := func() time.Time { return time.UnixMilli(1_790_000_000_000) }
	w.Intake = &intake.Intake{Book: w, Queue: w, Owned: owned, Now: now}
	return w
}

var errDown = errors.New("down")

func (w *world) fault(call string) error {
	if w.fails == call {
		return errDown
	}
	return nil
}

func (w *world) Find(ctx context.Context, id order.ID) (intake.Entry, error) {
	e, err := w.Book.Find(ctx, id)
	return e, errors.Join(err, w.fault("find"))
}

func (w *world) Register(ctx context.Context, r intake.Registration) (intake.Registration, error) {
	stored, err := w.Book.Register(ctx, r)
	return stored, errors.Join(err, w.fault("register"))
}

func (w *world) Send(_ context.Context, o order.Order, first time.Time, t order.Trace) error {
	w.sent, w.first, w.trace = append(w.sent, o.ID()), first, t
	return w.fault("send")
}

func (w *world) MarkSent(ctx context.Context, id order.ID) error {
	if err := w.fault("mark"); err != nil {
		return err
	}
	return w.Book.MarkSent(ctx, id)
}

// other returns an order with the id of ordertest.Order and other content.
func other(id order.ID) order.Order {
	d := ordertest.Draft(id)
	d.Lines[0].Quantity++
	o, err := order.New(d)
	if err != nil {
		panic(err) // a bug in this test
	}
	return o
}

// work claims an order, as a worker does, and refuses it if settle is true.
func (w *world) work(t *testing.T, o order.Order, settle bool) {
	t.Helper()
	from := w.Now()
	c, err := order.Begin(t.Context(), w.orders, o, order.Lease{Owner: "w", From: from, Until: from.Add(time.Minute)}, nil)
	if err == nil && settle {
		err = c.Finish(t.Context(), w.orders, order.Outcome{Status: order.Refused, Failure: "pretend"}, from)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// step is one call of a client, or the work of a worker.
type step struct {
	do   string // "put", "put other", "get", "claim", "settle" or "claim other"
	by   intake.Caller
	want string // status, "sent", or the error
}

func TestIntake(t *testing.T) {
	const conflict, missing = "order id already used with different content", "order not found"
	for claim, tt := range map[string]struct {
		owned bool
		steps []step
	}{
		"an order is sent until a worker has claimed it, and answered afterwards": {false, []step{
			{"get", alice, missing},
			{"put", alice, "sent"},
			{"get", alice, "received"},
			{"put", alice, "sent"},
			{"claim", "", ""},
			{"put", alice, "open"},
			{"settle", "", ""},
			{"put", alice, "refused"},
			{"get", alice, "refused"},
		}},
		"an order whose message may be lost is not called received, until it was put again": {false, []step{
			{"put, killed before the message", alice, ""},
			{"get", alice, "not_sent"},
			{"put", alice, "sent"},
			{"get", alice, "received"},
		}},
		"other content is never sent": {false, []step{
			{"put", alice, "sent"},
			{"put other", alice, conflict},
			{"settle", "", ""},
			{"put other", alice, conflict},
			{"put", alice, "refused"},
		}},
		"without owners all callers are one": {false, []step{
			{"put", alice, "sent"},
			{"put", bob, "sent"},
			{"get", bob, "received"},
			{"settle", "", ""},
			{"get", bob, "refused"},
		}},
		"with owners a caller sees only its own order": {true, []step{
			{"put", alice, "sent"},
			{"put", bob, conflict},
			{"get", bob, missing},
			{"settle", "", ""},
			{"put", bob, conflict},
			{"get", bob, missing},
			{"get", alice, "refused"},
		}},
		"an order of the queue is answered, and other content is a conflict": {false, []step{
			{"settle", "", ""},
			{"get", alice, "refused"},
			{"put", alice, "refused"},
			{"put other", alice, conflict},
		}},
		"with owners an order of the queue is nobody's": {true, []step{
			{"settle", "", ""},
			{"get", alice, missing},
			{"put", alice, conflict},
		}},
		"an order of the queue that was claimed before the registered one is not shown": {true, []step{
			{"put", alice, "sent"},
			{"claim other", "", ""},
			{"get", alice, conflict},
			{"put", alice, conflict},
			{"put other", alice, conflict},
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(tt.owned)
			for i, s := range tt.steps {
				if got := w.take(t, s); got != s.want {
					t.Errorf("step %d, %s by %q: got %q, want %q", i+1, s.do, s.by, got, s.want)
				}
			}
		})
	}
}

// take takes a step on the order O-1.
func (w *world) take(t *testing.T, s step) string {
	t.Helper()
	var v intake.View
	var err error
	switch s.do {
	case "put, killed before the message":
		o := ordertest.Order("O-1")
		if _, err := w.Book.Register(t.Context(), intake.Registration{
			OrderID: o.ID(), Fingerprint: o.Fingerprint(), Total: o.Total(), Caller: s.by,
		}); err != nil {
			t.Error(err)
		}
		return ""
	case "claim", "settle":
		w.work(t, ordertest.Order("O-1"), s.do == "settle")
		return ""
	case "claim other":
		w.work(t, other("O-1"), false)
		return ""
	case "put":
		v, err = w.Put(t.Context(), ordertest.Order("O-1"), s.by, "")
	case "put other":
		v, err = w.Put(t.Context(), other("O-1"), s.by, "")
	case "get":
		v, err = w.Get(t.Context(), "O-1", s.by)
	}
	for _, known := range []error{order.ErrConflict, order.ErrNotFound} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case err != nil:
		return err.Error()
	case v.OrderID != "O-1" || v.Total.Amount != 3998:
		t.Errorf("%s: got %s of %d, want O-1 of 3998", s.do, v.OrderID, v.Total.Amount)
	}
	if v.Sent {
		return "sent"
	}
	return v.Status()
}

// A worker compares this time with the age of the order's record.
func TestARepetitionIsSentWithTheTimeOfTheFirstPut(t *testing.T) {
	w := newWorld(false)
	first := w.Now()
	for n := range 3 {
		at, trace := first.Add(time.Duration(n)*time.Hour), order.Trace(fmt.Sprint("trace-", n))
		w.Now = func() time.Time { return at }
		if _, err := w.Put(t.Context(), ordertest.Order("O-1"), alice, trace); err != nil {
			t.Fatal(err)
		}
		if !w.first.Equal(first) || w.trace != trace {
			t.Errorf("sent %d: first put at %v, trace %q, want %v and %q", n, w.first, w.trace, first, trace)
		}
	}
}

// A 202 promises that nobody has to put the order again. Nothing is sent unless it is
// registered, and what failed can be repeated.
func TestAPutThatFailsIsAnErrorAndCanBeRepeated(t *testing.T) {
	for call, sent := range map[string]int{"find": 0, "register": 0, "send": 1, "mark": 1} {
		w := newWorld(false)
		w.fails = call
		v, err := w.Put(t.Context(), ordertest.Order("O-1"), alice, "")
		if !errors.Is(err, errDown) || v.Sent || len(w.sent) != sent {
			t.Errorf("%s: got %+v, %v and %d sent, want %v and %d", call, v, err, len(w.sent), errDown, sent)
		}
		if _, err := w.Get(t.Context(), "O-1", alice); call == "find" && !errors.Is(err, errDown) {
			t.Errorf("get: got %v, want %v", err, errDown)
		}
		w.fails = ""
		if v, err := w.Put(t.Context(), ordertest.Order("O-1"), alice, ""); err != nil || v.Status() != intake.Received {
			t.Errorf("%s: got %+v, %v, want it received", call, v, err)
		}
		w.fails = "mark" // it is marked already
		if v, err := w.Put(t.Context(), ordertest.Order("O-1"), alice, ""); err != nil || !v.Sent {
			t.Errorf("%s: got %+v, %v, want it sent again", call, v, err)
		}
	}
}

func TestARegistrationOfANewerReleaseIsNotAConflict(t *testing.T) {
	w := newWorld(false)
	_, err := w.Book.Register(t.Context(), intake.Registration{OrderID: "O-1", Fingerprint: "v9:0", Caller: alice})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := w.Put(t.Context(), ordertest.Order("O-1"), alice, ""); !errors.Is(err, order.ErrUnknownVersion) {
		t.Errorf("got %+v, %v, want %v", v, err, order.ErrUnknownVersion)
	}
	if len(w.sent) > 0 {
		t.Errorf("got %q sent, want nothing", w.sent)
	}
}

func TestView(t *testing.T) {
	waits := map[order.Status]bool{order.Open: true, order.Pending: true, order.ActionRequired: true}
	for _, s := range order.Statuses() {
		v := intake.View{OrderID: "O-1", Record: order.Record{OrderID: "O-1", Status: s}}
		if v.Settled() == waits[s] || v.Status() != string(s) {
			t.Errorf("%s: got settled %t as %q, want %t", s, v.Settled(), v.Status(), !waits[s])
		}
	}
	if v := (intake.View{OrderID: "O-1", Queued: true}); v.Settled() || v.Status() != intake.Received {
		t.Errorf("got settled %t as %q, want false as %q", v.Settled(), v.Status(), intake.Received)
	}
}

func TestIDFor(t *testing.T) {
	const want = order.ID("i-nztpgjzwzzhwjbypjaq3ic7ccluato74hncv5aem4vi36xpfzdxa")
	id := intake.IDFor(intake.NewCaller("shop"), "key-1")
	if id != want || !order.ValidID(string(id)) { // another id would charge a repeated request again
		t.Errorf("got %q, want %q for ever", id, want)
	}
	seen := map[order.ID]bool{}
	for _, parts := range [][]string{{"shop"}, {"shop", ""}, {"sh", "op"}, {"other"}} {
		for _, key := range []string{"key-1", "KEY-1", "key-2", strings.Repeat("k", 255)} {
			seen[intake.IDFor(intake.NewCaller(parts...), key)] = true
		}
	}
	if len(seen) != 16 {
		t.Errorf("got %d ids, want 16", len(seen))
	}
}

// Whoever knows who another caller is and guesses its key could take the id of its order.
func TestAnIDOfAKeyIsItsCallersAlone(t *testing.T) {
	o := ordertest.Order(intake.IDFor(alice, "key-1"))
	for _, owned := range []bool{false, true} {
		w := newWorld(owned)
		for _, c := range []intake.Caller{bob, alice} {
			if v, err := w.Put(t.Context(), o, c, ""); !errors.Is(err, order.ErrConflict) || len(w.sent) > 0 {
				t.Errorf("put by %q before its post: got %+v, %v and %q sent, want a conflict", c, v, err, w.sent)
			}
		}
		if v, err := w.Post(t.Context(), o, alice, ""); err != nil || !v.Sent {
			t.Errorf("post: got %+v, %v, want it sent", v, err)
		}
		for c, want := range map[intake.Caller]error{alice: nil, bob: order.ErrConflict} {
			if v, err := w.Put(t.Context(), o, c, ""); !errors.Is(err, want) {
				t.Errorf("put by %q after its post: got %+v, %v, want %v", c, v, err, want)
			}
		}
	}
	w := newWorld(true)
	for _, id := range []order.ID{"i-1", o.ID() + "a", "o" + o.ID()[1:], o.ID()[:53] + "1"} {
		if v, err := w.Put(t.Context(), ordertest.Order(id), bob, ""); err != nil || !v.Sent {
			t.Errorf("put %q: got %+v, %v, want it sent: it is not of the form", id, v, err)
		}
	}
}
