package prove

import (
	"time"
)

// The payment methods of the worlds.
const (
	visa       = "pm_card_visa"
	declined   = "pm_card_chargeDeclined"
	wantsMe    = "pm_card_authenticationRequired"
	takesDays  = "pm_usBankAccount_processing"
	noSuchCard = "pm_card_chargeDeclinedMisspelt"
)

// Gaps are the times after which a message comes back.
func Gaps() []time.Duration {
	return []time.Duration{0, 30 * time.Second, 10 * time.Minute, time.Hour, day, 5 * day, 14 * day}
}

// sold is the order that most cases are about.
func sold(method string) Message { return Message{ID: "ORD-1", Quantity: 2, Method: method} }

func cases(gap time.Duration) []Case {
	other, second := sold(visa), sold(visa)
	other.Quantity, second.ID = 3, "ORD-2"
	all := []Case{
		{Name: "one order", Messages: []Message{sold(visa)}},
		{Name: "sent twice", Messages: []Message{sold(visa), sold(visa)}},
		{Name: "same id, other content", Messages: []Message{sold(visa), other}},
		{Name: "a declined card", Messages: []Message{sold(declined)}},
		{Name: "a bank that wants the customer", Messages: []Message{sold(wantsMe)}},
		{Name: "a bank that takes days", Messages: []Message{sold(takesDays)}},
		{Name: "two orders", Messages: []Message{sold(visa), second}},
	}
	for i := range all {
		all[i].Gap = gap
		all[i].Name += ", back after " + gap.String()
	}
	return all
}

// Scenarios are small enough for every day: whatever happens once, and for one order whatever happens twice. They run the
// deployed Stripe adapter.
func Scenarios() (all []Search) {
	for _, gap := range []time.Duration{0, 30 * time.Second, 25 * time.Hour, 5 * 24 * time.Hour} {
		for i, c := range cases(gap) {
			c.Adapter = true
			most := 1
			if i == 0 {
				most = 2
			}
			c.Rare = most == 1
			all = append(all, Search{Case: c, Most: most})
		}
	}
	for _, s := range oddities(1) {
		s.Adapter, s.Rare = true, true
		all = append(all, s)
	}
	return placed(all)
}

// Deep are all schedules of one order with at most so many deviations, on up to two consumers, with every gap.
func Deep(most int) (all []Search) {
	for _, gap := range Gaps() {
		for _, c := range cases(gap) {
			all = append(all, Search{Case: c, Most: most})
		}
	}
	return placed(append(all, oddities(most)...))
}

// oddities are what else may be odd about a world, one at a time.
func oddities(most int) (all []Search) {
	hour := func(name string, c Case) {
		c.Name, c.Gap = name+", back after an hour", time.Hour
		all = append(all, Search{Case: c, Most: most})
	}
	for _, method := range []string{visa, declined, wantsMe, takesDays} {
		hour("people and "+method, Case{Messages: []Message{sold(method)}, People: true})
	}
	one, second := []Message{sold(visa)}, sold(visa)
	second.ID = "ORD-2"
	hour("keys that live a minute", Case{Messages: one, KeyLife: time.Minute})
	hour("keys that are never kept", Case{Messages: one, KeyLife: -1})
	hour("an older release beside ours", Case{Messages: one, Releases: true})
	hour("wrong clocks", Case{Messages: one, Clocks: wrongClocks()})
	hour("a mistake of an operator", Case{Messages: []Message{sold(visa), second}, Mistake: true})
	return all
}

func wrongClocks() []time.Duration {
	const year = 365 * day
	return []time.Duration{honestSkew, -honestSkew, 10 * year, -10 * year}
}

func placed(all []Search) []Search {
	for i := range all {
		all[i].place = i
	}
	return all
}
