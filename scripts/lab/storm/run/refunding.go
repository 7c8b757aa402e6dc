package run

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
)

// refunding counts during a storm.
type refunding struct {
	deliveries, kills atomic.Int64
	creating          atomic.Int64 // requests for refunds at Stripe now
}

// isRefund reports whether a message is for a refund.
func isRefund(m sqstest.Message) bool {
	return strings.Contains(m.Attributes[AttrName].Text, refundNames)
}

// holdsRefund reports whether an invocation's payload holds a message for a refund.
func holdsRefund(payload []byte) bool { return bytes.Contains(payload, []byte(refundNames)) }

// counted counts a kill if the instance had a refund in its batch.
func (st *storm) counted(match func([]byte) bool) func([]byte) bool {
	return func(payload []byte) bool {
		matches := match(payload)
		if matches && holdsRefund(payload) {
			st.refunding.kills.Add(1)
		}
		return matches
	}
}

// beforeCall and afterCall are called before and after Stripe executes a call.
func (st *storm) beforeCall(ctx context.Context, c stripetest.Call) {
	if c.Endpoint == stripetest.CreateRefund {
		st.refunding.creating.Add(1)
	}
	st.cancelAt(ctx, c, true)
}

func (st *storm) afterCall(ctx context.Context, c stripetest.Call) {
	if c.Endpoint == stripetest.CreateRefund {
		st.refunding.creating.Add(-1)
		st.killRefund(c)
	}
	st.cancelAt(ctx, c, false)
	st.loseMessage(c)
}

// madeShare is the share of the made refunds whose worker is killed before it can record
// them.
const madeShare = 0.1

// killRefund kills the worker of a refund that Stripe has just made.
func (st *storm) killRefund(c stripetest.Call) {
	dice := st.Workload.dice(madeDice, c.Number)
	if st.NoFaults || c.Status != 200 || c.Replayed || dice.Float64() >= madeShare {
		return
	}
	id := []byte(c.OrderID)
	holds := func(payload []byte) bool { return holdsRefund(payload) && bytes.Contains(payload, id) }
	st.kills.Add(int64(st.system.Load().Kill(st.counted(holds))))
}

// passLeases lets the time of every refund's lease pass, without waiting for it. A killed
// worker and a lost response leave a lease of fifteen minutes, and the function uses this
// machine's clock.
//
// It waits until nothing runs. A request that a killed worker sent may still be at
// Stripe, which executes it up to longDelay later. In production that is long before the
// lease ends; here the request would arrive after another attempt and after days, and
// give the money back twice.
func (st *storm) passLeases(ctx context.Context, s *system.System) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for quiet := time.Duration(0); quiet < idleAfter; quiet += pollInterval {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.Busy() || st.refunding.creating.Load()+st.canceling.Load() > 0 {
			quiet = 0
		}
	}
	return s.PassRefundLeases(ctx)
}

// refundKey names a refund.
type refundKey struct {
	order string
	id    refund.ID
}

func keyOf(r *stripetest.Refund) refundKey {
	return refundKey{r.Metadata["orderId"], refund.ID(r.Metadata["refundId"])}
}

// leftOpen returns the open refunds that Stripe has made.
func leftOpen(s *system.System, open map[refundKey]bool) (left []string) {
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, r := range m.Refunds() {
			if key := keyOf(r); open[key] {
				left = append(left,
					fmt.Sprintf("left waiting: refund %s of order %s is open, Stripe has %s", key.id, key.order, r.ID))
			}
		}
	})
	return left
}
