package cloud

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/stripe"
	"orderonce/scripts/orders/audit"
	"orderonce/scripts/orders/verify"
)

// Items reads every item of the table, the events too, with one call for 1 MB.
func (b *Books) Items(ctx context.Context) pages[verify.Item] {
	return patient(ctx, b.scans, "", func(after string) (page audit.Page[verify.Item], err error) {
		items, next, err := scanItems(ctx, b.orders, after, new(sdk.ScanInput))
		for _, item := range items {
			page.Items = append(page.Items, verify.NewItem(item))
		}
		page.Next = next
		return page, err
	})
}

// Objects lists what was created at Stripe in a window, of every scope, with one call for
// a hundred: of is "payment_intents", "refunds" or "disputes".
func (b *Books) Objects(ctx context.Context, w audit.Window, of string) pages[verify.Object] {
	expanded := map[bool]string{true: stripe.LatestCharge, false: "payment_intent"}[of == "payment_intents"]
	return patient(ctx, b.Stripe, "", func(after string) (audit.Page[verify.Object], error) {
		return list(ctx, b.account.client, of, w, after, "data."+expanded,
			func(o verify.Object) (string, verify.Object, error) { return o.ID, o, nil })
	})
}
