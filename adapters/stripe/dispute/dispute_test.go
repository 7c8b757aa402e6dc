package dispute_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/dispute"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestDisputes(t *testing.T) {
	ordertest.TestDisputes(t, func(t *testing.T) ordertest.DisputesUnderTest {
		t.Helper()
		s := rigtest.NewStripe(t, stripetest.Rules{})
		return ordertest.DisputesUnderTest{
			PaymentsUnderTest: s.UnderTest(), Disputes: dispute.New(s.Options),
			Dispute: func(id order.IntentID) order.DisputeID {
				s.Advance(time.Hour) // Stripe's times are in seconds
				return s.Dispute(id)
			},
			Close: func(id order.DisputeID, status order.DisputeStatus) {
				s.Do(func(m *stripetest.Machine, _ time.Time) error {
					return m.CloseDispute(string(id), status == order.DisputeWon)
				})
			},
		}
	})
}

// disputes is a list of a dispute as Stripe sends it, with more fields than the adapter
// reads.
func disputes(id, status string) string {
	return fmt.Sprintf(`{"data":[{"id":%q,"object":"dispute","amount":2500,"balance_transactions":[],"charge":"ch_3Pretend",`+
		`"created":1790000000,"currency":"eur","evidence":{"customer_email_address":"canary@example.com"},"livemode":false,`+
		`"metadata":{},"payment_intent":"pi_3Pretend","reason":"fraudulent","status":%q}]}`, id, status)
}

// docs.stripe.com/api/disputes/object, status. The last two are newer than the API
// version that is requested, and unknown.
func TestWhatCameOfADispute(t *testing.T) {
	for status, want := range map[string]order.DisputeStatus{
		"warning_needs_response": order.DisputeOpen, "warning_under_review": order.DisputeOpen,
		"needs_response": order.DisputeOpen, "under_review": order.DisputeOpen,
		"warning_closed": order.DisputeWon, "won": order.DisputeWon, "lost": order.DisputeLost,
		"prevented": order.DisputeWon, "escalated": order.DisputeOpen,
	} {
		var sent string
		p := dispute.New(rigtest.Exchanging(func(r stripe.Request) (stripe.Response, error) {
			sent = r.Method + " " + r.Path + " " + r.Params.Encode()
			return rigtest.OK(disputes("du_1", status)), nil
		}))
		got, err := p.Disputes(t.Context(), rigtest.IntentID)
		expected := []order.Dispute{{ID: "du_1", Status: want, CreatedAt: time.Unix(1_790_000_000, 0)}}
		if diff := cmp.Diff(got, expected); err != nil || diff != "" {
			t.Errorf("%s: error %v (-got +want):\n%s", status, err, diff)
		}
		if sent != "GET /v1/disputes limit=100&payment_intent=pi_3Pretend" {
			t.Errorf("sent %s", sent)
		}
	}
}

func TestAFailedListOfDisputesIsNeverAnEmptyOne(t *testing.T) {
	for claim, tt := range map[string]struct {
		response stripe.Response
		want     order.ErrorKind
	}{
		"no list":                     {rigtest.OK(`{"object":"dispute"}`), order.KindUnknown},
		"a dispute of another type":   {rigtest.OK(`{"data":[{"id":5}]}`), order.KindUnknown},
		"a dispute without an id":     {rigtest.OK(disputes("", "lost")), order.KindUnknown},
		"a dispute of another intent": {rigtest.OK(strings.Replace(disputes("du_1", "lost"), "pi_3", "pi_4", 1)), order.KindUnknown},
		"an unknown intent":           {rigtest.Failure(400, rigtest.ResourceMissing), order.KindMisconfigured},
	} {
		all, err := dispute.New(rigtest.Responding(tt.response)).Disputes(t.Context(), rigtest.IntentID)
		if got := rigtest.KindOf(t, err); got != tt.want || len(all) != 0 {
			t.Errorf("%s: got %v, %s (%v), want %s", claim, all, got, err, tt.want)
		}
	}
	forbidden := rigtest.Responding(rigtest.Failure(403, rigtest.InvalidRequest))
	_, err := dispute.New(forbidden).Disputes(t.Context(), rigtest.IntentID)
	if err == nil || !strings.Contains(err.Error(), `(a restricted key needs the permission "Disputes: Read")`) {
		t.Errorf("got %v, want the permission", err)
	}
}
