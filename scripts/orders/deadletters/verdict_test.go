package deadletters_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/domain/settle"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/deadletters"
)

// arrange brings the world into a state, six days before a message is decided about, and
// returns what the message asks for.
type arrange func(*world) jobs.Job

func states() map[string]arrange {
	all := refundStates()
	maps.Copy(all, orderStates())
	return all
}

// status changes the row's status, as a person or a newer release would.
func status(s order.Status) func(*world) {
	return func(w *world) { w.store.Edit(id, func(r *order.Record) { r.Status = s }) }
}

func fingerprint(f order.Fingerprint) func(*world) {
	return func(w *world) { w.store.Edit(id, func(r *order.Record) { r.Fingerprint = f }) }
}

func orderStates() map[string]arrange {
	of := func(card ordertest.Card, before func(*world)) arrange {
		return func(w *world) jobs.Job {
			before(w)
			return orderWith(card)
		}
	}
	with := func(card ordertest.Card, then func(*world)) arrange {
		return of(card, func(w *world) { w.charge(card); then(w) })
	}
	failing := func(c ordertest.Call, f ordertest.Fault, then func(*world)) arrange {
		return of(ordertest.Pays, func(w *world) { w.chargeFailing(c, f); then(w) })
	}
	asIs := func(*world) {}
	lose := func(w *world) { w.store.Delete(id) }
	bindNone := func(w *world) {
		lose(w)
		w.bank.Fail(ordertest.Prepare, ordertest.ReturnsUnavailable)
		w.charge(ordertest.Pays)
	}
	cancelAtStripe := func(w *world) { w.bank.Cancel(w.record().Intent) }
	paid := func(w *world) { w.bank.CustomerPays(w.record().Intent) }
	return map[string]arrange{
		"no row":                        of(ordertest.Pays, asIs),
		"no row, an unbound intent":     failing(ordertest.Confirm, ordertest.LosesRequest, lose),
		"no row, charged":               with(ordertest.Pays, lose),
		"no row, other content charged": of(ordertest.Declines, func(w *world) { w.charge(ordertest.Pays); lose(w) }),
		"no row, charged and prepared": with(ordertest.Pays, func(w *world) {
			lose(w)
			w.bank.ForgetKeys()
			w.chargeFailing(ordertest.Confirm, ordertest.LosesRequest)
			lose(w)
		}),
		"no row, Stripe is silent": of(ordertest.Pays, func(w *world) {
			w.bank.Fail(ordertest.Find, ordertest.LosesRequest)
		}),
		"open without an intent":          failing(ordertest.Prepare, ordertest.ReturnsUnavailable, asIs),
		"open without an intent, charged": with(ordertest.Pays, bindNone),
		"open, not confirmed":             failing(ordertest.Confirm, ordertest.LosesRequest, asIs),
		"open, charged":                   failing(ordertest.Confirm, ordertest.LosesResponse, asIs),
		"open, canceled at Stripe":        failing(ordertest.Confirm, ordertest.LosesRequest, cancelAtStripe),
		"open, Stripe is silent": failing(ordertest.Confirm, ordertest.LosesResponse, func(w *world) {
			w.bank.Fail(ordertest.Read, ordertest.LosesRequest)
		}),
		"open, another scope": of(ordertest.Pays, func(w *world) {
			w.bank.Scope = "other"
			w.charge(ordertest.Pays)
			lose(w)
			w.bank.Scope = scope
			r := order.Record{OrderID: id, Total: ordertest.Order(id).Total(), Fingerprint: ordertest.Order(id).Fingerprint(), Intent: "pi_1"}
			must(w.T, settle.Recreate(w.Context(), w.store, r, w.now))
		}),
		"paid":                           with(ordertest.Pays, asIs),
		"declined":                       with(ordertest.Declines, asIs),
		"declined, paid since":           with(ordertest.Declines, paid),
		"action required":                with(ordertest.NeedsAuthentication, asIs),
		"action required, paid since":    with(ordertest.NeedsAuthentication, paid),
		"pending":                        with(ordertest.TakesDays, asIs),
		"pending, paid since":            with(ordertest.TakesDays, paid),
		"refused":                        with(ordertest.DoesNotExist, asIs),
		"canceled":                       with(ordertest.Declines, (*world).cancel),
		"canceled without an intent":     failing(ordertest.Prepare, ordertest.ReturnsUnavailable, (*world).cancel),
		"different content, declined":    of(ordertest.Pays, func(w *world) { w.charge(ordertest.Declines) }),
		"different content, paid":        of(ordertest.Declines, func(w *world) { w.charge(ordertest.Pays) }),
		"a row of a newer release":       with(ordertest.Pays, status("shipped")),
		"a fingerprint of a new release": with(ordertest.Pays, fingerprint("v9:a")),
		"a corrupt row":                  with(ordertest.Pays, fingerprint("")),
	}
}

func refundStates() map[string]arrange {
	const amount = 1000
	of := func(before func(*world)) arrange {
		return func(w *world) jobs.Job {
			before(w)
			return refundOf(w.T, "R-1", amount)
		}
	}
	paid := func(then func(*world)) arrange {
		return of(func(w *world) { w.charge(ordertest.Pays); then(w) })
	}
	refunded := func(id string, amount int64) arrange {
		return paid(func(w *world) { w.deliver(refundOf(w.T, id, amount)) })
	}
	later := func(w *world) { // a lost request, and a try a day later
		w.refundFailing(ordertest.LosesRequest)
		w.now = w.now.Add(day)
		w.deliver(refundOf(w.T, "R-1", amount))
	}
	inEuros := func(before arrange) arrange {
		return func(w *world) jobs.Job {
			before(w)
			r, err := refund.New(refund.Draft{
				OrderID: string(id), RefundID: "R-1", Amount: amount, Currency: "eur", Reason: "duplicate",
			})
			must(w.T, err)
			return jobs.Job{Refund: r}
		}
	}
	return map[string]arrange{
		"no order":         of(func(*world) {}),
		"an open order":    of(func(w *world) { w.chargeFailing(ordertest.Prepare, ordertest.ReturnsUnavailable) }),
		"a pending order":  of(func(w *world) { w.charge(ordertest.TakesDays) }),
		"a declined order": of(func(w *world) { w.charge(ordertest.Declines) }),
		"a canceled order": of(func(w *world) { w.charge(ordertest.Declines); w.cancel() }),
		"a refused order":  of(func(w *world) { w.charge(ordertest.DoesNotExist) }),
		"an order that is out of stock": of(func(w *world) {
			w.chargeFailing(ordertest.Prepare, ordertest.ReturnsUnavailable)
			status(order.OutOfStock)(w)
		}),
		"a paid order":                  paid(func(*world) {}),
		"a refund in euros":             inEuros(paid(func(*world) {})),
		"a refund in euros of one made": inEuros(refunded("R-1", amount)),
		"too little is left":            refunded("R-2", 3500),
		"made":                          refunded("R-1", amount),
		"another amount":                refunded("R-1", 500),
		"open, never sent": paid(func(w *world) {
			w.refunds.Fail(refundtest.Read, ordertest.LosesRequest)
			w.deliver(refundOf(w.T, "R-1", amount))
		}),
		"open, not made":      paid(func(w *world) { w.refundFailing(ordertest.ReturnsUnavailable) }),
		"open, made":          paid(func(w *world) { w.refundFailing(ordertest.LosesResponse) }),
		"open, lost":          paid(func(w *world) { w.refundFailing(ordertest.LosesRequest) }),
		"unknown":             paid(later),
		"unknown, made since": paid(func(w *world) { later(w); w.refunds.Complete() }),
		"refund refused": paid(func(w *world) {
			w.refunds.Dispute(w.record().Intent)
			w.deliver(refundOf(w.T, "R-1", amount))
		}),
		"failed": paid(func(w *world) {
			w.refunds.Takes = true
			w.deliver(refundOf(w.T, "R-1", amount))
			w.refunds.Settle(refund.Failed)
			f := refund.Refresher{Store: w.claims, Provider: w.refunds, Scope: scope, Now: w.clock}
			_, err := f.Refresh(w.Context(), id)
			must(w.T, err)
		}),
	}
}

func allReasons() []order.Reason {
	return slices.Concat(order.Reasons(), sqs.Reasons(), refund.Reasons(), []order.Reason{"", "of_a_newer_release"})
}

// TestAVerdictIsTrueInEveryState compares the verdict of every reason in every state with
// what happens to the money and to the row when the function processes the message.
func TestAVerdictIsTrueInEveryState(t *testing.T) {
	t.Parallel()
	actions, all := map[deadletters.Action]int{}, states()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, reason := range allReasons() {
			w := newWorld(t)
			m := deadletters.Message{ID: "m", Reason: reason, Job: all[name](w)}
			w.now = start().Add(6 * day)
			w.bank.ForgetKeys()
			v := w.decide(m)
			actions[v.Action]++
			if problem := w.contradicts(m, v); problem != "" {
				t.Errorf("%s, parked as %s: verdict %q, %q (%s): %s", name, m.ReasonShown(), v.Action, v.Money, v.Advice, problem)
			}
		}
	}
	for _, a := range deadletters.Actions() {
		if actions[a] < 50 {
			t.Errorf("verdict %s was given %d times, want at least 50", a, actions[a])
		}
	}
}

// contradicts returns how processing the message contradicts the verdict, or "".
func (w *world) contradicts(m deadletters.Message, v deadletters.Verdict) string {
	if v.Action == deadletters.Discard && m.Job.IsRefund() {
		w.customerPays() // after the message is gone
	}
	charges, made, before := len(w.bank.Charges(id)), w.made("R-1"), w.record()
	if problem := contradictsMoney(v.Money, charges, made); problem != "" {
		return problem
	}
	if v.Action != deadletters.Redrive && v.Action != deadletters.Discard {
		return ""
	}
	result := w.deliver(m.Job)
	after := w.record()
	moved := len(w.bank.Charges(id)) - charges + w.made("R-1") - made
	switch {
	case charges+moved > 1 && !m.Job.IsRefund(), w.made("R-1") > 1:
		return "charged or refunded twice"
	case v.Action == deadletters.Redrive && result.Verdict == order.Park:
		return "parked again at once, as " + string(result.Reason)
	case v.Action == deadletters.Redrive && strings.Contains(v.Advice, "charges nothing") && moved > 0:
		return "money moved"
	case v.Action == deadletters.Discard && moved != 0:
		return "the message was needed: money moved"
	case v.Action == deadletters.Discard && (after.Status != before.Status || after.Seq != before.Seq):
		return "the message was needed: the row is " + string(after.Status)
	}
	return ""
}

func contradictsMoney(m deadletters.Money, charges, made int) string {
	wrong := map[deadletters.Money]bool{
		deadletters.NotCharged: charges > 0, deadletters.Charged: charges == 0, deadletters.ChargedOpen: charges == 0,
		deadletters.NotRefunded: made > 0, deadletters.Refunded: made == 0, deadletters.RefundedOpen: made == 0,
	}
	if wrong[m] {
		return "the bank says otherwise"
	}
	return ""
}

// TestVerdicts names the verdict of each reason in the state in which the function parks
// for it, and what follows after the advice was taken.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	all := states()
	all["as many refunds as an order gets"] = func(w *world) jobs.Job {
		w.charge(ordertest.Pays)
		for n := range refund.MaxRefunds {
			w.deliver(refundOf(w.T, fmt.Sprint("R-1", n), 1))
		}
		return refundOf(w.T, "R-1", 1)
	}
	fixes := map[string]func(*world){ // after them there is nothing left to do
		"a pending order that is paid": (*world).refresh,
		"a lost row, charged":          (*world).restore,
		"a refund of a declined order": (*world).cancel,
		"a corrupt row":                fingerprint(ordertest.Order(id).Fingerprint()),
	}
	for claim, tt := range map[string]struct {
		reason order.Reason
		state  string // of an order, or of a refund
		action deadletters.Action
		money  deadletters.Money
		advice string // a part of it
	}{
		"an outage":        {"store_unavailable", "no row", "redrive", "not charged", "waits in the queue"},
		"a lost response":  {"provider_unknown", "open, charged", "redrive", "charged, row still open", "settles the row as paid"},
		"a paid order":     {"provider_unknown", "paid", "discard", "charged and settled", "the order is paid"},
		"a canceled order": {"refused", "canceled without an intent", "discard", "not charged", "the order is canceled"},
		"a pending order":  {"out_of_time", "pending", "discard", "unknown", "the order is pending"},
		"a pending order that is paid": {
			"out_of_time", "pending, paid since", "fix", "charged, row still open", "orders refresh ORD-1, then discard",
		},
		"a refused order":         {"refused", "refused", "fix", "not charged", "orders cancel ORD-1, discard this, and only then post"},
		"a conflict":              {"conflict", "different content, paid", "fix", "charged and settled", "different content, which is paid"},
		"a conflict with nothing": {"conflict", "no row", "look", "unknown", "which is missing"},
		"a lost row, charged": {
			"record_lost", "open without an intent, charged", "fix", "charged, row still open", "orders restore ORD-1 pi_1",
		},
		"a lost row, not charged": {"record_lost", "open without an intent", "look", "unknown", "finds none now"},
		"two intents": {
			"record_lost", "no row, charged and prepared", "look", "charged, row still open", "Stripe's search finds 2",
		},
		"a reused key": {"key_reused", "open without an intent", "look", "unknown", "stop processing"},
		"a reused key, other content": {
			"key_reused", "no row, other content charged", "fix", "charged, row still open",
			"pi_1 was made for this order id with different content: orders restore ORD-1, then discard",
		},
		"a reused key, not charged": {
			"key_reused", "no row, an unbound intent", "fix", "not charged", "pi_1 waits for this order: orders restore ORD-1, then redrive",
		},
		"a reused key, restored": {"key_reused", "open, not confirmed", "redrive", "not charged", "the row was restored since"},
		"another scope":          {"mismatch", "open, another scope", "look", "unknown", `scope is "other", want "test"`},
		"an unknown SKU": {
			"unknown_sku", "open without an intent", "fix", "not charged", "orders stock SKU --add N --new",
		},
		"an order that this release reads": {
			"invalid_order", "open without an intent", "redrive", "not charged", "first roll the function back or correct it",
		},
		"a panic":              {"panic", "open without an intent", "fix", "not charged", "the log has the stack"},
		"an intent that waits": {"unconfirmed", "open, not confirmed", "look", "not charged", "PaymentIntent"},
		"moved by SQS":         {"", "open, not confirmed", "look", "not charged", "SQS moved it"},
		"an unknown reason": {
			"of_a_newer_release", "open without an intent", "look", "not charged", "this release parks no message for this reason",
		},
		"a newer row":         {"unknown_version", "a row of a newer release", "fix", "unknown", "finish the roll-out"},
		"a newer fingerprint": {"unknown_version", "a fingerprint of a new release", "fix", "unknown", "finish the roll-out"},
		"a corrupt row":       {"corrupt_record", "a corrupt row", "fix", "unknown", "repair the row"},
		"a silent Stripe":     {"provider_unknown", "open, Stripe is silent", "look", "unknown", "Stripe does not say"},

		"a refund of a paid order":     {"not_charged", "a paid order", "redrive", "not refunded", "nothing is charged"},
		"a refund of a declined order": {"not_charged", "a declined order", "fix", "not refunded", "orders cancel ORD-1, then discard"},
		"a refund of a canceled order": {"not_charged", "a canceled order", "discard", "not refunded", "nothing to give back"},
		"a refund of a refused order":  {"not_charged", "a refused order", "fix", "not refunded", "decide about its own message"},
		"a refund of no order":         {"not_charged", "no order", "look", "not refunded", "no order has this id"},
		"a refund of too much":         {"refund_exceeds", "too little is left", "fix", "not refunded", "only 4.98 USD is left"},
		"an unknown refund":            {"refund_unknown", "unknown", "fix", "unknown", "orders refund resolve ORD-1 R-1, then discard"},
		"an unknown refund that was made": {
			"refund_unknown", "unknown, made since", "fix", "refunded, row still open", "orders refresh ORD-1, which records what Stripe has, then discard",
		},
		"an unexplained refusal":           {"refund_unexplained", "open, not made", "fix", "unknown", "redrive with --verdict=fix"},
		"a refund that was never sent":     {"provider_unavailable", "open, never sent", "redrive", "not refunded", "nothing is charged"},
		"a refund whose response was lost": {"provider_unknown", "open, made", "redrive", "refunded, row still open", "settles the refund"},
		"a refund that was made":           {"provider_unknown", "made", "discard", "refunded", "the refund is succeeded"},
		"a refund that failed":             {"provider_unknown", "failed", "discard", "not refunded", "another refundId"},
		"a refund with another amount":     {"conflict", "another amount", "fix", "refunded", "refundId already used"},
		"a refund in another currency":     {"invalid_order", "a refund in euros", "fix", "not refunded", "names eur, and the order is in usd"},
		"one in another currency that was made": {
			"invalid_order", "a refund in euros of one made", "fix", "refunded", "names eur, and the order is in usd",
		},
		"a refund beyond the limit": {
			"refund_limit", "as many refunds as an order gets", "fix", "not refunded", "has 200 refunds and gets no more",
		},
		"a refund that the row has forgotten": {"refund_unknown", "a paid order", "look", "unknown", "has it no more"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := deadletters.Message{ID: "m", Reason: tt.reason, Job: all[tt.state](w)}
			w.now = start().Add(6 * day)
			got := w.decide(m)
			if got.Action != tt.action || got.Money != tt.money || !strings.Contains(got.Advice, tt.advice) {
				t.Errorf("got %+v, want %s, %s, %s", got, tt.action, tt.money, tt.advice)
			}
			if fix := fixes[claim]; fix != nil {
				fix(w)
				if got := w.decide(m); got.Action != deadletters.Discard {
					t.Errorf("after the fix: got %+v, want nothing left to do", got)
				}
			}
		})
	}
}

func TestAMessageIsKeptWhileItsOrderMayBeCharged(t *testing.T) {
	t.Parallel()
	all := states()
	all["refused, with an intent"] = func(w *world) jobs.Job {
		job := all["open, not confirmed"](w)
		status(order.Refused)(w)
		return job
	}
	all["different content, open"] = func(w *world) jobs.Job {
		all["open, not confirmed"](w)
		return orderWith(ordertest.Declines)
	}
	want := map[string]bool{
		"open, not confirmed": true, "open, charged": true, "open, Stripe is silent": true, "open, another scope": true,
		"refused, with an intent": true, "refused": true,
	}
	for state, arrange := range all {
		w := newWorld(t)
		m := deadletters.Message{Job: arrange(w)}
		if got := w.sources().Letter(t.Context(), m).Kept(false) != ""; got != want[state] {
			t.Errorf("%s: got %t, want %t", state, got, want[state])
		}
	}
}

func TestAMessageOrARowThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.decide(deadletters.Message{Reason: order.ReasonInvalid, Invalid: errors.New("message body: truncated JSON")})
	if got.Action != deadletters.Fix || got.Money != deadletters.NotCharged || !strings.Contains(got.Advice, "correct the producer") {
		t.Errorf("a message: got %+v, want the cause and a fix", got)
	}
	sources, m := w.sources(), deadletters.Message{Job: jobs.Job{Order: ordertest.Order(id)}}
	sources.Orders = silent{w.store}
	if got = sources.Letter(t.Context(), m).Verdict; got.Action != deadletters.Look || got.Money != deadletters.Unknown {
		t.Errorf("a row: got %+v, want a look", got)
	}
}

// listing is a provider that lists these refunds.
type listing struct {
	refund.Provider
	refund.Session

	all []refund.Refund
}

//
//nolint:ireturn // refund.Provider's method
func (l listing) Open(context.Context) refund.Session { return l }

func (listing) Close() {}

func (l listing) Read(context.Context, order.IntentID) (refund.Ledger, error) {
	return refund.Ledger{Refunds: l.all}, nil
}

func TestAnotherRefundOfTheIntentIsNotTakenForThisOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states()["open, made"](w)
	for of, tt := range map[string]struct {
		edit func(*refund.Refund)
		want deadletters.Action
	}{
		"this refund":   {func(*refund.Refund) {}, deadletters.Redrive},
		"another id":    {func(r *refund.Refund) { r.For = "R-2" }, deadletters.Fix},
		"another order": {func(r *refund.Refund) { r.OrderID = "ORD-2" }, deadletters.Fix},
		"another scope": {func(r *refund.Refund) { r.Scope = "other" }, deadletters.Fix},
	} {
		made := w.refunds.Refunds()[0]
		tt.edit(&made)
		sources := w.sources()
		sources.Refunds = listing{all: []refund.Refund{made}}
		m := deadletters.Message{Reason: order.ReasonUnknown, Job: refundOf(t, "R-1", 1000)}
		if got := sources.Letter(t.Context(), m); got.Action != tt.want {
			t.Errorf("%s: got %+v, want %s", of, got, tt.want)
		}
	}
}

// TestStripeIsAskedOnlyWhereTheRowDoesNotAnswer counts on faults: a call would use one
// up.
func TestStripeIsAskedOnlyWhereTheRowDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"paid", "canceled", "canceled without an intent", "a corrupt row"} {
		w := newWorld(t)
		job := states()[state](w)
		w.bank.Fail(ordertest.Read, ordertest.LosesRequest)
		w.bank.Fail(ordertest.Find, ordertest.LosesRequest)
		m := deadletters.Message{Reason: order.ReasonUnknown, Job: job}
		if f := w.sources().Facts(t.Context(), m); f.StripeErr != nil || f.Intents != nil {
			t.Errorf("%s: Stripe was asked: %v", state, f.StripeErr)
		}
	}
}

// TestTheDocumentsStateTheVerdictOfEachReason compares the table of reasons in
// docs/reference/failures.md with the verdicts on an open order that was not charged.
func TestTheDocumentsStateTheVerdictOfEachReason(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/failures.md")
	must(t, err)
	rows := regexp.MustCompile(`(?m)^\| (redrive|fix|look) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1)
	documented := map[order.Reason]string{}
	for _, row := range rows {
		for _, reason := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[2], -1) {
			documented[order.Reason(reason[1])] = row[1]
		}
	}
	for _, reason := range slices.Concat(order.Reasons(), sqs.Reasons()) {
		w := newWorld(t)
		m := deadletters.Message{Reason: reason, Job: states()["open, not confirmed"](w)}
		must(t, order.NoteParked(t.Context(), w.store, m.Job.Order, reason, w.now))
		if got, want := w.decide(m).Action, cmp.Or(documented[reason], "look"); string(got) != want {
			t.Errorf("%s: got verdict %s, want %s as documented", reason, got, want)
		}
	}
	runbooks, err := os.ReadFile("../../../docs/guides/runbooks.md")
	must(t, err)
	_, table, _ := strings.Cut(string(runbooks), "| reason | what to do |")
	table, _, _ = strings.Cut(table, "\n\n")
	named := strings.Join(regexp.MustCompile(`(?m)^ *\|[^|]*\|`).FindAllString(table, -1), "")
	unparked := []order.Reason{order.ReasonSettled, order.ReasonDuplicate, refund.ReasonRefused, sqs.ReasonParkFailed}
	for _, reason := range slices.Concat(order.Reasons(), sqs.Reasons(), refund.Reasons()) {
		if got := strings.Contains(named, "`"+string(reason)+"`"); got == slices.Contains(unparked, reason) {
			t.Errorf("%s: the runbook of dead letters names it: %t", reason, got)
		}
	}
	if len(documented) < 18 {
		t.Errorf("got %d reasons in the table, want more", len(documented))
	}
}
