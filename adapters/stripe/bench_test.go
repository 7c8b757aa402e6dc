package stripe_test

import (
	"encoding/json"
	"testing"

	stripego "github.com/stripe/stripe-go/v76"

	"orderonce/adapters/stripe/stripetest/rigtest"
)

// BenchmarkCall measures a confirmation without its network: building the request and
// interpreting the response. The last row decodes into stripe-go's own type.
func BenchmarkCall(b *testing.B) {
	responses := map[string]rigtest.Response{
		"paid":     rigtest.OK(rigtest.Intent("succeeded", rigtest.Null)),
		"declined": rigtest.Failure(402, rigtest.CardDeclined, rigtest.DeclinedIntent()),
	}
	for name, res := range responses {
		b.Run(name, func(b *testing.B) {
			confirm := rigtest.Methods(b, rigtest.Responding(b, res))["confirm"]
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
			rigtest.Must(b, json.Unmarshal([]byte(responses["paid"].Body), &stripego.PaymentIntent{}))
		}
	})
}
