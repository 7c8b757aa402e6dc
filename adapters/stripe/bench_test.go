package stripe_test

import (
	"encoding/json"
	"testing"

	stripego "github.com/stripe/stripe-go/v76"
)

// BenchmarkCall measures a confirmation without its network: building the request and
// interpreting the response. The last row decodes into stripe-go's own type.
func BenchmarkCall(b *testing.B) {
	responses := map[string]response{
		"paid":     {200, false, intentJSON("succeeded", null)},
		"declined": {402, false, errorWithIntent(cardDeclined, intentJSON("requires_payment_method", declinedError))},
	}
	for name, res := range responses {
		b.Run(name, func(b *testing.B) {
			confirm := methods(b, responding(b, res))["confirm"]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := confirm(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("stripe.PaymentIntent", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, json.Unmarshal([]byte(responses["paid"].body), &stripego.PaymentIntent{}))
		}
	})
}
