package main

import (
	"context"
	"errors"
	"fmt"

	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type listReceipts struct {
	Order string `arg:"" optional:"" help:"The orderId. Default: the doubtful receipts of all orders."`
}

// Run prints the receipts.
func (l listReceipts) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "RECEIPTS_TABLE")
	if err != nil {
		return err
	}
	all, err := l.read(ctx, d.Receipts())
	if err != nil {
		return err
	}
	open := 0
	for _, i := range all {
		if i.Status == receipt.Doubtful {
			open++
		}
		if err := sh.Result(view.Receipt(i), view.NewReceiptJSON(i)); err != nil {
			return err
		}
	}
	fmt.Fprintf(sh.People(), "receipts: %d, doubtful: %d\n", len(all), open)
	if open > 0 {
		return shell.Left("%d doubtful receipts: see orders receipts resolve --help", open)
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
	Order   string `arg:"" help:"The orderId."`
	Receipt string `arg:"" help:"Which one: paid, or refund#ID."`
	Sent    bool   `required:"" xor:"result" help:"The customer has the e-mail."`
	NotSent bool   `required:"" xor:"result" help:"The customer does not have it: the next event of the order sends it."`
	Yes     bool   `help:"Do not ask, for scripts."`
}

// Run resolves one receipt.
func (r resolveReceipt) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "RECEIPTS_TABLE")
	if err != nil {
		return err
	}
	fmt.Fprintf(sh.People(), "table %s in %s\n\n", d.ReceiptsTable, d.AWS.Region)
	store := d.Receipts()
	key, err := receipt.ParseKey(r.Receipt)
	if err != nil {
		return err
	}
	seen, err := store.Load(ctx, order.ID(r.Order), key)
	if err != nil {
		return err
	}
	after, err := receipt.Resolve(seen, r.Sent, sh.Now())
	if err != nil {
		return fmt.Errorf("resolve receipt %s of order %q: %w", key, r.Order, err)
	}
	fmt.Fprint(sh.People(), view.Receipt(seen))
	if !r.Yes && !sh.Confirms("Type the order id to resolve it: ", r.Order) {
		return shell.ErrNotConfirmed
	}
	_, err = store.Save(ctx, seen, after)
	if errors.Is(err, order.ErrStale) {
		return fmt.Errorf("%w: the receipt changed since it was shown: see orders receipts %s", err, r.Order)
	}
	if err != nil {
		return err
	}
	text := view.Receipt(after)
	if r.NotSent {
		text += "to send it: orders republish " + r.Order + "\n"
	}
	return sh.Result(text, view.NewReceiptJSON(after))
}
