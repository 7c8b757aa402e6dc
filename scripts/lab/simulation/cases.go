package simulation

import (
	"fmt"
	"slices"
	"time"

	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/world"
)

// gaps are the times after which a message comes back.
func gaps() []time.Duration {
	return []time.Duration{
		0, 30 * time.Second, 10 * time.Minute, time.Hour, oracle.Day, 5 * oracle.Day, 14 * oracle.Day,
	}
}

// cases returns cases of one or two orders. The content of the orders depends on the
// turn, so that all turns together have every currency and every conflict.
func cases(gap time.Duration, turn int) []world.Case {
	names := []string{
		"one order", "sent twice", "same id, another content", "a declined card", "a bank that wants the customer",
		"a bank that takes days", "two orders",
	}
	all := make([]world.Case, len(names))
	for i := range all {
		place := turn*(len(names)+1) + i // the next turn has the next currency
		one := func(method string) world.Message { return contentOf(place, "ORD-1", method) }
		messages := [][]world.Message{
			{one(world.Visa)},
			{one(world.Visa), one(world.Visa)},
			{one(world.Visa), one(world.Visa).With(world.Fields()[turn%len(world.Fields())])},
			{one(world.Declined)},
			{one(world.NeedsAuth)},
			{one(world.TakesDays)},
			{one(world.Visa), contentOf(place+1, "ORD-2", world.Visa)},
		}
		all[i] = world.Case{
			Name: names[i] + ", back after " + gap.String(), Gap: gap, Messages: messages[i], Variety: place,
		}
	}
	return all
}

// conflicts returns, for each field, two orders with one id that differ in it.
func conflicts() (all []Search) {
	for i, f := range world.Fields() {
		first := contentOf(i, "ORD-1", world.Visa)
		all = append(all, Search{Case: world.Case{
			Name: "same id, another " + f.Name, Gap: time.Hour,
			Messages: []world.Message{first, first.With(f)}, Variety: i,
		}})
	}
	return all
}

// Scenarios returns searches that are small enough for every day: one deviation, and two
// for one order. They run the deployed Stripe adapter.
func Scenarios() (all []Search) {
	for turn, gap := range []time.Duration{0, 30 * time.Second, 25 * time.Hour, 5 * oracle.Day} {
		for i, c := range cases(gap, turn) {
			most := 1
			if i == 0 {
				most = 2
			}
			c.Rare = most == 1
			all = append(all, Search{Case: c, Most: most})
		}
	}
	for _, s := range slices.Concat(conflicts(), special(1)) {
		s.Rare = true
		all = append(all, s)
	}
	for i := range all {
		all[i].Adapter = true
	}
	// What people do matters most just before something else goes wrong.
	pairs := world.Case{
		Name: "people, and whatever happens twice", Messages: []world.Message{contentOf(5, "ORD-1", world.Visa)},
		People: true, Gap: time.Hour,
	}
	canceled := pairs
	canceled.Name = "an operator's cancel, and whatever happens twice"
	canceled.People, canceled.Cancels, canceled.Mistake = false, true, true
	told := pairs
	told.Name, told.Webhooks, told.Reconcile = "webhooks, and whatever happens twice", true, true
	told.Messages = []world.Message{contentOf(6, "ORD-1", world.Declined)}
	for _, c := range []world.Case{pairs, canceled, told} {
		all = append(all, Search{Case: c, Most: 2})
	}
	return placed("scenario", all)
}

// Deep returns searches of all schedules with at most so many deviations, on up to two
// workers, with every gap.
func Deep(most int) (all []Search) {
	for turn, gap := range gaps() {
		for _, c := range cases(gap, turn) {
			all = append(all, Search{Case: c, Most: most})
		}
	}
	list := "pairs"
	if most > 2 {
		list = "triples"
	}
	return placed(list, slices.Concat(all, conflicts(), special(most)))
}

// special returns cases with one unusual property each.
func special(most int) (all []Search) {
	add := func(name string, c world.Case) {
		c.Name, c.Gap, c.Variety = name+", back after an hour", time.Hour, len(all)
		all = append(all, Search{Case: c, Most: most})
	}
	one := func(method string) []world.Message {
		return []world.Message{contentOf(len(all), "ORD-1", method)}
	}
	methods := []string{world.Visa, world.Declined, world.NeedsAuth, world.TakesDays}
	for _, method := range methods {
		add("people and "+method, world.Case{Messages: one(method), People: true})
	}
	add("keys that live a minute", world.Case{Messages: one(world.Visa), KeyLife: time.Minute})
	add("keys that are never kept", world.Case{Messages: one(world.Visa), KeyLife: -1})
	add("an older release beside ours", world.Case{Messages: one(world.Visa), Releases: true})
	add("wrong clocks", world.Case{Messages: one(world.Visa), Clocks: wrongClocks()})
	two := append(one(world.Visa), contentOf(len(all)+1, "ORD-2", world.Visa))
	add("a mistake of an operator", world.Case{Messages: two, Mistake: true})
	add("another deployment that charges its own order", world.Case{Messages: one(world.Visa), Neighbor: true})
	add("another deployment that prepares its own order", world.Case{Messages: one(world.Visa), Neighbor: true})
	add("an action that is denied", world.Case{Messages: one(world.Visa), Denials: true})
	for _, method := range methods {
		later := method == world.Declined || method == world.TakesDays // somebody changes the intent afterwards
		add("webhooks and reconcile runs and "+method, world.Case{
			Messages: one(method), People: later, Webhooks: true, Reconcile: true,
		})
	}
	add("publications", world.Case{Messages: one(world.NoSuchCard), Publish: true}) // of three events
	for _, method := range append(methods, world.NoSuchCard) {
		add("cancellations and "+method, world.Case{Messages: one(method), Cancels: true})
	}
	add("cancellations, webhooks and reconcile runs", world.Case{
		Messages: one(world.Declined), Cancels: true, Webhooks: true, Reconcile: true,
	})
	all = append(all, groups(min(most, 1))...)
	return all
}

// groups returns FIFO queues before the deployed handler, with two orders of one customer
// and one of another. The first can be charged, cannot be charged, or is not an order.
func groups(most int) (all []Search) {
	first, second := contentOf(1, "ORD-1", world.Visa), contentOf(2, "ORD-2", world.Visa)
	third := contentOf(3, "ORD-3", world.Visa)
	second.Customer, third.Customer = first.Customer, first.Customer+"0"
	refused := first
	refused.Method = world.NoSuchCard
	for _, head := range []world.Message{first, refused, poison(first.Customer)} {
		all = append(all, Search{Most: most, Case: world.Case{
			Name: fmt.Sprintf("a FIFO group behind %s %s", head.ID, head.Method),
			Gap:  oracle.Visibility, FIFO: true, Batch: 3, Messages: []world.Message{head, second, third},
		}})
	}
	return all
}

func wrongClocks() []time.Duration {
	const tenYears = 10 * 365 * oracle.Day
	return []time.Duration{oracle.HonestSkew, -oracle.HonestSkew, tenYears, -tenYears}
}

// placed gives each search its name within a list.
func placed(list string, all []Search) []Search {
	for i := range all {
		all[i].list, all[i].place = list, i
	}
	return all
}
