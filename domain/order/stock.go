package order

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Quantities is how many units of each SKU.
type Quantities map[string]int64

// SKUs returns the SKUs in ascending order.
func (q Quantities) SKUs() []string { return slices.Sorted(maps.Keys(q)) }

// validate returns ErrCorrupt for quantities that no order can hold. Their effects would
// be refused for ever, or move units the wrong way.
func (q Quantities) validate() error {
	if q != nil && len(q) == 0 {
		return fmt.Errorf("%w: stock without a SKU", ErrCorrupt)
	}
	for _, sku := range q.SKUs() {
		if q[sku] < 1 {
			return fmt.Errorf("%w: stock of %q: %d units", ErrCorrupt, sku, q[sku])
		}
	}
	return nil
}

// Stock is how many units of one SKU there are. Only stock that comes in or is written
// off changes the sum: an order moves units from Available to Reserved, and from
// there to Sold or back.
type Stock struct {
	SKU       string
	Available int64 // for new orders
	Reserved  int64 // held by orders that may still be paid
	Sold      int64 // of paid orders
}

// ErrTooFewAvailable reports that a write would take more of a SKU than is available.
var ErrTooFewAvailable = errors.New("too few units available")

// MaxSKUs is how many SKUs one order can hold: a DynamoDB transaction has at most
// 100 items, and two of them are the order and its event.
const MaxSKUs = 98

// TooManySKUs is the Failure of an order with more than MaxSKUs SKUs.
const TooManySKUs = "too_many_articles"

// Quantities returns those of the order's lines, added up for each SKU.
func (o Order) Quantities() Quantities {
	q := Quantities{}
	for _, l := range o.lines {
		q[l.SKU] += l.Quantity // at most MaxLines * MaxQuantity
	}
	return q
}

// StockEffect is what a transition does to the stock that an order holds.
type StockEffect string

// The effects of a transition.
const (
	StockKept     StockEffect = "kept"     // the order may still be paid
	StockSold     StockEffect = "sold"     // from Reserved to Sold
	StockReleased StockEffect = "released" // from Reserved to Available
	StockReserved StockEffect = "reserved" // from Available to Reserved
)

// StockEffectOf returns the effect of a transition to this status with this intent. A
// refused order without an intent reserves stock again when it is reopened.
func StockEffectOf(to Status, bound IntentID) StockEffect {
	switch to {
	case Paid:
		return StockSold
	case Canceled, OutOfStock:
		return StockReleased
	case Refused:
		if bound == "" {
			return StockReleased
		}
	case Open, Declined, ActionRequired, Pending, PartiallyRefunded, Refunded:
	}
	return StockKept
}

// StockChange returns the stock that a write of after in place of before moves, and how.
func StockChange(before, after *Record) (Quantities, StockEffect) {
	switch {
	case len(before.Stock) == 0 && len(after.Stock) > 0:
		return after.Stock, StockReserved
	case len(before.Stock) > 0 && before.Fingerprint != after.Fingerprint: // another order's
		return before.Stock, StockReleased
	case len(before.Stock) > 0 && len(after.Stock) == 0:
		return before.Stock, StockEffectOf(after.Status, after.Intent)
	}
	return nil, StockKept
}
