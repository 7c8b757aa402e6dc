package refund_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// An Exchange has no connection that can be lost, but the time since the last read counts
// all the same.
func TestRefunds(t *testing.T) {
	for name, inProcess := range map[string]bool{"over HTTP": false, "in process": true} {
		t.Run(name, func(t *testing.T) {
			refundtest.TestProvider(t, func(t *testing.T) refundtest.ProviderUnderTest {
				t.Helper()
				s := rigtest.NewStripe(t, stripetest.Rules{RefundLag: time.Minute})
				o := s.Options
				if inProcess {
					o.Exchange = s.InProcess
				}
				return underTest(s, striperefund.New(o))
			})
		})
	}
}

// underTest returns the double's controls for the contract of refunds.
func underTest(s *rigtest.Stripe, r *striperefund.Refunds) refundtest.ProviderUnderTest {
	payments := s.UnderTest()
	change := func(from, to stripetest.RefundStatus) {
		s.Do(func(m *stripetest.Machine, _ time.Time) (err error) {
			for _, r := range m.Refunds() {
				if r.Status == from && err == nil {
					err = m.ChangeRefund(r.ID, to)
				}
			}
			return err
		})
	}
	return refundtest.ProviderUnderTest{
		Provider: r, Payments: s.Payments, Scope: rigtest.Scope, Now: s.Now, Advance: s.Advance, Lag: time.Minute,
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
		Return:      func() { change(stripetest.RefundSucceeded, stripetest.RefundFailed) },
		InDashboard: s.Refund,
		Dispute:     func(id order.IntentID) { s.Dispute(id) },
		Made: func(id order.IntentID) (all []int64) {
			s.Machine(func(m *stripetest.Machine) {
				for _, r := range m.Refunds() {
					if r.Intent == string(id) && r.Status != stripetest.RefundFailed {
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
		`"payment_intent":"pi_3Pretend","reason":"duplicate","status":%s}`, failure, status)
}

func made() string { return refundJSON("succeeded", rigtest.Null) }

// paidWith is an intent whose charge has this list of refunds.
func paidWith(list string) string {
	return rigtest.IntentWith("succeeded", rigtest.Null, `{"id":"ch_1","object":"charge","amount":2500,`+
		`"amount_captured":2500,"paid":true,"status":"succeeded","refunds":`+list+`}`)
}

func noRefunds() string { return paidWith(`{"data":[]}`) }

func open(t *testing.T, responses ...stripe.Response) refund.Session { //nolint:ireturn // as the port
	t.Helper()
	return striperefund.New(rigtest.Responding(responses...)).Open(t.Context())
}

func theRefundOrder() refund.CreateParams {
	return refund.CreateParams{
		Intent: rigtest.IntentID, OrderID: "ORD-1", ID: "R1", Amount: 500, Reason: refund.Duplicate, Key: "test/order/ORD-1/refund/R1/1",
	}
}

// docs.stripe.com/api/refunds/object, status.
func TestAStatusOfARefund(t *testing.T) {
	for _, tt := range []struct {
		status, reason string
		want           refund.Status
		failure        string
	}{
		{"pending", rigtest.Null, refund.Pending, ""},
		{"requires_action", rigtest.Null, refund.Pending, ""},
		{"succeeded", rigtest.Null, refund.Succeeded, ""},
		{"failed", rigtest.Null, refund.Failed, "failed"},
		{"failed", `"expired_or_canceled_card"`, refund.Failed, "expired_or_canceled_card"},
		{"canceled", rigtest.Null, refund.Failed, "canceled"},
		{"reversed", rigtest.Null, refund.Pending, "unknown_status"}, // of a later API
		{"", rigtest.Null, refund.Pending, "unknown_status"},         // null
	} {
		got, err := open(t, rigtest.OK(refundJSON(tt.status, tt.reason))).ReadRefund(t.Context(), "re_3Pretend")
		want := refund.Refund{
			ID: "re_3Pretend", Status: tt.want, Total: order.Money{Amount: 500, Currency: "eur"}, Intent: rigtest.IntentID,
			OrderID: "ORD-1", Scope: rigtest.Scope, For: "R1", Reason: refund.Duplicate, Failure: tt.failure,
		}
		if diff := cmp.Diff(got, want); err != nil || diff != "" {
			t.Errorf("%s, %s: error %v (-got +want):\n%s", tt.status, tt.reason, err, diff)
		}
	}
	got, err := open(t, rigtest.OK(made())).ReadRefund(t.Context(), "re_4Pretend")
	if rigtest.KindOf(t, err) != order.KindUnknown || got != (refund.Refund{}) {
		t.Errorf("another refund than was asked for: got %+v, %v, want %s", got, err, order.KindUnknown)
	}
}

// Whatever may have made a refund is Unknown; whatever cannot have made one is not. A
// refund that was replayed and cannot be read was made: Misconfigured would mean that no
// request was accepted.
func TestTheErrorOfARefund(t *testing.T) {
	fails, replay := rigtest.Failure, rigtest.Replay
	for claim, tt := range map[string]struct {
		responses []stripe.Response
		want      order.ErrorKind
		code      string
	}{
		"already refunded": {
			[]stripe.Response{fails(400, `"code":"charge_already_refunded"`)}, order.KindRefused, "charge_already_refunded",
		},
		"more than is left":     {[]stripe.Response{fails(400, `"param":"amount"`)}, order.KindRefused, ""},
		"a stored server error": {[]stripe.Response{replay(fails(500, rigtest.APIError))}, order.KindReplayed, ""},
		"a stored refusal":      {[]stripe.Response{replay(fails(400, `"code":"charge_disputed"`))}, order.KindRefused, "charge_disputed"},
		"other parameters":      {[]stripe.Response{fails(400, rigtest.KeyMismatch)}, order.KindKeyReused, ""},
		"the key in use":        {[]stripe.Response{fails(409, rigtest.KeyInUse)}, order.KindUnavailable, "idempotency_key_in_use"},
		"a server error":        {[]stripe.Response{fails(500, rigtest.APIError)}, order.KindUnknown, ""},
		"half a body":           {[]stripe.Response{rigtest.OK(made()[:40])}, order.KindUnknown, ""},
		"an empty object":       {[]stripe.Response{rigtest.OK("{}")}, order.KindUnknown, ""},
		"an intent of another mode": {
			[]stripe.Response{fails(404, rigtest.ResourceMissing+`,"param":"payment_intent"`)}, order.KindMisconfigured, "resource_missing",
		},
		"a 402 with a paid intent": {
			[]stripe.Response{rigtest.FailureWith(402, rigtest.CardDeclined, noRefunds())}, order.KindRefused, "card_declined",
		},
		"made, and may not be read":    {[]stripe.Response{replay(rigtest.OK(made())), fails(403, rigtest.APIError)}, order.KindUnknown, ""},
		"made, and cannot be read now": {[]stripe.Response{replay(rigtest.OK(made())), fails(429, rigtest.RateLimit)}, order.KindUnknown, ""},
	} {
		s := openSession(t, rigtest.Responding(append([]stripe.Response{rigtest.OK(noRefunds())}, tt.responses...)...))
		got, err := s.Create(t.Context(), theRefundOrder())
		if rigtest.KindOf(t, err) != tt.want || got != (refund.Refund{}) || order.CodeOf(err, "") != tt.code {
			t.Errorf("%s: got %+v, %v, want %s with code %q", claim, got, err, tt.want, tt.code)
		}
	}
	s, o := openSession(t, rigtest.Responding(rigtest.OK(noRefunds()))), theRefundOrder()
	o.Key = ""
	if _, err := s.Create(t.Context(), o); rigtest.KindOf(t, err) != order.KindRefused {
		t.Errorf("without a key: got %v, want %s", err, order.KindRefused)
	}
}

func TestALedgerIsWholeOrAnError(t *testing.T) {
	failed := strings.Replace(noRefunds(), `"succeeded","refunds"`, `"failed","refunds"`, 1)
	dated := func(date string) stripe.Response {
		r := rigtest.OK(noRefunds())
		r.Header.Set("Date", date)
		return r
	}
	for claim, tt := range map[string]struct {
		response stripe.Response
		charged  int64
		refunds  int
		kind     order.ErrorKind
	}{
		"a charge without refunds":   {rigtest.OK(noRefunds()), 2500, 0, ""},
		"a charge with one":          {rigtest.OK(paidWith(`{"data":[` + made() + `]}`)), 2500, 1, ""},
		"an intent without a charge": {rigtest.OK(rigtest.Intent("requires_confirmation")), 0, 0, ""},
		"a failed charge":            {rigtest.OK(strings.Replace(failed, "succeeded", "requires_payment_method", 1)), 0, 0, ""},
		"paid without a charge":      {rigtest.OK(rigtest.Intent("succeeded")), 0, 0, order.KindUnknown},
		"paid with a failed charge":  {rigtest.OK(failed), 0, 0, order.KindUnknown},
		"a charge that is only its id": {
			rigtest.OK(rigtest.IntentWith("succeeded", rigtest.Null, rigtest.Charge)), 0, 0, order.KindMisconfigured,
		},
		"a charge without a list":        {rigtest.OK(paidWith(rigtest.Null)), 0, 0, order.KindMisconfigured},
		"a refund without an id":         {rigtest.OK(paidWith(`{"data":[{"status":"succeeded"}]}`)), 0, 0, order.KindUnknown},
		"an amount that is a text":       {rigtest.OK(paidWith(`{"data":[{"id":"re_1","amount":"5"}]}`)), 0, 0, order.KindUnknown},
		"a list of something else":       {rigtest.OK(paidWith(`{"data":"no"}`)), 0, 0, order.KindUnknown},
		"a refund without a status":      {rigtest.OK(paidWith(`{"data":[` + refundJSON("", rigtest.Null) + `,` + made() + `]}`)), 2500, 2, ""},
		"an empty list and more":         {rigtest.OK(paidWith(`{"data":[],"has_more":true}`)), 0, 0, order.KindUnknown},
		"an intent in an unknown status": {rigtest.OK(strings.Replace(noRefunds(), "succeeded", "lost", 1)), 0, 0, order.KindUnknown},
		"another intent than was read":   {rigtest.OK(strings.Replace(noRefunds(), "pi_3", "pi_4", 1)), 0, 0, order.KindUnknown},
		"an error that shows it":         {rigtest.FailureWith(402, rigtest.CardDeclined, noRefunds()), 0, 0, order.KindMisconfigured},
		// Without Stripe's time the age of a refund is unknown: the local clock may be wrong.
		"no date":            {dated(""), 0, 0, order.KindUnknown},
		"a date in RFC 3339": {dated("2026-09-22T13:33:20Z"), 0, 0, order.KindUnknown},
	} {
		l, err := open(t, tt.response).Read(t.Context(), rigtest.IntentID)
		if rigtest.KindOf(t, err) != tt.kind || l.Charged != tt.charged || len(l.Refunds) != tt.refunds {
			t.Errorf("%s: got %+v, %v, want %d charged, %d refunds, error %q", claim, l, err, tt.charged, tt.refunds, tt.kind)
		}
		if err == nil && !l.Now.Equal(time.Date(2026, 9, 22, 13, 33, 20, 0, time.UTC)) {
			t.Errorf("%s: got the time %v, want that of the response", claim, l.Now)
		}
	}
}

// Stripe's list ends with has_more false. What promises more and does not have it must
// not look like the end.
func TestEveryPageOfRefundsIsRead(t *testing.T) {
	page := func(more bool, all ...string) stripe.Response {
		return rigtest.OK(fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%t}`, strings.Join(all, ","), more))
	}
	first := rigtest.OK(paidWith(`{"data":[` + made() + `],"has_more":true}`))
	for claim, tt := range map[string]struct {
		pages []stripe.Response
		want  int
		kind  order.ErrorKind
	}{
		"the last page":          {[]stripe.Response{page(false, made())}, 2, ""},
		"two pages":              {[]stripe.Response{page(true, made(), made()), page(false, made())}, 4, ""},
		"an empty page and more": {[]stripe.Response{page(true)}, 0, order.KindUnknown},
		"no list":                {[]stripe.Response{rigtest.OK(made())}, 0, order.KindUnknown},
		"a server error":         {[]stripe.Response{page(true, made()), rigtest.Failure(500, rigtest.APIError)}, 0, order.KindUnknown},
	} {
		l, err := open(t, append([]stripe.Response{first}, tt.pages...)...).Read(t.Context(), rigtest.IntentID)
		if rigtest.KindOf(t, err) != tt.kind || len(l.Refunds) != tt.want {
			t.Errorf("%s: got %d refunds, %v, want %d, error %q", claim, len(l.Refunds), err, tt.want, tt.kind)
		}
	}
}

// A replayed response shows the refund as it was, so it is read again.
func TestTheRequestsOfARefund(t *testing.T) {
	responses := []stripe.Response{
		rigtest.OK(paidWith(`{"data":[` + refundJSON("failed", rigtest.Null) + `],"has_more":true}`)), rigtest.OK(`{"data":[]}`),
		rigtest.Replay(rigtest.OK(made())), rigtest.OK(refundJSON("pending", rigtest.Null)),
	}
	var got []string
	s := openSession(t, rigtest.Exchanging(func(r stripe.Request) (stripe.Response, error) {
		got = append(got, strings.Join([]string{r.Method, r.Path, fmt.Sprint(r.Params), r.Key}, " "))
		return responses[len(got)-1], nil
	}))
	r, err := s.Create(t.Context(), theRefundOrder())
	if err != nil || r.Status != refund.Pending {
		t.Errorf("got %+v, %v, want the refund's current status, not the replayed one", r, err)
	}
	want := []string{
		"GET /v1/payment_intents/pi_3Pretend map[expand[0]:[latest_charge.refunds]] ",
		"GET /v1/refunds map[limit:[100] payment_intent:[pi_3Pretend] starting_after:[re_3Pretend]] ",
		"POST /v1/refunds map[amount:[500] metadata[orderId]:[ORD-1] metadata[refundId]:[R1] metadata[scope]:[test] " +
			"payment_intent:[pi_3Pretend] reason:[duplicate]] test/order/ORD-1/refund/R1/1",
		"GET /v1/refunds/re_3Pretend map[] ",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

func TestAMissingPermissionForRefundsIsNamed(t *testing.T) {
	forbidden := rigtest.Failure(403, rigtest.InvalidRequest)
	_, readIntent := open(t, forbidden).Read(t.Context(), rigtest.IntentID)
	s := openSession(t, rigtest.Responding(rigtest.OK(noRefunds()), forbidden))
	_, create := s.Create(t.Context(), theRefundOrder())
	_, readRefund := s.ReadRefund(t.Context(), "re_000001")
	for err, access := range map[error]string{readIntent: "Read", readRefund: "Read", create: "Write"} {
		want := fmt.Sprintf(`the permission "Charges and Refunds: %s"`, access)
		if order.KindOf(err) != order.KindMisconfigured || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it misconfigured, and %s", err, want)
		}
	}
}
