package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

// Step is one line of what is next for an order.
type Step struct {
	Act  bool   // a person must act; otherwise it is what happens without one
	Text string // with the command to type
}

func act(format string, a ...any) Step { return Step{true, fmt.Sprintf(format, a...)} }

func wait(format string, a ...any) Step { return Step{false, fmt.Sprintf(format, a...)} }

const (
	// overdue is how long after the last attempt its message should have come back: retries
	// are 15 minutes apart, and a lease is no longer.
	overdue = time.Hour
	// doubt is how long SES's own report of an e-mail may take.
	doubt = 10 * time.Minute

	// ResolvedByOperator is the Failure of a refund that was not made, as a person decided.
	ResolvedByOperator = "resolved_by_operator"
)

// Next returns what is next for the order: first what a person must do, the most urgent
// first, then what happens without one. It is a pure function of the report. It says that
// nothing is next only if it says nothing else about the order.
func (f *Report) Next() []Step {
	restored := f.restorable()
	steps := f.nextRow(restored)
	settles := len(steps) > 0 // so that what follows from the row's status is not said
	if f.Asked {
		steps = append(steps, f.nextSurplus(restored)...)
	}
	if f.Record != nil {
		steps = append(steps, f.nextParked(settles)...)
		if s := f.Record.Status; !settles && !s.Charged() && !closed(s) {
			steps = append(steps, f.nextStatus()...)
		}
		steps = slices.Concat(steps, f.nextRefunds(), f.nextDispute(), f.nextReceipts())
		if len(steps) == 0 {
			steps = append(steps, wait("nothing: %s", f.settled()))
		}
	}
	if !f.Asked {
		steps = append(steps, wait("Stripe was not read: SCOPE and STRIPE_SECRET_KEY"))
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		switch {
		case a.Act == b.Act:
			return 0
		case a.Act:
			return -1
		}
		return 1
	})
	return steps
}

// settled returns why nothing is next.
func (f *Report) settled() string {
	switch f.Record.Status {
	case order.Canceled:
		return "it stays canceled"
	case order.OutOfStock:
		return "it is never charged; sell again under a new orderId when there is stock"
	}
	return "it is settled; a refund that is missing here may be parked: orders dead-letters show " + string(f.ID)
}

// leased reports whether a function works on the order.
func (f *Report) leased() bool {
	return f.Record != nil && f.Record.Status == order.Open && order.LeaseRunning(f.Record.Until, f.Now)
}

// restorable returns the intent to which `orders restore` must bind a row that is
// missing, or that is open and names none; "" if there is no such intent. An intent that
// still waits is bound by the next attempt.
func (f *Report) restorable() (best order.IntentID) {
	r := f.Record
	if r != nil && (r.Status != order.Open || r.Intent != "") {
		return ""
	}
	highest := -1
	if r != nil {
		best, highest = r.Suspect, 0
	}
	for _, i := range f.Intents {
		ours := i.Fingerprint != "" && i.Scope == f.Scope && (r == nil || i.Fingerprint == r.Fingerprint)
		if n := f.rank(i); ours && n > highest {
			best, highest = i.ID, n
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

// nextRow returns how the row gets the state that Stripe has.
func (f *Report) nextRow(restored order.IntentID) []Step {
	r := f.Record
	switch {
	case r == nil && restored == "":
		return []Step{act("stop processing, and look for the order's row: none of its PaymentIntents can restore it")}
	case r == nil:
		return []Step{act("orders restore %s %s: its row is missing, so a message of this order would prepare another payment",
			f.ID, restored)}
	case restored != "" && f.leased():
		return []Step{act("orders restore %s %s: the row does not name it; wait until %s, because a function works on it",
			f.ID, restored, Stamp(r.Until))}
	case restored != "":
		return []Step{act("orders restore %s %s: the row does not name it", f.ID, restored)}
	}
	n := slices.IndexFunc(f.Intents, func(i order.Intent) bool { return i.ID == r.Intent || r.Intent == "" && f.rank(i) > 0 })
	if n < 0 {
		return nil
	}
	bound := f.Intents[n]
	if r.Intent == "" {
		if r.Status != order.Refused {
			return nil
		}
		return []Step{act("orders cancel %s: at Stripe %s is %s, and the row, which does not name it, could be charged again",
			f.ID, bound.ID, bound.State)}
	}
	if err := order.Verify(bound, f.Scope, f.ID, r.Total); err != nil {
		return []Step{act("stop processing: two deployments may share a scope: %v", err)}
	}
	o, found := order.Unrecorded(r.Status, bound)
	both := fmt.Sprintf("the row is %s, and at Stripe %s is %s", r.Status, bound.ID, bound.State)
	switch {
	case f.leased(), closed(r.Status):
		return nil
	case found && r.Status == order.Open && r.ParkedAt.IsZero() && f.Now.Sub(r.UpdatedAt) < overdue:
		return []Step{wait("orders refresh %s: %s; its message, which comes back, settles it too", f.ID, both)}
	case found && r.Status.Transition(o.Status) == nil:
		return []Step{act("orders refresh %s: %s%s", f.ID, both, recheck(r.DueAt))}
	case found, r.Status.Charged() && bound.State != order.Succeeded:
		return []Step{act("stop processing, and compare the events with Stripe's Dashboard: %s, which no command records", both)}
	}
	return nil
}

// closed reports whether an order in s must never be charged.
func closed(s order.Status) bool { return s == order.Canceled || s == order.OutOfStock }

// nextSurplus returns what to do about intents that took money, or hold it, beside the
// one that is the order's.
func (f *Report) nextSurplus(restored order.IntentID) (steps []Step) {
	r := f.Record
	for _, i := range f.Intents {
		why := "is not bound to it"
		if r != nil && i.ID == r.Intent {
			why = "must never be charged"
		}
		left := order.Money{Amount: i.Total.Amount - f.back(i.ID), Currency: i.Total.Currency}
		switch {
		case i.ID == restored, r != nil && i.ID == r.Intent && !closed(r.Status):
		case i.State == order.Succeeded && left.Amount > 0:
			if back := f.back(i.ID); back > 0 {
				why += fmt.Sprintf("; %s went back", order.Money{Amount: back, Currency: i.Total.Currency})
			}
			steps = append(steps, act("refund %s of %s in Stripe's Dashboard: it charged the order and %s: "+
				"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice", left, i.ID, why))
		case i.State == order.Processing:
			steps = append(steps, act("show the order again in a day: %s is processing, may charge the order, and %s", i.ID, why))
		case i.State == "requires_capture":
			steps = append(steps, act("cancel %s in Stripe's Dashboard: it holds %s of the customer's, and "+
				"nothing captures it", i.ID, left))
		}
	}
	return steps
}

// nextParked returns what to do about the order's message in the dead-letter queue.
func (f *Report) nextParked(settles bool) []Step {
	r := f.Record
	if r.ParkedAt.IsZero() || f.leased() {
		return nil
	}
	gone := "; if it is not there any more, orders post FILE, with the same content, or orders cancel " + string(f.ID)
	if settles {
		gone = ", and has another verdict after that"
	}
	return []Step{act("orders dead-letters show %s: its message is parked, because of %s%s", f.ID,
		strings.TrimSuffix(cmp.Or(r.LastError, "no reason")+" "+r.Failure, " "), gone)}
}

// nextStatus returns what follows from the row's status alone.
func (f *Report) nextStatus() []Step {
	r := f.Record
	held := ""
	if len(r.Stock) > 0 {
		held = "; " + describeStock(r.Stock) + " is free after STOCK_HOLD, or after orders cancel " + string(f.ID)
	}
	switch {
	case !r.ParkedAt.IsZero() && !f.leased():
		return nil
	case r.Status == order.Refused:
		return []Step{act("correct the cause, %s, then orders dead-letters show %s: redrive its message; "+
			"if there is none, orders post FILE, with the same content, or orders cancel %s", r.Failure, f.ID, f.ID)}
	case r.Status == order.ActionRequired:
		return []Step{wait("the customer must authenticate%s%s", recheck(r.DueAt), held)}
	case r.Status == order.Pending:
		return []Step{wait("the bank decides, within days%s", recheck(r.DueAt))}
	case r.Status == order.Declined:
		return []Step{wait("the customer may still pay the same PaymentIntent; "+
			"otherwise sell again under a new orderId%s%s", recheck(r.DueAt), held)}
	case f.leased():
		return []Step{wait("a function works on it until %s", Stamp(r.Until))}
	case f.Now.Sub(r.UpdatedAt) >= overdue:
		return []Step{act("orders dead-letters show %s: there was no attempt since %s; if its message is not there, it waits "+
			"while processing is stopped or behind, or is lost: orders post FILE, with the same content, is harmless",
			f.ID, Stamp(r.UpdatedAt))}
	}
	return []Step{wait("its message comes back%s", recheck(r.DueAt))}
}

func recheck(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return "; reconcile looks at it from " + Stamp(due) + " on"
}

// nextRefunds returns what to do about the order's refunds, as they are once the row
// shows what Stripe's list has.
func (f *Report) nextRefunds() (steps []Step) {
	if f.Account == nil {
		return nil
	}
	a := *f.Account
	if l, read := f.Ledgers[a.Intent]; read {
		for after, found := refund.NextChange(a, l, f.Scope, f.Now); found; {
			a = after
			after, found = refund.NextChange(a, l, f.Scope, f.Now)
		}
	}
	lacks := make([]string, 0, len(a.Events))
	for _, e := range a.Events {
		what := fmt.Sprintf("that refund %s is %s", e.Refund.ID, e.Refund.Status)
		if e.Refund.ID == "" {
			what = "what others gave back"
		}
		lacks = append(lacks, what)
	}
	if len(lacks) > 0 {
		steps = append(steps, act("orders refresh %s: the row lacks %s", f.ID, strings.Join(lacks, ", ")))
	}
	for _, i := range a.Items {
		steps = append(steps, f.nextRefund(a, i)...)
	}
	return steps
}

// nextRefund returns what to do about one refund.
func (f *Report) nextRefund(a refund.Account, i refund.Item) []Step {
	amount := order.Money{Amount: i.Amount, Currency: a.Charged.Currency}
	make := func(id refund.ID) string {
		return fmt.Sprintf("orders refund %s --amount %d --reason %s --refund-id %s",
			f.ID, i.Amount, cmp.Or(i.Reason, refund.RequestedByCustomer), id)
	}
	switch i.Status {
	case refund.Unknown:
		return []Step{act("orders refund resolve %s %s --not-made, or --made RE_ID if Stripe's Dashboard has it: "+
			"refund %s of %s may have been made", f.ID, i.ID, i.ID, amount)}
	case refund.Failed, refund.Refused:
		if i.Failure == ResolvedByOperator || f.madeGood(a, i) {
			return nil
		}
		return []Step{act("%s: refund %s %s, %s, so the customer does not have the %s; or pay it another way",
			make(unused(a, i.ID)), i.ID, i.Status, cmp.Or(i.Failure, "without a reason"), amount)}
	case refund.Pending:
		return []Step{wait("refund %s of %s is pending: the bank needs days", i.ID, amount)}
	case refund.Open:
	case refund.Succeeded:
		return nil
	}
	switch {
	case order.LeaseRunning(i.Until, f.Now):
		return []Step{wait("a function works on refund %s until %s", i.ID, Stamp(i.Until))}
	case f.Now.Sub(i.UpdatedAt) >= overdue:
		return []Step{act("orders dead-letters show %s: there was no attempt of refund %s since %s; if its message is not "+
			"there, continue it: %s", f.ID, i.ID, Stamp(i.UpdatedAt), make(i.ID))}
	}
	return []Step{wait("the message of refund %s comes back", i.ID)}
}

// madeGood reports whether another refund gives back what a failed one did not, or may,
// and whether a dispute takes the refund's place.
func (f *Report) madeGood(a refund.Account, failed refund.Item) bool {
	d := f.Record.Dispute
	return a.Left() < failed.Amount || a.Outside >= failed.Amount || d.ID != "" && d.Status != order.DisputeWon ||
		slices.ContainsFunc(a.Items, func(i refund.Item) bool {
			over := i.Status == refund.Failed || i.Status == refund.Refused
			return !over && i.Amount >= failed.Amount && i.CreatedAt.After(failed.CreatedAt)
		})
}

// unused returns a refund id that the order does not have, for another try of a refund.
func unused(a refund.Account, id refund.ID) refund.ID {
	for n := 2; ; n++ {
		next := refund.ID(fmt.Sprintf("%.60s-%d", id, n))
		if _, known := a.Item(next); !known {
			return next
		}
	}
}

// nextDispute returns what to do about a dispute.
func (f *Report) nextDispute() []Step {
	r := f.Record
	switch d := r.Dispute; {
	case d.Status == order.DisputeOpen:
		return []Step{act("answer dispute %s in Stripe's Dashboard before its deadline, and refund nothing of %s until then", d.ID, r.Intent)}
	case d.Status == order.DisputeLost:
		return []Step{wait("dispute %s was lost: the customer has the money, so refund nothing of %s", d.ID, r.Intent)}
	case d.ID == "" && f.Ledgers[r.Intent].Disputed:
		day := r.CreatedAt.UTC().Truncate(24 * time.Hour)
		return []Step{act("orders audit --from %s --to %s --repair: Stripe has a dispute that the row lacks",
			day.Format(time.DateOnly), day.AddDate(0, 0, 2).Format(time.DateOnly))}
	}
	return nil
}

// nextReceipts returns what to do about receipts that may have been sent.
func (f *Report) nextReceipts() (steps []Step) {
	for _, i := range f.Receipts {
		switch {
		case i.Status != receipt.Doubtful:
		case f.Now.Sub(i.UpdatedAt) < doubt:
			steps = append(steps, wait("SES's report may still say whether receipt %s was sent", i.Key))
		default:
			steps = append(steps, act("orders receipts resolve %s %s --sent, or --not-sent: ask the customer, or look in SES",
				f.ID, i.Key))
		}
	}
	return steps
}
