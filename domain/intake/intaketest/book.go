// Package intaketest tests implementations of intake.Book, and has one in memory.
package intaketest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// racers is the number of concurrent goroutines.
const racers = 50

// TestBook tests the contract of intake.Book. open returns a book and the store of its
// orders. They may be the same each time: no two tests of one run use the same order.
// Books keep times to the millisecond.
func TestBook(t *testing.T, open func(t *testing.T) (order.Store, intake.Book)) {
	t.Helper()
	for i, p := range []struct {
		claim string
		test  func(bookTest)
	}{
		{"find of an unknown order returns the zero entry", bookTest.unknown},
		{"a registration is found, without a record", bookTest.registers},
		{"a second registration returns the first and changes nothing", bookTest.registersAgain},
		{"a registration that was marked as sent stays so, and one that does not exist is not", bookTest.marks},
		{"of fifty concurrent registrations all return the same one", bookTest.races},
		{"a registered order is claimed as any other, and found with its events", bookTest.claims},
		{"an order of the queue is found without a registration, and can be registered", bookTest.queued},
	} {
		t.Run(p.claim, func(t *testing.T) {
			store, book := open(t)
			id := order.ID(fmt.Sprintf("BOOK-%d", i))
			p.test(bookTest{T: t, Book: book, store: store, order: ordertest.Order(id)})
		})
	}
}

type bookTest struct {
	*testing.T
	intake.Book

	store order.Store
	order order.Order
}

// at returns a time in milliseconds.
func at(d time.Duration) time.Time { return time.UnixMilli(1_767_225_600_123).UTC().Add(d) }

func (x bookTest) registration(c intake.Caller) intake.Registration {
	return intake.Registration{
		OrderID: x.order.ID(), Fingerprint: x.order.Fingerprint(), Total: x.order.Total(), Caller: c, At: at(0),
	}
}

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

func (x bookTest) unknown() { x.wantEntry(intake.Entry{}) }

func (x bookTest) registers() {
	r := x.registration("first")
	x.mustRegister(r, r)
	x.wantEntry(intake.Entry{Registration: r})
}

func (x bookTest) registersAgain() {
	first, second := x.registration("first"), x.registration("second")
	second.Fingerprint, second.Total.Amount, second.At = "v1:other", 1, at(time.Second)
	x.mustRegister(first, first)
	x.mustRegister(second, first)
	x.wantEntry(intake.Entry{Registration: first})
}

func (x bookTest) marks() {
	if err := x.MarkSent(x.Context(), x.order.ID()); !errors.Is(err, order.ErrNotFound) {
		x.Errorf("mark: got %v, want %v", err, order.ErrNotFound)
	}
	x.wantEntry(intake.Entry{})
	r := x.registration("first")
	x.mustRegister(r, r)
	sent := r
	sent.Sent = true
	for range 2 {
		if err := x.MarkSent(x.Context(), x.order.ID()); err != nil {
			x.Errorf("mark: got %v, want nil", err)
		}
		x.wantEntry(intake.Entry{Registration: sent})
	}
	x.mustRegister(r, sent)
}

func (x bookTest) races() {
	got, errs := make([]intake.Registration, racers), make([]error, racers)
	var racing sync.WaitGroup
	for i := range racers {
		racing.Go(func() {
			r := x.registration(intake.Caller(fmt.Sprintf("racer %d", i)))
			got[i], errs[i] = x.Register(x.Context(), r)
		})
	}
	racing.Wait()
	for i, r := range got {
		if errs[i] != nil || r != got[0] {
			x.Errorf("racer %d: got %+v, %v, want %+v", i, r, errs[i], got[0])
		}
	}
	x.wantEntry(intake.Entry{Registration: got[0]})
}

// refuse claims the order and refuses it, which adds an event.
func (x bookTest) refuse() order.Record {
	x.Helper()
	l := order.Lease{Owner: "worker", From: at(time.Second), Until: at(time.Minute)}
	c, err := order.Begin(x.Context(), x.store, x.order, l, nil)
	if err == nil {
		refused := order.Outcome{Status: order.Refused, Failure: "pretend"}
		err = c.Finish(x.Context(), x.store, refused, at(2*time.Second))
	}
	record, loadErr := x.store.Load(x.Context(), x.order.ID())
	if err := errors.Join(err, loadErr); err != nil || len(record.Events) != 1 {
		x.Fatalf("got %+v, %v, want a refused order with one event", record, err)
	}
	return record
}

func (x bookTest) claims() {
	r := x.registration("first")
	x.mustRegister(r, r)
	x.wantEntry(intake.Entry{Registration: r, Record: x.refuse()})
}

func (x bookTest) queued() {
	record := x.refuse()
	x.wantEntry(intake.Entry{Record: record})
	r := x.registration("first")
	x.mustRegister(r, r)
	x.wantEntry(intake.Entry{Registration: r, Record: record})
}
