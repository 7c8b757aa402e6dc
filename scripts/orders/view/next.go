package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

// Next is what is next for an order: what a person must do, the most urgent first, with
// the command to type, and what happens without one.
type Next struct{ Act, Wait []string }

// Lines returns all of it.
func (n Next) Lines() []string { return slices.Concat(n.Act, n.Wait) }

func (n *Next) act(format string, a ...any) { n.Act = append(n.Act, fmt.Sprintf(format, a...)) }

func (n *Next) wait(format string, a ...any) { n.Wait = append(n.Wait, fmt.Sprintf(format, a...)) }

const (
	// overdue is how long after an attempt its message should have come back: retries are 15
	// minutes apart, and a lease is no longer.
	overdue = time.Hour
	// doubt is how long SES's own report of an e-mail may take.
	doubt = 10 * time.Minute

	// ResolvedByOperator is the Failure of a refund that was not made, as a person decided.
	ResolvedByOperator = "resolved_by_operator"
)

// Next is a pure function of the report. It says that nothing is next only if it says
// nothing else about the order.
func (f *Report) Next() (n Next) {
	restored := f.restorable()
	f.nextRow(&n, restored)
	changes := len(n.Lines()) > 0
	if f.Asked {
		f.nextSurplus(&n, restored)
	}
	if f.Record != nil {
		f.nextStatus(&n, changes)
		f.nextRefunds(&n)
		f.nextDispute(&n)
		f.nextReceipts(&n)
		if len(n.Lines()) == 0 {
			f.nothing(&n)
		}
	}
	if !f.Asked {
		n.wait("Stripe was not read: SCOPE and STRIPE_SECRET_KEY")
	}
	return n
}

func (f *Report) nothing(n *Next) {
	known := map[order.Status]string{
		order.Canceled:   "nothing: it stays canceled",
		order.OutOfStock: "nothing: it is never charged; sell again under a new orderId when there is stock",
		order.Refunded:   "nothing: all of it went back",
	}
	settled := []string{
		"nothing: it is settled",
		"a refund that is missing here may be parked: orders dead-letters show " + string(f.ID),
	}
	n.wait("%s", cmp.Or(known[f.Record.Status], strings.Join(settled, "; ")))
}

func (f *Report) leased() bool {
	return f.Record != nil && f.Record.Status == order.Open && order.LeaseRunning(f.Record.Until, f.Now)
}

// closed reports whether an order in s must never be charged.
func closed(s order.Status) bool { return s == order.Canceled || s == order.OutOfStock }

var (
	errNotRestorable = errors.New("no PaymentIntent to bind: do what the lines \"next\" say; " +
		"Stripe's search lags by a minute, and finds those of SCOPE and of the key's account and mode")
	errSeveralCharged = errors.New("several PaymentIntents took money: name the one that the order keeps, " +
		"and give back the others: docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice")
)

// Restorable returns the intent to which `orders restore` binds the row unless a person
// names one, or why there is none.
func (f *Report) Restorable() (order.IntentID, error) {
	switch best := f.restorable(); {
	case best == "":
		return "", errNotRestorable
	case f.Charges() > 1:
		return "", errSeveralCharged
	default:
		return best, nil
	}
}

// restorable returns the intent to which `orders restore` must bind a row that is
// missing, or that is open, names none, and that no function works on; "" if there is no
// such intent. An intent of the same content that still waits is bound by the next
// attempt, unless Stripe rejects each because it was made with other parameters.
func (f *Report) restorable() (best order.IntentID) {
	r, highest := f.Record, -1
	if r != nil {
		if r.Status != order.Open || r.Intent != "" || f.leased() {
			return ""
		}
		if best = r.Suspect; best != "" {
			highest = 0
		}
	}
	for _, i := range f.Intents {
		rank := f.rank(i)
		next := r != nil && i.Fingerprint == r.Fingerprint && r.LastError != string(order.ReasonKeyReused)
		ours := i.Fingerprint != "" && i.Scope == f.Scope && (rank > 0 || !next)
		if ours && rank > highest {
			best, highest = i.ID, rank
		}
	}
	return best
}

// rank orders intents by how much they say about what became of an order.
func (f *Report) rank(i order.Intent) int {
	_, settled := order.OutcomeOf(i)
	switch {
	case i.State == order.Succeeded && f.back(i.ID) < i.Total.Amount, i.State == order.Processing:
		return 3
	case i.State == order.IntentCanceled:
		return 1
	case settled:
		return 2
	}
	return 0
}

// nextRow says how the row gets the state that Stripe has.
func (f *Report) nextRow(n *Next, restored order.IntentID) {
	r := f.Record
	switch {
	case r == nil && restored == "":
		n.act("stop processing, and look for the order's row: none of its PaymentIntents can restore it")
	case r == nil:
		n.act("orders restore %s %s: its row is missing, so a message of this order would prepare another payment",
			f.ID, restored)
	case restored != "":
		why := "the row does not name it"
		for _, i := range f.Intents {
			if i.ID == restored && i.Fingerprint != r.Fingerprint {
				why = "the row, whose content is a conflict, does not name it; " +
					"if no row was lost, two deployments may share a scope"
			}
		}
		n.act("orders restore %s %s: %s", f.ID, restored, why)
	default:
		for _, i := range f.Intents {
			if r.Intent == i.ID {
				f.nextBound(n, i)
			} else if r.Intent == "" && r.Status == order.Refused && f.rank(i) > 0 {
				n.act("orders cancel %s: at Stripe %s is %s, and the row, which does not name it, could be charged again",
					f.ID, i.ID, i.State)
				return
			}
		}
	}
}

// nextBound says how the row gets the state of the intent that it names.
func (f *Report) nextBound(n *Next, bound order.Intent) {
	r := f.Record
	o, found := order.Unrecorded(r.Status, bound)
	both := fmt.Sprintf("the row is %s, and at Stripe %s is %s", r.Status, bound.ID, bound.State)
	err := order.Verify(bound, f.Scope, f.ID, r.Total)
	switch {
	case err != nil:
		n.act("stop processing: two deployments may share a scope: %v", err)
	case f.leased(), closed(r.Status):
	case found && r.Status == order.Open && r.ParkedAt.IsZero() && f.Now.Sub(r.UpdatedAt) < overdue:
		n.wait("orders refresh %s: %s; its message, unless it is lost, settles it too", f.ID, both)
	case found && r.Status.Transition(o.Status) == nil:
		n.act("orders refresh %s: %s%s", f.ID, both, recheck(r.DueAt))
	case found, r.Status.Charged() && bound.State != order.Succeeded:
		n.act("stop processing, and compare the events with Stripe's Dashboard: %s, which no command records", both)
	}
}

// nextSurplus says what to do about intents that took money, or hold it, beside the one
// that is the order's.
func (f *Report) nextSurplus(n *Next, restored order.IntentID) {
	r := f.Record
	for _, i := range f.Intents {
		why, back := "is not bound to it", f.back(i.ID)
		if r != nil && i.ID == r.Intent {
			why = "must never be charged"
		}
		money := func(amount int64) order.Money { return order.Money{Amount: amount, Currency: i.Total.Currency} }
		if back > 0 {
			why += fmt.Sprintf("; %s went back", money(back))
		}
		switch left := money(i.Total.Amount - back); {
		case i.ID == restored, r != nil && i.ID == r.Intent && !closed(r.Status):
		case f.leased() && r.Intent == "": // afterwards the row may name it
		case i.State == order.Succeeded && left.Amount > 0:
			n.act("refund %s of %s in Stripe's Dashboard: it charged the order and %s: "+
				"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice", left, i.ID, why)
		case i.State == order.Processing:
			n.act("show the order again in a day: %s is processing, may charge the order, and %s", i.ID, why)
		case i.State == "requires_capture":
			n.act("cancel %s in Stripe's Dashboard: it holds %s, and nothing captures it", i.ID, left)
		}
	}
}

// nextStatus says what to do about the order's message, and what follows from the row's
// status, unless the row changes first.
func (f *Report) nextStatus(n *Next, changes bool) {
	r := f.Record
	parked, held := !r.ParkedAt.IsZero() && !f.leased(), ""
	post := "orders post FILE, with the same content"
	if len(r.Stock) > 0 {
		held = "; " + describeStock(r.Stock) + " is free after STOCK_HOLD, or after orders cancel " + string(f.ID)
	}
	switch why := cmp.Or(strings.TrimSpace(r.LastError+" "+r.Failure), "what is over since"); {
	case parked && changes:
		n.act("orders dead-letters show %s: its message is parked, because of %s, "+
			"and has another verdict after that", f.ID, why)
	case parked:
		n.act("orders dead-letters show %s: its message is parked, because of %s; "+
			"if it is not there any more, %s, or orders cancel %s", f.ID, why, post, f.ID)
	case changes, r.Status.Charged(), closed(r.Status):
	case r.Status == order.Refused:
		n.act("correct the cause, %s, then orders dead-letters show %s: redrive its message; "+
			"if there is none, %s, or orders cancel %s", r.Failure, f.ID, post, f.ID)
	case r.Status == order.ActionRequired:
		n.wait("the customer must authenticate%s%s", recheck(r.DueAt), held)
	case r.Status == order.Pending:
		n.wait("the bank decides, within days%s", recheck(r.DueAt))
	case r.Status == order.Declined:
		n.wait("the customer may still pay the same PaymentIntent; otherwise sell again under a new orderId%s%s",
			recheck(r.DueAt), held)
	case f.leased():
		n.wait("a function works on it until %s", Stamp(r.Until))
	case f.Now.Sub(r.UpdatedAt) >= overdue:
		n.act("orders dead-letters show %s: there was no attempt since %s; if its message is not there, it waits "+
			"while processing is stopped or behind, or is lost: %s, is harmless", f.ID, Stamp(r.UpdatedAt), post)
	default:
		n.wait("its message should come back%s", recheck(r.DueAt))
	}
}

func recheck(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return "; its recheck is due at " + Stamp(due)
}

// nextRefunds says what to do about the order's refunds, as they are once the row shows
// what Stripe's list has.
func (f *Report) nextRefunds(n *Next) {
	if f.Account == nil {
		return
	}
	a := *f.Account
	if l, read := f.Ledgers[a.Intent]; read {
		for after, found := refund.NextChange(a, l, f.Scope, f.Now); found; {
			a = after
			after, found = refund.NextChange(a, l, f.Scope, f.Now)
		}
	}
	var lacks []string
	for _, e := range a.Events {
		if e.Refund.ID == "" {
			lacks = append(lacks, "what others gave back")
		} else {
			lacks = append(lacks, "that refund "+e.Refund.ID+" is "+e.Refund.Status)
		}
	}
	if len(lacks) > 0 {
		n.act("orders refresh %s: the row lacks %s", f.ID, strings.Join(lacks, ", "))
	}
	for _, i := range a.Items {
		f.nextRefund(n, a, i)
	}
}

func (f *Report) nextRefund(n *Next, a refund.Account, i refund.Item) {
	amount := order.Money{Amount: i.Amount, Currency: a.Charged.Currency}
	again := fmt.Sprintf("orders refund %s --amount %s --reason %s --refund-id ",
		f.ID, strings.Fields(amount.String())[0], cmp.Or(i.Reason, refund.RequestedByCustomer))
	failed := i.Status == refund.Failed || i.Status == refund.Refused
	switch {
	case i.Status == refund.Unknown:
		n.act("orders refund resolve %s %s --not-made, or --made RE_ID if Stripe's Dashboard has it: "+
			"refund %s of %s may have been made", f.ID, i.ID, i.ID, amount)
	case failed && i.Failure != ResolvedByOperator && !f.madeGood(a, i):
		n.act("%s%.60s-%d: refund %s %s, %s, so the customer does not have the %s; or pay it another way",
			again, i.ID, len(a.Items)+1, i.ID, i.Status, cmp.Or(i.Failure, "without a reason"), amount)
	case i.Status == refund.Pending:
		n.wait("refund %s of %s is pending: the bank needs days", i.ID, amount)
	case i.Status != refund.Open:
	case order.LeaseRunning(i.Until, f.Now):
		n.wait("a function works on refund %s until %s", i.ID, Stamp(i.Until))
	case f.Now.Sub(i.UpdatedAt) >= overdue:
		n.act("orders dead-letters show %s: there was no attempt of refund %s since %s; if its message is not "+
			"there, continue it: %s%s", f.ID, i.ID, Stamp(i.UpdatedAt), again, i.ID)
	default:
		n.wait("the message of refund %s comes back", i.ID)
	}
}

// madeGood reports whether another refund gives back what a failed one did not, or may,
// or whether a dispute takes its place.
func (f *Report) madeGood(a refund.Account, failed refund.Item) bool {
	disputed := f.Record.Dispute.ID != "" && f.Record.Dispute.Status != order.DisputeWon
	return disputed || a.Left() < failed.Amount || a.Outside >= failed.Amount ||
		slices.ContainsFunc(a.Items, func(i refund.Item) bool {
			over := i.Status == refund.Failed || i.Status == refund.Refused
			return !over && i.Amount >= failed.Amount && i.CreatedAt.After(failed.CreatedAt)
		})
}

func (f *Report) nextDispute(n *Next) {
	r := f.Record
	switch d := r.Dispute; {
	case d.Status == order.DisputeOpen:
		n.act("answer dispute %s in Stripe's Dashboard before its deadline, "+
			"and refund nothing of %s until then", d.ID, r.Intent)
	case d.Status == order.DisputeLost:
		n.wait("dispute %s was lost: the customer has the money, so refund nothing of %s", d.ID, r.Intent)
	case d.ID == "" && f.Ledgers[r.Intent].Disputed:
		day := r.CreatedAt.UTC().Truncate(24 * time.Hour)
		n.act("orders audit --from %s --to %s --repair: Stripe has a dispute that the row lacks",
			day.Format(time.DateOnly), day.AddDate(0, 0, 2).Format(time.DateOnly))
	}
}

// nextReceipts says what to do about receipts that may have been sent, or are to be.
func (f *Report) nextReceipts(n *Next) {
	for _, i := range f.Receipts {
		switch {
		case i.Wanted():
			n.act("orders republish %s: receipt %s is to be sent", f.ID, i.Key)
		case i.Status != receipt.Doubtful:
		case f.Now.Sub(i.UpdatedAt) < doubt:
			n.wait("SES's report may still say whether receipt %s was sent", i.Key)
		default:
			n.act("orders receipts resolve %s %s --sent, or --not-sent: ask the customer, or look in SES", f.ID, i.Key)
		}
	}
}
