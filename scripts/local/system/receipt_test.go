package system_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestReceipts runs the compiled functions from the order to the mailbox.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	publish, receipts := w.Build(t, "functions/publish"), w.Build(t, "functions/receipt")
	t.Run("one for each paid order and refund, however often its events come", func(t *testing.T) {
		t.Parallel()
		s := w.start(t, generous(system.Options{Instances: 1, Publish: publish, Receipt: receipts}))
		sendsOnce(s)
	})
	t.Run("killed at any call, none is sent twice, and only a send leaves a doubt", func(t *testing.T) {
		t.Parallel()
		o := generous(system.Options{Publish: publish, Receipt: receipts})
		o.Env["SES_TIMEOUT"] = "3s"
		m := &mailing{lose: true}
		o.LoseMailEvent = m.keep
		m.trap = newTrap(t, w, o, func(s *running) []*lambdatest.Host { return []*lambdatest.Host{s.Receipt} })
		m.survivesKills()
	})
}

func sendsOnce(s *running) {
	s.t.Helper()
	s.post(body("ORD-1"))
	s.settle()
	if reads := s.Stripe.Count(stripetest.Read); s.Mail.Calls() != 1 || reads != 1 {
		s.t.Errorf("got %d e-mails and %d reads at Stripe, want one of each", s.Mail.Calls(), reads)
	}
	s.wantCalls("two duplicates", func() {
		for _, e := range s.Bus.Archive() {
			s.Notify(string(e.Delivered()))
			s.Notify(string(e.Delivered()))
		}
		must(s.t, s.ReceiptsDrained(s.t.Context()))
	}, map[string]int{"GetItem": 2}, 0)
	s.post(refundBody("ORD-1", "R-1", 1999), bodyWith("declined", declines),
		strings.Replace(body("bounces"), "cus_Test", "cus_bounce1", 1),
		strings.Replace(body("nobody"), "cus_Test", "cus_noaddress1", 1))
	b := s.settle()
	got := map[string]receipt.Status{}
	for id, items := range b.Receipts {
		for _, i := range items {
			got[string(id)+" "+string(i.Key)] = i.Status
		}
	}
	want := map[string]receipt.Status{
		"ORD-1 " + string(receipt.Paid): receipt.Delivered, "ORD-1 " + string(receipt.OfRefund("R-1")): receipt.Delivered,
		"bounces " + string(receipt.Paid): receipt.Bounced, "nobody " + string(receipt.Paid): receipt.Failed,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("receipts (-want +got):\n%s", diff)
	}
	if log := s.log.Text(); strings.Contains(log, "customers.invalid") || strings.Contains(log, "cus_") {
		s.t.Errorf("the log shows an address:\n%s", log)
	}
}

// mailing is a system whose receipt function is killed at a point, and whose mailbox
// keeps its events back.
type mailing struct {
	*trap

	mu     sync.Mutex
	events []string // of SES, that were kept back
	lose   bool
}

func (m *mailing) keep(event json.RawMessage) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, string(event))
	return m.lose
}

// mailState is the status of a receipt, and the e-mails about it.
type mailState struct {
	Status receipt.Status
	Mails  int
}

func (m *mailing) survivesKills() {
	m.t.Helper()
	want := map[[2]string]mailState{
		{"before", "load"}: {receipt.Sent, 1}, {"after", "load"}: {receipt.Sent, 1},
		{"before", "read"}: {receipt.Sent, 1}, {"after", "read"}: {receipt.Sent, 1},
		{"before", "claim"}: {receipt.Sent, 1}, {"after", "claim"}: {receipt.Doubtful, 0},
		{"before", "send"}: {receipt.Doubtful, 0}, {"after", "send"}: {receipt.Doubtful, 1},
		{"before", "record"}: {receipt.Doubtful, 1}, {"after", "record"}: {receipt.Sent, 1},
	}
	// A call whose caller was killed before it may end late, and must not be taken for the
	// next one: the kills before a call come first. The order function uses neither GetItem
	// nor PutItem.
	for _, when := range []string{"before", "after"} {
		for _, p := range []struct {
			name, call string
			n          int
		}{
			{"load", "GetItem", 1},
			{"read", string(stripetest.Read), 1},
			{"claim", "PutItem", 1},
			{"send", "send", 1},
			{"record", "PutItem", 2},
		} {
			m.killAt(point{when, p.call, p.n}, body(when+"-"+p.name))
		}
	}
	for item, err := range m.Items(m.t.Context(), m.ReceiptsTable) { // two minutes pass
		must(m.t, err)
		m.moveBack(m.ReceiptsTable, item, 2*time.Minute)
	}
	m.Advance(2 * time.Minute)
	b := m.settle()
	for at, want := range want {
		id := order.ID(at[0] + "-" + at[1])
		got := mailState{b.Receipts[id][0].Status, 0}
		for _, e := range b.Mail {
			if e == (invariants.Email{OrderID: id, Key: receipt.Paid}) {
				got.Mails++
			}
		}
		if got != want {
			m.t.Errorf("receipt of %s: got %+v, want %+v", id, got, want)
		}
	}
	warns := slices.DeleteFunc(strings.Split(m.log.Text(), "\n"), func(l string) bool {
		return !strings.Contains(l, `"level":"WARN"`) || !strings.Contains(l, `"reason":"receipt_doubtful"`)
	})
	m.release() // SES knows which of the doubtful ones it sent
	if left := m.settle().Doubts; len(b.Doubts) != 4 || len(warns) != 4 || len(left) != 2 {
		m.t.Errorf("got %d doubts and %d warnings, then %v; want 4, 4, and the two that were not sent",
			len(b.Doubts), len(warns), left)
	}
}

// release delivers the events that SES published, and those of later messages.
func (m *mailing) release() {
	m.t.Helper()
	m.mu.Lock()
	events := m.events
	m.events, m.lose = nil, false
	m.mu.Unlock()
	for _, e := range events {
		m.Notify(e)
	}
	must(m.t, m.ReceiptsDrained(m.t.Context()))
}
