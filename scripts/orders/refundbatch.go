package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type batchRefunds struct {
	File     string            `arg:"" help:"CSV with the columns orderId and amount, or refunds as JSON lines."`
	RefundID string            `required:"" placeholder:"ID" help:"The id of each refund, such as wrong-price, unless its row has one."`
	Reason   string            `enum:"duplicate,fraudulent,requested_by_customer" default:"requested_by_customer" placeholder:"R" help:"${enum}."`
	Column   map[string]string `placeholder:"COLUMN=NAME" mapsep:"none" help:"What the header calls a column. Repeatable."`
	Rate     int               `default:"10" placeholder:"N" help:"At most so many refunds per second; 0 for no limit."`
	DryRun   bool              `help:"Only say what would be done."`
	Yes      bool              `help:"Do not ask, for scripts."`
}

// Run says what each row would do, asks once, and posts the refunds.
func (b batchRefunds) Run(ctx context.Context, d cloud.Deployment) error {
	from := batch.Source{File: b.File, Column: b.Column}
	lines, err := from.ReadRefunds(d.In, refund.Draft{RefundID: b.RefundID, Reason: b.Reason})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.People(), "table %s in %s, scope %s, Stripe in %s mode\nqueue %s\n\n",
		d.Table, d.AWS.Region, d.Scope, d.Mode(), d.RefundQueue)
	if d.Key.Reveal() == "" {
		fmt.Fprintln(d.People(), notRead)
	}
	rows, err := b.plan(ctx, d, lines)
	var left error
	if err == nil {
		left, err = sumUp(d.Shell, rows)
	}
	if err != nil {
		return fmt.Errorf("nothing posted: %w", d.Explain(err))
	}
	var messages []batch.Message
	for _, r := range rows {
		if r.Action == toRefund {
			messages = append(messages, batch.NewRefund(r.line, r.request))
		}
	}
	switch ask := fmt.Sprintf("Type %d to post them: ", len(messages)); {
	case len(messages) == 0:
		return left
	case b.DryRun:
		return shell.Left("refunds not posted: %d", len(messages))
	case !b.Yes && !d.Confirms(ask, strconv.Itoa(len(messages))):
		return shell.ErrNotConfirmed
	}
	queue := d.QueueAt(d.RefundQueue)
	sender := batch.Sender{Refunds: queue, File: from.Name(), Rate: b.Rate, Progress: d.Progress}
	posted, err := sender.SendAll(ctx, messages)
	d.Progress("")
	if err != nil {
		return fmt.Errorf("%d of %d refunds posted, and none is made twice: run it again\n%w",
			posted, len(messages), err)
	}
	text := fmt.Sprintf("posted: %d. To see which are made, run it again in a minute\n", posted)
	return errors.Join(d.Result(text, map[string]int{"posted": posted}), left)
}

// What is to be done with a row.
const (
	toRefund = "refund"
	isMade   = "made"
	toWait   = "wait" // it is under way
	toSkip   = "skip"
)

func actions() []string { return []string{isMade, toRefund, toWait, toSkip} }

// row is a row of the file, and what it would do.
type row struct {
	Action   string         `json:"action"`
	OrderID  string         `json:"orderId"`
	RefundID string         `json:"refundId"`
	Amount   int64          `json:"amount,omitempty"`
	Currency order.Currency `json:"currency,omitempty"`
	Why      string         `json:"why,omitempty"`

	line    int
	request refund.Request
}

// plan returns what the rows would do, those that need a person last. It returns an error
// if that cannot be known of one.
func (b batchRefunds) plan(
	ctx context.Context, d cloud.Deployment, lines []batch.Refund,
) (rows []row, err error) {
	accounts := map[order.ID]refund.Account{}
	for n, l := range lines {
		d.Progress("%d of %d rows read", n, len(lines))
		r, err := b.decide(ctx, d, accounts, l)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	d.Progress("")
	slices.SortStableFunc(rows, func(r, other row) int {
		return cmp.Compare(slices.Index(actions(), r.Action), slices.Index(actions(), other.Action))
	})
	return rows, nil
}

// decide returns what a row would do after those before it, which leave these accounts.
func (b batchRefunds) decide(
	ctx context.Context, d cloud.Deployment, accounts map[order.ID]refund.Account, l batch.Refund,
) (r row, err error) {
	r = row{OrderID: l.OrderID, RefundID: l.RefundID, line: l.Line}
	if !order.ValidID(l.OrderID) {
		return r.will(toSkip, order.ErrNotFound), nil
	}
	a, read := accounts[order.ID(l.OrderID)]
	if !read {
		a, err = d.Accounts().Load(ctx, order.ID(l.OrderID))
	}
	for _, why := range []error{order.ErrNotFound, order.ErrCorrupt, order.ErrUnknownVersion} {
		if errors.Is(err, why) {
			return r.will(toSkip, why), nil
		}
	}
	if err != nil {
		return r, err
	}
	if r.request, err = l.Request(a.Charged.Currency); err != nil {
		return r.will(toSkip, err), nil
	}
	r.Amount, r.Currency = r.request.Amount(), a.Charged.Currency
	made, err := before(a, r.request, d.Now())
	i, known := a.Item(r.request.ID())
	others := alike(a, r.request)
	switch {
	case err != nil:
		return r.will(toSkip, err), nil
	case made:
		return r.will(isMade, view.Refund(i)), nil
	case i.Status == refund.Open && !i.Abandoned(d.Now()):
		return r.will(toWait, view.Refund(i)), nil
	case !known && l.RefundID == b.RefundID && len(others) > 0:
		return r.will(toSkip, fmt.Sprintf("refund %s of this amount is %s: a row for another one needs a refundId",
			others[0].ID, others[0].Status)), nil
	}
	f, err := d.PaymentsOf(ctx, a)
	if err != nil && !errors.Is(err, cloud.ErrNoKey) {
		return r, err
	}
	if f.Charges() > 1 {
		return r.will(toSkip, fmt.Sprintf("charged twice: see orders show %s", a.OrderID)), nil
	}
	accounts[a.OrderID] = refund.Begun(a, r.request, order.Lease{Owner: r.RefundID, From: d.Now()})
	why := fmt.Sprintf("of %s left", order.Money{Amount: a.Left(), Currency: r.Currency})
	if back := a.Refunded(); back > 0 {
		why += fmt.Sprintf(", %s went back before", order.Money{Amount: back, Currency: r.Currency})
	}
	if back := f.BackElsewhere(); back != "" {
		why += ", and " + back
	}
	return r.will(toRefund, why), nil
}

func (r row) will(action string, why any) row {
	r.Action, r.Why = action, fmt.Sprint(why)
	return r
}

// sumUp prints what the rows would do, and how much that is. left is an error if rows
// are neither made nor posted.
func sumUp(sh shell.Shell, rows []row) (left, err error) {
	count, sums := map[string]int{}, map[string]map[order.Currency]int64{}
	for _, r := range rows {
		amount := "-"
		if count[r.Action]++; r.Currency != "" {
			amount = order.Money{Amount: r.Amount, Currency: r.Currency}.String()
			if sums[r.Action] == nil {
				sums[r.Action] = map[order.Currency]int64{}
			}
			sums[r.Action][r.Currency] += r.Amount
		}
		line := fmt.Sprintf("%-7s %-32s %14s  %s\n", r.Action, r.OrderID+" "+r.RefundID, amount, r.Why)
		if err := sh.Result(line, r); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(sh.People())
	for _, action := range actions() {
		var amounts []string
		for _, c := range slices.Sorted(maps.Keys(sums[action])) {
			amounts = append(amounts, order.Money{Amount: sums[action][c], Currency: c}.String())
		}
		if count[action] > 0 {
			fmt.Fprintf(sh.People(), "%-7s %6d  %s\n", action, count[action], cmp.Or(strings.Join(amounts, ", "), "-"))
		}
	}
	if n := count[toWait] + count[toSkip]; n > 0 {
		left = shell.Left("neither made nor posted: %d, see above", n)
	}
	return left, sh.Record(map[string]any{"rows": count, "amounts": sums})
}
