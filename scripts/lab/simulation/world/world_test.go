package world_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// sold returns an order of mugs for 19.99 USD each.
func sold(quantity int64, method string) world.Message {
	m := world.Message{ID: "ORD-1", Customer: "CUST987", Currency: "usd", Payer: "cus_pretend", Method: method}
	m.Lines[0] = world.SKU{SKU: "MUG", Quantity: quantity, Price: 1999}
	return m
}

func TestTheUsualCourseOfAnOrder(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	want := stage.History{
		{
			At: 0, Who: "producer",
			What: "sends message 1: order ORD-1 of CUST987: 2 MUG at 19.99 USD, cus_pretend pays with pm_card_visa",
		},
		{At: 0, Who: "queue", What: "delivers message 1 to A"},
		{At: 100 * ms, Who: "A", What: "begin ORD-1", Answer: "attempt 1, no intent bound"},
		{At: 200 * ms, Who: "A", What: "prepare under prove/order/ORD-1/prepare", Answer: "pi_000001 needs_confirmation"},
		{At: 300 * ms, Who: "A", What: "bind pi_000001", Answer: "ok"},
		{At: 400 * ms, Who: "A", What: "confirm pi_000001", Answer: "pi_000001 succeeded"},
		{At: 400 * ms, Who: "bank", What: "charges 39.98 USD for pi_000001"},
		{At: 500 * ms, Who: "A", What: "finish ORD-1 as paid", Answer: "ok"},
		{At: 600 * ms, Who: "A", What: "done message 1 (settled)", Answer: "ok"},
	}
	c := world.Case{Messages: []world.Message{sold(2, world.Visa)}, Gap: time.Hour, Adapter: true}
	w := world.NewLab().NewWorld(c, func(stage.Kind, int) int { return 0 }).KeepHistory()
	broken := w.Run()
	if diff := cmp.Diff(w.History(), want); diff != "" || broken != nil {
		t.Errorf("broken: %v, (-got +want)\n%s", broken, diff)
	}
}
