package order_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// docs.stripe.com/currencies, zero-decimal and three-decimal currencies.
const (
	zeroDecimals  = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
	threeDecimals = "bhd jod kwd omr tnd"
)

func TestMoneyIsWrittenWithTheDecimalsOfItsCurrency(t *testing.T) {
	t.Parallel()
	want := map[string]string{"usd": "12.00", "eur": "12.00", "isk": "12.00", "ugx": "12.00", "sek": "12.00"}
	for c := range strings.FieldsSeq(zeroDecimals) {
		want[c] = "1200"
	}
	for c := range strings.FieldsSeq(threeDecimals) {
		want[c] = "1.200"
	}
	for c, amount := range want {
		if got := (order.Money{Amount: 1200, Currency: order.Currency(c)}).String(); got != amount+" "+strings.ToUpper(
			c,
		) {
			t.Errorf("%s: got %q, want %q", c, got, amount)
		}
	}
}

func TestNothingButOneCodeIsACurrency(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", " ", "us", "usd ", " usd", "usd eur", "aed afn all", "USD", "Usd", "xxx", "usd\n"} {
		if order.ValidCurrency(s) {
			t.Errorf("%q was taken for a currency", s)
		}
	}
}

func TestAFingerprintIsComparedLetterByLetter(t *testing.T) {
	t.Parallel()
	o := ordertest.Order("ORD-1")
	mine := string(o.Fingerprint())
	for _, other := range []string{strings.ToUpper(mine[3:]), mine[3:10], mine[3:] + "0", ""} {
		if same, known := order.Fingerprint(mine[:3] + other).Matches(o); same || !known {
			t.Errorf("%q: got same %t, known %t, want another one of a known version", other, same, known)
		}
	}
}

func TestTheTotalCountsEveryPiece(t *testing.T) {
	t.Parallel()
	for _, quantity := range []int64{1, 2, 999, 1000, 1001, 65_537, order.MaxQuantity} {
		d := ordertest.Draft("ORD-1")
		d.Lines = []order.Line{
			{SKU: "MUG", Quantity: quantity, UnitAmount: 50},
			{SKU: "CAP", Quantity: 2, UnitAmount: 7},
		}
		o, err := order.New(d)
		if want := (order.Money{Amount: 50*quantity + 14, Currency: "usd"}); err != nil || o.Total() != want {
			t.Errorf("%d pieces: got %v, %v, want %v", quantity, o.Total(), err, want)
		}
	}
}

// Support asks for the provider's name of a call, whichever call it was.
func TestAFailureKeepsTheNameOfItsCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		call    ordertest.Call
		trouble order.ErrorKind
		before  func(w *world)
	}{
		{call: ordertest.Prepare, trouble: order.Refused},
		{call: ordertest.Confirm, trouble: order.Unavailable},
		{call: ordertest.Read, trouble: order.Refused, before: func(w *world) { w.dieAfter(ordertest.Bind) }},
		{call: ordertest.Read, trouble: order.Unknown, before: func(w *world) { w.dieAfter(ordertest.Bind) }},
	} {
		w := newWorld(t, ordertest.Pays)
		if tt.before != nil {
			tt.before(w)
		}
		failure := &order.PaymentError{Kind: tt.trouble, RequestID: "req_of_support", Err: errors.New("no")}
		if got := w.deliver(fails(tt.call, failure)); got.RequestID != failure.RequestID {
			t.Errorf("%s at %s: got request %q, want %q", tt.trouble, tt.call, got.RequestID, failure.RequestID)
		}
	}
}

// Every write has the time at which it is made, and not that of an earlier one.
func TestEachWriteHasItsOwnTime(t *testing.T) {
	t.Parallel()
	for name, around := range map[string]ordertest.Interceptor{
		"a charge":          asIs,
		"a refused prepare": fails(ordertest.Prepare, refused()),
		"a lost confirm":    fails(ordertest.Confirm, ordertest.ErrConnection),
	} {
		w := newWorld(t, ordertest.Pays)
		w.deliver(func(c ordertest.Call, do func() error) error {
			asked := w.now
			err := around(c, do)
			if r := w.record(); c != ordertest.Prepare && c != ordertest.Confirm && !r.UpdatedAt.Equal(asked) {
				t.Errorf("%s: %s was asked for at %v, and the record says %v", name, c, asked, r.UpdatedAt)
			}
			w.now = w.now.Add(time.Second)
			return err
		})
		if r := w.record(); r.Status != order.Open && !r.Events[0].At.Equal(r.UpdatedAt) {
			t.Errorf("%s: got an event of %v in a record of %v", name, r.Events[0].At, r.UpdatedAt)
		}
	}
}
