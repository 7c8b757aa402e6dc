package dispute_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/dispute"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestDisputes(t *testing.T) {
	t.Parallel()
	ordertest.TestDisputes(t, func(t *testing.T) ordertest.DisputesUnderTest {
		t.Helper()
		s := rigtest.NewStripe(t)
		options := rigtest.Options(t, s.URL, nil)
		return ordertest.DisputesUnderTest{
			PaymentsUnderTest: rigtest.UnderTest(t, s, charge.New(options)), Disputes: dispute.New(options),
			Dispute: func(id order.IntentID) (dispute order.DisputeID) {
				s.Advance(time.Hour) // Stripe's times are in seconds
				s.Machine(func(m *stripetest.Machine) {
					d, err := m.OpenDispute(s.Now(), string(id))
					rigtest.Must(t, err)
					dispute = order.DisputeID(d.ID)
				})
				return dispute
			},
			Close: func(id order.DisputeID, status order.DisputeStatus) {
				s.Machine(func(m *stripetest.Machine) { rigtest.Must(t, m.CloseDispute(string(id), status == order.DisputeWon)) })
			},
		}
	})
}

// disputeJSON is a dispute as Stripe sends it, with more fields than the adapter reads.
func disputeJSON(id, status string) string {
	return fmt.Sprintf(`{"id":%q,"object":"dispute","amount":2500,"balance_transactions":[],"charge":"ch_3Pretend",`+
		`"created":1790000000,"currency":"eur","evidence":{"customer_email_address":"canary@example.com"},"livemode":false,`+
		`"metadata":{},"payment_intent":"pi_3Pretend","reason":"fraudulent","status":%q}`, id, status)
}

// docs.stripe.com/api/disputes/object, status. The last two are newer than the API
// version that is requested, and unknown.
func TestWhatCameOfADispute(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]order.DisputeStatus{
		"warning_needs_response": order.DisputeOpen, "warning_under_review": order.DisputeOpen,
		"needs_response": order.DisputeOpen, "under_review": order.DisputeOpen,
		"warning_closed": order.DisputeWon, "won": order.DisputeWon, "lost": order.DisputeLost,
		"prevented": order.DisputeWon, "escalated": order.DisputeOpen,
	} {
		p := dispute.New(rigtest.Responding(t, rigtest.OK(`{"data":[`+disputeJSON("du_1", status)+`]}`)))
		got, err := p.Disputes(t.Context(), rigtest.IntentID)
		expected := []order.Dispute{{ID: "du_1", Status: want, CreatedAt: time.Unix(1_790_000_000, 0)}}
		if diff := cmp.Diff(got, expected); err != nil || diff != "" {
			t.Errorf("%s: error %v (-got +want):\n%s", status, err, diff)
		}
	}
}

func TestDisputesAreListedByTheirIntent(t *testing.T) {
	t.Parallel()
	p := dispute.New(rigtest.Serving(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Method + " " + r.URL.String(); got != "GET /v1/disputes?limit=100&payment_intent=pi_3Pretend" {
			t.Errorf("got %s", got)
		}
		rigtest.OK(`{"object":"list","data":[]}`).ServeHTTP(w, r)
	}))
	if all, err := p.Disputes(t.Context(), rigtest.IntentID); err != nil || len(all) != 0 {
		t.Fatalf("got %v, %v, want none", all, err)
	}
}

func TestAFailedListOfDisputesIsNeverAnEmptyOne(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		response rigtest.Response
		want     order.ErrorKind
	}{
		"an unreadable body":        {rigtest.OK(`{"data":`), order.KindUnknown},
		"no list":                   {rigtest.OK(`{"object":"dispute"}`), order.KindUnknown},
		"a dispute of another type": {rigtest.OK(`{"data":[{"id":5}]}`), order.KindUnknown},
		"a dispute without an id":   {rigtest.OK(`{"data":[` + disputeJSON("", "lost") + `]}`), order.KindUnknown},
		"a dispute of another intent": {
			rigtest.OK(strings.Replace(`{"data":[`+disputeJSON("du_1", "lost")+`]}`, "pi_3", "pi_4", 1)), order.KindUnknown,
		},
		"402 with an intent": {rigtest.Failure(402, rigtest.CardDeclined, rigtest.DeclinedIntent()), order.KindMisconfigured},
		"an unknown intent":  {rigtest.Failure(400, rigtest.ResourceMissing, ""), order.KindMisconfigured},
		"a rate limit":       {rigtest.Failure(429, `"code":"rate_limit"`, ""), order.KindUnavailable},
		"a server error":     {rigtest.Failure(500, rigtest.APIError, ""), order.KindUnknown},
	} {
		all, err := dispute.New(rigtest.Responding(t, tt.response)).Disputes(t.Context(), rigtest.IntentID)
		if got := rigtest.KindOf(t, err); got != tt.want || len(all) != 0 {
			t.Errorf("%s: got %v, %s (%v), want %s", claim, all, got, err, tt.want)
		}
	}
}

func TestAMissingPermissionToReadDisputesIsNamed(t *testing.T) {
	t.Parallel()
	p := rigtest.PrepareWith(t, "rk_test_pretend4242", stripetest.Rules{Lacks: "rak_dispute_read"}, stripetest.Succeeds)
	_, err := dispute.New(p.Options).Disputes(t.Context(), p.Intent.ID)
	const want = `(a restricted key needs the permission "Disputes: Read")`
	if rigtest.KindOf(t, err) != order.KindMisconfigured || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it misconfigured and %s", err, want)
	}
}
