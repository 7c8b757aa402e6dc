package ordertest

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"orderonce/domain/order"
)

// Draft is a valid order of 39.98 USD in two lines.
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

// Order is Draft, believed.
func Order(id order.ID) order.Order { return must(order.New(Draft(id))) }

// otherContent is an order that claims to be o, with twice the articles.
func otherContent(o order.Order) order.Order {
	d := Draft(o.ID())
	d.Lines[0].Quantity++
	return must(order.New(d))
}

func must(o order.Order, err error) order.Order {
	if err != nil {
		panic(err) // a mistake in this package
	}
	return o
}

// idOf makes an order id that no other test of a run uses: a store that is tested may be
// one shared table.
func idOf(testName string) order.ID {
	h := sha256.Sum256([]byte(testName))
	return order.ID("T" + hex.EncodeToString(h[:12]))
}

// at is a time of the tests, d after they begin. Stores keep milliseconds, so it has
// some.
func at(d time.Duration) time.Time { return time.UnixMilli(1_767_225_600_123).UTC().Add(d) }

// lease is a minute for owner.
func lease(owner string, from time.Time) order.Lease {
	return order.Lease{Owner: owner, From: from, Until: from.Add(time.Minute)}
}
