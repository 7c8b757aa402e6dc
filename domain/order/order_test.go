package order_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestNewReturnsTheOrderOfTheDraft(t *testing.T) {
	d := ordertest.Draft("ORD-1")
	o := newOrder(t, d)
	if o.ID() != "ORD-1" || o.CustomerID() != d.CustomerID || o.Payment() != d.Payment {
		t.Errorf("got %+v, want the values of %+v", o, d)
	}
	if got, want := o.Total(), (order.Money{Amount: 3998, Currency: "usd"}); got != want {
		t.Errorf("got total %v, want %v", got, want)
	}
}

// newOrder returns the order of a valid draft.
func newOrder(t *testing.T, d order.Draft) order.Order {
	t.Helper()
	o, err := order.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// with returns a valid draft with one change.
func with(change func(*order.Draft)) order.Draft {
	d := ordertest.Draft("ORD-1")
	change(&d)
	return d
}

// oneLine returns a draft of one line.
func oneLine(currency string, quantity, unitAmount int64) order.Draft {
	return with(func(d *order.Draft) {
		d.Currency, d.Lines = currency, []order.Line{{SKU: "MUG", Quantity: quantity, UnitAmount: unitAmount}}
	})
}

func TestNewEnforcesEveryLimit(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		field          string
		set            func(d *order.Draft, s string)
		valid, invalid []string
	}{
		{
			"orderId", func(d *order.Draft, s string) { d.ID = s },
			[]string{"A", "9._-z", "AZaz09", "Z", "a", "z", "0", long(64)},
			[]string{"", long(65), "-A", ".A", "A/B", "A\n", "Ä", "A@", "A[", "A`", "A{", "A:", cardNumber},
		},
		{
			"customerId", func(d *order.Draft, s string) { d.CustomerID = s },
			[]string{"!~", long(128)},
			[]string{"", long(129), "a b", "a\x7f"},
		},
		{
			"currency", func(d *order.Draft, s string) { d.Currency = s }, []string{"xcg"}, []string{"", "USD", "bgn", "xxx"},
		},
		{
			"payment.customer", func(d *order.Draft, s string) { d.Payment.Customer = s },
			[]string{"cus_A1", "az_AZaz09", "cus_" + long(251)},
			[]string{"", "CUS_1", "`_1", "{_1", "az_@", "az_[", "az_`", "az_{", "cus_" + long(252)},
		},
		{
			"payment.method", func(d *order.Draft, s string) { d.Payment.Method = s },
			[]string{"pm_card_visa"},
			[]string{"pm", "pm_", "_pm", "pm_a b", "pm_a-b", cardNumber},
		},
		{
			"lines[1].sku", func(d *order.Draft, s string) { d.Lines[1].SKU = s },
			[]string{"s", long(64)},
			[]string{"", long(65), "T SHIRT"},
		},
	} {
		for want, all := range map[string][]string{"": c.valid, c.field: c.invalid} {
			for _, s := range all {
				wantProblems(t, with(func(d *order.Draft) { c.set(d, s) }), want)
			}
		}
	}
}

// wantProblems checks the fields of the problems, which are separated by commas.
func wantProblems(t *testing.T, d order.Draft, want string) {
	t.Helper()
	var fields []string
	for _, p := range problems(t, d) {
		fields = append(fields, p.Field)
	}
	if got := strings.Join(fields, ","); got != want {
		t.Errorf("%+v: got problems with %q, want %q", d, got, want)
	}
}

func TestNewEnforcesTheLimitsOfMoney(t *testing.T) {
	for _, c := range []struct {
		currency         string
		quantity, amount int64
		want             string
	}{
		{"usd", 0, 100, "lines[0].quantity"},
		{"usd", -1, 100, "lines[0].quantity"},
		{"usd", 1_000_000, 1, ""},
		{"usd", 1_000_001, 1, "lines[0].quantity"},
		{"usd", 1, -1, "lines[0].unitAmount"},
		{"usd", 1, 0, "total"},
		{"usd", 1, 1, ""},
		{"usd", 1, 99_999_999, ""},
		{"usd", 1, 100_000_000, "lines[0].unitAmount"},
		{"usd", 1, 1<<63 - 1, "lines[0].unitAmount"},
		{"usd", 1_000_000, 99_999_999, "total"},
		{"usd", 2, 50_000_000, "total"},
		{"idr", 1, 999_999_999_999, ""},
		{"idr", 1, 1_000_000_000_000, "lines[0].unitAmount"},
		{"idr", 2, 500_000_000_000, "total"},
		{"xxx", 1, 100_000_000, "currency"},
		{"xxx", 1, 1_000_000_000_000, "currency,lines[0].unitAmount"},
		{"isk", 1, 150, "total"},
		{"isk", 2, 150, ""},
		{"kwd", 1, 5121, "total"},
		{"kwd", 1, 5120, ""},
	} {
		wantProblems(t, oneLine(c.currency, c.quantity, c.amount), c.want)
	}
	for n, want := range map[int]string{0: "lines", 1: "", 100: "", 101: "lines"} {
		wantProblems(t, with(func(d *order.Draft) { d.Lines = slices.Repeat(d.Lines[:1], n) }), want)
	}
	two := func(first, second int64) order.Draft {
		return with(func(d *order.Draft) { d.Lines[0].UnitAmount, d.Lines[1].UnitAmount = first, second })
	}
	wantProblems(t, two(0, 1), "")
	wantProblems(t, two(99_999_999, 1), "total")
	wantProblems(t, two(100_000_000, 200_000_000), "lines[0].unitAmount,lines[1].unitAmount")
}

// problems returns the problems of d. The error of New must be nil or an InvalidError
// with at least one.
func problems(t *testing.T, d order.Draft) []order.Problem {
	t.Helper()
	o, err := order.New(d)
	if err == nil {
		return nil
	}
	var invalid *order.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 || o.ID() != "" {
		t.Fatalf("%+v: got order %+v and error %v, want an InvalidError alone", d, o, err)
	}
	return invalid.Problems
}

// The sentences of the problems show no personal and no payment data: see FuzzNew.
func TestNewListsEveryProblem(t *testing.T) {
	lines := []order.Line{{SKU: "A", Quantity: 0, UnitAmount: -1}}
	draft := order.Draft{ID: "a b", CustomerID: "Jane Doe", Currency: "USD", Lines: lines}
	draft.Payment.Method = cardNumber
	for want, d := range map[string]order.Draft{
		`orderId [withheld: length 3, with ' ']: want ` + order.NewIDRule + "; customerId: want " + order.CustomerIDRule +
			`; currency "USD": want ` + order.CurrencyRule + "; payment.customer: want " + order.ReferenceRule +
			"; payment.method: want " + order.ReferenceRule + "; lines[0].quantity 0: want 1 to 1000000" +
			"; lines[0].unitAmount -1: want 0 to 999999999999": draft,
		"total: want at most 99999999 in usd: the lines add up to more than one charge can hold": oneLine("usd", 2, 50_000_000),
		"lines[0].unitAmount [withheld: 9 digits]: want 0 to 99999999 in usd":                    oneLine("usd", 1, 100_000_000),
		"total 0: want 1 to 99999999 in usd":                                                     oneLine("usd", 1, 0),
		"total 3998: want 1 to 99999999 in isk, a multiple of 100":                               oneLine("isk", 2, 1999),
	} {
		_, err := order.New(d)
		if got := fmt.Sprint(err); got != "invalid order: "+want {
			t.Errorf("got %q, want %q", got, "invalid order: "+want)
		}
	}
}

const cardNumber = "4242424242424242" // Stripe's test card

func FuzzNew(f *testing.F) {
	shown := regexp.MustCompile(
		`^("[A-Za-z0-9._-]{0,32}"|-?\d{1,8}|\[withheld: (\d+ digits|length \d+(, with (\d+ digits|'[ -~]+'))?)\])$`,
	)
	f.Add("ORD-1", "CUST", "usd", "cus_1", "pm_1", "MUG", int64(1), int64(1999), uint8(2))
	f.Add("", "a b", "USD", "", "4242", "\n", int64(-1), int64(1<<62), uint8(101))
	f.Add("jane.doe@example.com", "c", "Jane Doe, 1 Main Street", "Jane", "Doe", "J\u00fcrgen",
		int64(19800230), int64(15551234567), uint8(1))
	f.Add("A", "c", "kwd", "cus_1", "pm_1", "s", int64(1_000_000), int64(99_999_999), uint8(100))
	f.Fuzz(
		func(t *testing.T, id, customer, currency, payer, method, sku string, quantity, unit int64, lines uint8) {
			d := order.Draft{
				ID: id, CustomerID: customer, Currency: currency, Payment: order.Payment{Customer: payer, Method: method},
				Lines: slices.Repeat([]order.Line{{SKU: sku, Quantity: quantity, UnitAmount: unit}}, int(lines)),
			}
			for _, p := range problems(t, d) {
				if p.Value != "" && !shown.MatchString(p.Value) {
					t.Fatalf("%s: got value %s, want it quoted or withheld", p.Field, p.Value)
				}
				if hidden := p.Field == "customerId" || strings.HasPrefix(p.Field, "payment."); hidden && p.Value != "" {
					t.Fatalf("%s: got value %q, want none", p.Field, p.Value)
				}
			}
			o, err := order.New(d)
			if err != nil {
				return
			}
			if err := o.Total().Validate(); err != nil || o.Total().Amount != int64(lines)*quantity*unit {
				t.Fatalf("got total %v (%v), want one that can be charged", o.Total(), err)
			}
			if len(order.PrepareAgainKey(order.Scope(strings.Repeat("s", 32)), o.ID(), 1<<62).String()) > 255 {
				t.Fatalf("order %q: got a key longer than 255 characters", o.ID())
			}
			if again, err := order.New(d); err != nil || !reflect.DeepEqual(again, o) {
				t.Fatalf("second call: got %+v, %v, want %+v", again, err, o)
			}
		},
	)
}
