package system_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/receipt"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestReceipts runs the compiled functions from the order to the mailbox: one e-mail for
// each paid order and refund, however often its events come. make run kills the receipt
// function after a send, and the storm anywhere.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	s := w.start(t, incidents.Unhurried(system.Options{
		Instances: 1, Publish: w.Build(t, "functions/publish"), Receipt: w.Build(t, "functions/receipt"),
	}))
	s.post(body("ORD-1"))
	s.settle()
	if reads := s.Stripe.Count(stripetest.Read); s.Mail.Calls() != 1 || reads != 1 {
		t.Errorf("got %d e-mails and %d reads at Stripe, want one of each", s.Mail.Calls(), reads)
	}
	s.wantCalls("two duplicates", func() {
		for _, e := range s.Bus.Archive() {
			s.Notify(string(e.Delivered()))
			s.Notify(string(e.Delivered()))
		}
		systemtest.Must(s.t, s.ReceiptsDrained(t.Context()))
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
		t.Errorf("receipts (-want +got):\n%s", diff)
	}
	if log := s.log.Text(); strings.Contains(log, "customers.invalid") || strings.Contains(log, "cus_") {
		t.Errorf("the log shows an address:\n%s", log)
	}
}
