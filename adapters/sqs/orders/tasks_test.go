package orders_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
)

type meter []string

func (m *meter) Count(metric, by, value string) { *m = append(*m, metric+" "+by+" "+value) }

func (m *meter) Observe(metric, _, _ string, d time.Duration) {
	*m = append(*m, fmt.Sprint(metric, " ", d))
}

func (m *meter) Flush() {}

func TestOnlySettledOrdersAreCounted(t *testing.T) {
	task, err := orders.Tasks{Decoder: orders.NewDecoder()}.Task(bodytest.Order)
	if err != nil {
		t.Fatal(err)
	}
	var m meter
	for _, reason := range order.Reasons() {
		task.Count(&m, order.Result{Reason: reason, Status: order.Paid}, time.Minute)
	}
	if diff := cmp.Diff(m, meter{"Settled Status paid", "OrderAge 1m0s"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
