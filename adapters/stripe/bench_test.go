package stripe_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	stripego "github.com/stripe/stripe-go/v76"
)

// BenchmarkCall is one confirmation without its network: building the request and reading the answer. The last row is
// what decoding alone costs into the library's own type.
func BenchmarkCall(b *testing.B) {
	answers := map[string]said{
		"paid":     {200, false, body("succeeded", none)},
		"declined": {402, false, in(card, body("requires_payment_method", declined))},
	}
	for name, answer := range answers {
		b.Run(name, func(b *testing.B) {
			confirm := calls(b, open(b, "", roundTrip(func(r *http.Request) (*http.Response, error) {
				body := io.NopCloser(strings.NewReader(answer.body))
				return &http.Response{StatusCode: answer.status, Body: body, Header: http.Header{}, Request: r}, nil
			})))["confirm"]
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
			if err := json.Unmarshal([]byte(answers["paid"].body), &stripego.PaymentIntent{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
