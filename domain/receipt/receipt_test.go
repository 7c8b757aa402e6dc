package receipt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
	"orderonce/domain/receipt"
)

func TestFromEvent(t *testing.T) {
	event := outbox.Event{
		OrderID: "ORD-1", Total: order.Money{Amount: 3998, Currency: "usd"}, Trace: trace,
		Event: order.Event{Seq: 1, From: order.Open, To: order.Paid, Intent: "pi_1", At: noon()},
	}
	refunded := event
	refunded.Event.From, refunded.Event.To = order.Paid, order.PartiallyRefunded
	refunded.Event.Refund = order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 1999}
	declined, pending, invalid := event, refunded, event
	declined.Event.To = order.Declined
	pending.Event.Refund.Status = "pending"
	invalid.Event.Intent = ""
	ofRefund := paid()
	ofRefund.Key, ofRefund.Total.Amount = "refund#R-1", 1999
	for claim, tt := range map[string]struct {
		event  outbox.Event
		want   receipt.Request
		wanted bool
	}{
		"a paid order has one":                    {event, paid(), true},
		"a refund that succeeded has one":         {refunded, ofRefund, true},
		"a declined order has none":               {declined, receipt.Request{}, false},
		"a refund that waits for a bank has none": {pending, receipt.Request{}, false},
	} {
		got, wanted, err := receipt.FromEvent(tt.event)
		if diff := cmp.Diff(got, tt.want); err != nil || wanted != tt.wanted || diff != "" {
			t.Errorf("%s: %v, %v (-got +want):\n%s", claim, wanted, err, diff)
		}
	}
	invalid.Total.Amount = 0
	_, _, err := receipt.FromEvent(invalid)
	if problem, ok := errors.AsType[*order.InvalidError](err); !ok || problem.Of != "receipt" || len(problem.Problems) != 2 {
		t.Errorf("without an intent and an amount: got %v, want two problems", err)
	}
}

func TestParseKey(t *testing.T) {
	for s, valid := range map[string]bool{
		"paid": true, "refund#R-1": true, "": false, "refund#": false, "refund": false, "Paid": false, "refund#a b": false, "R-1": false,
	} {
		if k, err := receipt.ParseKey(s); (err == nil) != valid || valid && string(k) != s {
			t.Errorf("ParseKey(%q) = %q, %v, want valid %v", s, k, err, valid)
		}
	}
	if got := receipt.OfRefund("R-1").Refund(); got != "R-1" {
		t.Errorf("the refund of its key is %q", got)
	}
	if got := receipt.Paid.Refund(); got != "" {
		t.Errorf("the refund of %q is %q, want none", receipt.Paid, got)
	}
}

func TestNewAddress(t *testing.T) {
	for s, valid := range map[string]bool{
		"a@example.invalid": true, "ä.o'hara+1@b.example.invalid": true,
		"": false, "a": false, "@b": false, "a@": false, "a@b@c": false,
		strings.Repeat("a", 318) + "@b": true, strings.Repeat("a", 319) + "@b": false,
		"a@b.invalid,c@d.invalid": false, "a@b.invalid,c": false, "a@b.invalid;c@d.invalid": false,
		"a@b.invalid\r\nBcc: c@d.invalid": false, "A <a@b.invalid>": false, "a b@c.invalid": false, "\"a\"@b.invalid": false,
		strings.Repeat("a", 320) + "@b": false,
	} {
		a, err := receipt.NewAddress(s)
		if (err == nil) != valid || valid && a.Reveal() != s || !valid && !errors.Is(err, receipt.ErrNoAddress) {
			t.Errorf("NewAddress(%q) = %v, want valid %v", s, err, valid)
		}
	}
	a, _ := receipt.NewAddress("canary@example.invalid")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb, receipt.Mail{To: a}); strings.Contains(got, "canary") {
			t.Errorf("%s prints the address: %s", verb, got)
		}
	}
}

// Reports arrive repeated and in any order. The last word of the provider counts.
func TestFollow(t *testing.T) {
	const first, second = receipt.MessageID("message-1"), receipt.MessageID("message-2")
	for claim, tt := range map[string]struct {
		status  receipt.Status
		message receipt.MessageID
		report  receipt.Report
		changed bool
	}{
		"sending is sent":                           {receipt.Sending, "", receipt.Report{first, receipt.Sent, "", 2}, true},
		"a doubt is sent":                           {receipt.Doubtful, "", receipt.Report{first, receipt.Sent, "", 2}, true},
		"a doubt bounced":                           {receipt.Doubtful, "", receipt.Report{first, receipt.Bounced, "General", 2}, true},
		"a doubt was stopped by the provider":       {receipt.Doubtful, "", receipt.Report{first, receipt.Failed, "Reject", 2}, true},
		"a person was wrong that it was not sent":   {receipt.Failed, "", receipt.Report{first, receipt.Delivered, "", 2}, true},
		"a person was right that it was sent":       {receipt.Sent, "", receipt.Report{first, receipt.Delivered, "", 2}, true},
		"sent is delivered":                         {receipt.Sent, first, receipt.Report{first, receipt.Delivered, "", 2}, true},
		"delivered bounces later":                   {receipt.Delivered, first, receipt.Report{first, receipt.Bounced, "General", 2}, true},
		"delivered stays so":                        {receipt.Delivered, first, receipt.Report{first, receipt.Sent, "", 2}, false},
		"bounced stays so":                          {receipt.Bounced, first, receipt.Report{first, receipt.Delivered, "", 2}, false},
		"stopped stays so":                          {receipt.Failed, first, receipt.Report{first, receipt.Sent, "", 2}, false},
		"a repetition changes nothing":              {receipt.Sent, first, receipt.Report{first, receipt.Sent, "", 2}, false},
		"the one before was stopped, not this one":  {receipt.Sending, "", receipt.Report{first, receipt.Failed, "Reject", 1}, false},
		"nor the one of which nobody knows":         {receipt.Doubtful, "", receipt.Report{first, receipt.Failed, "Reject", 1}, false},
		"the one before arrived, perhaps not this":  {receipt.Doubtful, "", receipt.Report{first, receipt.Delivered, "", 1}, false},
		"a later one than a restored table knows":   {receipt.Failed, "", receipt.Report{second, receipt.Sent, "", 3}, true},
		"another e-mail's delivery is not this one": {receipt.Sent, first, receipt.Report{second, receipt.Delivered, "", 2}, false},
	} {
		before := receipt.Item{OrderID: "ORD-1", Key: receipt.Paid, Status: tt.status, Attempt: 2, Message: tt.message, Revision: 2}
		if tt.status == receipt.Sending {
			before.Owner, before.Until = "owner", noon().Add(time.Minute)
		}
		want := before
		if tt.changed {
			want = receipt.Item{
				OrderID: "ORD-1", Key: receipt.Paid, Status: tt.report.Status, Message: tt.report.Message,
				Failure: tt.report.Code, Attempt: 2, Revision: 3, UpdatedAt: noon(),
			}
		}
		got, changed := receipt.Follow(before, tt.report, noon())
		if diff := cmp.Diff(got, want); changed != tt.changed || diff != "" {
			t.Errorf("%s: changed %v (-got +want):\n%s", claim, changed, diff)
		}
	}
}

func TestACorruptItemIsRefused(t *testing.T) {
	valid := receipt.Item{OrderID: "ORD-1", Key: receipt.Paid, Status: receipt.Sent, Attempt: 1, Revision: 2}
	for claim, change := range map[string]func(*receipt.Item){
		"order id":           func(i *receipt.Item) { i.OrderID = "a b" },
		"key":                func(i *receipt.Item) { i.Key = "other" },
		"attempt":            func(i *receipt.Item) { i.Attempt = -1 },
		"revision":           func(i *receipt.Item) { i.Revision = 0 },
		"owner without send": func(i *receipt.Item) { i.Owner = "owner" },
		"send without owner": func(i *receipt.Item) { i.Status = receipt.Sending },
	} {
		i := valid
		change(&i)
		if err := i.Validate(); !errors.Is(err, order.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", claim, err)
		}
	}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	if _, err := receipt.ParseStatus("lost"); !errors.Is(err, order.ErrUnknownVersion) {
		t.Errorf("an unknown status: got %v, want ErrUnknownVersion", err)
	}
}
