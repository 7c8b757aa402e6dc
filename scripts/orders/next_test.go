package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/view"
)

// combination is an order in one of the states that a report can show.
type combination struct {
	name   string
	report view.Report
	order  order.Order
	made   []refund.Refund // at Stripe for R-1
}

// atStripeOf returns what Stripe may have of an order, the bound intent pi_1 first.
func atStripeOf(o order.Order) map[string][]order.Intent {
	intent := func(id order.IntentID, s order.IntentState, code string) order.Intent {
		return order.Intent{
			ID: id, State: s, Total: o.Total(), OrderID: o.ID(), Scope: scope, Fingerprint: o.Fingerprint(),
			Mode: order.TestMode, Failure: order.Failure{Code: code},
		}
	}
	elsewhere, held := intent("pi_2", order.Succeeded, ""), intent("pi_2", "requires_capture", "")
	elsewhere.Fingerprint, held.Fingerprint = "", ""
	others := map[string][]order.Intent{
		"": nil, "another charged": {intent("pi_2", order.Succeeded, "")}, "another charged elsewhere": {elsewhere},
		"another went back": {intent("pi_back", order.Succeeded, "")}, "another processing": {intent("pi_2", order.Processing, "")},
		"another canceled": {intent("pi_2", order.IntentCanceled, "")}, "another waits": {intent("pi_2", order.NeedsConfirmation, "")},
		"another holds":      {held},
		"two others charged": {intent("pi_2", order.Succeeded, ""), intent("pi_3", order.Succeeded, "")},
	}
	all := map[string][]order.Intent{}
	for other, more := range others {
		all["none bound "+other] = more
		for bound, i := range map[string]order.Intent{
			"charged": intent("pi_1", order.Succeeded, ""), "waits": intent("pi_1", order.NeedsConfirmation, ""),
			"declined":  intent("pi_1", order.NeedsMethod, "card_declined"),
			"asks":      intent("pi_1", order.NeedsMethod, "authentication_required"),
			"no method": intent("pi_1", order.NeedsMethod, ""), "action": intent("pi_1", order.NeedsAction, ""),
			"processing": intent("pi_1", order.Processing, ""), "canceled": intent("pi_1", order.IntentCanceled, ""),
		} {
			all[bound+" "+other] = append([]order.Intent{i}, more...)
		}
	}
	return all
}

// refundsOf returns the refunds that a row and Stripe may have of a charged order.
func refundsOf(o order.Order) map[string]func(*combination) {
	made := func(s refund.Status) refund.Refund {
		return refund.Refund{
			ID: "re_1", Status: s, Total: order.Money{Amount: 1000, Currency: "usd"}, Intent: "pi_1", OrderID: o.ID(),
			Scope: scope, For: "R-1",
		}
	}
	others := made(refund.Succeeded)
	others.ID, others.OrderID, others.Scope, others.For = "re_9", "", "", ""
	all := map[string]func(*combination){
		"": func(*combination) {}, "by others": func(c *combination) { c.made = []refund.Refund{others} },
	}
	for _, there := range []refund.Status{"", refund.Pending, refund.Succeeded, refund.Failed} {
		for _, s := range append(refund.Statuses(), "") {
			all["row "+string(s)+", Stripe "+string(there)] = func(c *combination) {
				if there != "" {
					c.made = []refund.Refund{made(there)}
				}
				if s != "" {
					i := refund.Item{ID: "R-1", Amount: 1000, Status: s, Reason: refund.Duplicate, SentAt: noon(), UpdatedAt: noon()}
					if s.Counts() || s == refund.Failed {
						i.Refund = "re_1"
					}
					c.report.Account.Items = []refund.Item{i}
				}
			}
		}
	}
	return all
}

// combinations yields every combination that a row may be in.
func combinations(t *testing.T) func(yield func(combination) bool) {
	o := orderOf(t, "ORD-1", pays)
	reasons := slices.Concat([]order.Reason{""}, order.Reasons(), sqs.Reasons())
	return func(yield func(combination) bool) {
		for _, status := range append(order.Statuses(), "") {
			for atStripe, intents := range atStripeOf(o) {
				for _, why := range reasons {
					for refunds, change := range refundsOf(o) {
						if refunds != "" && (!status.Charged() || why != "" || !strings.HasPrefix(atStripe, "charged")) {
							continue
						}
						for _, times := range []string{"", "leased", "later", "unread", "disputed", "lost"} {
							c, valid := combine(o, status, intents, why, times)
							if !valid {
								continue
							}
							c.name = strings.Join([]string{string(status), strings.TrimSpace(atStripe), string(why), refunds, times}, "|")
							if change(&c); status.Charged() {
								c.report.Ledgers["pi_1"] = refund.Ledger{Refunds: c.made}
							}
							if !yield(c) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// combine returns the report of an order, unless no row can be so.
func combine(
	o order.Order, status order.Status, intents []order.Intent, why order.Reason, times string,
) (c combination, valid bool) {
	r := order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: status, Attempt: 1, LastError: string(why),
		CreatedAt: noon(), UpdatedAt: noon(),
	}
	f := view.Report{
		ID: o.ID(), Now: noon().Add(time.Minute), Scope: scope, Asked: times != "unread", Intents: intents,
		Ledgers: map[order.IntentID]refund.Ledger{"pi_back": {Refunds: []refund.Refund{{Status: refund.Succeeded, Total: o.Total()}}}},
	}
	if len(intents) > 0 && intents[0].ID == "pi_1" {
		r.Intent = "pi_1"
	}
	waits := status == order.Open || status == order.Refused
	if status == order.Refused {
		r.Failure = "resource_missing"
	}
	if why != "" {
		r.ParkedAt = noon()
	}
	switch times {
	case "leased":
		r.Owner, r.Until = "owner", noon().Add(time.Hour/6)
	case "later":
		f.Now = noon().Add(2 * day)
		f.Receipts = []receipt.Item{{OrderID: o.ID(), Key: receipt.Paid, Status: receipt.Doubtful, UpdatedAt: noon()}}
	case "disputed":
		r.Dispute = order.Dispute{ID: "du_1", Status: order.DisputeOpen, CreatedAt: noon()}
	case "lost":
		r.Dispute = order.Dispute{ID: "du_1", Status: order.DisputeLost, CreatedAt: noon()}
	case "unread":
		f.Intents = nil
	}
	_, err := order.LoadRecord(r)
	valid = err == nil && (why == "" || waits) && (times != "leased" || status == order.Open && why == "") &&
		(r.Dispute.ID == "" || status.Charged())
	f.Record = &r
	if status == "" {
		f.Record, valid = nil, times == "" && why == "" && len(intents) > 0 && r.Intent == ""
	}
	if status.Charged() {
		f.Account = &refund.Account{OrderID: o.ID(), Status: status, Charged: o.Total(), Intent: r.Intent}
	}
	return combination{report: f, order: o}, valid
}

// named are the commands that a line names.
var named = regexp.MustCompile(`orders ([^:;,]+)`)

// TestNextNeverContradictsItself goes through every combination of row, Stripe, refunds,
// dispute and parked message.
func TestNextNeverContradictsItself(t *testing.T) {
	t.Parallel()
	var parser commands
	k, err := newParser(&parser, kong.Exit(func(int) {}))
	must(t, err)
	curated := curatedLines()
	parsed, distinct, n := map[string]bool{}, map[string]bool{}, 0
	for c := range combinations(t) {
		n++
		steps := c.report.Next()
		lines := make([]string, len(steps))
		for i, s := range steps {
			lines[i] = s.Text
			distinct[s.Text] = true
			for _, m := range named.FindAllStringSubmatch(s.Text, -1) {
				if command := m[1]; !parsed[command] {
					_, err := k.Parse(strings.Fields(command))
					parsed[command] = err == nil
					if err != nil {
						t.Errorf("%s: orders %s: %v", c.name, command, err)
					}
				}
			}
		}
		if want, is := curated[c.name]; is {
			delete(curated, c.name)
			if diff := cmp.Diff(strings.Join(lines, "\n"), want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", c.name, diff)
			}
		}
		if wrong := contradiction(c, steps, strings.Join(lines, "\n")); wrong != "" {
			t.Errorf("%s: %s:\n%s", c.name, wrong, strings.Join(lines, "\n"))
		}
	}
	t.Logf("%d combinations, %d distinct lines, %d commands", n, len(distinct), len(parsed))
	for name := range curated {
		t.Errorf("no combination %q", name)
	}
}

// contradiction returns what is wrong with the lines of a combination, or "".
func contradiction(c combination, steps []view.Step, text string) string {
	r, has := c.report.Record, func(part string) bool { return strings.Contains(text, part) }
	acts := len(steps) > 0 && steps[0].Act
	changes := has("orders refresh ORD-1: the row is") || has("orders restore") || has("stop processing")
	waits := has("its message comes back") || has("must authenticate") || has("bank decides") || has("may still pay")
	row, back := order.Status(""), map[order.IntentID]bool{"pi_back": true}
	if r != nil {
		row = r.Status
	}
	leased := r != nil && !r.Until.IsZero()
	unknown := c.report.Account != nil && slices.ContainsFunc(c.report.Account.Items,
		func(i refund.Item) bool { return i.Status == refund.Unknown })
	switch {
	case len(steps) == 0:
		return "nothing is said"
	case acts && has("nothing:"):
		return "nothing is next, and a person must act"
	case changes && waits, has("orders refresh ORD-1: the row is") && has("orders restore"):
		return "the row must change, and the line says what follows from it as it is"
	case has("refund nothing") && has("orders refund ORD-1"):
		return "refund, and refund nothing"
	case unknown && !has("orders refund resolve ORD-1 R-1") && !has("lacks that refund R-1 is"):
		return "an unknown refund is not named"
	case !c.report.Asked || leased:
		return ""
	}
	kept := []order.IntentID{}
	for _, i := range c.report.Intents {
		if i.State == order.Succeeded && !back[i.ID] {
			kept = append(kept, i.ID)
		}
	}
	want := ""
	closed := row == order.Canceled || row == order.OutOfStock
	bound := r != nil && r.Intent != ""
	switch ours := len(kept) > 0 && c.report.Intents[slices.IndexFunc(c.report.Intents, func(i order.Intent) bool { return i.ID == kept[0] })].Fingerprint != ""; {
	case len(kept) == 0 || row.Charged():
	case bound && kept[0] == "pi_1" && !closed:
		want = "orders refresh ORD-1"
	case !bound && ours && (r == nil || row == order.Open):
		want = "orders restore ORD-1 " + string(kept[0])
	}
	if !strings.HasPrefix(text, want) && (row != order.Open || !has(want)) { // its message may do it first
		return "want first " + want
	}
	for n, id := range kept {
		surplus := n > 0 || id != "pi_1" && !strings.HasPrefix(want, "orders restore") || closed
		if refunds := has(" of " + string(id) + " in Stripe's Dashboard"); refunds != surplus {
			return string(id) + " is surplus, or not, and the lines say otherwise"
		}
	}
	return ""
}

// TestNextAndTheVerdictsAgree compares the lines with the verdict on the order's parked
// message, from the facts that dead-letters reads.
func TestNextAndTheVerdictsAgree(t *testing.T) {
	t.Parallel()
	n := 0
	for c := range combinations(t) {
		r := c.report.Record
		if r == nil || !c.report.Asked || !r.Until.IsZero() {
			continue
		}
		n++
		text := ""
		for _, s := range c.report.Next() {
			text += s.Text + "\n"
		}
		facts := deadletters.Facts{Row: *r, Intents: c.report.Intents}
		switch { // as deadletters.Sources reads them
		case r.Status == order.Canceled:
			facts.Intents = nil
		case r.Intent != "":
			facts.Intents = facts.Intents[:1]
		}
		m := deadletters.Message{Reason: order.Reason(r.LastError), Job: jobs.Job{Order: c.order}}
		if c.report.Account != nil {
			request, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1000, Reason: "duplicate"})
			must(t, err)
			m.Job = jobs.Job{Refund: request}
			account := *c.report.Account
			account.Items = slices.Clone(account.Items)
			for n := range account.Items {
				account.Items[n].Fingerprint = request.Fingerprint()
			}
			facts = deadletters.Facts{Account: account}
			if len(c.made) > 0 && c.made[0].For == "R-1" {
				facts.Made = c.made
			}
		}
		v := deadletters.Decide(m, facts)
		if wrong := disagreement(v, text); wrong != "" {
			t.Errorf("%s: %s: %s %s\n%s", c.name, wrong, v.Action, v.Advice, text)
		}
	}
	t.Logf("%d combinations", n)
}

// disagreement returns how a verdict contradicts the lines, or "".
func disagreement(v deadletters.Verdict, text string) string {
	if v.Action == deadletters.Redrive && (strings.Contains(text, "stop processing") || strings.Contains(text, "orders restore")) {
		return "redriven before the row is right"
	}
	if v.Action == deadletters.Discard && (strings.Contains(text, "orders post") || strings.Contains(text, "continue it")) {
		return "discarded, and posted again"
	}
	advice, _, _ := strings.Cut(v.Advice, "; if")
	for _, m := range named.FindAllStringSubmatch(advice, -1) {
		words := strings.Fields(m[1])
		if words[0] == "stock" || words[0] == "refund" && len(words) < 4 {
			continue
		}
		if !strings.Contains(text, "orders "+strings.Join(words[:min(3, len(words))], " ")) {
			return "the lines lack orders " + m[1]
		}
	}
	return ""
}

// TestWhatIsNextEndsWhatItNames types the first command of the lines, until nothing is
// left for a person.
func TestWhatIsNextEndsWhatItNames(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.process(takes, "PAID-LATER")                 // pi_000001
	d.process(pays, "LOST", "BY-OTHERS", "BESIDE") // to pi_000004
	d.erase("LOST")
	d.another("BESIDE", string(scope), false)
	d.banks("pi_000001")()
	d.givesBack("pi_000003")()
	d.stripe.Advance(2 * time.Minute)
	for id, want := range map[string]string{
		"PAID-LATER": "orders refresh PAID-LATER", "LOST": "orders restore LOST pi_000002",
		"BY-OTHERS": "orders refresh BY-OTHERS", "BESIDE": "",
	} {
		for typed := 0; ; typed++ {
			printed, code := runs(t, testShell(d.environ), "show "+id, "")
			if code == 0 && typed == min(len(want), 1) {
				break
			}
			_, next, _ := strings.Cut(printed, "next       ")
			command := named.FindString(next)
			if command != want || code != 2 || typed > 0 {
				t.Fatalf("show %s: got exit code %d and\n%s\nwant %s", id, code, printed, want)
			}
			if printed, code := runs(t, testShell(d.environ), strings.TrimPrefix(command, "orders "), id+"\n"); code != 0 {
				t.Fatalf("%s: got exit code %d and\n%s", command, code, printed)
			}
		}
	}
}

// curatedLines are the lines of some combinations: those that were once wrong come first.
func curatedLines() map[string]string {
	const runbook = ": docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice"
	return map[string]string{
		"action_required|charged|||":          "orders refresh ORD-1: the row is action_required, and at Stripe pi_1 is succeeded",
		"pending|charged|||":                  "orders refresh ORD-1: the row is pending, and at Stripe pi_1 is succeeded",
		"paid|charged||row unknown, Stripe |": "orders refund resolve ORD-1 R-1 --not-made, or --made RE_ID if Stripe's Dashboard has it: refund R-1 of 10.00 USD may have been made",
		"paid|charged||row succeeded, Stripe failed|": "orders refresh ORD-1: the row lacks that refund R-1 is failed\n" +
			"orders refund ORD-1 --amount 1000 --reason duplicate --refund-id R-1-2: refund R-1 failed, without a reason, so the customer does not have the 10.00 USD; or pay it another way",
		"paid|charged||row failed, Stripe failed|":   "orders refund ORD-1 --amount 1000 --reason duplicate --refund-id R-1-2: refund R-1 failed, without a reason, so the customer does not have the 10.00 USD; or pay it another way",
		"paid|charged||row pending, Stripe pending|": "refund R-1 of 10.00 USD is pending: the bank needs days",
		"paid|charged||row , Stripe succeeded|":      "orders refresh ORD-1: the row lacks that refund R-1 is succeeded",
		"paid|charged||by others|":                   "orders refresh ORD-1: the row lacks what others gave back",
		"paid|charged|||":                            "nothing: it is settled; a refund that is missing here may be parked: orders dead-letters show ORD-1",
		"paid|charged another charged|||":            "refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook,
		"paid|charged another went back|||":          "nothing: it is settled; a refund that is missing here may be parked: orders dead-letters show ORD-1",
		"refused|waits|refused||":                    "orders dead-letters show ORD-1: its message is parked, because of refused resource_missing; if it is not there any more, orders post FILE, with the same content, or orders cancel ORD-1",
		"refused|waits|||":                           "correct the cause, resource_missing, then orders dead-letters show ORD-1: redrive its message; if there is none, orders post FILE, with the same content, or orders cancel ORD-1",
		"open|waits|||later": "orders dead-letters show ORD-1: there was no attempt since 2026-11-21 12:00:00.123 UTC; if its message is not there, it waits while processing is stopped or behind, or is lost: orders post FILE, with the same content, is harmless\n" +
			"orders receipts resolve ORD-1 paid --sent, or --not-sent: ask the customer, or look in SES",
		"open|none bound another charged|record_lost||": "orders restore ORD-1 pi_2: the row does not name it\n" +
			"orders dead-letters show ORD-1: its message is parked, because of record_lost, and has another verdict after that",
		"open|none bound another charged elsewhere|||": "refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook + "\n" +
			"its message comes back",
		"refused|none bound another charged|refused||": "orders cancel ORD-1: at Stripe pi_2 is succeeded, and the row, which does not name it, could be charged again\n" +
			"refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook + "\n" +
			"orders dead-letters show ORD-1: its message is parked, because of refused resource_missing, and has another verdict after that",
		"canceled|none bound another charged|||": "refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook,
		"|none bound another charged|||":         "orders restore ORD-1 pi_2: its row is missing, so a message of this order would prepare another payment",
		"paid|canceled|||":                       "stop processing, and compare the events with Stripe's Dashboard: the row is paid, and at Stripe pi_1 is canceled, which no command records",
		"paid|charged||row open, Stripe |later": "orders dead-letters show ORD-1: there was no attempt of refund R-1 since 2026-11-21 12:00:00.123 UTC; if its message is not there, continue it: orders refund ORD-1 --amount 1000 --reason duplicate --refund-id R-1\n" +
			"orders receipts resolve ORD-1 paid --sent, or --not-sent: ask the customer, or look in SES",
		"paid|charged||row refused, Stripe |":              "orders refund ORD-1 --amount 1000 --reason duplicate --refund-id R-1-2: refund R-1 refused, without a reason, so the customer does not have the 10.00 USD; or pay it another way",
		"paid|charged||row failed, Stripe failed|disputed": "answer dispute du_1 in Stripe's Dashboard before its deadline, and refund nothing of pi_1 until then",
		"paid|charged|||unread": "nothing: it is settled; a refund that is missing here may be parked: orders dead-letters show ORD-1\n" +
			"Stripe was not read: SCOPE and STRIPE_SECRET_KEY",
		"open|waits|||leased": "a function works on it until 2026-11-21 12:10:00.123 UTC",
	}
}
