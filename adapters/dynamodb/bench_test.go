package dynamodb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// encoder is a store that encodes what it saves, and drops it.
type encoder struct{ order.Store }

func (encoder) Save(_ context.Context, before, after order.Record) (order.Record, error) {
	dynamodb.Write(before, after)
	return after, nil
}

// refusal is the response to Begin of an order that is paid, without its fingerprint.
const refusal = `{"__type":"ConditionalCheckFailedException","Item":{"orderId":{"S":"ORD-1"},"status":{"S":"paid"},` +
	`"amount":{"N":"3998"},"currency":{"S":"usd"},"intentId":{"S":"pi_pretend"},"attempt":{"N":"1"},"seq":{"N":"1"},` +
	`"createdAt":{"N":"1767225600123"},"updatedAt":{"N":"1767225600124"},"fingerprint":{"S":"%s"}}}`

// costs has the writes of an order, encoded alone and sent by the SDK's client.
func costs(tb testing.TB) []ordertest.Cost {
	tb.Helper()
	o := ordertest.Order("ORD-1")
	writes := func(s order.Store) (begin, bind, finish func() error) {
		claim := func() (order.Claim, error) { return order.Begin(tb.Context(), s, o, lease("first"), nil) }
		claimed, _ := claim() // if it fails, so does begin
		bound := claimed
		bound.Intent, bound.Mode = intent, order.TestMode
		return func() error { _, err := claim(); return err },
			func() error { return claimed.Bind(tb.Context(), s, prepared(), at(1)) },
			func() error { return bound.Finish(tb.Context(), s, asPaid(), at(2)) }
	}
	encodeBegin, encodeBind, encodeFinish := writes(encoder{})
	begin, bind, finish := writes(newStore(alwaysResponds(http.StatusOK, "{}")))
	paid := newStore(alwaysResponds(http.StatusBadRequest, fmt.Sprintf(refusal, o.Fingerprint())))
	duplicate := func() error {
		if _, err := order.Begin(tb.Context(), paid, o, lease("second"), nil); !errors.As(err, new(*order.SettledError)) {
			return err
		}
		return nil
	}
	return []ordertest.Cost{
		{Name: "step=encode/write=Begin", Objects: 74, Bytes: 4_900, Call: encodeBegin},
		{Name: "step=encode/write=Bind", Objects: 97, Bytes: 6_600, Call: encodeBind},
		{Name: "step=encode/write=Finish", Objects: 109, Bytes: 6_600, Call: encodeFinish},
		{Name: "step=save/write=Begin", Objects: 387, Bytes: 34_800, Call: begin},
		{Name: "step=save/write=Bind", Objects: 409, Bytes: 34_500, Call: bind},
		{Name: "step=save/write=Finish", Objects: 460, Bytes: 38_500, Call: finish},
		{Name: "step=save/write=duplicate", Objects: 516, Bytes: 45_100, Call: duplicate},
	}
}

func TestWritesKeepTheirBudget(t *testing.T) { ordertest.TestCosts(t, costs(t)) }
func BenchmarkWrite(b *testing.B)            { ordertest.BenchmarkCosts(b, costs(b)) }
