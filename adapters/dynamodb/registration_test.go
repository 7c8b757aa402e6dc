package dynamodb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	registrationtable "orderonce/adapters/dynamodb/registrations"
	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestRegistrations(t *testing.T) {
	t.Parallel()
	f := open(t)
	intaketest.TestBook(t, func(*testing.T) (order.Store, intake.Book) {
		return f.Store, &registrationtable.Store{Orders: f.Store}
	})
}

// registered returns the registration of O-1, which alice puts.
func registered() intake.Registration {
	o := ordertest.Order("O-1")
	return intake.Registration{
		OrderID: o.ID(), Fingerprint: o.Fingerprint(), Total: o.Total(), Caller: "alice", At: at(0),
	}
}

func TestARegistrationIsFoundWithoutACallForEachItem(t *testing.T) {
	t.Parallel()
	f := open(t)
	book := registrationtable.Store{Orders: f.Store}
	_, err := book.Register(t.Context(), registered())
	f.must(err)
	if item := f.rows("O-1")[0]; len(item) != 9 || item["expiresAt"] != nil {
		t.Errorf("got %v, want nine attributes and no time to live", item)
	}
	f.settled("O-1")
	f.Proxy.Reset()
	e, err := book.Find(t.Context(), "O-1")
	f.must(err)
	if e.Registration != registered() || e.Record.Status != order.Paid || len(e.Record.Events) != 1 {
		t.Errorf("got %+v, want the registration, and a paid order with its event", e)
	}
	if diff := cmp.Diff(f.Proxy.Counts(), map[string]int{"Query": 1}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

func TestACorruptRegistrationIsAnErrorThatNamesTheAttribute(t *testing.T) {
	t.Parallel()
	f := open(t)
	book := registrationtable.Store{Orders: f.Store}
	f.put(row{
		"orderId": text("O-1"), "sk": text("intake"), "amount": text("canary"), "caller": text("alice"),
		"currency": text("usd"), "createdAt": number(1),
	})
	_, findErr := book.Find(t.Context(), "O-1")
	_, registerErr := book.Register(t.Context(), registered())
	for _, err := range []error{findErr, registerErr} {
		if !errors.Is(err, order.ErrCorrupt) || !strings.Contains(err.Error(), "amount: want an integer") ||
			!strings.Contains(err.Error(), "fingerprint") || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want a corrupt amount and fingerprint without their values", err)
		}
	}
}

func TestFindIgnoresEventsWithoutAnOrder(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.settled("O-1")
	_, err := f.Client.DeleteItem(t.Context(), &sdk.DeleteItemInput{
		TableName: &f.Table, Key: row{"orderId": text("O-1"), "sk": text("order")},
	})
	f.must(err)
	e, err := (&registrationtable.Store{Orders: f.Store}).Find(t.Context(), "O-1")
	if diff := cmp.Diff(e, intake.Entry{}); diff != "" || err != nil {
		t.Errorf("got %v, entry (-got +want):\n%s", err, diff)
	}
}

func TestAnOrderThatMayNotHaveBeenSentIsListedAfterTenMinutes(t *testing.T) {
	t.Parallel()
	f := open(t)
	book := registrationtable.Store{Orders: f.Store}
	for _, id := range []order.ID{"O-1", "O-marked", "O-claimed"} {
		r := registered()
		r.OrderID = id
		_, err := book.Register(t.Context(), r)
		f.must(err)
	}
	f.must(book.MarkSent(t.Context(), "O-marked"))
	f.settled("O-claimed")
	for after, want := range map[time.Duration][]intake.Registration{
		10*time.Minute - time.Millisecond: nil, 10 * time.Minute: {registered()},
	} {
		var got []intake.Registration
		for r, err := range book.Unsent(t.Context(), at(after)) {
			f.must(err)
			got = append(got, r)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("after %v (-got +want):\n%s", after, diff)
		}
	}
	for id, err := range f.Due(t.Context(), at(time.Hour)) {
		t.Errorf("due: got %q, %v, want nothing: a registration is no order that waits", id, err)
	}
}

// An older release never marked a registration. Most of them were sent.
func TestARegistrationOfAnOlderReleaseCountsAsSent(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(row{
		"orderId": text("O-1"), "sk": text("intake"), "fingerprint": text("v1:0"), "caller": text("alice"),
		"amount": number(1998), "currency": text("usd"), "createdAt": number(1_790_000_000_000),
	})
	if e, err := (&registrationtable.Store{Orders: f.Store}).Find(t.Context(), "O-1"); err != nil || !e.Registration.Sent {
		t.Errorf("got %+v, %v, want a registration that was sent", e, err)
	}
}
