package page_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// scene is a system as make up runs it, and what was posted to it. Its orders have one
// id.
type scene struct {
	*system.System

	t       *testing.T
	log     *system.Log
	posted  []system.Posted
	batches chan sqstest.Batch // every delivery that ended
	yes     atomic.Pointer[func(stripetest.Call)]
}

const id = "LIVE-1"

// Payment methods, see docs.stripe.com/testing.
const (
	card         = "pm_card_visa"
	bankTransfer = "pm_usBankAccount_processing"
)

// start starts a system with the settings of the page.
func (k kit) start(t *testing.T, binary string) *scene {
	t.Helper()
	s := &scene{t: t, log: &system.Log{}, batches: make(chan sqstest.Batch, 100)}
	var err error
	s.System, err = system.Start(t.Context(), system.Options{
		Binary: binary, Webhook: k.binaries["webhook"], Reconcile: k.binaries["reconcile"], Publish: k.binaries["publish"],
		Engine: k.engine, Output: s.log, Stock: map[string]int64{"SONG": 1000},
		FunctionTimeout: 5 * time.Second, Visibility: 6 * time.Second,
		Env:         map[string]string{"ORDER_BUDGET": "4s", "STRIPE_TIMEOUT": "1500ms", "ANSWER_TIME": "200ms"},
		AfterStripe: s.afterStripe,
		Observe:     func(b sqstest.Batch) { s.batches <- b },
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func (s *scene) afterStripe(c stripetest.Call) {
	if act := s.yes.Load(); act != nil {
		(*act)(c)
	}
}

// onYes calls act once, when Stripe has executed a request and before it answers.
func (s *scene) onYes(at stripetest.Endpoint, act func()) {
	var done atomic.Bool
	hook := func(c stripetest.Call) {
		if c.Endpoint == at && done.CompareAndSwap(false, true) {
			act()
		}
	}
	s.yes.Store(&hook)
}

// post posts the order, of some songs.
func (s *scene) post(songs int, method string) {
	s.t.Helper()
	s.postBody(fmt.Sprintf(`{"orderId":%q,"customerId":"CUST-1","currency":"usd",`+
		`"lines":[{"sku":"SONG","quantity":%d,"unitAmount":999}],"payment":{"customer":"cus_Test","method":%q}}`,
		id, songs, method))
}

func (s *scene) postBody(body string) {
	s.t.Helper()
	ids, err := s.Post([]sqstest.Draft{{Body: body}})
	must(s.t, err)
	s.posted = append(s.posted, system.NewPosted(sqs.NewDecoder(), body, ids[0]))
}

// delivered waits for the end of a delivery.
func (s *scene) delivered() {
	select {
	case <-s.batches:
	case <-s.t.Context().Done():
	}
}

// deliverAgain makes the messages that are in flight visible, as if their visibility
// timeout had ended.
func (s *scene) deliverAgain() {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		messages, _ := m.Messages(now, s.OrderQueue())
		for _, message := range messages {
			_ = m.ChangeVisibility(now, s.OrderQueue(), message.Receipt, 0)
		}
	})
	s.SQS.Wake()
}

// kill kills the instances that process the order.
func (s *scene) kill() {
	s.Function.Kill(func(payload []byte) bool { return strings.Contains(string(payload), `\"`+id+`\"`) })
}

// audit waits until the system is at rest, or has charged the order twice, and returns
// the broken invariants. Without the guard bind the message never ends.
func (s *scene) audit() []system.Check {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 40*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for s.Waiting() > 0 && s.charges() < 2 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.t.Fatalf("not at rest: %+v\n%s", s.Counts(), s.log.Text())
		}
	}
	must(s.t, s.Heard(ctx))
	books, err := s.Collect(ctx, s.posted, s.log)
	must(s.t, err)
	return slices.DeleteFunc(books.Audit(), func(c system.Check) bool { return len(c.Broken) == 0 })
}

func (s *scene) charges() (n int) {
	s.Stripe.Machine(func(m *stripetest.Machine) { n = len(m.Charges(id)) })
	return n
}
