package main

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
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
	made   []refund.Refund // at Stripe for the bound intent
}

// intentsOf returns what Stripe may have of an order: the intent pi_1, which a row binds
// if it is there, and others.
func intentsOf(o order.Order) map[string][]order.Intent {
	intent := func(id order.IntentID, s order.IntentState, code string) order.Intent {
		return order.Intent{
			ID: id, State: s, Total: o.Total(), OrderID: o.ID(), Scope: scope, Fingerprint: o.Fingerprint(),
			Mode: order.TestMode, Failure: order.Failure{Code: code},
		}
	}
	elsewhere, held := intent("pi_2", order.Succeeded, ""), intent("pi_2", "requires_capture", "")
	elsewhere.Fingerprint, held.Fingerprint = "", ""
	content := intent("pi_2", order.Succeeded, "")
	content.Fingerprint = "v1:other"
	all := map[string][]order.Intent{}
	for other, more := range map[string][]order.Intent{
		"": nil, "another charged": {intent("pi_2", order.Succeeded, "")}, "another charged elsewhere": {elsewhere},
		"another went back": {intent("pi_back", order.Succeeded, "")}, "another processing": {intent("pi_2", order.Processing, "")},
		"another canceled": {intent("pi_2", order.IntentCanceled, "")}, "another waits": {intent("pi_2", order.NeedsConfirmation, "")},
		"another holds": {held}, "other content charged": {content}, "two others charged": {intent("pi_2", order.Succeeded, ""), intent("pi_3", order.Succeeded, "")},
	} {
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

// request is the refund of the combinations.
func request() refund.Request {
	r, _ := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1000, Reason: "duplicate"})
	return r
}

// refundsOf returns the refunds that a row and Stripe may have of a charged order.
func refundsOf() map[string]func(*combination) {
	r := request()
	made := refund.Refund{
		ID: "re_1", Total: order.Money{Amount: 1000, Currency: "usd"}, Intent: "pi_1", OrderID: r.OrderID(), Scope: scope, For: r.ID(),
	}
	others := refund.Refund{ID: "re_9", Status: refund.Succeeded, Total: made.Total, Intent: "pi_1"}
	all := map[string]func(*combination){
		"": func(*combination) {}, "by others": func(c *combination) { c.made = []refund.Refund{others} },
	}
	for _, there := range []refund.Status{"", refund.Pending, refund.Succeeded, refund.Failed} {
		for _, s := range append(refund.Statuses(), "") {
			all["row "+string(s)+", Stripe "+string(there)] = func(c *combination) {
				if made.Status = there; there != "" {
					c.made = []refund.Refund{made}
				}
				i := refund.Item{
					ID: r.ID(), Amount: r.Amount(), Status: s, Reason: r.Reason(), Fingerprint: r.Fingerprint(), SentAt: noon(), UpdatedAt: noon(),
				}
				if s.Counts() || s == refund.Failed {
					i.Refund = made.ID
				}
				if s != "" {
					c.report.Account.Items = []refund.Item{i}
				}
			}
		}
	}
	return all
}

// combinations yields every combination that a row may be in.
func combinations(o order.Order) iter.Seq[combination] {
	return func(yield func(combination) bool) {
		reasons, refunds := slices.Concat([]order.Reason{""}, order.Reasons(), sqs.Reasons()), refundsOf()
		for _, status := range append(order.Statuses(), "") {
			for stripe, intents := range intentsOf(o) {
				for _, why := range reasons {
					for made, change := range refunds {
						if made != "" && (!status.Charged() || why != "" || !strings.HasPrefix(stripe, "charged")) {
							continue
						}
						for _, also := range []string{"", "leased", "later", "unread", "disputed", "lost"} {
							c, valid := combine(o, status, intents, why, also)
							if !valid {
								continue
							}
							c.name = strings.Join([]string{string(status), strings.TrimSpace(stripe), string(why), made, also}, "|")
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
	o order.Order, status order.Status, intents []order.Intent, why order.Reason, also string,
) (c combination, valid bool) {
	r := order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: status, Attempt: 1, LastError: string(why),
		CreatedAt: noon(), UpdatedAt: noon(),
	}
	f := view.Report{
		ID: o.ID(), Now: noon().Add(time.Minute), Scope: scope, Asked: also != "unread", Intents: intents, Record: &r,
		Ledgers: map[order.IntentID]refund.Ledger{"pi_back": {Refunds: []refund.Refund{{Status: refund.Succeeded, Total: o.Total()}}}},
	}
	if len(intents) > 0 && intents[0].ID == "pi_1" {
		r.Intent = "pi_1"
	}
	if why != "" {
		r.ParkedAt = noon()
	}
	switch also {
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
	valid = err == nil && (also != "leased" || status == order.Open && why == "")
	if r.Dispute.ID != "" {
		valid = valid && status.Charged()
	}
	switch {
	case status == "":
		f.Record, valid = nil, also == "" && why == "" && len(intents) > 0 && r.Intent == ""
	case status.Charged():
		f.Account = &refund.Account{OrderID: o.ID(), Status: status, Charged: o.Total(), Intent: r.Intent}
	case status == order.Refused:
		r.Failure = "resource_missing"
	}
	return combination{report: f}, valid && (why == "" || status == order.Open || status == order.Refused)
}

// named are the commands that a line names.
var named = regexp.MustCompile(`orders ([^:;,]+)`)

// TestNextNeverContradictsItselfOrAVerdict goes through every combination of row, Stripe,
// refunds, dispute and parked message. Each command that a line names is one of this
// tool.
func TestNextNeverContradictsItselfOrAVerdict(t *testing.T) {
	t.Parallel()
	k, err := newParser(new(commands), kong.Exit(func(int) {}))
	must(t, err)
	o, curated, parsed, n := ordertest.OrderWith("ORD-1", pays), curatedLines(), map[string]bool{}, 0
	for c := range combinations(o) {
		n++
		next := c.report.Next()
		text := strings.Join(next.Lines(), "\n")
		for _, m := range named.FindAllStringSubmatch(strings.ReplaceAll(text, "\n", ";"), -1) {
			if !parsed[m[1]] {
				parsed[m[1]] = true
				if _, err := k.Parse(strings.Fields(m[1])); err != nil {
					t.Errorf("%s: orders %s: %v", c.name, m[1], err)
				}
			}
		}
		if want, is := curated[c.name]; is {
			delete(curated, c.name)
			if diff := cmp.Diff(text, want); diff != "" {
				t.Errorf("%s (-got +want):\n%s", c.name, diff)
			}
		}
		for _, wrong := range []string{contradiction(c, next, text), missingCharge(c, text), disagreement(c, o, text)} {
			if wrong != "" {
				t.Errorf("%s: %s:\n%s", c.name, wrong, text)
			}
		}
	}
	t.Logf("%d combinations, %d commands", n, len(parsed))
	for name := range curated {
		t.Errorf("no combination %q", name)
	}
}

// contradiction returns how lines contradict one another, or "".
func contradiction(c combination, next view.Next, text string) string {
	has := func(part string) bool { return strings.Contains(text, part) }
	changes := has("orders refresh ORD-1: the row is") || has("orders restore") || has("stop processing")
	waits := has("its message should come back") || has("must authenticate") || has("bank decides") || has("may still pay")
	a := c.report.Account
	unknown := a != nil && slices.ContainsFunc(a.Items, func(i refund.Item) bool { return i.Status == refund.Unknown })
	switch {
	case text == "":
		return "nothing is said"
	case len(next.Act) > 0 && has("nothing:"):
		return "nothing is next, and a person must act"
	case changes && waits, has("orders refresh ORD-1: the row is") && has("orders restore"):
		return "the row must change, and a line says what follows from it as it is"
	case has("refund nothing") && has("orders refund ORD-1"):
		return "refund, and refund nothing"
	case unknown && !has("orders refund resolve ORD-1 R-1") && !has("lacks that refund R-1 is"):
		return "an unknown refund is not named"
	}
	return ""
}

// missingCharge returns which charge the lines neither record nor give back, or "".
func missingCharge(c combination, text string) string {
	r, row := c.report.Record, order.Status("")
	if r != nil {
		row = r.Status
	}
	kept := slices.DeleteFunc(slices.Clone(c.report.Intents), func(i order.Intent) bool {
		return i.State != order.Succeeded || i.ID == "pi_back"
	})
	if len(kept) == 0 || !c.report.Asked || r != nil && !r.Until.IsZero() {
		return ""
	}
	want, closed := "", row == order.Canceled || row == order.OutOfStock
	switch first := kept[0]; {
	case row.Charged() || closed:
	case first.ID == "pi_1":
		want = "orders refresh ORD-1"
	case first.Fingerprint != "" && (r == nil || r.Intent == "" && row == order.Open):
		want = "orders restore ORD-1 " + string(first.ID)
	}
	if !strings.HasPrefix(text, want) && (row != order.Open || !strings.Contains(text, want)) { // its message may be first
		return "want " + want + " first"
	}
	for n, i := range kept {
		surplus := n > 0 || i.ID != "pi_1" && !strings.HasPrefix(want, "orders restore") || closed
		if strings.Contains(text, " of "+string(i.ID)+" in Stripe's Dashboard") != surplus {
			return string(i.ID) + " is surplus, or not, and the lines say otherwise"
		}
	}
	return ""
}

// disagreement returns how the lines contradict the verdict on a message of the order, or
// of its refund, or "".
func disagreement(c combination, o order.Order, text string) string {
	r := c.report.Record
	if r == nil || !c.report.Asked || !r.Until.IsZero() {
		return ""
	}
	m := deadletters.Message{Reason: order.Reason(r.LastError), Job: jobs.Job{Order: o}}
	facts := deadletters.Facts{Row: *r, Intents: c.report.Intents}
	switch { // as deadletters.Sources reads them
	case c.report.Account != nil:
		m.Job, facts = jobs.Job{Refund: request()}, deadletters.Facts{Account: *c.report.Account}
		facts.Made = slices.DeleteFunc(slices.Clone(c.made), func(r refund.Refund) bool { return r.For == "" })
	case r.Status == order.Canceled:
		facts.Intents = nil
	case r.Intent != "":
		facts.Intents = facts.Intents[:1]
	}
	v := deadletters.Decide(m, facts)
	if v.Action == deadletters.Redrive && (strings.Contains(text, "stop processing") || strings.Contains(text, "orders restore")) {
		return "redriven before the row is right: " + v.Advice
	}
	if v.Action == deadletters.Discard && (strings.Contains(text, "orders post") || strings.Contains(text, "continue it")) {
		return "discarded, and posted again: " + v.Advice
	}
	advice, _, _ := strings.Cut(v.Advice, "; if")
	for _, m := range named.FindAllStringSubmatch(advice, -1) {
		words := strings.Fields(m[1])
		if words[0] != "stock" && !strings.Contains(text, "orders "+strings.Join(words[:min(3, len(words))], " ")) {
			return "no line has " + m[0]
		}
	}
	return ""
}

// curatedLines are the lines of some combinations: those that were once wrong come first.
func curatedLines() map[string]string {
	const runbook = ": docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice"
	return map[string]string{
		"pending|charged|||":                  "orders refresh ORD-1: the row is pending, and at Stripe pi_1 is succeeded",
		"paid|charged||row unknown, Stripe |": "orders refund resolve ORD-1 R-1 --not-made, or --made RE_ID if Stripe's Dashboard has it: refund R-1 of 10.00 USD may have been made",
		"paid|charged||row succeeded, Stripe failed|": "orders refresh ORD-1: the row lacks that refund R-1 is failed\n" +
			"orders refund ORD-1 --amount 10.00 --reason duplicate --refund-id R-1-2: refund R-1 failed, without a reason, so the customer does not have the 10.00 USD; or pay it another way",
		"paid|charged||row pending, Stripe pending|": "refund R-1 of 10.00 USD is pending: the bank needs days",
		"paid|charged||row , Stripe succeeded|":      "orders refresh ORD-1: the row lacks that refund R-1 is succeeded",
		"paid|charged||by others|":                   "orders refresh ORD-1: the row lacks what others gave back",
		"paid|charged|||":                            "nothing: it is settled; a refund that is missing here may be parked: orders dead-letters show ORD-1",
		"paid|charged another charged|||":            "refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook,
		"refused|waits|refused||":                    "orders dead-letters show ORD-1: its message is parked, because of refused resource_missing; if it is not there any more, orders post FILE, with the same content, or orders cancel ORD-1",
		"refused|waits|||":                           "correct the cause, resource_missing, then orders dead-letters show ORD-1: redrive its message; if there is none, orders post FILE, with the same content, or orders cancel ORD-1",
		"open|waits|||later": "orders dead-letters show ORD-1: there was no attempt since 2026-11-21 12:00:00.123 UTC; if its message is not there, it waits while processing is stopped or behind, or is lost: orders post FILE, with the same content, is harmless\n" +
			"orders receipts resolve ORD-1 paid --sent, or --not-sent: ask the customer, or look in SES",
		"open|none bound another charged|record_lost||": "orders restore ORD-1 pi_2: the row does not name it\n" +
			"orders dead-letters show ORD-1: its message is parked, because of record_lost, and has another verdict after that",
		"open|none bound other content charged|key_reused||": "orders restore ORD-1 pi_2: the row, whose content is a conflict, does not name it; if no row was lost, two deployments may share a scope\n" +
			"orders dead-letters show ORD-1: its message is parked, because of key_reused, and has another verdict after that",
		"open|none bound another charged elsewhere|||": "refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook + "\n" +
			"its message should come back",
		"refused|none bound another charged|refused||": "orders cancel ORD-1: at Stripe pi_2 is succeeded, and the row, which does not name it, could be charged again\n" +
			"refund 39.98 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it" + runbook + "\n" +
			"orders dead-letters show ORD-1: its message is parked, because of refused resource_missing, and has another verdict after that",
		"canceled|charged|||":            "refund 39.98 USD of pi_1 in Stripe's Dashboard: it charged the order and must never be charged" + runbook,
		"|none bound another charged|||": "orders restore ORD-1 pi_2: its row is missing, so a message of this order would prepare another payment",
		"paid|canceled|||":               "stop processing, and compare the events with Stripe's Dashboard: the row is paid, and at Stripe pi_1 is canceled, which no command records",
		"paid|charged||row open, Stripe |later": "orders dead-letters show ORD-1: there was no attempt of refund R-1 since 2026-11-21 12:00:00.123 UTC; if its message is not there, continue it: orders refund ORD-1 --amount 10.00 --reason duplicate --refund-id R-1\n" +
			"orders receipts resolve ORD-1 paid --sent, or --not-sent: ask the customer, or look in SES",
		"paid|charged||row refused, Stripe |":              "orders refund ORD-1 --amount 10.00 --reason duplicate --refund-id R-1-2: refund R-1 refused, without a reason, so the customer does not have the 10.00 USD; or pay it another way",
		"paid|charged||row failed, Stripe failed|disputed": "answer dispute du_1 in Stripe's Dashboard before its deadline, and refund nothing of pi_1 until then",
		"paid|charged|||unread": "nothing: it is settled; a refund that is missing here may be parked: orders dead-letters show ORD-1\n" +
			"Stripe was not read: SCOPE and STRIPE_SECRET_KEY",
		"open|none bound another charged|||leased": "a function works on it until 2026-11-21 12:10:00.123 UTC",
	}
}
