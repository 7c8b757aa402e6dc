package cloud

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	stripego "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"orderonce/adapters/stripe"
	"orderonce/scripts/orders/audit"
	"orderonce/scripts/orders/verify"
)

// Items reads every item of the table, the events too, with one call for 1 MB.
func (b *Books) Items(ctx context.Context) pages[verify.Item] {
	return patient(ctx, b.scans, "", follow(func(after string) (page audit.Page[verify.Item], err error) {
		items, next, err := scanItems(ctx, b.orders, after, new(sdk.ScanInput))
		for _, item := range items {
			page.Items = append(page.Items, verify.NewItem(item))
		}
		page.Next = next
		return page, err
	}))
}

// Objects lists what was created at Stripe in a window, of every scope, with one call for
// a hundred: of is "payment_intents", "refunds" or "disputes".
func (b *Books) Objects(ctx context.Context, w audit.Window, of string) pages[verify.Object] {
	expanded := map[bool]string{true: stripe.LatestCharge, false: "payment_intent"}[of == "payment_intents"]
	return patient(ctx, b.Stripe, "", follow(func(after string) (page audit.Page[verify.Object], err error) {
		created, list := hundred(ctx, w, after, "data."+expanded)
		params, call := new(form.Values), b.account.client.Call("list "+of)
		form.AppendTo(params, &stripego.PaymentIntentListParams{CreatedRange: created, ListParams: list})
		call.Permission = stripe.ReadCharges + ` and "Disputes: Read"`
		err = call.CallRaw("GET", "/v1/"+of, "", params, list.GetParams(), nil)
		found, err := stripe.Page(call, err, errNotIntents, func(o verify.Object) (verify.Object, error) {
			if page.Next = o.ID; o.ID == "" { // it would look like the end of the list
				return o, errNotIntents
			}
			return o, nil
		})
		if page.Items = found.Data; !found.More {
			page.Next = ""
		}
		return page, err
	}))
}

// follow yields the pages that read returns, up to one without Next.
func follow[T any](read func(after string) (audit.Page[T], error)) func(after string) pages[T] {
	return func(after string) pages[T] {
		return func(yield func(audit.Page[T], error) bool) {
			for more := true; more; {
				page, err := read(after)
				more, after = yield(page, err) && page.Next != "", page.Next
			}
		}
	}
}
