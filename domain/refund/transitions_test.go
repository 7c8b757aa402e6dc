package refund_test

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func lease(owner string, from time.Time) order.Lease {
	return order.Lease{Owner: owner, From: from, Until: from.Add(order.MaxLease)}
}

func TestCheckBegin(t *testing.T) {
	fingerprint := request(t, "R1", 3000).Fingerprint()
	held := refund.Item{
		ID: "R1", Amount: 3000, Fingerprint: fingerprint, Status: refund.Open, Owner: "first", Until: at(order.MaxLease),
	}
	failed := refund.Item{ID: "R1", Amount: 3000, Fingerprint: fingerprint, Status: refund.Failed}
	other := refund.Item{ID: "R2", Amount: 999, Status: refund.Open}
	late := at(order.MaxLease + time.Millisecond)
	euros := &order.InvalidError{Of: "refund", Problems: []order.Problem{
		{Field: "currency", Value: order.Quote("eur"), Want: "usd, as the order"},
	}}
	full := append(make([]refund.Item, refund.MaxRefunds-1), held)
	exceeds := &refund.ExceedsError{Amount: order.Money{Amount: 3000, Currency: "usd"}, Left: order.Money{Amount: 2999, Currency: "usd"}}
	running := &order.InProgressError{Until: held.Until}
	for claim, tt := range map[string]struct {
		status   order.Status // "" is paid
		items    []refund.Item
		id       string      // "" is R1
		amount   int64       // 0 is 3000
		currency string      // "" is the order's
		lease    order.Lease // none is that of another worker, late
		want     error
	}{
		"an open order":                    {status: order.Open, want: &refund.NotChargedError{Status: order.Open}},
		"a pending order":                  {status: order.Pending, want: &refund.NotChargedError{Status: order.Pending}},
		"a declined order":                 {status: order.Declined, want: &refund.NotChargedError{Status: order.Declined}},
		"a new refund":                     {amount: total},
		"of a refunded order":              {status: order.Refunded},
		"the order's currency":             {currency: "usd"},
		"another currency":                 {currency: "eur", want: euros},
		"all that is left":                 {items: []refund.Item{other}, amount: 2999},
		"more than is left":                {items: []refund.Item{other}, want: exceeds},
		"too many refunds":                 {items: full, id: "R3", amount: 1, want: refund.ErrTooMany},
		"one of too many":                  {items: full},
		"the same owner again":             {items: []refund.Item{held}, lease: lease("first", noon())},
		"under a running lease":            {items: []refund.Item{held}, lease: lease("a", held.Until), want: running},
		"after its lease":                  {items: []refund.Item{held}},
		"in euros, after its lease":        {items: []refund.Item{held}, currency: "eur", want: euros},
		"with another amount":              {items: []refund.Item{held}, amount: 2999, want: &refund.ConflictError{ID: "R1"}},
		"that failed":                      {items: []refund.Item{failed}, want: &refund.SettledError{Item: failed}},
		"that failed, with another amount": {items: []refund.Item{failed}, amount: 1, want: &refund.ConflictError{ID: "R1"}},
	} {
		t.Run(claim, func(t *testing.T) {
			a := refund.Account{
				Status: stdcmp.Or(tt.status, order.Paid), Charged: order.Money{Amount: total, Currency: "usd"}, Items: tt.items,
			}
			r, err := refund.New(refund.Draft{
				OrderID: string(orderID), RefundID: stdcmp.Or(tt.id, "R1"), Amount: stdcmp.Or(tt.amount, 3000),
				Currency: tt.currency, Reason: string(refund.RequestedByCustomer),
			})
			if err != nil {
				t.Fatal(err)
			}
			l := stdcmp.Or(tt.lease, lease("a", late))
			got, want := fmt.Sprintf("%T %[1]v", refund.CheckBegin(a, r, l)), fmt.Sprintf("%T %[1]v", tt.want)
			if got != want {
				t.Errorf("got error %s, want %s", got, want)
			}
		})
	}
}

func (w *world) begin(id string, amount int64, l order.Lease) refund.Claim {
	w.Helper()
	c, err := refund.Begin(w.Context(), w.store, request(w.T, id, amount), l)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// want compares an error, and the whole account with one that the test expects.
func (w *world) want(err, wantErr error, want refund.Account) {
	w.Helper()
	if diff := cmp.Diff(w.account(), want); diff != "" || !errors.Is(err, wantErr) {
		w.Errorf("got error %v, want %v; account (-got +want):\n%s", err, wantErr, diff)
	}
}

// A claim is the item's owner, a new attempt and a lease. It reserves the amount, and it
// is taken over although nothing is left of the charge.
func TestBegin(t *testing.T) {
	w := newWorld(t)
	w.begin("R1", total, lease("first", noon()))
	item := refund.Item{
		ID: "R1", Amount: total, Reason: refund.RequestedByCustomer, Fingerprint: request(t, "R1", total).Fingerprint(),
		Status: refund.Open, Owner: "first", Until: at(order.MaxLease), Attempt: 1, KeySeq: 1, CreatedAt: noon(), UpdatedAt: noon(),
	}
	want := refund.Account{
		OrderID: orderID, Status: order.Paid, Charged: usd(total), Intent: "pi_1", Seq: 1, Items: []refund.Item{item},
		UpdatedAt: noon(), Due: at(30 * time.Minute),
	}
	w.want(nil, nil, want)
	w.begin("R1", total, lease("first", noon())) // because the answer to the first was lost
	w.want(nil, nil, want)
	c := w.begin("R1", total, lease("second", at(time.Hour)))
	item.Owner, item.Until, item.Attempt, item.UpdatedAt = "second", at(time.Hour+order.MaxLease), 2, at(time.Hour)
	want.Items, want.UpdatedAt = []refund.Item{item}, at(time.Hour)
	w.want(nil, nil, want)
	if diff := cmp.Diff(c.Account, want); diff != "" {
		t.Errorf("account of the claim (-got +want):\n%s", diff)
	}
	err := c.Release(t.Context(), w.store, order.ReasonUnavailable, at(2*time.Hour))
	item.Owner, item.Until, item.LastError, item.UpdatedAt = "", time.Time{}, "provider_unavailable", at(2*time.Hour)
	want.Items = []refund.Item{item}
	w.want(err, nil, want)
}

func TestEveryWriteNeedsTheClaim(t *testing.T) {
	made := refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}
	for name, write := range map[string]func(*world, refund.Claim) error{
		"mark": func(w *world, c refund.Claim) error {
			_, err := c.Mark(w.Context(), w.store, 2, noon())
			return err
		},
		"release": func(w *world, c refund.Claim) error {
			return c.Release(w.Context(), w.store, order.ReasonUnavailable, noon())
		},
		"finish": func(w *world, c refund.Claim) error { return c.Finish(w.Context(), w.store, made, noon()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.begin("R1", 1000, lease("first", noon()))
			w.begin("R1", 1000, lease("second", at(time.Hour)))
			before := w.account()
			w.want(write(w, c), order.ErrClaimLost, before)
		})
	}
}

func TestFinishRecordsTheOutcomeWithOneEvent(t *testing.T) {
	for s, status := range map[refund.Status]order.Status{
		refund.Pending: order.PartiallyRefunded, refund.Succeeded: order.PartiallyRefunded,
		refund.Failed: order.Paid, refund.Refused: order.Paid, refund.Unknown: order.Paid,
	} {
		w := newWorld(t)
		c := w.begin("R1", 1000, lease("first", noon()))
		w.begin("R2", 1000, lease("other", noon())) // later, and Finish leaves it
		want := w.account()
		i := &want.Items[0]
		i.Status, i.Refund, i.Failure, i.Owner, i.Until, i.UpdatedAt = s, "re_1", "code", "", time.Time{}, at(time.Second)
		want.Status, want.Seq, want.UpdatedAt, want.Due = status, 2, at(time.Second), want.DueAt()
		o := refund.Outcome{Status: s, Refund: "re_1", Failure: "code"}
		w.want(c.Finish(t.Context(), w.store, o, at(time.Second)), nil, want)
		w.want(c.Finish(t.Context(), w.store, o, at(time.Hour)), nil, want)
		o.Refund = "re_2"
		w.want(c.Finish(t.Context(), w.store, o, at(time.Hour)), order.ErrClaimLost, want)
		r, _ := w.orders.Peek(orderID)
		event := order.Event{
			Seq: 2, From: order.Paid, To: status, Intent: "pi_1", Failure: "code", At: at(time.Second),
			Refund: order.RefundEvent{ID: "R1", Status: string(s), Amount: 1000},
		}
		if diff := cmp.Diff(r.Events[1], event); diff != "" || event.Validate() != nil {
			t.Errorf("%s: event (-got +want):\n%s", s, diff)
		}
		var ended *refund.SettledError
		_, err := refund.Begin(t.Context(), w.store, request(t, "R1", 1000), lease("second", at(time.Hour)))
		if !errors.As(err, &ended) || ended.Item.Status != s || ended.Order != status {
			t.Errorf("%s: begin again: got %v, want a SettledError", s, err)
		}
	}
}

// Begin and Mark change no seq, so a refund may begin while Refresh is at the provider.
func TestApplyLeavesWhatWasBegunMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.begin("R1", 1000, lease("first", noon()))
	seen := w.account()
	after, err := refund.Settled(seen, "R1", refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}, at(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	w.begin("R2", 500, lease("other", noon()))
	want := after
	want.Items, want.Events = append(after.Items, w.account().Items[1]), nil
	want.Due = want.DueAt()
	_, err = refund.Apply(t.Context(), w.store, seen, after)
	w.want(err, nil, want)
	_, err = refund.Apply(t.Context(), w.store, seen, after) // out of date
	w.want(err, order.ErrStale, want)
	seen.Items, seen.Seq = nil, 2 // as if Refresh had not seen R1 before it was begun
	_, err = refund.Apply(t.Context(), w.store, seen, after)
	w.want(err, order.ErrStale, want)
}
