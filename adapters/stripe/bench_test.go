package stripe_test

import (
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order/ordertest"
)

// costs has calls without HTTP: making the request, and parsing the response.
func costs(tb testing.TB) []ordertest.Cost {
	tb.Helper()
	call := func(method string, r stripe.Response) func() error {
		do := rigtest.Methods(tb, rigtest.Responding(r))[method]
		return func() error { _, err := do(tb.Context()); return err }
	}
	waiting, paid := rigtest.OK(rigtest.Intent("requires_confirmation")), rigtest.OK(rigtest.Intent("succeeded"))
	declined := rigtest.FailureWith(402, rigtest.CardDeclined, rigtest.DeclinedIntent())
	return []ordertest.Cost{
		{Name: "call=prepare/response=waiting", Objects: 118, Bytes: 6_200, Call: call("prepare", waiting)},
		{Name: "call=confirm/response=paid", Objects: 56, Bytes: 2_900, Call: call("confirm", paid)},
		{Name: "call=confirm/response=declined", Objects: 75, Bytes: 3_600, Call: call("confirm", declined)},
		{Name: "call=read/response=paid", Objects: 67, Bytes: 2_900, Call: call("read", paid)},
	}
}

func TestCallsKeepTheirBudget(t *testing.T) { ordertest.TestCosts(t, costs(t)) }
func BenchmarkCall(b *testing.B)            { ordertest.BenchmarkCosts(b, costs(b)) }
