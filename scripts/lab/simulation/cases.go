package simulation

import (
	"fmt"
	"slices"
	"time"
)

// The payment methods of the worlds.
const (
	visa       = "pm_card_visa"
	mastercard = "pm_card_mastercard"
	declined   = "pm_card_chargeDeclined"
	wantsMe    = "pm_card_authenticationRequired"
	takesDays  = "pm_usBankAccount_processing"
	noSuchCard = "pm_card_chargeDeclinedMisspelt"
)

// Gaps are the times after which a message comes back.
func Gaps() []time.Duration {
	return []time.Duration{0, 30 * time.Second, 10 * time.Minute, time.Hour, day, 5 * day, 14 * day}
}

// cases are about one or two orders. What the orders are about depends on the search's
// turn, so that the searches together have every currency and every conflict without
// being any more.
func cases(gap time.Duration, turn int) []Case {
	names := []string{
		"one order", "sent twice", "same id, another content", "a declined card", "a bank that wants the customer",
		"a bank that takes days", "two orders",
	}
	all := make([]Case, len(names))
	for i := range all {
		place := turn*(len(names)+1) + i // the next turn has the next currency
		one := func(method string) Message { return contentOf(place, "ORD-1", method) }
		messages := [][]Message{
			{one(visa)},
			{one(visa), one(visa)},
			{one(visa), one(visa).but(fields()[turn%len(fields())])},
			{one(declined)},
			{one(wantsMe)},
			{one(takesDays)},
			{one(visa), contentOf(place+1, "ORD-2", visa)},
		}
		all[i] = Case{
			Name: names[i] + ", back after " + gap.String(), Gap: gap, Messages: messages[i], Variety: place,
		}
	}
	return all
}

// conflicts are two orders with one id, which differ in one field, for each field.
func conflicts() (all []Search) {
	for i, f := range fields() {
		first := contentOf(i, "ORD-1", visa)
		c := Case{
			Name: "same id, another " + string(f), Gap: time.Hour, Messages: []Message{first, first.but(f)},
			Variety: i,
		}
		all = append(all, Search{Case: c})
	}
	return all
}

// Scenarios are small enough for every day: whatever happens once, and for one order
// whatever happens twice. They run the deployed Stripe adapter.
func Scenarios() (all []Search) {
	for turn, gap := range []time.Duration{0, 30 * time.Second, 25 * time.Hour, 5 * 24 * time.Hour} {
		for i, c := range cases(gap, turn) {
			most := 1
			if i == 0 {
				most = 2
			}
			c.Rare = most == 1
			all = append(all, Search{Case: c, Most: most})
		}
	}
	for _, s := range slices.Concat(conflicts(), oddities(1)) {
		s.Rare = true
		all = append(all, s)
	}
	for i := range all {
		all[i].Adapter = true
	}
	// What people do matters most just before something else goes wrong.
	pairs := Case{
		Name: "people, and whatever happens twice", Messages: []Message{contentOf(5, "ORD-1", visa)}, People: true,
		Gap: time.Hour,
	}
	return placed("scenario", append(all, Search{Case: pairs, Most: 2}))
}

// Deep are all schedules of one order with at most so many deviations, on up to two
// consumers, with every gap.
func Deep(most int) (all []Search) {
	for turn, gap := range Gaps() {
		for _, c := range cases(gap, turn) {
			all = append(all, Search{Case: c, Most: most})
		}
	}
	list := "pairs"
	if most > 2 {
		list = "triples"
	}
	return placed(list, slices.Concat(all, conflicts(), oddities(most)))
}

// oddities are what else may be odd about a world, one at a time.
func oddities(most int) (all []Search) {
	hour := func(name string, c Case) {
		c.Name, c.Gap, c.Variety = name+", back after an hour", time.Hour, len(all)
		all = append(all, Search{Case: c, Most: most})
	}
	one := func(method string) []Message { return []Message{contentOf(len(all), "ORD-1", method)} }
	for _, method := range []string{visa, declined, wantsMe, takesDays} {
		hour("people and "+method, Case{Messages: one(method), People: true})
	}
	hour("keys that live a minute", Case{Messages: one(visa), KeyLife: time.Minute})
	hour("keys that are never kept", Case{Messages: one(visa), KeyLife: -1})
	hour("an older release beside ours", Case{Messages: one(visa), Releases: true})
	hour("wrong clocks", Case{Messages: one(visa), Clocks: wrongClocks()})
	hour(
		"a mistake of an operator",
		Case{Messages: append(one(visa), contentOf(len(all)+1, "ORD-2", visa)), Mistake: true},
	)
	hour("another deployment that charges its own order", Case{Messages: one(visa), Neighbor: true})
	hour("another deployment that prepares its own order", Case{Messages: one(visa), Neighbor: true})
	hour("an action that is denied", Case{Messages: one(visa), Denials: true})
	all = append(all, groups(min(most, 1))...)
	return all
}

// groups are FIFO queues before the deployed handler: two orders of one customer and one
// of another, the first of which cannot be charged, or is no order.
func groups(most int) (all []Search) {
	first, second, third := contentOf(1, "ORD-1", visa), contentOf(2, "ORD-2", visa), contentOf(3, "ORD-3", visa)
	second.Customer, third.Customer = first.Customer, first.Customer+"0"
	poison := Message{ID: "POISON", Customer: first.Customer, Poison: `{"orderId":`}
	refused := first
	refused.Method = noSuchCard
	for _, head := range []Message{first, refused, poison} {
		c := Case{
			Name: fmt.Sprintf("a FIFO group behind %s %s", head.ID, head.Method), Gap: visibility, FIFO: true,
			Batch: 3,
		}
		c.Messages = []Message{head, second, third}
		all = append(all, Search{Case: c, Most: most})
	}
	return all
}

func wrongClocks() []time.Duration {
	const year = 365 * day
	return []time.Duration{honestSkew, -honestSkew, 10 * year, -10 * year}
}

// placed gives each search its name within a list.
func placed(list string, all []Search) []Search {
	for i := range all {
		all[i].list, all[i].place = list, i
	}
	return all
}
