package oracle

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/lab/stage"
)

// example is a short history that breaks one invariant, and that breaks none if it is
// right.
type example struct {
	name   string
	breaks stage.Invariant
	says   string // a part of the violation
	setup  setup
	run    func(c *scene, right bool)
}

func chargeExamples() []example {
	return []example{
		{"an order is charged before it has a row", BooksAgree, "without a row", one(visa), func(c *scene, right bool) {
			if right {
				c.begin()
			}
			c.charge(0)
			c.step()
		}},
		{"another amount is charged", ChargedAmount, "5997 usd were charged", twoContents(), func(c *scene, right bool) {
			c.begin()
			c.charge(either(right, 0, 1))
			c.step()
		}},
		{"another currency is charged", ChargedAmount, "3998 eur were charged", one(visa), func(c *scene, right bool) {
			c.begin()
			c.confirm(c.prepare(c.sales[0].order(c.t, either(right, "usd", "eur"))))
			c.step()
		}},
		{
			"an intent that is not bound is charged", BooksAgree, "the row says declined and there are 1 charges",
			one(declined, visa), func(c *scene, right bool) {
				c.write(c.begin(), c.charge(0), order.Declined)
				c.step()
				if !right {
					c.charge(1)
				}
				c.oracle.of("ORD-1").parked[1] = "conflict"
				c.rest()
			},
		},
	}
}

func cancelExamples() []example {
	return []example{
		{"a canceled order is charged", BooksAgree, "canceled, and then charged", one(visa), func(c *scene, right bool) {
			c.begin()
			c.cancelOrder()
			if !right {
				c.charge(0)
			}
			c.rest()
		}},
		{"a cancel leaves an order open", BooksAgree, "no error, and the order is open", one(visa), func(c *scene, right bool) {
			c.begin()
			if right {
				c.cancelOrder()
			}
			r, _ := c.store.Peek("ORD-1")
			c.oracle.CancelReturned("ORD-1", r.Status)
		}},
	}
}

func rowExamples() []example {
	return []example{
		{"two changes of a dispute are one change", OneEventEach, "2 changes, 3 events", one(visa), func(c *scene, right bool) {
			c.payOrder()
			for _, s := range []order.DisputeStatus{order.DisputeOpen, order.DisputeLost} {
				r, _ := c.Row("ORD-1")
				c.must(settle.RecordDispute(c.t.Context(), c.store, r, order.Dispute{ID: "du_1", Status: s}, c.now))
				if right {
					c.step()
				}
			}
			c.step()
		}},
		{"an event comes without a change", OneEventEach, "1 changes, 2 events", one(visa), func(c *scene, right bool) {
			c.payOrder()
			if !right {
				c.clearTable()
				c.write(c.claim(0), "pi_1", order.Declined)
				c.settlePaid()
			}
			c.step()
		}},
	}
}

func declineExamples() []example {
	return []example{
		{"a charged order is declined", NoFalseDecline, "and the order was charged", one(visa), func(c *scene, right bool) {
			if right { // the intent was changed after Stripe's response
				c.oracle.ChangedOutside("ORD-1")
			}
			claim, id := c.begin(), c.charge(0)
			c.write(claim, id, order.Declined)
			c.step()
		}},
	}
}

func acknowledgmentExamples() []example {
	return []example{
		{"only the end of an odd worker explains a delivery", SettlesSoon, "delivery 1 was needed", one(visa), func(c *scene, right bool) {
			for n := range 3 {
				if n == 2 {
					c.oracle.WorkerEnds(c.worker, 0, right)
				}
				c.oracle.Delivered(c.deliveries[0])
			}
		}},
		{"a duplicate makes two calls", CheapDuplicate, "made 2 calls", one(visa), func(c *scene, right bool) {
			c.payOrder()
			c.oracle.WorkerBegins(c.worker, 0, true)
			c.worker.calls = either(right, 1, 2)
			c.oracle.WorkerEnds(c.worker, 0, false)
		}},
	}
}

func parkExamples() []example {
	sixDays := 6*Day - 5*time.Minute // by a clock that is as slow as an honest one can be
	park := func(right, wrong order.Reason) func(c *scene, right bool) {
		return func(c *scene, is bool) { c.park(0, either(is, right, wrong)) }
	}
	return []example{
		{"a message is parked without a reason", EverythingEnds, "without a reason", one(visa), park("refused", "")},
		{"a key of this order parks it", SettlesSoon, "the table knows its order", one(visa), park("refused", "key_reused")},
		{"an outage parks", SettlesSoon, "store_unavailable, which passes", one(visa), park("mismatch", "store_unavailable")},
		{"an outage parks too early", SettlesSoon, "store_unavailable, which passes", one(visa), func(c *scene, right bool) {
			c.now = c.now.Add(sixDays - either(right, 0, time.Duration(1)))
			c.park(0, "store_unavailable")
		}},
		{"too few failures park", SettlesSoon, "unconfirmed, which passes", one(visa), func(c *scene, right bool) {
			c.deliveries[0].Receives = either(right, 20, 19)
			c.park(0, "unconfirmed")
		}},
		{"an outage parks after many deliveries", SettlesSoon, "provider_unknown, which passes", one(visa), func(c *scene, right bool) {
			c.deliveries[0].Receives = 900
			c.park(0, either[order.Reason](right, "panic", "provider_unknown"))
		}},
		{"an honest clock parks", SettlesSoon, "misconfigured, which passes", one(visa), func(c *scene, right bool) {
			c.worker.Absurd = right
			c.park(0, "misconfigured")
		}},
	}
}

func restExamples() []example {
	return []example{
		{"the queue loses a message", EverythingEnds, "the queue lost a message", one(visa), func(c *scene, right bool) {
			c.payOrder()
			c.expired, c.oracle.subject.Loses = 1, right
			c.rest()
		}},
		{"an order stays open", EverythingEnds, "message 1 is gone () and the order is open", one(visa), func(c *scene, right bool) {
			c.begin()
			if right {
				c.park(0, "mismatch")
			}
			c.rest()
		}},
		{"an outage leaves an order open", EverythingEnds, "is gone (misconfigured)", one(visa), func(c *scene, right bool) {
			c.begin()
			c.worker.Absurd = true // so that it may park
			c.park(0, either[order.Reason](right, "mismatch", "misconfigured"))
			c.rest()
		}},
		{"other content is gone", ConflictParked, "has other content and was not parked", twoContents(), func(c *scene, right bool) {
			c.payOrder()
			if right {
				c.park(1, "conflict")
			}
			c.rest()
		}},
		{"a world does not settle", SettlesSoon, "not settled after 3000 steps", one(visa), func(c *scene, right bool) {
			c.oracle.Continue(either(right, mostUsual, mostUsual+1))
		}},
	}
}

func baselineExamples() []example {
	baseline := one(visa)
	baseline.subject.Done = func(order.ID) bool { return true }
	return []example{
		{"a baseline charges twice", ChargedOnce, "2 successful charges", baseline, func(c *scene, right bool) {
			c.charge(0)
			if !right {
				c.charge(0)
			}
			c.step()
		}},
		{"a baseline's message never ends", SettlesSoon, "is a dead letter again", baseline, func(c *scene, right bool) {
			c.charge(0)
			if right {
				c.oracle.Acknowledged(0)
			}
			c.rest()
		}},
		{"a baseline loses an order", EverythingEnds, "nothing was charged", baseline, func(c *scene, right bool) {
			if right {
				c.charge(0)
			}
			c.oracle.Acknowledged(0)
			c.rest()
		}},
		{"a baseline does not record a charge", BooksAgree, "the table does not say so", baseline, func(c *scene, right bool) {
			c.oracle.subject.Done = func(order.ID) bool { return right }
			c.charge(0)
			c.oracle.Acknowledged(0)
			c.rest()
		}},
	}
}

// batch returns a batch of all messages. With a group it is from a FIFO queue.
func (c *scene) batch(group string) *Batch {
	for i := range c.deliveries {
		c.deliveries[i].Group = group
	}
	return c.oracle.NewBatch(c.deliveries)
}

func batchExamples() []example {
	poison := setup{sales: []sale{sold(visa), {id: "POISON", poison: true}}}
	paid := func(c *scene) *Batch {
		c.payOrder()
		b := c.batch("")
		b.Finished("ORD-1")
		b.Parked(1)
		return b
	}
	return []example{
		{"a message of a batch gets no reply", AllAnswered, "2 messages were received, and 1 answered of 2", poison, func(c *scene, right bool) {
			paid(c).Ended([]string{"0", "1"}, 2, either(right, 2, 1))
		}},
		{"a message of a batch is ignored", AllAnswered, "1 messages were received, and 1 answered of 2", poison, func(c *scene, right bool) {
			n := either(right, 2, 1)
			paid(c).Ended([]string{"0", "1"}, n, n)
		}},
		{"a settled order comes back with its neighbor", NeighborsApart, "message 1 comes back", poison, func(c *scene, right bool) {
			paid(c).Ended(either(right, []string{"1", "0"}, []string{"1"}), 2, 2)
		}},
	}
}

// An oracle that misses a violation would find none in any world. The planted bugs show
// the violations that are not here.
func TestTheOracleDetectsEachViolationAndAcceptsItsRightTwin(t *testing.T) {
	t.Parallel()
	for _, e := range slices.Concat(
		chargeExamples(), cancelExamples(), rowExamples(), declineExamples(), acknowledgmentExamples(), parkExamples(), restExamples(),
		baselineExamples(), batchExamples(), laterExamples(),
	) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			wrong, right := newScene(t, e.setup), newScene(t, e.setup)
			e.run(wrong, false)
			if got := wrong.oracle.Broken(); !wants(got, e.breaks, e.says) {
				t.Errorf("got %v, want %s: ... %s ...", got, e.breaks, e.says)
			}
			e.run(right, true)
			if got := right.oracle.Broken(); got != nil {
				t.Errorf("the right twin: got %s", got)
			}
		})
	}
}

func TestTheOracleAcceptsUnusualButCorrectHistories(t *testing.T) {
	t.Parallel()
	baseline := one(declined)
	baseline.subject.Done = func(order.ID) bool { return false }
	for name, e := range map[string]struct {
		setup setup
		run   func(c *scene)
	}{
		"a baseline's order that cannot be paid is gone": {baseline, func(c *scene) {
			c.oracle.Acknowledged(0)
			c.rest()
		}},
		"a message that is not an order is parked": {setup{sales: []sale{{id: "ORD-1", poison: true}}}, func(c *scene) {
			c.park(0, "invalid_order")
			c.rest()
		}},
		"an order that was not settled comes back": {one(visa), func(c *scene) { c.batch("").Ended(nil, 1, 1) }},
		"another message of a settled order comes back": {one(visa, visa), func(c *scene) {
			b := c.batch("")
			b.Finished("ORD-1")
			b.Ended(nil, 2, 2)
		}},
		"a declined intent is canceled without a report": {one(declined), func(c *scene) {
			claim, id := c.begin(), c.charge(0)
			c.write(claim, id, order.Declined)
			c.step()
			c.must(c.stripe.CancelInDashboard(c.now, string(id)))
			c.rest()
		}},
		"a new order makes many calls": {one(visa), func(c *scene) {
			c.begin()
			c.oracle.WorkerBegins(c.worker, 0, true)
			c.worker.calls = 5
			c.oracle.WorkerEnds(c.worker, 0, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newScene(t, e.setup)
			e.run(c)
			if got := c.oracle.Broken(); got != nil {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestTheOracleAllowsTheTransitionsOfTheDiagram(t *testing.T) {
	t.Parallel()
	want, got := map[string]bool{}, map[string]bool{}
	_, rest, _ := strings.Cut(document(t, "docs/design.md"), "stateDiagram-v2\n") // the second diagram is of refunds
	diagram, _, _ := strings.Cut(rest, "```")
	for _, arrow := range regexp.MustCompile(`(?m)^  (\w+) --> (\w+)`).FindAllStringSubmatch(diagram, -1) {
		want[arrow[1]+" "+arrow[2]] = true
	}
	delete(want, "open out_of_stock") // the worlds track no stock
	statuses := []order.Status{order.Open, order.Paid, order.Declined, order.Canceled, order.ActionRequired, order.Pending, order.Refused}
	for _, from := range statuses {
		for _, to := range statuses {
			if allowed(from, to) {
				got[string(from)+" "+string(to)] = true
			}
		}
	}
	if d := cmp.Diff(got, want); d != "" || len(got) == 0 {
		t.Errorf("(-oracle +diagram)\n%s", d)
	}
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
	queue, orders := document(t, "infra/terraform/queue.tf"), document(t, "infra/terraform/order.tf")
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
		{orders, `receives\s+= (\d+)`, MaxReceives},
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
		o := newScene(t, one(visa)).oracle
		o.note(BooksAgree, "ORD-1", "noted")
		o.fail(later, "ORD-1", "later")
		if got, noted := o.Conclude(); got.Invariant != want || noted != (want == BooksAgree) {
			t.Errorf("after %s: got %v, noted: %t; want %s", later, got, noted, want)
		}
	}
}
