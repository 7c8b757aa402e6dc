// Package intaketest tests implementations of intake.Book, and has one in memory.
package intaketest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"orderonce/domain/intake"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

var _ intake.Book = (*Memory)(nil)

// Memory is a book in a map, beside the records of a store.
type Memory struct {
	Orders order.Store

	mu            sync.Mutex
	registrations map[order.ID]intake.Registration
}

// Register implements intake.Book.
func (m *Memory) Register(_ context.Context, r intake.Registration) (intake.Registration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, is := m.registrations[r.OrderID]; is {
		return known, nil
	}
	if m.registrations == nil {
		m.registrations = map[order.ID]intake.Registration{}
	}
	m.registrations[r.OrderID] = r
	return r, nil
}

// MarkSent implements intake.Book.
func (m *Memory) MarkSent(_ context.Context, id order.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.registrations[id]
	if !known {
		return order.ErrNotFound
	}
	r.Sent = true
	m.registrations[id] = r
	return nil
}

// Find implements intake.Book.
func (m *Memory) Find(ctx context.Context, id order.ID) (intake.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, err := m.Orders.Load(ctx, id)
	if errors.Is(err, order.ErrNotFound) {
		err = nil
	}
	return intake.Entry{Registration: m.registrations[id], Record: record}, err
}

// TestBook tests the contract of intake.Book. open returns a book and the store of its
// orders. They may be the same each time: no two tests of one run use the same order.
// Books keep times to the millisecond.
func TestBook(t *testing.T, open func(t *testing.T) (order.Store, intake.Book)) {
	t.Helper()
	for claim, test := range map[string]func(bookTest){
		"a second registration returns the first and changes nothing": bookTest.registers,
		"of fifty concurrent registrations all return the same one":   bookTest.races,
		"an order is found with its registration, record and events":  bookTest.finds,
	} {
		t.Run(claim, func(t *testing.T) {
			store, book := open(t)
			id := order.ID("BOOK-" + strings.ReplaceAll(claim, " ", "-"))
			test(bookTest{T: t, Book: book, store: store}.of(id[:40]))
		})
	}
}

// bookTest is one order that may be registered.
type bookTest struct {
	*testing.T
	intake.Book

	store order.Store
	order order.Order
	first intake.Registration
}

// of returns the test of another order.
func (x bookTest) of(id order.ID) bookTest {
	x.order = ordertest.Order(id)
	x.first = intake.Registration{
		OrderID: id, Fingerprint: x.order.Fingerprint(), Total: x.order.Total(), Caller: "first", At: at(0),
	}
	return x
}

// at returns a time in milliseconds.
func at(d time.Duration) time.Time { return time.UnixMilli(1_767_225_600_123).UTC().Add(d) }

func (x bookTest) mustRegister(r, want intake.Registration) {
	x.Helper()
	if got, err := x.Register(x.Context(), r); err != nil || got != want {
		x.Fatalf("register: got %+v, %v, want %+v", got, err, want)
	}
}

func (x bookTest) wantEntry(want intake.Entry) {
	x.Helper()
	if got, err := x.Find(x.Context(), x.order.ID()); err != nil || !reflect.DeepEqual(got, want) {
		x.Fatalf("find: got %+v, %v, want %+v", got, err, want)
	}
}

func (x bookTest) registers() {
	if err := x.MarkSent(x.Context(), x.order.ID()); !errors.Is(err, order.ErrNotFound) {
		x.Errorf("mark: got %v, want %v", err, order.ErrNotFound)
	}
	x.wantEntry(intake.Entry{})
	first, second := x.first, x.first
	second.Caller, second.Fingerprint, second.Total.Amount, second.At = "second", "v1:other", 1, at(time.Second)
	for _, sent := range []bool{false, true, true} { // marked twice
		if sent {
			if err := x.MarkSent(x.Context(), x.order.ID()); err != nil {
				x.Errorf("mark: got %v, want nil", err)
			}
		}
		first.Sent = sent
		x.mustRegister(x.first, first)
		x.mustRegister(second, first)
		x.wantEntry(intake.Entry{Registration: first})
	}
}

func (x bookTest) races() {
	got := make([]intake.Registration, ordertest.Racers)
	errs := ordertest.Race(func(i int) (err error) {
		r := x.first
		r.Caller = intake.Caller(fmt.Sprintf("racer %d", i))
		got[i], err = x.Register(x.Context(), r)
		return err
	})
	for i, r := range got {
		if errs[i] != nil || r != got[0] {
			x.Errorf("racer %d: got %+v, %v, want %+v", i, r, errs[i], got[0])
		}
	}
	x.wantEntry(intake.Entry{Registration: got[0]})
}

// finds registers an order before a worker refuses it, which adds an event, and another
// one that came by the queue afterwards.
func (x bookTest) finds() {
	for _, registered := range []bool{true, false} {
		x := x.of(x.order.ID() + order.ID(fmt.Sprint("-", registered)))
		want := intake.Entry{}
		if registered {
			x.mustRegister(x.first, x.first)
			want.Registration = x.first
		}
		l := order.Lease{Owner: "worker", From: at(time.Second), Until: at(time.Minute)}
		c, err := order.Begin(x.Context(), x.store, x.order, l, nil)
		if err == nil {
			refused := order.Outcome{Status: order.Refused, Failure: "pretend"}
			err = c.Finish(x.Context(), x.store, refused, at(2*time.Second))
		}
		var loadErr error
		want.Record, loadErr = x.store.Load(x.Context(), x.order.ID())
		if err := errors.Join(err, loadErr); err != nil || len(want.Record.Events) != 1 {
			x.Fatalf("got %+v, %v, want a refused order with one event", want.Record, err)
		}
		x.wantEntry(want)
		x.mustRegister(x.first, x.first)
		want.Registration = x.first
		x.wantEntry(want)
	}
}
