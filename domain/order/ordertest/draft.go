package ordertest

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"orderonce/domain/order"
)

// Draft returns a valid draft of 39.98 USD in two lines.
func Draft(id order.ID) order.Draft {
	return order.Draft{
		ID:         string(id),
		CustomerID: "CUST987",
		Currency:   "usd",
		Lines: []order.Line{
			{SKU: "TSHIRT-M", Quantity: 1, UnitAmount: 1999},
			{SKU: "MUG", Quantity: 1, UnitAmount: 1999},
		},
		Payment: order.Payment{Customer: "cus_pretend", Method: "pm_card_visa"},
	}
}

// Order returns the order of Draft.
func Order(id order.ID) order.Order { return must(order.New(Draft(id))) }

// DraftWith returns the draft with a payment method.
func DraftWith(id order.ID, method string) order.Draft {
	d := Draft(id)
	d.Payment.Method = method
	return d
}

// OrderWith returns the order of DraftWith.
func OrderWith(id order.ID, method string) order.Order { return must(order.New(DraftWith(id, method))) }

func differentContent(o order.Order) order.Order {
	d := Draft(o.ID())
	d.Lines[0].Quantity++
	return must(order.New(d))
}

func must(o order.Order, err error) order.Order {
	if err != nil {
		panic(err) // a bug in this package
	}
	return o
}

// idOf returns an order id that is unique to the test, because all tests of a run may
// share one table.
func idOf(testName string) order.ID {
	h := sha256.Sum256([]byte(testName))
	return order.ID("T" + hex.EncodeToString(h[:12]))
}

// at returns the start time of the tests plus d. It has milliseconds, because stores keep
// them.
func at(d time.Duration) time.Time { return time.UnixMilli(1_767_225_600_123).UTC().Add(d) }

// lease returns a lease of one minute for owner.
func lease(owner string, from time.Time) order.Lease {
	return order.Lease{Owner: owner, From: from, Until: from.Add(time.Minute)}
}
