package order

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Goods are quantities of articles, by SKU.
type Goods map[string]int64

// SKUs returns the articles in ascending order.
func (g Goods) SKUs() []string { return slices.Sorted(maps.Keys(g)) }

// validate returns ErrCorrupt for goods that no order can hold. Their effects would be
// refused for ever, or move pieces the wrong way.
func (g Goods) validate() error {
	if g != nil && len(g) == 0 {
		return fmt.Errorf("%w: stock without an article", ErrCorrupt)
	}
	for _, sku := range g.SKUs() {
		if g[sku] < 1 {
			return fmt.Errorf("%w: stock of %q: %d pieces", ErrCorrupt, sku, g[sku])
		}
	}
	return nil
}

// Stock is how many pieces of one article there are. Only goods that come in or are
// written off change the sum: an order moves pieces from Available to Reserved, and from
// there to Sold or back.
type Stock struct {
	SKU       string
	Available int64 // for new orders
	Reserved  int64 // held by orders that may still be paid
	Sold      int64 // of paid orders
}

// ErrTooFewAvailable reports that fewer pieces of an article are available than a write
// would take away.
var ErrTooFewAvailable = errors.New("too few pieces available")

// MaxArticles is how many articles one order can hold: a DynamoDB transaction has at most
// 100 items, and two of them are the order and its event.
const MaxArticles = 98

// TooManyArticles is the Failure of an order with more than MaxArticles articles.
const TooManyArticles = "too_many_articles"

// Goods returns the quantities of the order's lines, added up for each SKU.
func (o Order) Goods() Goods {
	g := Goods{}
	for _, l := range o.lines {
		g[l.SKU] += l.Quantity // at most MaxLines * MaxQuantity
	}
	return g
}

// StockEffect is what a transition does to the goods that an order holds.
type StockEffect string

// The effects of a transition.
const (
	StockKept     StockEffect = "kept"     // the order may still be paid
	StockSold     StockEffect = "sold"     // from Reserved to Sold
	StockReleased StockEffect = "released" // from Reserved to Available
	StockReserved StockEffect = "reserved" // from Available to Reserved
)

// StockEffectOf returns the effect of a transition to this status with this intent. An
// order without an intent cannot be paid while it is refused: it reserves goods again
// when it is reopened.
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

// StockChange returns the goods that a write of after in place of before moves, and how.
func StockChange(before, after Record) (Goods, StockEffect) {
	switch {
	case len(before.Stock) == 0 && len(after.Stock) > 0:
		return after.Stock, StockReserved
	case len(before.Stock) > 0 && len(after.Stock) == 0:
		return before.Stock, StockEffectOf(after.Status, after.Intent)
	}
	return nil, StockKept
}

// After returns the stock after an effect on n pieces.
func (s Stock) After(e StockEffect, n int64) Stock {
	switch e {
	case StockSold:
		s.Reserved, s.Sold = s.Reserved-n, s.Sold+n
	case StockReleased:
		s.Reserved, s.Available = s.Reserved-n, s.Available+n
	case StockReserved:
		s.Available, s.Reserved = s.Available-n, s.Reserved+n
	case StockKept:
	}
	return s
}
