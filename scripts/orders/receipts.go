package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type listReceipts struct {
	Order string `arg:"" optional:"" help:"The orderId. Default: of all orders, those that are doubtful or to be sent."`
}

// Run prints the receipts.
func (l listReceipts) Run(ctx context.Context, d cloud.Deployment) error {
	all, err := l.read(ctx, d.Receipts())
	if err != nil {
		return err
	}
	open, wanted := 0, 0
	for _, i := range all {
		if i.Status == receipt.Doubtful {
			open++
		}
		if i.Wanted() {
			wanted++
		}
		if err := d.Result(view.Receipt(i), view.NewReceiptJSON(i)); err != nil {
			return err
		}
	}
	fmt.Fprintf(d.People(), "receipts: %d, doubtful: %d, to be sent: %d\n", len(all), open, wanted)
	if open > 0 {
		return shell.Left("%d doubtful receipts: see orders receipts resolve --help", open)
	}
	if wanted > 0 {
		return shell.Left("%d receipts to be sent: orders republish sends those of an order", wanted)
	}
	return nil
}

func (l listReceipts) read(ctx context.Context, doubts *receipttable.Store) (all []receipt.Item, err error) {
	if l.Order != "" {
		return doubts.OfOrder(ctx, order.ID(l.Order))
	}
	for i, err := range doubts.Doubtful(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

type resolveReceipt struct {
	Order   string `arg:"" optional:"" help:"The orderId."`
	Receipt string `arg:"" optional:"" help:"Which one, such as paid: orders receipts lists them."`
	Sent    bool   `required:"" xor:"result" help:"The customer has the e-mail."`
	NotSent bool   `required:"" xor:"result" help:"The customer does not have it: the next event of the order sends it."`
	List    []byte `required:"" xor:"result" type:"filecontent" placeholder:"FILE" help:"Lines such as: ORD-1001 paid not-sent"`
	Yes     bool   `help:"Do not ask, for scripts."`
}

// Run resolves one receipt, or those of a list.
func (r resolveReceipt) Run(ctx context.Context, d cloud.Deployment) error {
	if r.List == nil {
		word := map[bool]string{true: "sent", false: "not-sent"}[r.Sent]
		return decide(ctx, d, r.Yes, decision{r.Order, r.Receipt, word})
	}
	var all []decision
	for n, line := range strings.Split(string(r.List), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 3 || !slices.Contains([]string{"sent", "not-sent", "again"}, words[2]) {
			return fmt.Errorf("--list: line %d: want an orderId, a receipt, and sent, not-sent or again", n+1)
		}
		all = append(all, decision{words[0], words[1], words[2]})
	}
	return decide(ctx, d, r.Yes, all...)
}

type sendReceiptAgain struct {
	Order   string `arg:"" help:"The orderId."`
	Receipt string `arg:"" help:"Which one, such as paid: orders receipts lists them."`
	Yes     bool   `help:"Do not ask, for scripts."`
}

// Run records that another e-mail is wanted.
func (r sendReceiptAgain) Run(ctx context.Context, d cloud.Deployment) error {
	return decide(ctx, d, r.Yes, decision{r.Order, r.Receipt, "again"})
}

// decision is what a person says of a receipt: sent, not-sent or again.
type decision struct{ order, receipt, word string }

// after loads the receipt, and returns it as it is and as the person decided.
func (c decision) after(ctx context.Context, d cloud.Deployment) (seen, after receipt.Item, err error) {
	key, err := receipt.ParseKey(c.receipt)
	if err == nil {
		seen, err = d.Receipts().Load(ctx, order.ID(c.order), key)
	}
	if err == nil && c.word == "again" {
		after, err = receipt.Again(seen, d.Now())
	} else if err == nil {
		after, err = receipt.Resolve(seen, c.word == "sent", d.Now())
	}
	if err != nil {
		err = fmt.Errorf("receipt %s of order %q: %w", c.receipt, c.order, err)
	}
	if err != nil && c.word == "not-sent" && seen.Revision > 0 {
		err = fmt.Errorf("%w; to send another e-mail: orders receipts again %s %s", err, c.order, c.receipt)
	}
	return seen, after, err
}

// decide shows the receipts, asks once, and records the decisions. It goes on after a
// receipt about which a person cannot decide this.
func decide(ctx context.Context, d cloud.Deployment, yes bool, all ...decision) error {
	fmt.Fprintf(d.People(), "table %s in %s\n\n", d.ReceiptsTable, d.AWS.Region)
	var changes [][2]receipt.Item
	var left []error
	for _, c := range all {
		seen, after, err := c.after(ctx, d)
		if err != nil {
			left = append(left, err)
			continue
		}
		changes = append(changes, [2]receipt.Item{seen, after})
		fmt.Fprintf(d.People(), "%-8s  %s", c.word, view.Receipt(seen))
	}
	if len(changes) == 0 {
		return errors.Join(left...)
	}
	word, what := all[0].order, "order id"
	if len(all) > 1 {
		word, what = strconv.Itoa(len(changes)), "number of receipts above"
	}
	if slices.ContainsFunc(all, func(c decision) bool { return c.word != "sent" }) {
		fmt.Fprint(d.People(), "\nIt is sent by the next event. A customer who has the e-mail gets it twice.\n")
	}
	if !yes && !d.Confirms("Type the "+what+" to record it: ", word) {
		return shell.ErrNotConfirmed
	}
	for _, c := range changes {
		if err := record(ctx, d, c[0], c[1]); err != nil {
			left = append(left, err)
		}
	}
	if len(left) > 0 {
		return shell.Left("%w\nreceipts left as they were: %d", errors.Join(left...), len(left))
	}
	return nil
}

func record(ctx context.Context, d cloud.Deployment, seen, after receipt.Item) error {
	_, err := d.Receipts().Save(ctx, seen, after)
	if errors.Is(err, order.ErrStale) {
		return fmt.Errorf("%w: the receipt changed since it was shown: see orders receipts %s", err, seen.OrderID)
	}
	if err != nil {
		return err
	}
	text := view.Receipt(after)
	if after.Status == receipt.Failed {
		text += "to send it: orders republish " + string(after.OrderID) + "\n"
	}
	return d.Result(text, view.NewReceiptJSON(after))
}
