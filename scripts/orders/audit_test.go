package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/dispute"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
	"orderonce/scripts/orders/audit"
)

// auditLine is the beginning of a command line that is not slowed down.
const auditLine = "audit --stripe-rate=1e6 --table-rate=1e6 "

// later is when the tests audit: every lease and every idempotency key has ended.
func later() time.Time { return noon().Add(2 * day) }

// auditFixture is a deployment whose books a test falsifies.
type auditFixture struct {
	*deployment

	methods map[order.ID]string // with which the orders were posted
	backups map[order.ID][]dynamodb.Item
}

func newAuditFixture(t *testing.T) *auditFixture {
	t.Helper()
	return &auditFixture{
		deployment: deploy(t), methods: map[order.ID]string{}, backups: map[order.ID][]dynamodb.Item{},
	}
}

func (w *auditFixture) lose(id order.ID) { w.remove(w.of(id)...) }

// at processes an order's message at a time.
func (w *auditFixture) at(now time.Time, id order.ID, method string) {
	w.Helper()
	w.methods[id] = method
	w.deliver(ordertest.OrderWith(id, method), now)
}

// intentOf returns the intent that an order's row names.
func (w *auditFixture) intentOf(id order.ID) string {
	w.Helper()
	r, err := w.store.Load(w.Context(), id)
	must(w.T, err)
	return string(r.Intent)
}

// audit runs `orders audit` two days later, and returns what it printed, its exit code
// and the class of each order that the CSV file names.
func (w *auditFixture) audit(flags string) (printed string, code int, classes map[order.ID]audit.Class) {
	w.Helper()
	name := filepath.Join(w.TempDir(), "audit.csv")
	printed, code = w.runs(step{line: auditLine + "--from=49h --to=47h --csv " + name + " " + flags, later: 2 * day})
	text, err := os.ReadFile(name)
	must(w.T, err)
	records, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	must(w.T, err)
	classes = map[order.ID]audit.Class{}
	for _, r := range records[1:] {
		classes[order.ID(r[0])] += audit.Class(r[1])
	}
	return printed, code, classes
}

// planted is one way in which the books of an order can differ.
type planted struct {
	method  string // "": it pays at the second attempt, and its row of the first one is a backup
	falsify func(order.ID)
	class   audit.Class // "": they match
}

// plants returns an order for each way.
func (w *auditFixture) plants() map[order.ID]planted {
	edits := func(attributes dynamodb.Item) func(order.ID) {
		return func(id order.ID) { w.edit(id, attributes) }
	}
	restores := func(id order.ID) { w.put(w.backups[id]...) }
	cancels := func(id order.ID) {
		w.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Confirm})
		w.at(noon().Add(time.Minute), id, pays)
		bound := w.intentOf(id)
		w.atStripe(func(m *stripetest.Machine, now time.Time) error { return m.CancelInDashboard(now, bound) })()
	}
	refunds := func(id order.ID) { w.refund(id, noon) }
	returns := func(id order.ID) { // the bank does
		refunds(id)
		intent := w.intentOf(id)
		w.atStripe(func(m *stripetest.Machine, _ time.Time) error {
			for _, r := range m.Refunds() {
				if r.Intent == intent {
					return m.ChangeRefund(r.ID, stripetest.RefundFailed)
				}
			}
			return errors.New("no refund")
		})()
	}
	return map[order.ID]planted{
		"FINE":           {pays, func(id order.ID) { w.another(id, string(scope), false) }, ""},
		"REFUND-HELD":    {pays, func(id order.ID) { w.givesBack(w.intentOf(id), 998)() }, ""}, // a worker refunds it
		"REFUND-FINE":    {pays, refunds, ""},
		"HELD":           {"", func(order.ID) {}, ""},
		"LOST-PAID":      {pays, w.lose, audit.MissingRow},
		"LOST-ROW":       {pays, w.erase, audit.MissingRow},
		"LOST-CANCELED":  {"", func(id order.ID) { cancels(id); w.lose(id) }, audit.MissingRow},
		"OLDER-CANCELED": {"", func(id order.ID) { cancels(id); restores(id) }, audit.RowOlder},
		"OLDER-UNBOUND":  {"", func(id order.ID) { w.lose(id); restores(id) }, audit.RowOlder},
		"OLDER-FIRST":    {"", restores, audit.RowOlder}, // its event would collide with the next one
		"OLDER-SEQ": {"", func(id order.ID) {
			bound := dynamodb.Text(w.intentOf(id))
			restores(id)
			w.edit(id, dynamodb.Item{"intentId": bound})
		}, audit.RowOlder},
		"OLDER-PENDING": {takes, func(id order.ID) { w.banks(w.intentOf(id))() }, audit.RowOlder},
		"OLDER-DECLINED": {declines, func(id order.ID) {
			intent := w.intentOf(id)
			w.atStripe(func(m *stripetest.Machine, now time.Time) error { return m.CustomerPays(now, intent) })()
		}, audit.RowOlder},
		"REFUND-OUTSIDE": {pays, func(id order.ID) { w.givesBack(w.intentOf(id), 998)() }, audit.RefundsDiffer},
		"REFUND-OURS": {pays, func(id order.ID) {
			before := w.of(id)
			refunds(id)
			w.lose(id)
			w.put(before...)
		}, audit.RefundsDiffer},
		"REFUND-FAILED": {pays, returns, audit.RefundsDiffer},
		"REFUND-REMADE": {pays, func(id order.ID) { // so that the sum is the same
			returns(id)
			w.givesBack(w.intentOf(id), 1000)()
		}, audit.RefundsDiffer},
		"REFUND-UNKNOWN": {pays, func(id order.ID) {
			must(w.T, w.begin(id, "R-1", noon()).Finish(w.Context(), refundtable.New(w.store), refund.Outcome{Status: refund.Unknown}, noon()))
		}, audit.RefundUnknown},
		"DISPUTED": {pays, func(id order.ID) { w.dispute(id) }, audit.DisputeUnrecorded},
		"DISPUTE-WON": {pays, func(id order.ID) {
			opened := w.dispute(id)
			w.follow(id)
			w.atStripe(func(m *stripetest.Machine, _ time.Time) error { return m.CloseDispute(opened, true) })()
		}, audit.DisputeUnrecorded},
		"TWICE":     {pays, func(id order.ID) { w.another(id, string(scope), true) }, audit.TwoCharges},
		"NO-INTENT": {declines, edits(dynamodb.Item{"intentId": dynamodb.Text("pi_999999")}), audit.IntentMissing},
		"CORRUPT":   {pays, edits(dynamodb.Item{"fingerprint": nil}), audit.RowUnreadable},
	}
}

// dispute disputes the charge of an order, and returns the dispute's id.
func (w *auditFixture) dispute(id order.ID) (opened string) {
	w.Helper()
	intent := w.intentOf(id)
	w.atStripe(func(m *stripetest.Machine, now time.Time) (err error) {
		d, err := m.OpenDispute(now, intent)
		opened = d.ID
		return err
	})()
	return opened
}

// follow does what a webhook would.
func (w *auditFixture) follow(id order.ID) {
	w.Helper()
	f := settle.Follower{
		Store: w.store, Payments: w.payments, Scope: scope, Now: noon,
		Disputes: dispute.New(stripe.Options{Key: pretendKey, BaseURL: w.stripe.URL}),
	}
	_, _, err := f.Follow(w.Context(), settle.Hint{OrderID: id, Disputed: true})
	must(w.T, err)
}

// verified returns of which orders `orders verify` finds something, and files instead of
// table and Stripe have the same.
func (w *auditFixture) verified() (found map[order.ID]bool) {
	w.Helper()
	dir := w.TempDir()
	for _, from := range []string{
		"--stripe-rate=1e6 --table-rate=1e6 --save=" + dir, "--rows=" + dir + "/rows.jsonl --stripe=" + dir + "/stripe.jsonl",
	} {
		printed, code := w.runs(step{line: "verify --json --from=49h --to=47h --rest=0s " + from, later: 2 * day})
		before := found
		found = map[order.ID]bool{}
		for _, match := range regexp.MustCompile(`(?m)^{"orderId":"([^"]+)","findings"`).FindAllStringSubmatch(printed, -1) {
			found[order.ID(match[1])] = true
		}
		if diff := cmp.Diff(before, found); code != 2 || before != nil && diff != "" {
			w.Errorf("exit code %d (-live +files):\n%s\n%s", code, diff, printed)
		}
	}
	return found
}

func TestAnAuditNamesAndRepairsWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newAuditFixture(t)
	want, left := map[order.ID]audit.Class{}, map[order.ID]audit.Class{}
	plants := w.plants()
	for _, id := range slices.Sorted(maps.Keys(plants)) {
		p := plants[id]
		if p.method == "" {
			w.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create})
			w.at(noon(), id, pays)
			w.backups[id] = w.of(id) // open, without an intent
		}
		switch {
		case p.method != "":
			w.at(noon(), id, p.method)
		case id != "HELD" && !strings.HasSuffix(string(id), "-CANCELED"):
			w.at(noon().Add(time.Minute), id, pays)
		}
		if p.falsify(id); p.class != "" {
			want[id] = p.class
		}
		if p.class != "" && !p.class.Repairable() {
			left[id] = p.class
		}
	}
	w.put(dynamodb.Item{"orderId": dynamodb.Text("CORRUPT-ALONE"), "sk": dynamodb.Text("order")}) // and no PaymentIntent
	want["CORRUPT-ALONE"], left["CORRUPT-ALONE"] = audit.RowUnreadable, audit.RowUnreadable
	live := w.of("FINE")[1] // the row of an order in Stripe's other mode
	live["orderId"], live["stripeMode"] = dynamodb.Text("LIVE"), dynamodb.Text("live")
	w.put(live)
	w.another("FOREIGN", "other", true)
	w.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create})
	w.at(noon(), "EDGE", pays) // its intent is made after the window
	w.stripe.Advance(2 * day)
	w.at(later(), "EDGE", pays)
	lease := order.Lease{Owner: "worker", From: later(), Until: later().Add(time.Minute)}
	_, err := order.Begin(t.Context(), w.store, ordertest.Order("HELD"), lease, nil)
	must(t, err)
	w.begin("REFUND-HELD", "R-1", later())
	charges := w.charges()
	charges["HELD"] = 1 // when its message comes back
	differing := map[order.ID]bool{}
	for id, class := range want {
		if class != audit.RefundUnknown {
			differing[id] = true
		}
	}
	if diff := cmp.Diff(differing, w.verified()); diff != "" {
		t.Errorf("orders verify (-want +got):\n%s", diff)
	}
	printed, code, classes := w.audit("--repair --yes")
	if diff := cmp.Diff(want, classes); diff != "" || code != 2 {
		t.Errorf("got exit code %d, want 2, and findings (-want +got):\n%s", code, diff)
	}
	repairable := len(want) - len(left)
	parts := fmt.Sprintf("of other scopes: 1\nof another time or mode: 1\n%d orders: 3 match, 2 in progress, %d differ\n"+
		"unbound PaymentIntents that hold no money\n"+
		"dispute_unrecorded DISPUTED  row not disputed, Stripe du_\nLOST-PAID  write the row, bind pi_\nrepaired %d of %d orders",
		len(want)+5, len(want), repairable, repairable)
	if part := missingPart(printed, parts); part != "" {
		t.Errorf("printed\n%s\nwant %q in it", printed, part)
	}
	for _, id := range slices.Sorted(maps.Keys(w.methods)) { // deliver each message again
		w.at(later().Add(time.Hour), id, w.methods[id])
	}
	for _, id := range []order.ID{"LOST-CANCELED", "OLDER-CANCELED"} {
		if r, err := w.store.Load(t.Context(), id); err != nil || r.Status != order.Canceled {
			t.Errorf("%s: got %s, %v, want it canceled", id, r.Status, err)
		}
	}
	if diff := cmp.Diff(charges, w.charges()); diff != "" {
		t.Errorf("charges after a redelivery (-want +got):\n%s", diff)
	}
	if _, _, again := w.audit(""); !cmp.Equal(left, again) {
		t.Errorf("a second audit found (-want +got):\n%s", cmp.Diff(left, again))
	}
}

// A refund belongs to the time when it was made, however old its order is.
func TestAnAuditFindsARefundOfAnOlderOrder(t *testing.T) {
	t.Parallel()
	w := newAuditFixture(t)
	w.at(noon(), "ORD-1", pays)
	w.stripe.Advance(2 * day)
	for range 2 { // one PaymentIntent, two refunds
		w.givesBack(w.intentOf("ORD-1"), 998)()
	}
	w.steps(
		step{
			line: "audit --from 1h --to 0s --repair --yes", later: 2*day + time.Minute,
			want: "1 refunds_differ\nrefunds_differ     ORD-1  row 0.00 USD, Stripe 19.96 USD given back\nrepaired 1 of 1",
		},
		step{line: "audit --from 1h --to 0s", later: 2*day + time.Minute, want: "1 orders: 1 match"},
		step{
			line: "audit --from 1h --to 0s", later: 2*day + time.Minute, claim: "one charge, without a row", code: 2,
			before: func() { w.lose("ORD-1") }, want: "missing_row        ORD-1",
		},
	)
}

// charges returns how often each order was charged.
func (w *auditFixture) charges() map[string]int {
	all := map[string]int{}
	w.stripe.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			if c.Outcome == stripetest.Charged {
				all[c.OrderID]++
			}
		}
	})
	return all
}

func TestAnInterruptedAuditSaysHowToContinue(t *testing.T) {
	t.Parallel()
	w := newAuditFixture(t)
	w.at(noon(), "ORD-1", pays)
	w.lose("ORD-1")
	w.stripe.Fail(stripetest.Fault{Kind: stripetest.Forbidden, On: stripetest.List})
	page := filepath.Join(t.TempDir(), "a.html")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	const window, resume = "--from=49h --to=47h ", "context canceled\ncontinue it: orders audit --resume "
	printed, code := w.runs(step{ctx: canceled, line: auditLine + window, later: 2 * day})
	if part := missingPart(printed, resume); part != "" || code != 1 {
		t.Fatalf("Ctrl-C: got exit code %d and\n%s\nwant 1 and %q", code, printed, part)
	}
	dir := strings.Fields(printed[strings.Index(printed, "--resume "):])[1]
	again := auditLine + "--resume " + dir
	w.steps(
		step{line: again, later: 2 * day, code: 1, claim: "no permission", want: "permission\ncontinue it: orders audit --resume " + dir},
		step{line: again, later: 2 * day, code: 1, environ: "SCOPE=other", want: audit.ErrOtherJob.Error()},
		step{
			line: again + " --repair", later: 2 * day, typed: "no\n", code: 1,
			want: `Type "repair" to repair 1 orders. No money moves: ` + "\nnothing was changed\ncontinue it",
		},
		step{
			line: again + " --json", later: 2 * day, code: 2,
			want: `{"orderId":"ORD-1","class":"missing_row","intent":"pi_000001",` +
				`"detail":"no row, pi_000001 succeeded, 39.98 USD","risk":"charged_again","bind":true}` + "\n" + `{"summary":{`,
		},
		step{line: auditLine + window + "--repair --html " + page, later: 2 * day, typed: "repair\n", want: "repaired 1 of 1 orders"},
	)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the work folder is left: %v", err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "missing_row") {
		t.Errorf("page: %v\n%s", err, text)
	}
}

// Stripe shows how much went back, and its list of refunds lags.
func TestARepairThatChangesNothingIsReported(t *testing.T) {
	t.Parallel()
	d := deployWith(t, stripetest.Options{Rules: stripetest.Rules{RefundLag: 9 * day}})
	d.process(pays, "ORD-1")
	d.givesBack("pi_000001", 998)()
	d.steps(step{
		line: auditLine + "--from 1h --to 0s --repair --yes", later: time.Minute, code: 2,
		want: "refunds_differ     ORD-1\nnot repaired: ORD-1: it still differs: \nrepaired 0 of 1 orders",
	})
}

// TestTheGuideShowsARealSession compares the session in docs/guides/audit.md with what
// the command prints.
func TestTheGuideShowsARealSession(t *testing.T) {
	t.Parallel()
	w := newAuditFixture(t)
	for n := range 7 {
		w.at(noon(), order.ID(fmt.Sprintf("ORD-100%d", n)), pays)
	}
	w.at(noon(), "ORD-1007", takes)
	w.lose("ORD-1001")
	w.another("ORD-1003", string(scope), true)
	w.givesBack(w.intentOf("ORD-1004"), 1998)()
	w.banks(w.intentOf("ORD-1007"))()
	guide, err := os.ReadFile("../../docs/guides/audit.md")
	must(t, err)
	printed, _ := w.runs(step{line: auditLine + "--from=2026-11-21 --to=2026-11-22 --repair", typed: "repair\n", later: 2 * day})
	if printed = strings.ReplaceAll(printed, w.engine.Table, "orderonce-dev-orders"); !strings.Contains(string(guide), printed) {
		t.Errorf("docs/guides/audit.md lacks\n%s", printed)
	}
}
