package refund_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

const refundID = refund.ProviderID("re_3Pretend")

func TestRefunds(t *testing.T) {
	t.Parallel()
	refundtest.TestProvider(t, func(t *testing.T) refundtest.ProviderUnderTest {
		t.Helper()
		s := rigtest.NewStripeWith(t, stripetest.Rules{Key: rigtest.Key, RefundLag: time.Minute})
		return refundsUnderTest(t, s, newRefunds(t, s.URL, s.Now))
	})
}

// An Exchange has no connection that can be lost, but the time since the last read counts
// all the same.
func TestRefundsInProcess(t *testing.T) {
	t.Parallel()
	refundtest.TestProvider(t, func(t *testing.T) refundtest.ProviderUnderTest {
		t.Helper()
		s := rigtest.NewStripeWith(t, stripetest.Rules{Key: rigtest.Key, RefundLag: time.Minute})
		return refundsUnderTest(t, s, striperefund.New(stripe.Options{
			Key: rigtest.Key, Scope: rigtest.Scope, Now: s.Now, Exchange: exchangeWith(s),
		}))
	})
}

// exchangeWith executes requests in a Stripe double without HTTP.
func exchangeWith(s *stripetest.Server) stripe.Exchange {
	return func(_ context.Context, r stripe.Request) (response stripe.Response, err error) {
		s.Machine(func(m *stripetest.Machine) {
			out := m.Do(s.Now(), stripetest.Request{Method: r.Method, Path: r.Path, APIKey: rigtest.Key, Key: r.Key, Form: r.Params})
			if out.Lost {
				err = context.DeadlineExceeded
				return
			}
			response = stripe.Response{Status: out.Status, Header: out.Header(), Body: out.Body()}
		})
		return response, err
	}
}

// newRefunds returns a Refunds that calls a server.
func newRefunds(tb testing.TB, url string, now func() time.Time) *striperefund.Refunds {
	tb.Helper()
	return striperefund.New(stripe.Options{
		Key: rigtest.Key, BaseURL: url, Scope: rigtest.Scope, Timeout: 10 * time.Second, Now: now,
		Measure: func(next http.RoundTripper) http.RoundTripper { return rigtest.RequireKey{TB: tb, Next: next} },
	})
}

// refundsUnderTest returns the controls of s for the port r.
func refundsUnderTest(t *testing.T, s *stripetest.Server, r *striperefund.Refunds) refundtest.ProviderUnderTest {
	t.Helper()
	payments := rigtest.UnderTest(t, s, charge.New(rigtest.Options(t, s.URL, nil)))
	change := func(from stripetest.RefundStatus, to stripetest.RefundStatus) {
		s.Machine(func(m *stripetest.Machine) {
			for _, r := range m.Refunds() {
				if r.Status == from {
					rigtest.Must(t, m.ChangeRefund(r.ID, to))
				}
			}
		})
	}
	return refundtest.ProviderUnderTest{
		Provider: r, Payments: payments.Payments, Scope: rigtest.Scope, Now: s.Now, Advance: s.Advance, Lag: time.Minute,
		Method:        rigtest.MethodOf,
		PendingMethod: func() string { return "pm_card_pendingRefund" },
		Fail: func(c refundtest.Call, f ordertest.Fault) {
			fault := rigtest.FaultOf(ordertest.Read, f)
			switch c { //nolint:exhaustive // the others are calls to a store
			case refundtest.ReadRefund:
				fault.On = stripetest.ReadRefund
			case refundtest.Create:
				fault.On = stripetest.CreateRefund
			}
			s.Fail(fault)
		},
		ForgetKeys: payments.ForgetKeys,
		Complete:   func() { s.Machine(func(m *stripetest.Machine) { m.RollForward(s.Now()) }) },
		Settle: func(status refund.Status) {
			change(stripetest.RefundPending, map[refund.Status]stripetest.RefundStatus{
				refund.Succeeded: stripetest.RefundSucceeded, refund.Failed: stripetest.RefundFailed,
			}[status])
		},
		Return: func() { change(stripetest.RefundSucceeded, stripetest.RefundFailed) },
		InDashboard: func(id order.IntentID, amount int64) {
			s.Machine(func(m *stripetest.Machine) {
				_, err := m.RefundInDashboard(s.Now(), string(id), amount)
				rigtest.Must(t, err)
			})
		},
		Dispute: func(id order.IntentID) {
			s.Machine(func(m *stripetest.Machine) {
				_, err := m.OpenDispute(s.Now(), string(id))
				rigtest.Must(t, err)
			})
		},
		Made: func(id order.IntentID) (all []int64) {
			s.Machine(func(m *stripetest.Machine) {
				for _, r := range m.Refunds() {
					gone := r.Status == stripetest.RefundFailed || r.Status == stripetest.RefundCanceled
					if r.Intent == string(id) && !gone {
						all = append(all, r.Amount)
					}
				}
			})
			return all
		},
	}
}

// refundJSON is a refund as Stripe sends it, with more fields than the adapter reads.
func refundJSON(status, failure string) string {
	if status = strconv.Quote(status); status == `""` {
		status = rigtest.Null
	}
	return fmt.Sprintf(`{"id":"re_3Pretend","object":"refund","amount":500,"balance_transaction":"txn_1","charge":"ch_1",`+
		`"created":1790000000,"currency":"eur","destination_details":{"card":{"type":"refund"},"type":"card"},`+
		`"failure_reason":%s,"metadata":{"orderId":"ORD-1","scope":"test","refundId":"R1"},`+
		`"payment_intent":"pi_3Pretend","reason":"duplicate","receipt_number":null,"status":%s}`, failure, status)
}

func theRefund(s refund.Status, failure string) refund.Refund {
	return refund.Refund{
		ID: refundID, Status: s, Total: order.Money{Amount: 500, Currency: "eur"}, Intent: rigtest.IntentID, OrderID: "ORD-1",
		Scope: rigtest.Scope, For: "R1", Reason: refund.Duplicate, Failure: failure,
	}
}

// refundedCharge is a charge whose refunds are expanded.
func refundedCharge(list string) string {
	return `{"id":"ch_1","object":"charge","amount":2500,"amount_captured":2500,"disputed":false,"paid":true,` +
		`"status":"succeeded","refunds":` + list + `}`
}

// succeededIntent is a paid intent with a latest charge.
func succeededIntent(charge string) string {
	return rigtest.IntentWithCharge("succeeded", rigtest.Null, charge)
}

// refundServer returns the session of a Refunds whose requests are answered in order.
// Each response has a Date.
func refundServer(t *testing.T, responses ...rigtest.Response) refund.Session { //nolint:ireturn // as the port
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := responses[0]
		if len(responses) > 1 {
			responses = responses[1:]
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s := newRefunds(t, server.URL, clock).Open(t.Context())
	t.Cleanup(s.Close)
	return s
}

func clock() time.Time { return time.Unix(1_790_000_000, 0) }

func theRefundOrder() refund.Order {
	return refund.Order{
		Intent: rigtest.IntentID, OrderID: "ORD-1", ID: "R1", Amount: 500, Reason: refund.Duplicate, Key: "test/order/ORD-1/refund/R1/1",
	}
}

// docs.stripe.com/api/refunds/object, status.
func TestAStatusOfARefund(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]refund.Refund{
		"pending":         theRefund(refund.Pending, ""),
		"requires_action": theRefund(refund.Pending, ""),
		"succeeded":       theRefund(refund.Succeeded, ""),
		"failed":          theRefund(refund.Failed, "failed"),
		"canceled":        theRefund(refund.Failed, "canceled"),
		"reversed":        theRefund(refund.Pending, "unknown_status"), // of a later API
		"":                theRefund(refund.Pending, "unknown_status"), // null
	} {
		got, err := refundServer(t, rigtest.OK(refundJSON(status, rigtest.Null))).ReadRefund(t.Context(), refundID)
		if diff := cmp.Diff(got, want); err != nil || diff != "" {
			t.Errorf("%s: error %v (-got +want):\n%s", status, err, diff)
		}
	}
	got, err := refundServer(t, rigtest.OK(refundJSON("failed", `"expired_or_canceled_card"`))).ReadRefund(t.Context(), refundID)
	if err != nil || got != theRefund(refund.Failed, "expired_or_canceled_card") {
		t.Errorf("got %+v, %v, want the failure's reason", got, err)
	}
}

// Whatever may have made a refund is Unknown; whatever cannot have made one is not.
func TestTheErrorOfARefund(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		response rigtest.Response
		want     order.ErrorKind
		code     string
	}{
		"already refunded": {
			rigtest.Failure(400, `"code":"charge_already_refunded"`, ""), order.KindRefused, "charge_already_refunded",
		},
		"disputed": {
			rigtest.Failure(400, `"code":"charge_disputed"`, ""), order.KindRefused, "charge_disputed",
		},
		"more than is left":     {rigtest.Failure(400, `"type":"invalid_request_error","param":"amount"`, ""), order.KindRefused, ""},
		"a stored server error": {rigtest.Replay(500, rigtest.Error(rigtest.APIError)), order.KindReplayed, ""},
		"a stored refusal": {
			rigtest.Replay(400, rigtest.Error(`"code":"charge_disputed"`)), order.KindRefused, "charge_disputed",
		},
		"other parameters":          {rigtest.Failure(400, rigtest.KeyMismatch, ""), order.KindKeyReused, ""},
		"the key in use":            {rigtest.Failure(409, rigtest.KeyInUse, ""), order.KindUnavailable, "idempotency_key_in_use"},
		"a server error":            {rigtest.Failure(500, rigtest.APIError, ""), order.KindUnknown, ""},
		"half a body":               {rigtest.OK(refundJSON("succeeded", rigtest.Null)[:40]), order.KindUnknown, ""},
		"an empty object":           {rigtest.OK("{}"), order.KindUnknown, ""},
		"an intent of another mode": {rigtest.Failure(404, rigtest.ResourceMissing+`,"param":"payment_intent"`, ""), order.KindMisconfigured, "resource_missing"},
		"a 402 with a paid intent":  {rigtest.Failure(402, rigtest.CardDeclined, succeededIntent(rigtest.Charge)), order.KindRefused, "card_declined"},
	} {
		s := refundServer(t, rigtest.OK(noRefunds()), tt.response)
		_, err := s.Read(t.Context(), rigtest.IntentID)
		rigtest.Must(t, err)
		got, err := s.Create(t.Context(), theRefundOrder())
		if kind := rigtest.KindOf(t, err); kind != tt.want || got != (refund.Refund{}) || rigtest.PaymentError(t, err).Code != tt.code {
			t.Errorf("%s: got %+v, %v, want %s with code %q", claim, got, err, tt.want, tt.code)
		}
	}
}

func TestALedgerIsWholeOrAnError(t *testing.T) {
	t.Parallel()
	one := refundJSON("succeeded", rigtest.Null)
	for claim, tt := range map[string]struct {
		body    string
		charged int64
		refunds int
		kind    order.ErrorKind
	}{
		"a charge without refunds":   {succeededIntent(refundedCharge(`{"data":[]}`)), 2500, 0, ""},
		"a charge with one":          {succeededIntent(refundedCharge(`{"data":[` + one + `]}`)), 2500, 1, ""},
		"an intent without a charge": {rigtest.Intent("requires_confirmation", rigtest.Null), 0, 0, ""},
		"a failed charge": {
			rigtest.IntentWithCharge("requires_payment_method", rigtest.DeclinedError,
				strings.Replace(refundedCharge(`{"data":[]}`), "succeeded", "failed", 1)), 0, 0, "",
		},
		"paid without a charge": {succeededIntent(rigtest.Null), 0, 0, order.KindUnknown},
		"paid with a failed charge": {
			succeededIntent(strings.Replace(refundedCharge(`{"data":[]}`), "succeeded", "failed", 1)), 0, 0, order.KindUnknown,
		},
		"a charge that is only its id": {succeededIntent(rigtest.Charge), 0, 0, order.KindMisconfigured},
		"a charge without a list":      {succeededIntent(refundedCharge(rigtest.Null)), 0, 0, order.KindMisconfigured},
		"a refund without an id":       {succeededIntent(refundedCharge(`{"data":[{"status":"succeeded"}]}`)), 0, 0, order.KindUnknown},
		"a list of something else":     {succeededIntent(refundedCharge(`{"data":"no"}`)), 0, 0, order.KindUnknown},
		"a refund without a status among others": {
			succeededIntent(refundedCharge(`{"data":[` + refundJSON("", rigtest.Null) + `,` + one + `]}`)), 2500, 2, "",
		},
		"an empty list and more":         {succeededIntent(refundedCharge(`{"data":[],"has_more":true}`)), 0, 0, order.KindUnknown},
		"an intent in an unknown status": {rigtest.IntentWithCharge("lost", rigtest.Null, refundedCharge(`{"data":[]}`)), 0, 0, order.KindUnknown},
		"another intent than was read": {
			strings.Replace(succeededIntent(refundedCharge(`{"data":[]}`)), "pi_3", "pi_4", 1), 0, 0, order.KindUnknown,
		},
		"an unreadable body": {succeededIntent(refundedCharge(`{"data":[`)), 0, 0, order.KindUnknown},
	} {
		l, err := refundServer(t, rigtest.OK(tt.body)).Read(t.Context(), rigtest.IntentID)
		if rigtest.KindOf(t, err) != tt.kind || l.Charged != tt.charged || len(l.Refunds) != tt.refunds {
			t.Errorf("%s: got %+v, %v, want %d charged, %d refunds, error %q", claim, l, err, tt.charged, tt.refunds, tt.kind)
		}
	}
}

func TestAnErrorThatShowsThePaidIntentIsNotALedger(t *testing.T) {
	t.Parallel()
	res := rigtest.Failure(402, rigtest.CardDeclined, noRefunds())
	if l, err := refundServer(t, res).Read(t.Context(), rigtest.IntentID); rigtest.KindOf(t, err) == "" {
		t.Errorf("got %+v, want an error", l)
	}
}

// Stripe's list ends with has_more false. What promises more and does not have it must
// not look like the end.
func TestEveryPageOfRefundsIsRead(t *testing.T) {
	t.Parallel()
	page := func(more bool, all ...string) rigtest.Response {
		return rigtest.OK(fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%t}`, strings.Join(all, ","), more))
	}
	one := refundJSON("succeeded", rigtest.Null)
	first := rigtest.OK(succeededIntent(refundedCharge(`{"data":[` + one + `],"has_more":true}`)))
	for claim, tt := range map[string]struct {
		pages []rigtest.Response
		want  int
		kind  order.ErrorKind
	}{
		"the last page":          {[]rigtest.Response{page(false, one)}, 2, ""},
		"two pages":              {[]rigtest.Response{page(true, one, one), page(false, one)}, 4, ""},
		"an empty page and more": {[]rigtest.Response{page(true)}, 0, order.KindUnknown},
		"no list":                {[]rigtest.Response{rigtest.OK(one)}, 0, order.KindUnknown},
		"a server error":         {[]rigtest.Response{page(true, one), rigtest.Failure(500, rigtest.APIError, "")}, 0, order.KindUnknown},
	} {
		l, err := refundServer(t, append([]rigtest.Response{first}, tt.pages...)...).Read(t.Context(), rigtest.IntentID)
		if rigtest.KindOf(t, err) != tt.kind || len(l.Refunds) != tt.want {
			t.Errorf("%s: got %d refunds, %v, want %d, error %q", claim, len(l.Refunds), err, tt.want, tt.kind)
		}
	}
}

// Without Stripe's time the age of a refund is unknown: the local clock may be wrong.
func TestAReadWithoutAValidDateIsUnknown(t *testing.T) {
	t.Parallel()
	for date, want := range map[string]string{
		"Tue, 22 Sep 2026 13:33:20 GMT": "2026-09-22T13:33:20Z", "": "", "soon": "", "2026-09-22T13:33:20Z": "",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Date"] = []string{date}
			rigtest.OK(succeededIntent(refundedCharge(`{"data":[]}`))).ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		l, err := newRefunds(t, s.URL, clock).Open(t.Context()).Read(t.Context(), rigtest.IntentID)
		got := ""
		if err == nil {
			got = l.Now.UTC().Format(time.RFC3339)
		}
		if got != want || want == "" && rigtest.KindOf(t, err) != order.KindUnknown {
			t.Errorf("Date %q: got %q, %v, want %q", date, got, err, want)
		}
	}
}

// The refund exists, whatever hinders the second look at it. Misconfigured would mean
// that no request was accepted.
func TestAReplayedRefundThatCannotBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	for _, second := range []rigtest.Response{rigtest.Failure(403, rigtest.APIError, ""), rigtest.Failure(429, `"code":"rate_limit"`, "")} {
		s := refundServer(t, rigtest.OK(noRefunds()), rigtest.Replay(200, refundJSON("succeeded", rigtest.Null)), second)
		_, err := s.Read(t.Context(), rigtest.IntentID)
		rigtest.Must(t, err)
		if _, err = s.Create(t.Context(), theRefundOrder()); rigtest.KindOf(t, err) != order.KindUnknown {
			t.Errorf("status %d: got %v, want it %s", second.Status, err, order.KindUnknown)
		}
	}
}

// A replayed response shows the refund as it was, so it is read again.
func TestTheRequestsOfARefund(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		got = append(got, strings.Join([]string{stripe.CallName(r), r.URL.Path, r.Form.Encode(), r.Header.Get("Idempotency-Key")}, " "))
		switch {
		case r.Method == http.MethodPost:
			rigtest.Replay(200, refundJSON("succeeded", rigtest.Null)).ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/v1/payment_intents"):
			rigtest.OK(succeededIntent(refundedCharge(`{"data":[`+refundJSON("failed", rigtest.Null)+`],"has_more":true}`))).ServeHTTP(w, r)
		case r.URL.Path == "/v1/refunds":
			rigtest.OK(`{"data":[]}`).ServeHTTP(w, r)
		default:
			rigtest.OK(refundJSON("pending", rigtest.Null)).ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s := newRefunds(t, server.URL, clock).Open(t.Context())
	t.Cleanup(s.Close)
	_, err := s.Read(t.Context(), rigtest.IntentID)
	rigtest.Must(t, err)
	r, err := s.Create(t.Context(), theRefundOrder())
	if err != nil || r.Status != refund.Pending {
		t.Errorf("got %+v, %v, want the refund's current status, not the replayed one", r, err)
	}
	form := url.Values{
		"payment_intent": {"pi_3Pretend"}, "amount": {"500"}, "reason": {"duplicate"},
		"metadata[orderId]": {"ORD-1"}, "metadata[scope]": {"test"}, "metadata[refundId]": {"R1"},
	}.Encode()
	want := []string{
		"GET /v1/payment_intents/{id} /v1/payment_intents/pi_3Pretend expand%5B0%5D=latest_charge.refunds ",
		"GET /v1/refunds /v1/refunds limit=100&payment_intent=pi_3Pretend&starting_after=re_3Pretend ",
		"POST /v1/refunds /v1/refunds " + form + " test/order/ORD-1/refund/R1/1",
		"GET /v1/refunds/{id} /v1/refunds/re_3Pretend  ",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

func TestARefundThatWasNotAskedForIsUnknown(t *testing.T) {
	t.Parallel()
	r, err := refundServer(t, rigtest.OK(refundJSON("succeeded", rigtest.Null))).ReadRefund(t.Context(), "re_4Pretend")
	if rigtest.KindOf(t, err) != order.KindUnknown || r != (refund.Refund{}) {
		t.Errorf("got %+v, %v, want %s", r, err, order.KindUnknown)
	}
}

func TestARefundWithoutAKeyIsNotSent(t *testing.T) {
	t.Parallel()
	s := refundServer(t, rigtest.OK(noRefunds()))
	_, err := s.Read(t.Context(), rigtest.IntentID)
	rigtest.Must(t, err)
	o := theRefundOrder()
	o.Key = ""
	if _, err := s.Create(t.Context(), o); rigtest.KindOf(t, err) != order.KindRefused {
		t.Errorf("got %v, want %s", err, order.KindRefused)
	}
}

func TestAMissingPermissionForRefundsIsNamed(t *testing.T) {
	t.Parallel()
	for lacks, want := range map[string][3]bool{ // the intent cannot be read, the refund cannot be read or made
		"rak_charge_read": {true, true, false}, "rak_charge_write": {false, false, true},
	} {
		const key = "rk_test_pretend4242"
		p := rigtest.PrepareWith(t, key, stripetest.Rules{Lacks: lacks}, stripetest.Succeeds)
		_, err := p.Confirm(1)
		rigtest.Must(t, err)
		s := striperefund.New(stripe.Options{Key: key, BaseURL: p.URL, Scope: rigtest.Scope, Now: p.Now}).Open(t.Context())
		t.Cleanup(s.Close)
		o := theRefundOrder()
		o.Intent = p.Intent.ID
		_, readIntent := s.Read(t.Context(), o.Intent)
		_, create := s.Create(t.Context(), o)
		_, readRefund := s.ReadRefund(t.Context(), "re_000001")
		for i, err := range []error{readIntent, readRefund, create} {
			permission := map[bool]string{false: "Read", true: "Write"}[i == 2]
			named := err != nil && order.KindOf(err) == order.KindMisconfigured &&
				strings.Contains(err.Error(), fmt.Sprintf(`the permission "Charges and Refunds: %s"`, permission))
			if named != want[i] {
				t.Errorf("without %s, call %d: got %v, want the permission: %t", lacks, i+1, err, want[i])
			}
		}
	}
}

func TestALiveKeyIsNotSentToADouble(t *testing.T) {
	t.Parallel()
	options := stripe.Options{Key: "sk_live_canary", BaseURL: "http://127.0.0.1:1", Now: clock}
	_, err := striperefund.New(options).Open(t.Context()).Read(t.Context(), rigtest.IntentID)
	if rigtest.KindOf(t, err) != order.KindMisconfigured || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want it misconfigured, without the key", err)
	}
}
