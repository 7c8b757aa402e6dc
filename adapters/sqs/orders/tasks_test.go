package orders_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
)

var errStore = errors.New("no route to the store")

func TestTheTaskOfAnOrderChargesItAndNotesThatItWasParked(t *testing.T) {
	t.Parallel()
	sent, at := time.Unix(1, 0), time.Unix(2, 0)
	lease := order.Lease{Owner: "owner"}
	tasks := orders.Tasks{
		Decoder: orders.NewDecoder(),
		Process: func(_ context.Context, o order.Order, first time.Time, l order.Lease) order.Result {
			if o.ID() != "ORD12345" || !first.Equal(sent) || l != lease {
				t.Errorf("Process: got %s, %v, %v, want ORD12345, %v, %v", o.ID(), first, l, sent, lease)
			}
			return order.Result{Verdict: order.Done}
		},
		NoteParked: func(_ context.Context, o order.Order, why order.Reason, when time.Time) error {
			if o.ID() != "ORD12345" || why != order.ReasonRefused || !when.Equal(at) {
				t.Errorf("NoteParked: got %s, %s, %v, want ORD12345, refused, %v", o.ID(), why, when, at)
			}
			return errStore
		},
	}
	task, err := tasks.Task(bodytest.Order)
	if err != nil || task.ID != "ORD12345" {
		t.Fatalf("got task of %q, %v, want ORD12345", task.ID, err)
	}
	if r := task.Run(t.Context(), sqs.Delivery{FirstSent: sent, SentAt: at}, lease); r.Verdict != order.Done {
		t.Errorf("got %+v, want the result of Process", r)
	}
	if err := task.NoteParked(t.Context(), order.ReasonRefused, at); !errors.Is(err, errStore) {
		t.Errorf("got %v, want the error of NoteParked", err)
	}
	if task, err := tasks.Task(bodytest.Refund); err == nil || task.Run != nil {
		t.Errorf("a refund: got task %v, %v, want an error", task, err)
	}
}

type meter []string

func (m *meter) Count(metric, dimension, value string) {
	*m = append(*m, metric+" "+dimension+" "+value)
}
func (m *meter) Flush() {}
func (m *meter) Observe(metric, _, _ string, d time.Duration) {
	*m = append(*m, fmt.Sprint(metric, " ", d))
}

func TestOnlySettledOrdersAreCounted(t *testing.T) {
	t.Parallel()
	task := orders.Tasks{}.Of(orderOf(t))
	var m meter
	for _, reason := range order.Reasons() {
		task.Count(&m, order.Result{Reason: reason, Status: order.Paid}, time.Minute)
	}
	if diff := cmp.Diff(slices.Clone(m), meter{"Settled Status paid", "OrderAge 1m0s"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
