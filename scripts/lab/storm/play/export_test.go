package play

import (
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// Message is a message of a script.
type Message struct {
	Name, OrderID, Body string
	Invalid, Other      bool
	Total               order.Money
	Ends                order.Status
}

// Messages returns the messages of an order.
func (s Script) Messages(n int) (all []Message) {
	for _, m := range s.messages(n) {
		all = append(all, Message{m.name(), orderID(m.order), m.body, m.content == invalid, m.content == other, m.total, m.ends})
	}
	return all
}

// Judge counts one order of a script with its ledger and the names of its dead letters.
func Judge(s Script, n int, row Row, ledger []stripetest.Charge, dead ...string) Count {
	b := &books{script: s, decoder: sqs.NewDecoder(), dead: map[string]sqstest.Message{}}
	for _, name := range dead {
		b.dead[name] = sqstest.Message{}
	}
	b.judge(row, s.messages(n), ledger)
	return b.count
}

// End is what a storm has left behind.
type End struct {
	Ours    bool
	Rows    []Row
	Ledger  []stripetest.Charge
	Dead    []sqstest.Message
	Intents map[string]stripetest.Intent
	Leaks   []string
	Waiting int   // messages in the order queue
	Unread  error // of the table, after its rows
}

// Close closes the books.
func Close(s Script, e End) (Count, []system.Check, error) {
	b := newBooks(s, e.Dead)
	b.ours, b.left.Visible = e.Ours, e.Waiting
	b.intent = func(id string) stripetest.Intent { return e.Intents[id] }
	b.enterLedger(e.Ledger)
	err := b.close(func(yield func(Row, error) bool) {
		for _, row := range e.Rows {
			if !yield(row, nil) {
				return
			}
		}
		if e.Unread != nil {
			yield(Row{}, e.Unread)
		}
	}, e.Leaks)
	return b.count, b.checks, err
}

// DealSkies deals the next skies of both services.
func DealSkies(seed uint64, rounds int) (dynamo, stripe []string) {
	w := newWeather(seed)
	var d []sky[dynamodbtest.Fault]
	var s []sky[stripetest.Fault]
	for range rounds {
		dynamo, stripe = append(dynamo, next(w, &d, dynamoSkies).name), append(stripe, next(w, &s, stripeSkies).name)
	}
	return dynamo, stripe
}

// Skies are the names of all that either service can be.
func Skies() (dynamo, stripe []string) {
	for _, s := range dynamoSkies() {
		dynamo = append(dynamo, s.name)
	}
	for _, s := range stripeSkies() {
		stripe = append(stripe, s.name)
	}
	return dynamo, stripe
}

// Draw decides over some calls under a sky of one fault, whose effect is possible or not, and returns how many were spoiled and
// what the report says of it.
func Draw(seed uint64, calls int, share float64, possible bool) (spoiled int, report map[string]int) {
	w := newWeather(seed)
	over := sky[int]{"fog", []likely[int]{{share, 1}}}
	for range calls {
		draw(w, &over, func(int) bool { spoiled++; return possible })
	}
	return spoiled, w.report()
}

// Deliveries decides over some messages how each is delivered.
func Deliveries(seed uint64, messages int, share float64) map[sqstest.Twice]int {
	w, n := newWeather(seed), map[sqstest.Twice]int{}
	for range messages {
		n[w.twice(share)]++
	}
	return n
}

// LostDeletes counts the deletes that are lost under the skies with these numbers; 0 is calm.
func LostDeletes(seed uint64, deletes, dynamo, stripe int) (lost int) {
	w := newWeather(seed)
	w.set(dynamoSkies()[dynamo], stripeSkies()[stripe])
	for range deletes {
		if w.loses() {
			lost++
		}
	}
	return lost
}

// Looks lets somebody look at a system until they give up, at most so often, and returns at which looks they moved the clocks and
// at which one they gave up; 0 is never.
func Looks(most int, busy func(look int) bool, delivered func(look int) int64) (moved []int, gaveUp int) {
	v := vigil{delivered: -1}
	for n := 1; n <= most; n++ {
		idle, over := v.look(busy(n), delivered(n))
		if idle {
			moved = append(moved, n)
		}
		if over {
			return moved, n
		}
	}
	return moved, 0
}

// Patience and Nap are how many looks they are long.
func Patience() int { return int(patience / look) }

func Nap() int { return int(nap / look) }

// KillsAt returns after how many done messages each process is killed.
func KillsAt(kills, total int) (at []int) {
	st := &storm{Options: Options{Kills: kills}, total: total}
	for done := range total + 1 {
		for st.killIsDue(done) {
			st.kills.Add(1)
			at = append(at, done)
		}
	}
	return at
}

// Killed tells which of some instances are killed at once.
func Killed(instances int) (killed []int) {
	match := one()
	for n := range instances {
		if match(nil) {
			killed = append(killed, n)
		}
	}
	return killed
}

// Scribe writes lines to a file and returns those that it finds fault with.
func Scribe(path string, lines ...string) (leaks []string, err error) {
	s, err := newScribe(path)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if _, err := s.Write([]byte(line)); err != nil {
			return nil, err
		}
	}
	return s.found(), s.Close()
}
