package order_test

import (
	"strings"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Every record contains this value. If it changed, redelivered orders would be parked as
// conflicts. Add a version instead.
func TestFingerprintV1NeverChanges(t *testing.T) {
	const want = "v1:9951b066c51941c9e23486dfe07cac343a46d9a8c6f699f6c4f0f3ed3fed20eb"
	if got := ordertest.Order("ORD12345").Fingerprint(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFingerprintDiffersWithEveryField(t *testing.T) {
	seen := map[order.Fingerprint]string{}
	for name, change := range map[string]func(*order.Draft){
		"nothing":          func(*order.Draft) {},
		"orderId":          func(d *order.Draft) { d.ID = "ORD-2" },
		"customerId":       func(d *order.Draft) { d.CustomerID = "CUST988" },
		"currency":         func(d *order.Draft) { d.Currency = "eur" },
		"payment.customer": func(d *order.Draft) { d.Payment.Customer = "cus_other" },
		"payment.method":   func(d *order.Draft) { d.Payment.Method = "pm_other" },
		"sku":              func(d *order.Draft) { d.Lines[0].SKU = "TSHIRT-L" },
		"quantity":         func(d *order.Draft) { d.Lines[0].Quantity = 2 },
		"unitAmount":       func(d *order.Draft) { d.Lines[0].UnitAmount = 1998 },
		"lines swapped":    func(d *order.Draft) { d.Lines[0], d.Lines[1] = d.Lines[1], d.Lines[0] },
		"one line less":    func(d *order.Draft) { d.Lines = d.Lines[:1] },
		"one line twice":   func(d *order.Draft) { d.Lines = append(d.Lines, d.Lines[1]) },
		"free line":        func(d *order.Draft) { d.Lines = append(d.Lines, order.Line{SKU: "BAG", Quantity: 1}) },
		"same total": func(d *order.Draft) {
			d.Lines[0].Quantity, d.Lines[0].UnitAmount = 1999, 1
		},
		"a letter moved to the next field": func(d *order.Draft) { d.ID, d.CustomerID = "ORD-", "1CUST987" },
		"payment swapped": func(d *order.Draft) {
			d.Payment = order.Payment{Customer: d.Payment.Method, Method: d.Payment.Customer}
		},
		"letters moved within the payment": func(d *order.Draft) {
			d.Payment = order.Payment{Customer: "cus_pretendpm", Method: "x_card_visa"}
		},
	} {
		f := newOrder(t, with(change)).Fingerprint()
		if other, taken := seen[f]; taken {
			t.Errorf("%q: got the fingerprint of %q, want another one", name, other)
		}
		seen[f] = name
	}
}

func TestFingerprintMatchesInItsOwnVersion(t *testing.T) {
	o := ordertest.Order("ORD-1")
	version, hash := o.Fingerprint()[:3], o.Fingerprint()[3:]
	for _, c := range []struct {
		f           order.Fingerprint
		same, known bool
	}{
		{o.Fingerprint(), true, true},
		{ordertest.Order("ORD-2").Fingerprint(), false, true},
		{version, false, true},
		{version + hash[:7], false, true},
		{version + hash + "0", false, true},
		{version + order.Fingerprint(strings.ToUpper(string(hash))), false, true},
		{"v2:" + hash, false, false},
		{hash, false, false},
		{"", false, false},
	} {
		if same, known := c.f.Matches(o); same != c.same || known != c.known {
			t.Errorf("%q: got same %t, known %t, want %t, %t", c.f, same, known, c.same, c.known)
		}
	}
}

func TestFingerprintConflictsWithinItsOwnVersion(t *testing.T) {
	for _, tt := range []struct {
		f, g order.Fingerprint
		want bool
	}{{"v1:a", "v1:b", true}, {"v1:a", "v1:a", false}, {"v1:a", "v2:b", false}} {
		if got := tt.f.Conflicts(tt.g); got != tt.want {
			t.Errorf("%s and %s: got %t, want %t", tt.f, tt.g, got, tt.want)
		}
	}
}
