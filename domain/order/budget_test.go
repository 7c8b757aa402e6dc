package order_test

import (
	"testing"
	"time"

	"orderonce/domain/order"
)

func TestConfirmTime(t *testing.T) {
	const ms = time.Millisecond
	for claim, tt := range map[string]struct {
		budget order.Budget
		want   time.Duration
	}{
		"the defaults leave a second for the write": {
			order.Budget{Order: 10 * time.Second, Provider: 8 * time.Second, Write: 2 * time.Second, Response: 3 * time.Second},
			12 * time.Second,
		},
		"the local system leaves a tenth of a second for the write": {
			order.Budget{Order: 800 * ms, Provider: 600 * ms, Write: 2 * time.Second, Response: 200 * ms},
			900 * ms,
		},
		"a large budget leaves one attempt for the write": {
			order.Budget{Order: time.Minute, Provider: 8 * time.Second, Write: 2 * time.Second, Response: 3 * time.Second},
			13 * time.Second,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			got := tt.budget.ConfirmTime()
			if got != tt.want {
				t.Errorf("ConfirmTime = %v, want %v", got, tt.want)
			}
			if lease := tt.budget.Order + tt.budget.Response; got >= lease {
				t.Errorf(
					"ConfirmTime = %v, want less than %v, or an order that begins with its budget left is never confirmed",
					got, lease,
				)
			}
		})
	}
}
