package prove_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/scripts/prove"
)

func usual(int) int { return 0 }

func TestTheUsualCourseOfAnOrder(t *testing.T) {
	t.Parallel()
	c := prove.Case{Messages: []prove.Message{{ID: "ORD-1", Quantity: 2, Method: "pm_card_visa"}}, Gap: time.Hour}
	broken, got := prove.New(sqs.NewDecoder(), c, usual).Run()
	want := prove.History{
		{At: 0, Who: "producer", What: "sends message 1: order ORD-1, 2 x 19.99 USD"},
		{At: 0, Who: "queue", What: "delivers message 1 to A"},
		{At: 100 * time.Millisecond, Who: "A", What: "begin ORD-1", Answer: "attempt 1, no intent bound"},
		{At: 200 * time.Millisecond, Who: "A", What: "prepare under prove/order/ORD-1/prepare", Answer: "pi_000001 needs_confirmation"},
		{At: 300 * time.Millisecond, Who: "A", What: "bind pi_000001", Answer: "ok"},
		{At: 400 * time.Millisecond, Who: "A", What: "confirm pi_000001", Answer: "pi_000001 succeeded"},
		{At: 400 * time.Millisecond, Who: "bank", What: "charges 39.98 USD for pi_000001"},
		{At: 500 * time.Millisecond, Who: "A", What: "finish ORD-1 as paid", Answer: "ok"},
		{At: 600 * time.Millisecond, Who: "A", What: "done message 1 (settled)", Answer: "ok"},
	}
	if diff := cmp.Diff(want, got); diff != "" || broken != nil {
		t.Errorf("broken: %v, (-want +got)\n%s", broken, diff)
	}
}

func TestEachMessageEndsAsItsOrderCan(t *testing.T) {
	t.Parallel()
	sold := func(quantity int, method string) prove.Message {
		return prove.Message{ID: "ORD-1", Quantity: quantity, Method: method}
	}
	visa := sold(2, "pm_card_visa")
	tests := map[string]struct {
		messages []prove.Message
		last     string
	}{
		"a declined card":                {[]prove.Message{sold(2, "pm_card_chargeDeclined")}, "finish ORD-1 as declined"},
		"a bank that wants the customer": {[]prove.Message{sold(2, "pm_card_authenticationRequired")}, "finish ORD-1 as action_required"},
		"a bank that takes days":         {[]prove.Message{sold(2, "pm_usBankAccount_processing")}, "finish ORD-1 as pending"},
		"the same order twice":           {[]prove.Message{visa, visa}, "done message 2 (duplicate)"},
		"the same id, other articles":    {[]prove.Message{visa, sold(3, "pm_card_visa")}, "park message 2 (conflict)"},
		"the same id, another card":      {[]prove.Message{visa, sold(2, "pm_other")}, "park message 2 (conflict)"},
		"a card that does not exist":     {[]prove.Message{sold(2, "pm_card_chargeDeclinedMisspelt")}, "park message 1 (refused)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken, h := prove.New(sqs.NewDecoder(), prove.Case{Messages: tt.messages, Gap: time.Hour}, usual).Run()
			found := false
			for _, l := range h {
				found = found || l.What == tt.last && l.Answer == "ok"
			}
			if broken != nil || !found {
				t.Errorf("broken: %v; want %q in\n%s", broken, tt.last, h)
			}
		})
	}
}
