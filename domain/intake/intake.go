// Package intake accepts orders that clients put by themselves, under an id that they
// chose. It sends each to the order queue and answers repetitions with what became of the
// order. It decides which content and which caller an id belongs to; it charges nothing
// and does not depend on HTTP, queues or tables.
//
// A registration binds the id to its first content and caller before the order is sent.
// So two contents are never sent under one id. A client that is told of a conflict can
// rely on this: no call of this package charges its content under this id, at any age,
// unless the id is another caller's, who put the same content. The order protocol does
// the rest: an order that was sent twice is charged once.
package intake

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"orderonce/domain/order"
)

// Caller identifies who put an order: a hash, so that no record shows a name or an
// account. The zero Caller is nobody.
type Caller string

// NewCaller returns the caller with an identity, in parts such as the issuer and the
// subject of a token.
func NewCaller(parts ...string) Caller {
	sum := hash(parts)
	return Caller(hex.EncodeToString(sum[:]))
}

// IDFor returns the order id of a caller's idempotency key, for a client that has no id
// of its own: "i-" and 52 lower-case letters and digits. Another caller's order has
// another id, even under the same key.
func IDFor(c Caller, key string) order.ID {
	sum := hash([]string{string(c), key})
	encoding := base32.StdEncoding.WithPadding(base32.NoPadding)
	return order.ID("i-" + strings.ToLower(encoding.EncodeToString(sum[:])))
}

// isDerived reports whether an id has the form of those of IDFor.
func isDerived(id order.ID) bool {
	encoded, found := strings.CutPrefix(string(id), "i-")
	return found && len(encoded) == 52 && strings.Trim(encoded, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// hash hashes parts with their lengths, so that no two lists of parts have one hash.
func hash(parts []string) [sha256.Size]byte {
	var text []byte
	for _, p := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(p)))
		text = append(text, p...)
	}
	return sha256.Sum256(text)
}

// Registration binds an order id to the first content and caller that were put under it.
// It never expires, or another content could be charged later.
type Registration struct {
	OrderID     order.ID
	Fingerprint order.Fingerprint
	Total       order.Money
	Caller      Caller
	At          time.Time
	Sent        bool // the queue has certainly accepted the order
}

// Entry is what is known of an order id. The registration is zero if no client put the
// order, the record if no worker has claimed it yet.
type Entry struct {
	Registration Registration
	Record       order.Record // with its events
}

// registered reports whether a client put the order.
func (e Entry) registered() bool { return e.Registration.OrderID != "" }

// claimed reports whether a worker has claimed the order.
func (e Entry) claimed() bool { return e.Record.OrderID != "" }

// Book keeps registrations beside the records of the orders. intaketest.TestBook tests
// this contract.
type Book interface {
	// Register stores the registration, unless the id has one, and returns the stored one,
	// ours or the other. An error means that ours may or may not be stored. It returns
	// order.ErrCorrupt for an invalid registration.
	Register(ctx context.Context, r Registration) (Registration, error)

	// MarkSent notes that the queue has accepted the order; a registration that is marked
	// stays so. It returns order.ErrNotFound for an id that is not registered. After any
	// other error the registration may or may not be marked.
	MarkSent(ctx context.Context, id order.ID) error

	// Find returns the registration and the record of an order, both read at one time and
	// strongly consistent, and the zero Entry of an unknown id. It returns
	// order.ErrUnknownVersion for a record of a newer release, and order.ErrCorrupt for an
	// invalid record or registration.
	Find(ctx context.Context, id order.ID) (Entry, error)
}

// Queue is the order queue.
type Queue interface {
	// Send sends an order. The queue has it for certain if Send returns nil. An error
	// means that the queue may or may not have it, and sending it again is safe.
	//
	// first is when the order was first put. A worker finds from it that a younger record
	// may replace one that the store lost.
	Send(ctx context.Context, o order.Order, first time.Time, t order.Trace) error
}

// The statuses of an order that no worker has claimed yet.
const (
	Received = "received" // the queue has accepted it
	NotSent  = "not_sent" // the queue may not have it: put it again
)

// View is an order as its caller may see it.
type View struct {
	OrderID order.ID
	Total   order.Money
	Record  order.Record // zero if no worker has claimed the order yet
	Queued  bool         // the queue has certainly accepted the order
	Sent    bool         // by this Put
}

// Status returns the status of the order, Received or NotSent.
func (v View) Status() string {
	switch {
	case v.Record.OrderID != "":
		return string(v.Record.Status)
	case v.Queued:
		return Received
	}
	return NotSent
}

// Settled reports whether the order has an outcome. Later events, such as a refund, may
// still change it.
func (v View) Settled() bool {
	s := v.Record.Status
	return v.Record.OrderID != "" && s != order.Open && s != order.Pending && s != order.ActionRequired
}

// Intake accepts orders. It is safe for concurrent use.
type Intake struct {
	Book  Book
	Queue Queue
	// Owned means that callers see only the orders that they put themselves. Otherwise all
	// callers are one owner, and also see the orders that came by the queue.
	Owned bool
	Now   func() time.Time
}

// Put registers an order, sends it to the queue and notes that it was sent. An order that
// was registered and has no record is sent again, even one that was sent before, because
// its message may have been lost since; otherwise the worker finds a duplicate. An order
// that has a record is returned and not sent.
//
// It returns order.ErrConflict if the id has other content or belongs to another caller,
// and order.ErrUnknownVersion if a newer release registered or claimed it. After any
// other error the order may or may not be charged later; to put it again is safe and
// answers which.
//
// An id of the form of IDFor is another caller's, unless this caller has posted it: a
// stranger must not take the id of an order before its caller posts it.
func (i *Intake) Put(ctx context.Context, o order.Order, c Caller, t order.Trace) (View, error) {
	return i.put(ctx, o, c, t, !isDerived(o.ID()))
}

// Post is Put for an order whose id is IDFor of the caller.
func (i *Intake) Post(ctx context.Context, o order.Order, c Caller, t order.Trace) (View, error) {
	return i.put(ctx, o, c, t, true)
}

func (i *Intake) put(ctx context.Context, o order.Order, c Caller, t order.Trace, free bool) (View, error) {
	e, err := i.Book.Find(ctx, o.ID())
	if err == nil && !free && e.Registration.Caller != c {
		err = order.ErrConflict
	}
	if err == nil && !e.registered() && !e.claimed() {
		e.Registration, err = i.Book.Register(ctx, Registration{
			OrderID: o.ID(), Fingerprint: o.Fingerprint(), Total: o.Total(), Caller: c, At: i.Now(),
		})
	}
	if err == nil {
		err = i.check(e, o, c)
	}
	v := e.view()
	if err == nil && !e.claimed() {
		v.Sent, v.Queued = true, true
		err = i.Queue.Send(ctx, o, e.Registration.At, t)
	}
	if err == nil && v.Sent && !e.Registration.Sent {
		err = i.Book.MarkSent(ctx, o.ID())
	}
	if err != nil {
		return View{}, fmt.Errorf("put order %q: %w", o.ID(), err)
	}
	return v, nil
}

// check returns why an entry is not that of the caller's order.
func (i *Intake) check(e Entry, o order.Order, c Caller) error {
	if i.Owned && e.Registration.Caller != c {
		return order.ErrConflict
	}
	for _, f := range []order.Fingerprint{e.Registration.Fingerprint, e.Record.Fingerprint} {
		switch same, known := f.Matches(o); {
		case f == "":
		case !known:
			return order.ErrUnknownVersion
		case !same:
			return order.ErrConflict
		}
	}
	return nil
}

// Get returns an order. It returns order.ErrNotFound if the id is unknown, or belongs to
// another caller, and order.ErrConflict if the record has not the content that was put:
// the order of the record came by the queue.
func (i *Intake) Get(ctx context.Context, id order.ID, c Caller) (View, error) {
	e, err := i.Book.Find(ctx, id)
	switch {
	case err != nil:
	case !e.registered() && !e.claimed(), i.Owned && e.Registration.Caller != c:
		err = order.ErrNotFound
	case e.registered() && e.claimed() && e.Registration.Fingerprint.Conflicts(e.Record.Fingerprint):
		err = order.ErrConflict
	}
	if err != nil {
		return View{}, fmt.Errorf("get order %q: %w", id, err)
	}
	return e.view(), nil
}

func (e Entry) view() View {
	if e.claimed() {
		return View{OrderID: e.Record.OrderID, Total: e.Record.Total, Record: e.Record}
	}
	return View{OrderID: e.Registration.OrderID, Total: e.Registration.Total, Queued: e.Registration.Sent}
}
