package simulation

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// sold is the order that most of these tests are about: 39.98 USD.
func sold(method string) Message {
	return Message{
		ID: "ORD-1", Customer: "CUST987", Currency: "usd", Lines: [maxLines]Article{{SKU: "MUG", Quantity: 2, Price: 1999}},
		Payer: "cus_pretend", Method: method,
	}
}

// another is the same with another id.
func another(id order.ID, method string) Message {
	m := sold(method)
	m.ID = id
	return m
}

// hand is a world in which a test does by hand what the product would do, and what it
// must not do.
type hand struct {
	*World

	t    *testing.T
	k    *Worker           // does it
	got  []sqstest.Message // every message of the case, delivered once
	keys int
}

func byHand(t *testing.T, c Case) *hand {
	t.Helper()
	w := NewLab().World(c, func(int) int { return 0 })
	for i := range c.Messages {
		w.send(i)
	}
	h := &hand{World: w, t: t, got: must1(w.queue.Receive(w.now, w.ordersQueue, len(c.Messages), nil))}
	h.k = &Worker{World: w, messages: h.got}
	slices.SortFunc(h.got, func(a, b sqstest.Message) int { return numberOf(a) - numberOf(b) })
	return h
}

// looks lets the oracle look, as it does after every step.
func (h *hand) looks() { h.oracle.afterStep(h.World) }

// rests lets the oracle look as it does when nothing is left to do.
func (h *hand) rests() {
	h.looks()
	h.oracle.atRest(h.World)
}

func (h *hand) order(i int) order.Order { return h.lab.order(h.Messages[i].body()) }

// begins claims a message's order.
func (h *hand) begins(i int) order.Claim {
	h.t.Helper()
	c := h.claims(i)
	h.looks()
	return c
}

// claims is begins before the oracle looks.
func (h *hand) claims(i int) order.Claim {
	h.t.Helper()
	h.acting = i
	c, err := h.store.Begin(h.t.Context(), h.order(i), order.Lease{Owner: "hand", From: h.now, Until: h.now.Add(functionTime)})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// prepares makes an intent for an order, each time another one.
func (h *hand) prepares(o order.Order) order.IntentID {
	h.t.Helper()
	h.keys++
	h.asking = h.k
	i, err := h.pay.Prepare(h.t.Context(), o, order.PrepareAgainKey(scope, o.ID(), h.keys))
	if err != nil {
		h.t.Fatal(err)
	}
	return i.ID
}

// confirms moves the money, if the card has some.
func (h *hand) confirms(id order.IntentID) order.IntentID {
	h.t.Helper()
	h.keys++
	h.asking = h.k
	if _, err := h.pay.Confirm(h.t.Context(), id, order.ConfirmKey(scope, "any", h.keys)); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// charges makes an intent and confirms it.
func (h *hand) charges(i int) order.IntentID {
	h.t.Helper()
	return h.confirms(h.prepares(h.order(i)))
}

// says writes into the row that the order is so, with this intent.
func (h *hand) says(c order.Claim, id order.IntentID, s order.Status) {
	h.t.Helper()
	ctx := h.t.Context()
	if err := h.store.Bind(ctx, c, order.Intent{ID: id}, h.now); err != nil {
		h.t.Fatal(err)
	}
	if s != order.Open {
		if err := h.store.Finish(ctx, c, order.Outcome{Status: s, Intent: id}, h.now); err != nil {
			h.t.Fatal(err)
		}
	}
}

// turns writes into a settled row that the order is so now.
func (h *hand) turns(s order.Status) {
	h.t.Helper()
	r, _ := h.row("ORD-1")
	if err := h.store.Settle(h.t.Context(), r, order.Outcome{Status: s, Intent: r.Intent}, h.now); err != nil {
		h.t.Fatal(err)
	}
}

// sells does all that a paid order needs.
func (h *hand) sells() {
	h.t.Helper()
	h.says(h.begins(0), h.charges(0), order.Paid)
	h.looks()
}

// forgets empties the table. Then a test can write what no store would write over what
// was there.
func (h *hand) forgets() { h.store = ordertest.Memory{} }

func (h *hand) acknowledges(i int)      { h.oracle.acknowledged(h.k, h.got[i]) }
func (h *hand) parks(i int, why string) { h.oracle.parked(h.k, h.got[i], order.Reason(why)) }

// either is what goes right, or what goes wrong.
func either[T any](right bool, yes, no T) T { //nolint:ireturn // T is a number or a string
	if right {
		return yes
	}
	return no
}

// handmade is a short history that breaks one promise, and that breaks none if it goes
// right.
type handmade struct {
	name   string
	breaks Invariant
	says   string // part of what the oracle tells
	world  Case
	lives  func(h *hand, right bool)
}

func one(methods ...string) Case {
	var c Case
	for _, m := range methods {
		c.Messages = append(c.Messages, sold(m))
	}
	return c
}

// twoContents is the same order id with two contents.
func twoContents() Case {
	c := one(visa, visa)
	c.Messages[1].Lines[0].Quantity = 3
	return c
}

func aboutMoney() []handmade {
	return []handmade{
		{"two intents of one order are charged", ChargedOnce, "2 successful charges", one(visa), func(h *hand, right bool) {
			h.begins(0)
			h.charges(0)
			if !right {
				h.charges(0)
			}
			h.looks()
		}},
		{"an order is charged before it has a row", BooksAgree, "without a row", one(visa), func(h *hand, right bool) {
			if right {
				h.begins(0)
			}
			h.charges(0)
			h.looks()
		}},
		{"another amount is charged", ChargedAmount, "5997 usd were charged", twoContents(), func(h *hand, right bool) {
			h.begins(0)
			h.charges(either(right, 0, 1))
			h.looks()
		}},
		{
			"another currency is charged",
			ChargedAmount,
			"3998 eur were charged",
			one(visa),
			func(h *hand, right bool) {
				h.begins(0)
				d := ordertest.Draft("ORD-1") // as much
				if !right {
					d.Currency = "eur"
				}
				h.confirms(h.prepares(must1(order.New(d))))
				h.looks()
			},
		},
		{
			"a charge is not in the row",
			BooksAgree,
			"the row says open and Stripe says paid",
			one(visa),
			func(h *hand, right bool) {
				c, id := h.begins(0), h.charges(0)
				h.says(c, id, either(right, order.Paid, order.Open))
				h.oracle.of("ORD-1").dead[0] = "mismatch" // so that an open order is nobody's surprise
				h.rests()
			},
		},
		{"a row says paid and nothing was charged", BooksAgree, "the row says paid and Stripe says open", one(visa), func(h *hand, right bool) {
			c, id := h.begins(0), h.prepares(h.order(0))
			if right {
				h.confirms(id)
			}
			h.says(c, id, order.Paid)
			h.rests()
		}},
		{
			"a charge by an intent that is not the bound one", BooksAgree, "the row says declined and there are 1 charges",
			Case{Messages: []Message{sold(declined), sold(visa)}},
			func(h *hand, right bool) {
				h.says(h.begins(0), h.charges(0), order.Declined)
				h.looks()
				if !right {
					h.charges(1)
				}
				h.oracle.of("ORD-1").dead[1] = "conflict"
				h.rests()
			},
		},
		{
			"an intent of another order counts as this one's payment", BooksAgree, "the row says paid and Stripe says open",
			Case{Messages: []Message{another("ORD-2", visa), sold(visa)}},
			func(h *hand, right bool) {
				theirs := h.charges(0)
				h.says(h.begins(0), theirs, order.Paid)
				c, id := h.begins(1), theirs
				h.oracle.of("ORD-1").mistaken = true
				if right {
					id = h.charges(1)
				}
				h.says(c, id, order.Paid)
				h.rests()
			},
		},
	}
}

func aboutRows() []handmade {
	return []handmade{
		{
			"a row gets another content",
			ConflictParked,
			"other content took over",
			one(visa),
			func(h *hand, right bool) {
				c := h.begins(0)
				content := either(right, strings.Replace(string(c.Order.Fingerprint()), "v1:", "v2:", 1), "v1:0")
				must(
					h.store.SetFingerprint(h.t.Context(), "ORD-1", order.Fingerprint(content)),
				) // another release may write it in its own version
				h.looks()
			},
		},
		{"a row gets another total", ConflictParked, "other content took over", twoContents(), func(h *hand, right bool) {
			c := h.begins(0)
			h.forgets()
			h.claims(either(right, 0, 1))
			must(h.store.SetFingerprint(h.t.Context(), "ORD-1", c.Order.Fingerprint()))
			h.looks()
		}},
		{"a paid order becomes declined", AsAllowed, "from paid to declined", one(visa), func(h *hand, right bool) {
			h.sells()
			if !right {
				h.forgets()
				h.says(h.claims(0), h.prepares(h.order(0)), order.Declined)
			}
			h.looks()
		}},
		{"an order is canceled where none may be", AsAllowed, "from open to canceled", one(visa), func(h *hand, right bool) {
			h.Strict = !right
			h.says(h.begins(0), h.prepares(h.order(0)), order.Canceled)
			h.looks()
		}},
		{"a row makes two changes at once", OneEventEach, "change 1 was from open to paid", one(takesDays), func(h *hand, right bool) {
			h.says(h.begins(0), h.charges(0), order.Pending)
			if right {
				h.looks()
			}
			h.turns(order.Paid)
			h.looks()
		}},
		{
			"an event tells of another change",
			OneEventEach,
			"change 2 was from declined to paid",
			one(visa),
			func(h *hand, right bool) {
				h.oracle.orders[0].outside = true // so that the decline is nobody's lie
				h.says(h.begins(0), h.prepares(h.order(0)), order.Declined)
				h.looks()
				if !right {
					h.forgets()
					h.says(h.claims(0), "pi_1", order.Pending)
				}
				h.turns(order.Paid)
				h.looks()
			},
		},
		{"an event comes without a change", OneEventEach, "1 changes, 2 events", one(visa), func(h *hand, right bool) {
			h.sells()
			if !right {
				h.forgets()
				h.says(h.claims(0), "pi_1", order.Declined)
				h.turns(order.Paid)
			}
			h.looks()
		}},
	}
}

func aboutDeclines() []handmade {
	told := func(confirmed bool) func(h *hand, right bool) {
		return func(h *hand, right bool) {
			h.oracle.of("ORD-1").outside = right // somebody outside has changed it since: what was said was true when it was said
			c, id := h.begins(0), h.prepares(h.order(0))
			if confirmed {
				h.confirms(id)
			}
			h.says(c, id, order.Declined)
			h.looks()
		}
	}
	return []handmade{
		{"a charged customer is told declined", NoFalseDecline, "and the money moved", one(visa), told(true)},
		{"nobody was asked for money", NoFalseDecline, "no bank has declined it", one(visa), told(false)},
		{"the bank only wants the customer", NoFalseDecline, "no bank has declined it", one(wantsMe), told(true)},
		{"the bank takes its time", NoFalseDecline, "no bank has declined it", one(takesDays), told(true)},
		{"an intent that is none", NoFalseDecline, "no bank has declined it", one(declined), func(h *hand, right bool) {
			c, id := h.begins(0), h.charges(0)
			if !right {
				id = "pi_nobody_made"
			}
			h.says(c, id, order.Declined)
			h.looks()
		}},
	}
}

func aboutMessages() []handmade {
	sixDays := 6*24*time.Hour - 5*time.Minute // by a clock that is as slow as an honest one can be
	return []handmade{
		{"an open order is acknowledged", AckedWhenDurable, "the row is not settled", one(visa), func(h *hand, right bool) {
			c, id := h.begins(0), h.charges(0)
			if right {
				h.says(c, id, order.Paid)
			}
			h.acknowledges(0)
		}},
		{"an order without a row is acknowledged", AckedWhenDurable, "the row is not settled", one(visa), func(h *hand, right bool) {
			if right {
				h.sells()
			}
			h.acknowledges(0)
		}},
		{"other content is acknowledged", ConflictParked, "acknowledged, not parked", twoContents(), func(h *hand, right bool) {
			h.sells()
			h.acknowledges(either(right, 0, 1))
		}},
		{"a message is parked for nothing", EverythingEnds, "without a reason", one(visa), func(h *hand, right bool) {
			h.parks(0, either(right, "refused", ""))
		}},
		{"a key that this order used parks it", SettlesSoon, "the table knows its order", one(visa), func(h *hand, right bool) {
			h.parks(0, either(right, "refused", "key_reused"))
		}},
		{"an outage parks", SettlesSoon, "store_unavailable, which passes", one(visa), func(h *hand, right bool) {
			h.parks(0, either(right, "mismatch", "store_unavailable"))
		}},
		{"an outage parks too early", SettlesSoon, "store_unavailable, which passes", one(visa), func(h *hand, right bool) {
			h.now = h.got[0].Sent.Add(sixDays - either(right, 0, time.Duration(1)))
			h.parks(0, "store_unavailable")
		}},
		{"too few failures park", SettlesSoon, "unconfirmed, which passes", one(visa), func(h *hand, right bool) {
			h.got[0].Receives = either(right, 20, 19)
			h.parks(0, "unconfirmed")
		}},
		{"an outage parks after many deliveries", SettlesSoon, "provider_unknown, which passes", one(visa), func(h *hand, right bool) {
			h.got[0].Receives = 900
			h.parks(0, either(right, "panic", "provider_unknown"))
		}},
		{"an honest clock parks", SettlesSoon, "misconfigured, which passes", one(visa), func(h *hand, right bool) {
			h.k.absurd = right
			h.parks(0, "misconfigured")
		}},
		{"calm needs a third delivery", SettlesSoon, "nothing went wrong any more", one(visa), func(h *hand, right bool) {
			for n := range 3 {
				if n == 2 && right {
					h.oracle.disturbed()
				}
				h.oracle.delivered(h.World, h.got[0])
			}
		}},
		{"an odd worker's end is calm", SettlesSoon, "nothing went wrong any more", one(visa), func(h *hand, right bool) {
			h.k.old = right
			for n := range 3 {
				if n == 2 {
					h.oracle.buried(h.World, h.k)
				}
				h.oracle.delivered(h.World, h.got[0])
			}
		}},
		{"a duplicate asks twice", CheapDuplicate, "made 2 calls", one(visa), func(h *hand, right bool) {
			h.sells()
			h.oracle.born(h.World, h.k)
			h.k.calls = either(right, 1, 2)
			h.oracle.buried(h.World, h.k)
		}},
	}
}

func aboutEnds() []handmade {
	lost := one(visa)
	lost.Gap = time.Hour
	return []handmade{
		{
			"the queue forgets a message",
			EverythingEnds,
			"the queue lost a message",
			lost,
			func(h *hand, right bool) {
				h.sells()
				h.now = h.now.Add(7*24*time.Hour + time.Second)
				if right {
					h.Gap = 14 * 24 * time.Hour // so long an outage loses messages, and the producer sends them again
				}
				h.rests()
			},
		},
		{"an order stays open", EverythingEnds, "message 1 is gone () and the order is open", one(visa), func(h *hand, right bool) {
			h.begins(0)
			if right {
				h.parks(0, "mismatch")
			}
			h.rests()
		}},
		{
			"an outage leaves an order open",
			EverythingEnds,
			"is gone (misconfigured)",
			one(visa),
			func(h *hand, right bool) {
				h.begins(0)
				h.k.absurd = true // so that it may park
				h.parks(0, either(right, "mismatch", "misconfigured"))
				h.rests()
			},
		},
		{"other content is gone", ConflictParked, "has other content and was not parked", twoContents(), func(h *hand, right bool) {
			h.sells()
			if right {
				h.parks(1, "conflict")
			}
			h.rests()
		}},
	}
}

// copied is a baseline whose table says what the test wants.
type copied struct{ done *bool }

func (copied) Consume(*Worker, string, string) error { return nil }
func (c copied) Done(order.ID) bool                  { return *c.done }

func aboutDesigns() []handmade {
	baseline := func(lives func(h *hand, right bool, done *bool)) (Case, func(h *hand, right bool)) {
		done, c := new(bool), one(visa)
		c.Consumer = func() Consumer { return copied{done} }
		return c, func(h *hand, right bool) {
			*done = true
			lives(h, right, done)
		}
	}
	twice, chargesTwice := baseline(func(h *hand, right bool, _ *bool) {
		h.charges(0)
		if !right {
			h.charges(0)
		}
		h.looks()
	})
	again, comesAgain := baseline(func(h *hand, right bool, _ *bool) {
		h.charges(0)
		h.oracle.orders[0].answered[0] = right
		h.rests()
	})
	lost, losesIt := baseline(func(h *hand, right bool, _ *bool) {
		if right {
			h.charges(0)
		}
		h.acknowledges(0)
		h.rests()
	})
	silent, saysNothing := baseline(func(h *hand, right bool, done *bool) {
		*done = right
		h.charges(0)
		h.acknowledges(0)
		h.rests()
	})
	return []handmade{
		{"a baseline charges twice", ChargedOnce, "2 successful charges", twice, chargesTwice},
		{"a baseline's message comes again and again", SettlesSoon, "is a dead letter again", again, comesAgain},
		{"a baseline loses an order", EverythingEnds, "nothing was charged", lost, losesIt},
		{"a baseline does not write down a charge", BooksAgree, "the table does not say so", silent, saysNothing},
	}
}

func aboutBatches() []handmade {
	poison := Message{ID: "POISON", Poison: "{"}
	batch := func(h *hand, counts map[string]int) *invocation {
		return &invocation{Worker: h.k, counts: counts, parked: map[int]bool{1: true}, finished: map[order.ID]bool{"ORD-1": true}}
	}
	two := Case{Messages: []Message{sold(visa), poison}}
	return []handmade{
		{"a message of a batch gets no answer", AllAnswered, "2 messages were received, and 1 answered of 2", two, func(h *hand, right bool) {
			h.sells()
			counts := map[string]int{sqs.MetricReceived: 2, sqs.MetricSettled: 1}
			if right {
				counts[sqs.MetricParked] = 1
			}
			batch(h, counts).remove([]string{h.got[0].ID, h.got[1].ID})
		}},
		{"a message of a batch is not looked at", AllAnswered, "1 messages were received, and 1 answered of 2", two, func(h *hand, right bool) {
			h.sells()
			counts := map[string]int{sqs.MetricReceived: 1, sqs.MetricSettled: 1}
			if right {
				counts = map[string]int{sqs.MetricReceived: 2, sqs.MetricDuplicates: 1, sqs.MetricRedelivered: 1}
			}
			batch(h, counts).remove([]string{h.got[0].ID, h.got[1].ID})
		}},
		{"a settled order comes back with its neighbor", NeighborsApart, "message 1 comes back", two, func(h *hand, right bool) {
			h.sells()
			deleted := []string{h.got[1].ID}
			if right {
				deleted = append(deleted, h.got[0].ID)
			}
			batch(h, map[string]int{sqs.MetricReceived: 2, sqs.MetricSettled: 1, sqs.MetricParked: 1}).remove(deleted)
		}},
	}
}

// An oracle that went blind would find no violation in any world, and nobody would be the
// wiser.
func TestTheOracleSeesEachViolationAndNoneInItsTwin(t *testing.T) {
	t.Parallel()
	seen := map[Invariant]bool{SameHistory: true} // which takes two worlds: see below
	for _, m := range slices.Concat(
		aboutMoney(), aboutRows(), aboutDeclines(), aboutMessages(), aboutEnds(), aboutDesigns(), aboutBatches(),
	) {
		seen[m.breaks] = true
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			wrong := byHand(t, m.world)
			m.lives(wrong, false)
			if got := wrong.oracle.broken; got == nil || got.Invariant != m.breaks ||
				!strings.Contains(got.Detail, m.says) {
				t.Errorf("got %v, want %s: ... %s ...", got, m.breaks, m.says)
			}
			right := byHand(t, m.world)
			m.lives(right, true)
			if got := right.oracle.broken; got != nil {
				t.Errorf("the twin that breaks nothing: got %s", got)
			}
		})
	}
	for _, i := range Invariants() {
		if !seen[i] {
			t.Errorf("no violation of %s was made by hand", i)
		}
	}
}

// innocent is a short history that looks odd and breaks nothing.
type innocent struct {
	name  string
	world Case
	lives func(h *hand)
}

func innocents() []innocent {
	ofBaseline := one(declined)
	ofBaseline.Consumer = func() Consumer { return copied{new(bool)} }
	poison, pair := one(visa), one(visa, visa)
	poison.Messages[0].Poison = "{"
	batch := func(h *hand, finished bool) *invocation {
		return &invocation{
			Worker: h.k, parked: map[int]bool{}, finished: map[order.ID]bool{"ORD-1": finished},
			counts: map[string]int{sqs.MetricReceived: len(h.got), sqs.MetricRedelivered: len(h.got)},
		}
	}
	return []innocent{
		{"a baseline's order that nobody can pay is gone", ofBaseline, func(h *hand) {
			h.acknowledges(0)
			h.rests()
		}},
		{"a message that is no order is parked", poison, func(h *hand) {
			h.parks(0, "invalid_order")
			h.rests()
		}},
		{"an order that was not settled comes back", one(visa), func(h *hand) { batch(h, false).remove(nil) }},
		{"a settled order's other message comes back", pair, func(h *hand) { batch(h, true).remove(nil) }},
		{"a declined intent is canceled, of which nobody is told", one(declined), func(h *hand) {
			c, id := h.begins(0), h.charges(0)
			h.says(c, id, order.Declined)
			h.looks()
			must(h.stripe.CancelInDashboard(h.now, string(id)))
			h.rests()
		}},
		{"a fresh order makes many calls", one(visa), func(h *hand) {
			h.begins(0)
			h.oracle.born(h.World, h.k)
			h.k.calls = 5
			h.oracle.buried(h.World, h.k)
		}},
	}
}

func TestTheOracleLeavesTheInnocentAlone(t *testing.T) {
	t.Parallel()
	for _, i := range innocents() {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			h := byHand(t, i.world)
			i.lives(h)
			if h.oracle.broken != nil {
				t.Errorf("got %s", h.oracle.broken)
			}
		})
	}
}

// moody does in some worlds what it does not in others.
type moody bool

func (m moody) Consume(k *Worker, _, _ string) error {
	if !m {
		return nil
	}
	return k.Table("look out of the window", func() error { return nil })
}

func (moody) Done(order.ID) bool { return true }

func TestTwoHistoriesOfOneSeedAreSeen(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]bool{"a steady consumer": false, "a moody one": true} {
		mood := true
		r := Draw{Seed: 1, Worlds: 1, Only: SameHistory, Change: func(c *Case) {
			*c = one(visa)
			mood = mood != changes
			now := moody(mood)
			c.Consumer = func() Consumer { return now }
		}}.Run(nil)
		if got := r.Worst != nil; got != changes {
			t.Errorf("%s: two histories were seen: %t (%v)", name, got, r.Worst)
		}
	}
}

func TestTheOracleAllowsWhatTheDiagramShows(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(?m)^  (\w+) --> (\w+)`).FindAllStringSubmatch(document(t, "docs/design.md"), -1) {
		shown[arrow[1]+" "+arrow[2]] = true
	}
	got := map[string]bool{}
	for _, from := range statuses() {
		for _, to := range statuses() {
			if allowed(from, to) {
				got[string(from)+" "+string(to)] = true
			}
		}
	}
	if d := cmp.Diff(shown, got); d != "" || len(got) == 0 {
		t.Errorf("(-diagram +oracle)\n%s", d)
	}
}

func statuses() []order.Status {
	return []order.Status{order.Open, order.Paid, order.Declined, order.Canceled, order.ActionRequired, order.Pending, order.Refused}
}

// The oracle asks a person to look exactly where the documents do.
func TestTheReasonsForPeopleAreThoseThatThePageParksAtOnce(t *testing.T) {
	t.Parallel()
	page := map[order.Reason]bool{}
	table := document(t, "docs/reference/failures.md")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|[^|]*\\| (\\w+)").FindAllStringSubmatch(table, -1) {
		page[order.Reason(row[1])] = row[2] == "parks"
	}
	for _, r := range order.Reasons() {
		parks, known := page[r]
		if !known || parks != forPeople(r) {
			t.Errorf("%s: the page has it: %t, and parks it: %t; the oracle says that it is for people: %t", r, known, parks, forPeople(r))
		}
		delete(page, r)
	}
	for r := range page {
		if forPeople(r) {
			t.Errorf("the domain has no reason %q", r)
		}
	}
}

func TestTheLimitsAreThoseOfTheirSources(t *testing.T) {
	t.Parallel()
	queue, design, row := document(t, "infra/terraform/queue.tf"), document(t, "docs/design.md"), document(t, "docs/reference/row.md")
	look := func(s order.Status, unit time.Duration) int {
		after, _ := nextLook(s)
		return int(after / unit)
	}
	for _, tt := range []struct {
		text, pattern string
		want          int
	}{
		{queue, `var.visibility_timeout >= (\d+) \* var.function_timeout`, int(visibility / functionTime)},
		{queue, `(?s)"aws_sqs_queue" "orders" {.*?message_retention_seconds\s+= (\d+) \* 24 \* 60 \* 60`, int(retention / day)},
		{queue, `(?s)"aws_sqs_queue" "dead_letters" {.*?message_retention_seconds\s+= (\d+) \* 24 \* 60 \* 60`, int(deadRetention / day)},
		{queue, `maxReceiveCount\s+= (\d+)`, maxReceives},
		{design, `parked after (\d+) (?:deliveries|attempts)`, maxFailures},
		{design, `the queue's retention less (a) day`, int(lastDay / day)},
		{row, `when to look next: (\d+) minutes after the last claim of an open order`, look(order.Open, time.Minute)},
		{row, `(\d+) hour after it became pending`, look(order.Pending, time.Hour)},
		{row, `(\d+) hours\s+after it became action_required`, look(order.ActionRequired, time.Hour)},
	} {
		m := regexp.MustCompile(tt.pattern).FindStringSubmatch(tt.text)
		if m == nil {
			t.Errorf("nothing is like %s", tt.pattern)
			continue
		}
		if got := strings.Replace(m[1], "a", "1", 1); got != strconv.Itoa(tt.want) {
			t.Errorf("%s: got %s, want %d", tt.pattern, got, tt.want)
		}
	}
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
