package system_test

import "orderonce/domain/order"

// track adds a correct stock of ten shirts to the books of orders of two shirts each: the
// paid ones are sold, and the others are reserved.
func (a *accounts) track() {
	sold, reserved := int64(0), int64(0)
	for id, r := range a.Records {
		if len(a.Charges[id]) > 0 {
			sold += 2
			continue
		}
		reserved += 2
		r.Stock = order.Goods{shirt: 2}
		a.Records[id] = r
	}
	a.Delivered = map[string]int64{shirt: 10}
	a.Stock = map[string]order.Stock{
		shirt: {SKU: shirt, Available: 10 - sold - reserved, Reserved: reserved, Sold: sold},
	}
}

// shirts changes the stock of the shirts.
func (a *accounts) shirts(change func(*order.Stock)) {
	a.track()
	s := a.Stock[shirt]
	change(&s)
	a.Stock[shirt] = s
}

// tracked changes a row of books that track stock.
func (a *accounts) tracked(id order.ID, change func(*order.Record)) {
	a.track()
	a.row(id, change)
}

func unbalancedStock() []spoiled {
	return []spoiled{
		{"correct stock", "", (*accounts).track},
		{"a piece was lost", "I22", func(a *accounts) { a.shirts(func(s *order.Stock) { s.Available-- }) }},
		{"a piece was sold twice", "I22", func(a *accounts) {
			a.shirts(func(s *order.Stock) { s.Sold, s.Available = s.Sold+1, s.Available-1 })
		}},
		{"more pieces were reserved than there are", "I22", func(a *accounts) {
			a.track()
			a.Delivered[shirt] = 7
			s := a.Stock[shirt]
			s.Available -= 3
			a.Stock[shirt] = s
		}},
		{"an order without goods was charged", "I22", func(a *accounts) {
			a.shirts(func(s *order.Stock) { s.Sold, s.Available = s.Sold-2, s.Available+2 })
		}},
		{"an order holds other goods than its lines", "I22", func(a *accounts) {
			a.tracked("declined", func(r *order.Record) { r.Stock = order.Goods{shirt: 3} })
		}},
		{"a paid order still holds its goods", "I22", func(a *accounts) {
			a.tracked("paid", func(r *order.Record) { r.Stock = order.Goods{shirt: 2} })
			s := a.Stock[shirt]
			s.Reserved, s.Available = s.Reserved+2, s.Available-2
			a.Stock[shirt] = s
		}},
		{"an order that waits holds nothing", "I22", func(a *accounts) {
			a.tracked("waiting", func(r *order.Record) { r.Stock = nil })
		}},
	}
}
