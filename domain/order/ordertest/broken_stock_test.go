package ordertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

const addStock ordertest.Call = "addStock"

// AddStock is a call of a store with a bug, see store.
func (s store) AddStock(ctx context.Context, sku string, n int64) (order.Stock, error) {
	if s.on == addStock {
		return order.Stock{}, s.do(&call{ctx: ctx, m: s.Memory, sku: sku, pieces: n})
	}
	return s.Memory.AddStock(ctx, sku, n)
}

// stockAfter changes the stock of the articles that the record held before a successful
// call, or holds after it.
func stockAfter(on ordertest.Call, change func(s *order.Stock, n int64)) storeBug {
	return storeBug{on, func(c *call) error {
		goods := c.row.Stock
		err := c.pass()
		if err != nil {
			return err
		}
		if goods == nil {
			goods = c.m.Row(c.id).Stock
		}
		for sku, n := range goods {
			c.m.EditStock(sku, func(s *order.Stock) { change(s, n) })
		}
		return nil
	}}
}

// without changes the goods of the record before a call, as if the store did not compare
// or keep them.
func without(on ordertest.Call, goods func(c *call) order.Goods) storeBug {
	return beforeCall(on, func(c *call) { c.row.Stock = goods(c) })
}

func release1(s *order.Stock, n int64) { *s = s.After(order.StockReleased, n) }

func stockBeginBugs() storeBugs {
	unreserve := stockAfter(begin, release1)
	return storeBugs{
		"begin of a new order reserves its goods": {
			"it reserves nothing":       unreserve,
			"the claim holds none":      afterCall(begin, func(c *call) { c.claim.Stock = nil }),
			"the record holds none":     afterCall(begin, func(c *call) { c.row.Stock = nil }),
			"pieces come from nowhere":  stockAfter(begin, func(s *order.Stock, n int64) { s.Available += n }),
			"the order has no due time": afterCall(begin, loseDueTime),
		},
		"lines of one article are added up": {
			"one line counts": stockAfter(begin, func(s *order.Stock, _ int64) { *s = s.After(order.StockReleased, 4) }),
		},
		"begin reserves all goods or none and names the article that is short": {
			"it names none":          afterCall(begin, func(c *call) { c.claim.Short = "" }),
			"it is unlisted":         afterCall(begin, func(c *call) { c.claim.Unlisted = true }),
			"it keeps what it found": reservesSome(),
			"an out of stock order is claimed again": {begin, func(c *call) error {
				if err := c.pass(); !errors.As(err, new(*order.SettledError)) {
					return err
				}
				return nil
			}},
		},
		"an unknown article is short and unlisted": {
			"it is unlimited": afterCall(begin, func(c *call) { c.claim.Short = "" }),
			"it is listed":    afterCall(begin, func(c *call) { c.claim.Unlisted = false }),
			"it is created": {begin, func(c *call) error {
				err := c.pass()
				for sku := range c.order.Goods() {
					c.m.EditStock(sku, func(*order.Stock) {})
				}
				return err
			}},
		},
		"an order of too many articles holds none": {
			"it names an article": afterCall(begin, func(c *call) {
				if c.claim.Short != "" {
					c.claim.Short = "A"
				}
			}),
			"98 are too many": without(finish, func(*call) order.Goods { return nil }),
		},
		"begin again by the same owner reserves once": {
			"it reserves again": stockAfter(begin, func(s *order.Stock, n int64) {
				if s.Reserved == n {
					s.Available, s.Reserved = s.Available-n, s.Reserved+n
				}
			}),
		},
		"a takeover keeps the goods": {
			"it reserves again": without(begin, func(*call) order.Goods { return nil }),
			"it releases them": {begin, func(c *call) error {
				if !c.exists() {
					return c.pass()
				}
				for sku, n := range c.row.Stock {
					c.m.EditStock(sku, func(s *order.Stock) { release1(s, n) })
				}
				return c.pass()
			}},
		},
	}
}

// reservesSome is a store that keeps what it reserved of an order that is short of an
// article.
func reservesSome() storeBug {
	return storeBug{begin, func(c *call) error {
		err := c.pass()
		for sku, n := range c.order.Goods() {
			if c.claim.Short != "" && c.claim.Short != sku {
				c.m.EditStock(sku, func(s *order.Stock) { s.Available, s.Reserved = s.Available-n, s.Reserved+n })
			}
		}
		return err
	}}
}

func stockEffectBugs() storeBugs {
	sellAgain := func(s *order.Stock, n int64) { *s = s.After(order.StockSold, n) }
	noEffect := func(on ordertest.Call) storeBug {
		return without(on, func(*call) order.Goods { return nil })
	}
	return storeBugs{
		"an order that holds none reserves with its next claim": {
			"only a new order reserves": {begin, func(c *call) error {
				known := c.exists()
				err := c.pass()
				if known && c.claim.Stock != nil {
					c.claim.Stock = nil
				}
				return err
			}},
		},
		"an order that was bound before it held goods reserves with its next claim": {
			"it is not short": afterCall(begin, func(c *call) { c.claim.Short = "" }),
			"it stays short":  afterCall(begin, func(c *call) { c.claim.Short = "A" }),
			"it reserves none": {begin, func(c *call) error {
				err := c.pass()
				if c.claim.Stock != nil {
					for sku, n := range c.claim.Stock {
						c.m.EditStock(sku, func(s *order.Stock) { release1(s, n) })
					}
					c.claim.Stock = nil
				}
				return err
			}},
		},
		"finish has the effect of its transition": {
			"it has none":           noEffect(finish),
			"a decline releases":    releasesAfter(finish, order.Declined),
			"every end sells":       stockAfter(finish, func(s *order.Stock, _ int64) { s.Sold, s.Available = s.Sold+s.Available, 0 }),
			"pieces are sold twice": stockAfter(finish, func(s *order.Stock, n int64) { s.Sold += n }),
		},
		"settle has the effect of its transition": {
			"it has none":        noEffect(settle),
			"a decline releases": releasesAfter(settle, order.Declined),
		},
		"a refused order that holds goods is rechecked a day later": {
			"it is not found": afterCall(finish, loseDueTime),
			"it stays due":    afterCall(settle, func(c *call) { c.row.DueAt = c.at }),
			"one that holds none is found": afterCall(finish, func(c *call) {
				if len(c.row.Stock) == 0 {
					c.row.DueAt = c.at.Add(time.Hour)
				}
			}),
		},
		"a refused order without an intent reserves again when it is reopened": {
			"it keeps its goods": {finish, func(c *call) error {
				goods := c.row.Stock
				err := c.pass()
				for sku, n := range goods {
					c.m.EditStock(sku, func(s *order.Stock) { s.Available, s.Reserved = s.Available-n, s.Reserved+n })
				}
				return err
			}},
			"it reserves nothing": afterCall(begin, func(c *call) {
				if c.row.Attempt > 1 {
					c.claim.Stock = nil
				}
			}),
		},
		"an effect that is repeated happens once": {
			"settle repeats it": {settle, func(c *call) error {
				if c.row.Status == order.Paid {
					for sku, n := range c.record.Stock {
						c.m.EditStock(sku, func(s *order.Stock) { sellAgain(s, n) })
					}
				}
				return c.pass()
			}},
			"finish repeats it": {finish, func(c *call) error {
				if c.row.Status == order.Paid {
					for sku, n := range c.claim.Stock {
						c.m.EditStock(sku, func(s *order.Stock) { sellAgain(s, n) })
					}
				}
				return c.pass()
			}},
		},
		"a refused write changes no stock": {
			"finish changes it": changesStockOn(finish, order.ErrClaimLost),
			"settle changes it": changesStockOn(settle, order.ErrStale),
			"begin changes it": {begin, func(c *call) error {
				err := c.pass()
				if errors.As(err, new(*order.SettledError)) {
					for sku := range c.order.Goods() {
						c.m.EditStock(sku, func(s *order.Stock) { s.Available-- })
					}
				}
				return err
			}},
		},
		"settle of a record that got its goods since returns ErrStale": {
			"the goods are not compared": beforeCall(settle, func(c *call) { c.record.Stock = c.row.Stock }),
		},
	}
}

// releasesAfter is a store that also releases the goods of a transition to this status.
func releasesAfter(on ordertest.Call, to order.Status) storeBug {
	return storeBug{on, func(c *call) error {
		err := c.pass()
		for sku, n := range c.m.Row(c.id).Stock {
			if c.outcome.Status == to || c.m.Row(c.id).Status == to {
				c.m.EditStock(sku, func(s *order.Stock) { release1(s, n) })
			}
		}
		return err
	}}
}

// changesStockOn is a store whose refused call has its effect on the stock.
func changesStockOn(on ordertest.Call, refusal error) storeBug {
	return storeBug{on, func(c *call) error {
		err := c.pass()
		if errors.Is(err, refusal) {
			for sku, n := range c.row.Stock {
				c.m.EditStock(sku, func(s *order.Stock) { release1(s, n) })
			}
		}
		return err
	}}
}

func stockRaceBugs() storeBugs {
	return storeBugs{
		"of fifty orders for the last ten pieces ten hold them": {
			"all hold some": afterCall(begin, func(c *call) { c.claim.Stock, c.claim.Short = c.order.Goods(), "" }),
		},
		"fifty concurrent settles have one effect": {
			"each has one": {settle, func(c *call) error {
				for sku := range c.row.Stock {
					c.m.EditStock(sku, func(s *order.Stock) { s.Sold++ })
				}
				return c.pass()
			}},
		},
		"stock is added and taken away": {
			"below zero": {addStock, func(c *call) error {
				c.m.EditStock(c.sku, func(s *order.Stock) { s.SKU, s.Available = c.sku, s.Available+c.pieces })
				return nil
			}},
			"it is not found": {addStock, func(c *call) error {
				if _, err := c.m.AddStock(c.ctx, c.sku, c.pieces); err != nil {
					return order.ErrNotFound
				}
				return nil
			}},
		},
	}
}

func TestEveryBrokenStockFailsItsPromise(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, bugs := range []storeBugs{stockBeginBugs(), stockEffectBugs(), stockRaceBugs()} {
		for promise, byName := range bugs {
			covered[promise] = true
			for name, bug := range byName {
				t.Run(promise+" - "+name, func(t *testing.T) {
					t.Parallel()
					testBug[ordertest.StockStore](t, ordertest.StockPromises(), promise,
						store{ordertest.NewMemoryWithStock(), bug}, ordertest.NewMemoryWithStock())
				})
			}
		}
	}
	if missing := uncovered(ordertest.StockPromises(), covered); len(missing) > 0 {
		t.Errorf("no broken double for the promises %q", missing)
	}
}
