package oracle

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
	"orderonce/scripts/lab/stage"
)

func start() time.Time { return time.Unix(5_000_000_000, 0).UTC() }

// scene is an oracle that reads one row and a ledger. A test writes what the product
// would write, and what it must not write.
type scene struct {
	*Oracle

	now     time.Time
	row     order.Record // of ORD-1
	intents []*stripetest.Intent
	ledger  []stripetest.Charge
	expired int
	worker  *Worker
	first   Delivery // of the first message
}

// mugs is a message with the order ORD-1.
func mugs() Sent {
	return Sent{
		ID: "ORD-1", Body: "2 mugs", Customer: "CUST987", Payer: "cus_1", Amount: 3998, Currency: "usd",
	}
}

// another is a message with another content under the same id.
func another() Sent {
	m := mugs()
	m.Body, m.Amount = "3 mugs", 5997
	return m
}

func newScene(sent ...Sent) *scene {
	s := &scene{now: start(), worker: &Worker{Name: "A"}, first: Delivery{ID: "0", Receives: 1, Sent: start()}}
	if len(sent) == 0 {
		sent = []Sent{mugs()}
	}
	s.Oracle = New(s, NewRules(), Subject{}, sent)
	return s
}

var _ View = (*scene)(nil)

func (s *scene) Now() time.Time                       { return s.now }
func (s *scene) Row(id order.ID) (order.Record, bool) { return s.row, s.row.OrderID == id }
func (s *scene) Stripe() Stripe                       { return s } //nolint:ireturn // as in View
func (s *scene) Expired() int                         { return s.expired }
func (s *scene) Intents() []*stripetest.Intent        { return s.intents }
func (s *scene) Ledger() []stripetest.Charge          { return slices.Clone(s.ledger) }
func (s *scene) Attempts() int                        { return len(s.ledger) }
func (s *scene) Intent(id string) (i *stripetest.Intent) {
	if at := slices.IndexFunc(s.intents, func(i *stripetest.Intent) bool { return i.ID == id }); at >= 0 {
		i = s.intents[at]
	}
	return i
}

// step lets the oracle check, as after every step.
func (s *scene) step() { s.AfterStep(0, Cause{}) }

// rest lets the oracle check, as when nothing is left to do.
func (s *scene) rest() {
	s.step()
	s.AtRest()
}

// begin writes the row of a first claim.
func (s *scene) begin() {
	s.row = order.Record{
		OrderID: "ORD-1", CustomerID: "CUST987", Fingerprint: "v2:a", Status: order.Open,
		Total: order.Money{Amount: 3998, Currency: "usd"},
	}
	s.step()
}

// intent creates an intent of the order.
func (s *scene) intent(status stripetest.Status) *stripetest.Intent {
	i := &stripetest.Intent{
		ID: fmt.Sprintf("pi_%06d", len(s.intents)+1), Status: status, Customer: "cus_1",
		Metadata: map[string]string{"orderId": "ORD-1"},
	}
	s.intents = append(s.intents, i)
	return i
}

// charge charges an intent of its own for the order.
func (s *scene) charge(amount int64, currency string) {
	i := s.intent(stripetest.StatusSucceeded)
	s.ledger = append(s.ledger, stripetest.Charge{
		OrderID: "ORD-1", Intent: i.ID, Amount: amount, Currency: currency, Outcome: stripetest.Charged, Key: i.ID,
	})
}

// decline creates an intent that a bank declines.
func (s *scene) decline() {
	s.intent(stripetest.StatusRequiresPaymentMethod).LastError = &stripetest.Error{DeclineCode: "no_money"}
}

// set writes the latest intent and a status into the row, with an event.
func (s *scene) set(to order.Status) {
	r := &s.row
	if len(s.intents) > 0 {
		r.Intent = order.IntentID(s.intents[len(s.intents)-1].ID)
	}
	r.Seq++
	r.Events = append(slices.Clone(r.Events), order.Event{Seq: r.Seq, From: r.Status, To: to})
	r.Status = to
	s.step()
}

// pay does all that a paid order needs.
func (s *scene) pay() {
	s.begin()
	s.charge(3998, "usd")
	s.set(order.Paid)
}

// dispute writes a change of a dispute into the row, with an event.
func (s *scene) dispute(status order.DisputeStatus) {
	s.row.Dispute = order.Dispute{ID: "du_1", Status: status}
	s.row.Seq++
	s.row.Events = append(slices.Clone(s.row.Events), order.Event{Seq: s.row.Seq})
}

func (s *scene) park(why order.Reason) { s.Parked(s.worker, s.first, why) }

// batch is a batch with all messages of a standard queue.
func (s *scene) batch() *Batch {
	all := make([]Delivery, len(s.sent))
	for i := range all {
		all[i] = Delivery{Message: i, ID: strconv.Itoa(i), Receives: 1, Sent: s.now}
	}
	return s.NewBatch(all)
}

// example is a short history that breaks one invariant.
type example struct {
	name   string
	breaks stage.Invariant
	says   string // a part of the violation
	run    func(s *scene)
}

func bookExamples() []example {
	return []example{
		{"an order is charged before it has a row", BooksAgree, "without a row", func(s *scene) {
			s.charge(3998, "usd")
			s.step()
		}},
		{"another amount is charged", ChargedAmount, "5997 usd were charged", func(s *scene) {
			s.begin()
			s.charge(5997, "usd")
			s.step()
		}},
		{"another currency is charged", ChargedAmount, "3998 eur were charged", func(s *scene) {
			s.begin()
			s.charge(3998, "eur")
			s.step()
		}},
		{"an intent that is not bound is charged", BooksAgree, "declined and there are 1 charges", func(s *scene) {
			s.begin()
			s.decline()
			s.set(order.Declined)
			s.charge(3998, "usd")
			s.rest()
		}},
		{"a canceled order is charged", BooksAgree, "canceled, and then charged", func(s *scene) {
			s.begin()
			s.set(order.Canceled)
			s.charge(3998, "usd")
			s.rest()
		}},
		{"a cancel leaves an order open", BooksAgree, "no error, and the order is open", func(s *scene) {
			s.CancelReturned("ORD-1", order.Open)
		}},
		{"two changes of a dispute are one change", OneEventEach, "2 changes, 3 events", func(s *scene) {
			s.pay()
			s.dispute(order.DisputeOpen)
			s.dispute(order.DisputeLost)
			s.step()
		}},
		{"an event comes without a change", OneEventEach, "1 changes, 2 events", func(s *scene) {
			s.pay()
			s.row.Events = append(s.row.Events, s.row.Events[0])
			s.step()
		}},
		{"a charged order is declined", NoFalseDecline, "and the order was charged", func(s *scene) {
			s.begin()
			s.charge(3998, "usd")
			s.set(order.Declined)
		}},
		{"an open order without an intent is not reported", NoneForgotten, "no reconcile run reports it", func(s *scene) {
			s.subject.Reconciles = true
			s.begin()
			s.park("mismatch") // so that the order may stay open
			s.rest()
		}},
		{"an event with another amount is published", PublishedInOrder, "the row has none like it", func(s *scene) {
			s.pay()
			total := order.Money{Amount: 1, Currency: "usd"}
			s.Published(outbox.Event{OrderID: "ORD-1", Total: total, Event: s.row.Events[0]})
		}},
	}
}

func parkExamples() []example {
	sixDays := 6*Day - 5*time.Minute // by a clock that is as slow as an honest one can be
	return []example{
		{"a message is parked without a reason", EverythingEnds, "without a reason", func(s *scene) { s.park("") }},
		{"a key of this order parks it", SettlesSoon, "the table knows its order", func(s *scene) { s.park("key_reused") }},
		{"an outage parks too early", SettlesSoon, "store_unavailable, which passes", func(s *scene) {
			s.now = s.now.Add(sixDays - 1)
			s.park("store_unavailable")
		}},
		{"too few failures park", SettlesSoon, "unconfirmed, which passes", func(s *scene) {
			s.first.Receives = 19
			s.park("unconfirmed")
		}},
		{"an outage parks after many deliveries", SettlesSoon, "provider_unknown, which passes", func(s *scene) {
			s.first.Receives = 900
			s.park("provider_unknown")
		}},
		{"an honest clock parks", SettlesSoon, "misconfigured, which passes", func(s *scene) { s.park("misconfigured") }},
	}
}

func endExamples() []example {
	return []example{
		{"a third delivery without a disturbance", SettlesSoon, "was needed", func(s *scene) {
			for range 3 {
				s.Delivered(s.first)
			}
		}},
		{"a duplicate makes two calls", CheapDuplicate, "made 2 calls", func(s *scene) {
			s.pay()
			s.WorkerBegins(s.worker, 0, true)
			s.worker.calls = 2
			s.WorkerEnds(s.worker, 0)
		}},
		{"the queue loses a message", EverythingEnds, "the queue lost a message", func(s *scene) {
			s.pay()
			s.expired = 1
			s.rest()
		}},
		{"an order stays open", EverythingEnds, "message 1 is gone () and the order is open", func(s *scene) {
			s.begin()
			s.rest()
		}},
		{"an outage leaves an order open", EverythingEnds, "is gone (misconfigured)", func(s *scene) {
			s.begin()
			s.worker.Absurd = true // so that it may park
			s.park("misconfigured")
			s.rest()
		}},
		{"a world does not settle", SettlesSoon, "not settled after 3000 steps", func(s *scene) { s.Continue(3001) }},
	}
}

// secondMessage are examples with a second message: one with another content.
func secondMessage() []example {
	paid := func(s *scene) *Batch {
		s.pay()
		b := s.batch()
		b.Finished("ORD-1")
		b.Parked(1)
		return b
	}
	return []example{
		{"other content is gone", ConflictParked, "has other content and was not parked", func(s *scene) {
			s.pay()
			s.rest()
		}},
		{"a message of a batch gets no reply", AllAnswered, "2 messages were received, and 1 answered of 2", func(s *scene) {
			paid(s).Ended([]string{"0", "1"}, 2, 1)
		}},
		{"a message of a batch is ignored", AllAnswered, "1 messages were received, and 1 answered of 2", func(s *scene) {
			paid(s).Ended([]string{"0", "1"}, 1, 1)
		}},
	}
}

// An oracle that misses a violation would find none in any world. The planted bugs show
// the violations that are not here, and the worlds that the oracle accepts what is right.
func TestTheOracleDetectsEachViolation(t *testing.T) {
	t.Parallel()
	check := func(e example, sent ...Sent) {
		s := newScene(sent...)
		if e.run(s); s.Broken() == nil || s.Broken().Invariant != e.breaks || !strings.Contains(s.Broken().Detail, e.says) {
			t.Errorf("%s: got %v, want %s: ... %s ...", e.name, s.Broken(), e.breaks, e.says)
		}
	}
	for _, e := range slices.Concat(bookExamples(), parkExamples(), endExamples()) {
		check(e)
	}
	for _, e := range secondMessage() {
		check(e, mugs(), another())
	}
	other := mugs()
	other.ID = "ORD-2"
	check(example{"a settled order comes back with its neighbor", NeighborsApart, "message 1 comes back", func(s *scene) {
		s.pay()
		b := s.batch()
		b.Finished("ORD-1")
		b.Parked(1)
		b.Ended([]string{"1"}, 2, 2)
	}}, mugs(), other)
}

// wants reports whether a violation is of the invariant and contains the text.
func wants(got *stage.Violation, i stage.Invariant, text string) bool {
	return got != nil && got.Invariant == i && strings.Contains(got.Detail, text)
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheReasonsForPeopleAreThoseThatThePageParksAtOnce(t *testing.T) {
	t.Parallel()
	page := map[order.Reason]bool{}
	table := document(t, "docs/reference/failures.md")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|[^|]*\\| (\\w+)").FindAllStringSubmatch(table, -1) {
		page[order.Reason(row[1])] = row[2] == "parks"
	}
	for _, r := range order.Reasons() {
		if parks, known := page[r]; !known || parks != forPeople(r) {
			t.Errorf("%s: on the page: %t, parked at once there: %t; for people here: %t", r, known, parks, forPeople(r))
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
	queue := document(t, "infra/terraform/modules/orderonce/queue.tf")
	design := document(t, "docs/design.md")
	row := document(t, "docs/reference/row.md")
	recheck := func(s order.Status, unit time.Duration) int {
		after, _ := recheckAfter(s)
		return int(after / unit)
	}
	for _, tt := range []struct {
		text, pattern string
		want          int
	}{
		{queue, `each.value.visibility >= (\d+) \* local.functions`, int(Visibility / FunctionTime)},
		{queue, `(?s)"aws_sqs_queue" "queues" {.*?message_retention_seconds\s+= (\d+) \* 24 \* 60 \* 60`, int(Retention / Day)},
		{queue, `(?s)"aws_sqs_queue" "dead_letters" {.*?message_retention_seconds\s+= (\d+) \* 24 \* 60 \* 60`, int(DeadRetention / Day)},
		{queue, `receives\s+= (\d+)`, MaxReceives},
		{design, `parked after (\d+) (?:deliveries|attempts)`, maxFailures},
		{design, `the queue's retention less (a) day`, int(LastDay / Day)},
		{row, `when to look next: (\d+) minutes after the last claim of an open order`, recheck(order.Open, time.Minute)},
		{row, `(\d+) hour after it became pending`, recheck(order.Pending, time.Hour)},
		{row, `(\d+) hours\s+after it became action_required`, recheck(order.ActionRequired, time.Hour)},
	} {
		m := regexp.MustCompile(tt.pattern).FindStringSubmatch(tt.text)
		if m == nil {
			t.Errorf("no match for %s", tt.pattern)
			continue
		}
		if got := strings.Replace(m[1], "a", "1", 1); got != strconv.Itoa(tt.want) {
			t.Errorf("%s: got %s, want %d", tt.pattern, got, tt.want)
		}
	}
}

// A more serious violation that follows is the result. Otherwise the history ends where
// the noted one is.
func TestTheMoreSeriousViolationIsTheResult(t *testing.T) {
	t.Parallel()
	for later, want := range map[stage.Invariant]stage.Invariant{ChargedOnce: ChargedOnce, CheapDuplicate: BooksAgree} {
		o := newScene().Oracle
		o.note(BooksAgree, "ORD-1", "noted")
		o.fail(later, "ORD-1", "later")
		if got, noted := o.Conclude(); got.Invariant != want || noted != (want == BooksAgree) {
			t.Errorf("after %s: got %v, noted: %t; want %s", later, got, noted, want)
		}
	}
}
