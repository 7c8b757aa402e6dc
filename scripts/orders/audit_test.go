package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/dispute"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/audit"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// Payment methods of the Stripe double.
const (
	pays     = "pm_card_visa"
	declines = "pm_card_chargeDeclined"
	takes    = "pm_usBankAccount_processing"
)

// twoDays is when the tests audit: every lease and every idempotency key has ended.
const twoDays = 48 * time.Hour

func later() time.Time { return noon().Add(twoDays) }

func text(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }

// town is a deployment whose books a test falsifies.
type town struct {
	*testing.T
	deployment

	methods map[order.ID]string // with which the orders were posted
}

func build(t *testing.T) town {
	t.Helper()
	return town{t, deploy(t), map[order.ID]string{}}
}

// items returns the items of an order, its events first.
func (w town) items(id order.ID) []map[string]types.AttributeValue {
	w.Helper()
	out, err := w.table.Client.Query(w.Context(), &sdk.QueryInput{
		TableName: &w.table.Table, KeyConditionExpression: aws.String("orderId = :id"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: map[string]types.AttributeValue{":id": text(string(id))},
	})
	must(w.T, err)
	return out.Items
}

// erase deletes the items of an order. It keeps the events if only is "order".
func (w town) erase(id order.ID, only string) {
	w.Helper()
	for _, item := range w.items(id) {
		sk := item["sk"].(*types.AttributeValueMemberS).Value
		if !strings.HasPrefix(sk, only) {
			continue
		}
		key := map[string]types.AttributeValue{"orderId": item["orderId"], "sk": item["sk"]}
		_, err := w.table.Client.DeleteItem(w.Context(), &sdk.DeleteItemInput{TableName: &w.table.Table, Key: key})
		must(w.T, err)
	}
}

// older puts the items of an order back that a backup has.
func (w town) older(id order.ID, backup []map[string]types.AttributeValue, keepEvents bool) {
	w.Helper()
	if !keepEvents {
		w.erase(id, "")
	}
	for _, item := range backup {
		_, err := w.table.Client.PutItem(w.Context(), &sdk.PutItemInput{TableName: &w.table.Table, Item: item})
		must(w.T, err)
	}
}

// edit sets attributes of a row; nil removes one.
func (w town) edit(id order.ID, changes map[string]any) {
	w.Helper()
	rows := w.items(id)
	row := rows[len(rows)-1]
	for name, value := range changes {
		switch value := value.(type) {
		case nil:
			delete(row, name)
		case int:
			row[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(value)}
		case string:
			row[name] = text(value)
		}
	}
	w.older(id, []map[string]types.AttributeValue{row}, true)
}

// at processes an order's message at a time. The producer has just sent it, so that its
// age prevents nothing.
func (w town) at(now time.Time, id order.ID, method string) {
	w.Helper()
	w.methods[id] = method
	d := ordertest.Draft(id)
	d.Payment.Method = method
	o, err := order.New(d)
	must(w.T, err)
	p := &order.Processor{
		Claims: w.store, Payments: w.payments, Scope: scope, ConfirmTime: time.Second, Now: func() time.Time { return now },
	}
	lease := order.Lease{Owner: fmt.Sprint("owner-", id, now.Unix()), From: now, Until: now.Add(time.Minute)}
	p.Process(w.Context(), o, now, lease)
}

// intentOf returns the intent that an order's row names.
func (w town) intentOf(id order.ID) string {
	w.Helper()
	r, err := w.store.Load(w.Context(), id)
	must(w.T, err)
	return string(r.Intent)
}

// atStripe changes the Stripe double.
func (w town) atStripe(change func(m *stripetest.Machine, now time.Time) error) {
	w.Helper()
	w.stripe.Machine(func(m *stripetest.Machine) { must(w.T, change(m, w.stripe.Now())) })
}

// another creates a second intent of an order at Stripe, confirmed or not.
func (w town) another(id order.ID, scope string, confirm bool) {
	w.Helper()
	form := url.Values{
		"amount": {"3998"}, "currency": {"usd"}, "customer": {"cus_other"}, "payment_method": {pays},
		"metadata[orderId]": {string(id)}, "metadata[scope]": {scope},
		"automatic_payment_methods[enabled]": {"true"}, "automatic_payment_methods[allow_redirects]": {"never"},
	}
	if confirm {
		form["confirm"] = []string{"true"}
	}
	w.atStripe(func(m *stripetest.Machine, now time.Time) error {
		r := m.Do(now, stripetest.Request{Method: "POST", Path: "/v1/payment_intents", APIKey: pretendKey, Form: form})
		if r.Error != nil {
			return errors.New(r.Error.Message)
		}
		return nil
	})
}

// follow does what a webhook would.
func (w town) follow(id order.ID) {
	w.Helper()
	f := order.DisputeFollower{
		Follower: order.Follower{Records: w.store, Payments: w.payments, Scope: scope, Now: noon},
		Disputes: dispute.New(stripe.Options{Key: pretendKey, BaseURL: w.stripe.URL}), Recorder: w.store,
	}
	_, _, err := f.Follow(w.Context(), order.Hint{OrderID: id, Disputed: true})
	must(w.T, err)
}

// audit runs `orders audit` two days later, and returns what it printed and the class of
// each order that the CSV file names.
func (w town) audit(a auditTable) (printed string, classes map[order.ID]string, err error) {
	w.Helper()
	a.From, a.To, a.StripeRate, a.TableRate = "49h", "47h", 1e6, 1e6
	a.CSV = filepath.Join(w.TempDir(), "audit.csv")
	var out strings.Builder
	sh := testShell(w.environ, "", &out)
	sh.Now = later
	err = a.Run(w.Context(), sh)
	file, openErr := os.Open(a.CSV)
	must(w.T, openErr)
	defer func() { must(w.T, file.Close()) }()
	records, readErr := csv.NewReader(file).ReadAll()
	must(w.T, readErr)
	classes = map[order.ID]string{}
	for _, r := range records[1:] {
		classes[order.ID(r[0])] = strings.TrimPrefix(classes[order.ID(r[0])]+" "+r[1], " ")
	}
	return out.String(), classes, err
}

func TestAnAuditOfACleanTableMatchesEverything(t *testing.T) {
	t.Parallel()
	w := build(t)
	for n, method := range []string{pays, declines, takes, "pm_card_authenticationRequired", pays} {
		w.at(noon(), order.ID(fmt.Sprintf("ORD-%d", n)), method)
	}
	live := w.items("ORD-0")[1:] // the row of an order in Stripe's other mode
	live[0]["orderId"], live[0]["stripeMode"] = text("LIVE"), text("live")
	live[0]["intentId"] = text("pi_3Live")
	w.older("LIVE", live, true)
	w.another("ORD-0", string(scope), false)
	w.another("FOREIGN", "other", true)
	w.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create})
	w.at(noon(), "EDGE", pays) // its intent is made after the window
	w.stripe.Advance(twoDays)
	w.at(later(), "EDGE", pays)
	printed, classes, err := w.audit(auditTable{})
	if err != nil || len(classes) > 0 {
		t.Errorf("got %v and findings %v, want none", err, classes)
	}
	for _, want := range []string{
		"6 PaymentIntents; calls: 1; of other scopes: 1\n",
		"6 rows; calls: 1; of another time or mode: 1\n",
		"6 orders: 6 match, 0 in progress, 0 differ\n",
		"1 unbound PaymentIntents that hold no money: nothing confirms them\n",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("printed\n%s\nwant %q in it", printed, want)
		}
	}
}

// plant falsifies the books, one order for each way in which they can differ, and returns
// the class that an audit must name.
func plant(w town) map[order.ID]audit.Class {
	w.Helper()
	backups := map[order.ID][]map[string]types.AttributeValue{}
	w.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create, Times: 5})
	for _, id := range []order.ID{"OLDER-UNBOUND", "OLDER-FIRST", "OLDER-SEQ", "OLDER-CANCELED", "HELD"} {
		w.at(noon(), id, pays)
		backups[id] = w.items(id) // open, without an intent
	}
	for id, method := range map[order.ID]string{
		"LOST-PAID": pays, "LOST-DECLINED": declines, "LOST-PENDING": takes, "LOST-ROW": pays,
		"OLDER-BOUND": pays, "OLDER-PENDING": takes, "OLDER-DECLINED": declines, "OLDER-EVENTS": takes,
		"REFUND-OUTSIDE": pays, "REFUND-OURS": pays, "REFUND-FAILED": pays, "REFUND-REMADE": pays,
		"REFUND-FINE": pays,
		"DISPUTED":    pays, "DISPUTE-WON": pays,
		"TWICE": pays, "OTHER": declines, "NO-INTENT": declines, "AMOUNT": pays, "CURRENCY": pays, "CANCELED": pays,
		"CORRUPT": pays, "FINE": pays,
	} {
		w.at(noon(), id, method)
	}
	for _, id := range []order.ID{"OLDER-UNBOUND", "OLDER-FIRST", "OLDER-SEQ"} {
		w.at(noon().Add(time.Minute), id, pays)
	}
	w.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Confirm, Times: 2})
	for _, id := range []order.ID{"OLDER-CANCELED", "LOST-CANCELED"} {
		w.at(noon().Add(time.Minute), id, pays)
		bound := w.intentOf(id)
		w.atStripe(func(m *stripetest.Machine, now time.Time) error { return m.CancelInDashboard(now, bound) })
	}
	w.falsify(backups)
	w.older("CORRUPT-ALONE", []map[string]types.AttributeValue{{ // and no PaymentIntent
		"orderId": text("CORRUPT-ALONE"), "sk": text("order"),
	}}, true)
	w.stripe.Advance(twoDays)
	_, err := w.store.Begin(w.Context(), ordertest.Order("HELD"), order.Lease{
		Owner: "worker", From: later(), Until: later().Add(time.Minute),
	})
	must(w.T, err)
	return map[order.ID]audit.Class{
		"LOST-PAID": audit.MissingRow, "LOST-DECLINED": audit.MissingRow, "LOST-PENDING": audit.MissingRow,
		"LOST-ROW": audit.MissingRow, "LOST-CANCELED": audit.MissingRow, "OLDER-CANCELED": audit.RowOlder,
		"OLDER-UNBOUND": audit.RowOlder, "OLDER-FIRST": audit.RowOlder, "OLDER-SEQ": audit.RowOlder,
		"OLDER-BOUND": audit.RowOlder, "OLDER-PENDING": audit.RowOlder, "OLDER-DECLINED": audit.RowOlder,
		"OLDER-EVENTS":   audit.RowOlder,
		"REFUND-OUTSIDE": audit.RefundsDiffer, "REFUND-OURS": audit.RefundsDiffer, "REFUND-FAILED": audit.RefundsDiffer,
		"REFUND-REMADE": audit.RefundsDiffer,
		"DISPUTED":      audit.DisputeUnrecorded, "DISPUTE-WON": audit.DisputeUnrecorded,
		"TWICE": audit.TwoCharges, "OTHER": audit.OtherCharged, "NO-INTENT": audit.IntentMissing,
		"AMOUNT": audit.ContentDiffers, "CURRENCY": audit.ContentDiffers, "CANCELED": audit.StatusContradicts,
		"CORRUPT": audit.RowUnreadable, "CORRUPT-ALONE": audit.RowUnreadable,
	}
}

// falsify changes both sides of the planted orders.
func (w town) falsify(backups map[order.ID][]map[string]types.AttributeValue) {
	w.Helper()
	for _, id := range []order.ID{"LOST-PAID", "LOST-DECLINED", "LOST-PENDING"} {
		w.erase(id, "")
	}
	w.erase("LOST-ROW", "order")
	w.erase("LOST-CANCELED", "")
	w.older("OLDER-CANCELED", backups["OLDER-CANCELED"], true)
	w.older("OLDER-UNBOUND", backups["OLDER-UNBOUND"], false)
	w.older("OLDER-FIRST", backups["OLDER-FIRST"], true) // its event would collide with the next one
	w.older("OLDER-SEQ", backups["OLDER-SEQ"], true)
	w.edit("OLDER-SEQ", map[string]any{"intentId": w.intentOfEvent("OLDER-SEQ")})
	w.erase("OLDER-BOUND", "event")
	w.edit("OLDER-BOUND", map[string]any{"status": "open", "seq": 0})

	refunds := dynamodb.NewRefunds(w.store)
	ours := w.items("REFUND-OURS")
	w.give(refunds, "REFUND-OURS")
	w.older("REFUND-OURS", ours, false)
	w.give(refunds, "REFUND-FAILED")
	w.give(refunds, "REFUND-REMADE")
	w.give(refunds, "REFUND-FINE")
	events := w.intentOf("OLDER-EVENTS")
	pending, declined := w.intentOf("OLDER-PENDING"), w.intentOf("OLDER-DECLINED")
	outside, disputed, won := w.intentOf("REFUND-OUTSIDE"), w.intentOf("DISPUTED"), w.intentOf("DISPUTE-WON")
	remade := w.intentOf("REFUND-REMADE")
	w.atStripe(func(m *stripetest.Machine, now time.Time) error {
		_, err := m.RefundInDashboard(now, outside, 500)
		_, err2 := m.OpenDispute(now, disputed)
		_, err3 := m.OpenDispute(now, won)
		given := m.Refunds() // of REFUND-OURS, REFUND-FAILED, REFUND-REMADE
		err = errors.Join(err, err2, err3, m.Settle(now, pending, true), m.CustomerPays(now, declined),
			m.Settle(now, events, false), m.ChangeRefund(given[1].ID, stripetest.RefundFailed),
			m.ChangeRefund(given[2].ID, stripetest.RefundFailed))
		_, err2 = m.RefundInDashboard(now, remade, 1000) // so that the sum is the same
		return errors.Join(err, err2)
	})
	w.follow("DISPUTE-WON")
	w.atStripe(func(m *stripetest.Machine, _ time.Time) error { return m.CloseDispute("du_000002", true) })

	w.another("TWICE", string(scope), true)
	w.another("OTHER", string(scope), true)
	w.another("FINE", string(scope), false)
	w.edit("NO-INTENT", map[string]any{"intentId": "pi_999999"})
	w.edit("AMOUNT", map[string]any{"amount": 1})
	w.edit("CURRENCY", map[string]any{"currency": "eur"})
	w.edit("CANCELED", map[string]any{"status": "canceled"})
	w.edit("CORRUPT", map[string]any{"fingerprint": nil})
}

// intentOfEvent returns the intent that the first event of an order names.
func (w town) intentOfEvent(id order.ID) string {
	w.Helper()
	return w.items(id)[0]["intentId"].(*types.AttributeValueMemberS).Value
}

// give refunds 10.00 of an order, as the function does.
func (w town) give(store *dynamodb.Refunds, id order.ID) {
	w.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(id), RefundID: "R1", Amount: 1000, Reason: "duplicate"})
	must(w.T, err)
	provider := striperefund.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: w.stripe.URL, Now: time.Now})
	p := &refund.Processor{Claims: store, Provider: provider, Scope: scope, Now: noon}
	p.Process(w.Context(), r, order.Lease{Owner: "refund", From: noon(), Until: noon().Add(time.Minute)})
}

func TestAnAuditNamesAndRepairsWhatDiffers(t *testing.T) {
	t.Parallel()
	w := build(t)
	want := map[order.ID]string{}
	left := map[order.ID]string{}
	for id, class := range plant(w) {
		want[id] = string(class)
		if !class.Repairable() {
			left[id] = string(class)
		}
	}
	charges := w.charges()
	charges["HELD"] = 1 // when its message comes back
	printed, classes, err := w.audit(auditTable{Repair: true, Yes: true})
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if _, ok := errors.AsType[shell.LeftError](err); !ok || !errors.Is(err, errDiffer) {
		t.Errorf("got %v, want exit code 2", err)
	}
	for _, part := range []string{
		"30 orders: 2 match, 1 in progress, 27 differ\n", "LOST-PAID  write the row, bind pi_", "repaired 19 of 19 orders\n",
	} {
		if !strings.Contains(printed, part) {
			t.Errorf("printed\n%s\nwant %q in it", printed, part)
		}
	}
	w.redeliver()
	for _, id := range []order.ID{"LOST-CANCELED", "OLDER-CANCELED"} {
		if r, err := w.store.Load(t.Context(), id); err != nil || r.Status != order.Canceled {
			t.Errorf("%s: got %s, %v, want it canceled", id, r.Status, err)
		}
	}
	if diff := cmp.Diff(charges, w.charges()); diff != "" {
		t.Errorf("charges after a redelivery (-want +got):\n%s", diff)
	}
	if _, again, _ := w.audit(auditTable{}); !cmp.Equal(left, again) {
		t.Errorf("a second audit found (-want +got):\n%s", cmp.Diff(left, again))
	}
}

// charges returns how often each order was charged.
func (w town) charges() map[string]int {
	all := map[string]int{}
	w.atStripe(func(m *stripetest.Machine, _ time.Time) error {
		for _, c := range m.Ledger() {
			if c.Outcome == stripetest.Charged {
				all[c.OrderID]++
			}
		}
		return nil
	})
	return all
}

// redeliver processes the message of each order again.
func (w town) redeliver() {
	for _, id := range slices.Sorted(maps.Keys(w.methods)) {
		w.at(later().Add(time.Hour), id, w.methods[id])
	}
}

func TestAnInterruptedAuditSaysHowToContinue(t *testing.T) {
	t.Parallel()
	w := build(t)
	w.at(noon(), "ORD-1", pays)
	w.erase("ORD-1", "")
	w.stripe.Fail(stripetest.Fault{Kind: stripetest.Forbidden, On: stripetest.List})
	a := auditTable{From: "1h", To: "0s", StripeRate: 100, TableRate: 100}
	var out strings.Builder
	sh := testShell(w.environ, "", &out)
	sh.Now = func() time.Time { return noon().Add(30 * time.Minute) }
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	err := a.Run(canceled, sh)
	_, dir, found := strings.Cut(fmt.Sprint(err), "\ncontinue it: orders audit --resume ")
	if !found || !errors.Is(err, context.Canceled) {
		t.Fatalf("after Ctrl-C: got %v, want how to continue", err)
	}
	a = auditTable{Resume: dir, StripeRate: 100, TableRate: 100}
	err = a.Run(t.Context(), sh)
	if !strings.HasSuffix(fmt.Sprint(err), "orders audit --resume "+dir) || errors.Is(err, errDiffer) {
		t.Fatalf("without permission: got %v, want how to continue", err)
	}
	other := testShell(append(w.environ, "SCOPE=other"), "", &out)
	if err := a.Run(t.Context(), other); !errors.Is(err, audit.ErrOtherJob) {
		t.Errorf("in another scope: got %v, want ErrOtherJob", err)
	}
	out.Reset()
	sh.JSON = true
	if err := a.Run(t.Context(), sh); !errors.Is(err, errDiffer) {
		t.Errorf("got %v, want that they differ", err)
	}
	want := `{"orderId":"ORD-1","class":"missing_row","intent":"pi_000001","detail":"no row, pi_000001 succeeded, 39.98 USD","bind":true}` +
		"\n" + `{"summary":{`
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("printed\n%s\nwant it to begin with\n%s", &out, want)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the work folder is left: %v", err)
	}
}

func TestARepairAsksFirst(t *testing.T) {
	t.Parallel()
	w := build(t)
	w.at(noon(), "ORD-1", pays)
	w.erase("ORD-1", "")
	a := auditTable{From: "49h", To: "47h", StripeRate: 1e6, TableRate: 1e6, Repair: true, HTML: filepath.Join(t.TempDir(), "a.html")}
	var out strings.Builder
	sh := testShell(w.environ, "no\n", &out)
	sh.Now = later
	err := a.Run(t.Context(), sh)
	if !errors.Is(err, shell.ErrNotConfirmed) || !strings.Contains(out.String(), `Type "repair" to repair 1 orders. No money moves: `) {
		t.Errorf("not confirmed: got %v, printed\n%s", err, &out)
	}
	if _, err := w.store.Load(t.Context(), "ORD-1"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("not confirmed: got %v, want no row", err)
	}
	_, dir, _ := strings.Cut(fmt.Sprint(err), "orders audit --resume ")
	sh.In, a.Resume = strings.NewReader("repair\n"), dir
	if err := a.Run(t.Context(), sh); err != nil {
		t.Errorf("repaired: got %v, want nil", err)
	}
	if page, err := os.ReadFile(a.HTML); err != nil || !strings.Contains(string(page), "missing_row") {
		t.Errorf("page: %v\n%s", err, page)
	}
}

// lagging are books in which Stripe shows a refund that its list of refunds lacks.
type lagging struct{ audit.Books }

func (l lagging) Payment(ctx context.Context, id order.IntentID) (audit.Payment, error) {
	p, err := l.Books.Payment(ctx, id)
	p.Refunded++
	return p, err
}

func TestARepairThatChangesNothingIsReported(t *testing.T) {
	t.Parallel()
	w := build(t)
	w.at(noon(), "ORD-1", pays)
	sh := testShell(w.environ, "", io.Discard)
	env, cfg, err := cloud.Connect[cloud.StripeEnv](t.Context(), sh)
	must(t, err)
	a := auditTable{StripeRate: 1e6, TableRate: 1e6}.start(env, cfg, sh, nil)
	plan := audit.Plan{OrderID: "ORD-1", Intent: "pi_000001", Findings: []audit.Finding{{Class: audit.RefundsDiffer}}}
	if err := a.repairOne(t.Context(), plan); err != nil {
		t.Errorf("got %v, want that it matches", err)
	}
	a.auditor.Books = lagging{a.auditor.Books}
	if err := a.repairOne(t.Context(), plan); !errors.Is(err, errStillDiffers) {
		t.Errorf("got %v, want that it still differs", err)
	}
}

// TestTheGuideShowsARealSession compares the session in docs/guides/audit.md with what
// the command prints.
func TestTheGuideShowsARealSession(t *testing.T) {
	t.Parallel()
	w := build(t)
	for n := range 7 {
		w.at(noon(), order.ID(fmt.Sprintf("ORD-100%d", n)), pays)
	}
	w.at(noon(), "ORD-1007", takes)
	w.erase("ORD-1001", "")
	w.another("ORD-1003", string(scope), true)
	outside, pending := w.intentOf("ORD-1004"), w.intentOf("ORD-1007")
	w.atStripe(func(m *stripetest.Machine, now time.Time) error {
		_, err := m.RefundInDashboard(now, outside, 1998)
		return errors.Join(err, m.Settle(now, pending, true))
	})
	guide, err := os.ReadFile("../../docs/guides/audit.md")
	must(t, err)
	for _, a := range []auditTable{{Repair: true}, {}} {
		a.From, a.To, a.StripeRate, a.TableRate = "2026-11-21", "2026-11-22", 1e6, 1e6
		var out strings.Builder
		sh := testShell(w.environ, "repair\n", &out)
		sh.Now = later
		err := a.Run(t.Context(), sh)
		printed := strings.ReplaceAll(out.String(), w.table.Table, "orderonce-dev-orders") + fmt.Sprintf("orders: error: %v\n", err)
		if printed = strings.ReplaceAll(printed, "No money moves: ", "No money moves: repair\n"); !strings.Contains(string(guide), printed) {
			t.Errorf("docs/guides/audit.md lacks\n%s", printed)
		}
	}
}

func TestAPeriodIsADateATimeOrHowLongAgo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T08:00:00+01:00": "2026-11-01T07:00:00Z",
		"25h": "2026-11-20T11:00:00Z", "0s": "2026-11-21T12:00:00Z", "-1h": "", "yesterday": "", "": "",
	} {
		got, err := moment(text, noon())
		if err == nil != (want != "") || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q: got %v, %v, want %q", text, got, err, want)
		}
	}
}
