package stripetest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"

	"orderonce/adapters/stripe/stripetest"
)

const refunds = "/v1/refunds"

// refund refunds a part of an intent's charge of 1999 under a key.
func (w *world) refund(intent, amount, key string) stripetest.Response {
	return w.post(refunds, key, "payment_intent="+intent+"&amount="+amount+
		"&reason=requested_by_customer&metadata[orderId]=ORD1&metadata[refundId]="+key)
}

// refunded returns the charge's amount_refunded, and whether it is refunded in full.
func (w *world) refunded(intent string) (amount int64, whole bool) {
	w.t.Helper()
	var body struct {
		Charge stripe.Charge `json:"latest_charge"`
	}
	res := w.Do(w.now, request("GET", root+"/"+intent, "", "expand[]=latest_charge"))
	must(w.t, json.Unmarshal(res.Body(), &body))
	return body.Charge.AmountRefunded, body.Charge.Refunded
}

// refundSummary is the summary of a response with the status of its refund.
func refundSummary(r stripetest.Response) string {
	s := summary(r)
	if r.Refund != nil {
		s += " " + string(r.Refund.Status)
	}
	return s
}

const (
	refundSucceeds = "200 succeeded"
	tooLarge       = "400 invalid_request_error"
)

// docs.stripe.com/api/refunds/create: in part or in full, never more than is left;
// docs.stripe.com/error-codes: charge_already_refunded, charge_disputed.
func TestAChargeIsRefundedUpToItsAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.pay()
	for _, step := range []struct {
		claim string
		do    func() stripetest.Response
		want  string
		left  int64
	}{
		{"a part", func() stripetest.Response { return w.refund(id, "1000", "a") }, refundSucceeds, 999},
		{"the same key", func() stripetest.Response { return w.refund(id, "1000", "a") }, "200 replayed succeeded", 999},
		{
			"the same key and another amount",
			func() stripetest.Response { return w.refund(id, "1001", "a") }, "400 idempotency_error", 999,
		},
		{"more than is left", func() stripetest.Response { return w.refund(id, "1000", "b") }, tooLarge, 999},
		{
			"the stored refusal",
			func() stripetest.Response { return w.refund(id, "1000", "b") }, tooLarge + " replayed", 999,
		},
		{"what is left", func() stripetest.Response { return w.post(refunds, "c", "payment_intent="+id) }, refundSucceeds, 0},
		{
			"one more", func() stripetest.Response { return w.refund(id, "1", "d") },
			"400 invalid_request_error charge_already_refunded", 0,
		},
	} {
		if got := refundSummary(step.do()); got != step.want {
			t.Errorf("%s: got %q, want %q", step.claim, got, step.want)
		}
		if got, whole := w.refunded(id); got != 1999-step.left || whole != (step.left == 0) {
			t.Errorf("%s: got %d refunded, in full %t, want %d left", step.claim, got, whole, step.left)
		}
	}
}

// support.stripe.com/questions/deprecation-of-fractional-isk-charges-and-refunds.
func TestAFractionThatTheCurrencyDoesNotHaveIsNotRefunded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	intent := w.post(root, "", "amount=200000&currency=isk&customer=cus_1&payment_method=pm_card_visa"+
		"&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never").Intent
	w.confirm(intent.ID, "")
	for amount, want := range map[string]string{
		"150": "400 invalid_request_error invalid_charge_amount_no_decimal_compatible", "100": refundSucceeds,
	} {
		if got := refundSummary(w.refund(intent.ID, amount, amount)); got != want {
			t.Errorf("%s: got %q, want %q", amount, got, want)
		}
	}
}

func TestAnInvalidRefundIsRefusedAndNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{NoRefunds: true, NoCharges: true})
	id, unpaid := w.pay(), w.create("pm_card_visa")
	for form, want := range map[string]string{
		"":                                     "400 invalid_request_error parameter_missing",
		"payment_intent=pi_nope":               resourceMissing,
		"payment_intent=" + id + "&amount=0":   "400 invalid_request_error parameter_invalid_integer",
		"payment_intent=" + id + "&amount=1.5": "400 invalid_request_error parameter_invalid_integer",
		"payment_intent=" + id + "&reason=why": "400 invalid_request_error",
		"payment_intent=" + id + "&charge=ch":  parameterUnknown,
		"payment_intent=" + unpaid:             "400 invalid_request_error",
	} {
		if got := refundSummary(w.post(refunds, "", form)); got != want {
			t.Errorf("%q: got %q, want %q", form, got, want)
		}
	}
	if got := summary(w.get(refunds + "/re_nope")); got != "404 invalid_request_error resource_missing" {
		t.Errorf("read of an unknown refund: got %q, want 404", got)
	}
	for _, r := range []stripetest.Request{
		request("POST", refunds, "k", "payment_intent="+id), request("GET", refunds, "", ""),
		request("GET", refunds+"/re_000001", "", ""),
	} {
		if r.APIKey = "rk_test_pretend"; w.Do(w.now, r).Status != http.StatusForbidden {
			t.Errorf("%s %s: a restricted key without the permission is not refused", r.Method, r.Path)
		}
		if r.APIKey = "sk_test_other"; r.Method == "POST" && w.Do(w.now, r).Status != http.StatusBadRequest {
			t.Error("a refund of another account's intent is not refused")
		}
	}
	if got := summary(w.refund(id, "1999", "k")); got != "200" {
		t.Errorf("got %q, want the key free", got)
	}
}

func TestADisputeBlocksRefundsUntilItIsWon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.pay()
	dispute := w.dispute(id)
	const refused = "400 invalid_request_error charge_disputed"
	if got := refundSummary(w.refund(id, "1", "a")); got != refused {
		t.Errorf("got %q, want %q", got, refused)
	}
	if _, err := w.RefundInDashboard(w.now, id, 1); !errors.Is(err, stripetest.ErrNotRefundable) {
		t.Errorf("in the Dashboard: got %v, want %v", err, stripetest.ErrNotRefundable)
	}
	must(t, w.CloseDispute(dispute, true))
	if got := refundSummary(w.refund(id, "1", "b")); got != refundSucceeds {
		t.Errorf("after it was won: got %q, want %q", got, refundSucceeds)
	}
}

// docs.stripe.com/refunds: a refund that fails, even after it has succeeded, gives the
// amount back; docs.stripe.com/testing: pm_card_pendingRefund.
func TestARefundMayFailOrBeCanceledLater(t *testing.T) {
	t.Parallel()
	const pending, action, succeeded = stripetest.RefundPending, stripetest.RefundRequiresAction, stripetest.RefundSucceeded
	const failed, canceled = stripetest.RefundFailed, stripetest.RefundCanceled
	for _, tt := range []struct {
		card  string
		steps []stripetest.RefundStatus
		ok    bool
		left  int64
	}{
		{"pm_card_visa", []stripetest.RefundStatus{failed}, true, 1999},
		{"pm_card_visa", []stripetest.RefundStatus{canceled}, false, 999},
		{"pm_card_visa", []stripetest.RefundStatus{failed, succeeded}, false, 1999},
		{"pm_card_pendingRefund", []stripetest.RefundStatus{succeeded}, true, 999},
		{"pm_card_pendingRefund", []stripetest.RefundStatus{succeeded, failed}, true, 1999},
		{"pm_card_pendingRefund", []stripetest.RefundStatus{failed}, true, 1999},
		{"pm_card_pendingRefund", []stripetest.RefundStatus{canceled}, false, 999},
		{"pm_card_pendingRefund", []stripetest.RefundStatus{action, canceled}, true, 1999},
		{"pm_card_pendingRefund", []stripetest.RefundStatus{action, pending, succeeded}, true, 999},
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.create(tt.card)
		w.confirm(id, "")
		made := w.refund(id, "1000", "a").Refund
		var err error
		for _, s := range tt.steps {
			err = errors.Join(err, w.ChangeRefund(made.ID, s))
		}
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, stripetest.ErrRefundStatus) {
			t.Errorf("%s %v: got error %v, want one: %t", tt.card, tt.steps, err, !tt.ok)
		}
		if got, _ := w.refunded(id); got != 1999-tt.left {
			t.Errorf("%s %v: got %d refunded, want %d left", tt.card, tt.steps, got, tt.left)
		}
		if now := w.get(refunds + "/" + made.ID).Refund; (now.Failure != "") != (now.Status == failed) {
			t.Errorf("%s %v: got %s with failure reason %q", tt.card, tt.steps, now.Status, now.Failure)
		}
	}
	if err := newWorld(t, stripetest.Rules{}).ChangeRefund("re_000001", failed); !errors.Is(err, stripetest.ErrNoRefund) {
		t.Errorf("unknown refund: got %v, want %v", err, stripetest.ErrNoRefund)
	}
}

// page returns the ids of a list of refunds, and whether there are more.
func page(list *stripetest.Objects[*stripetest.Refund]) (ids []string, more bool) {
	for _, r := range list.Items {
		ids = append(ids, r.ID[len("re_0000"):])
	}
	return ids, list.More
}

// docs.stripe.com/api/refunds: newest first, 10 or up to 100 a page, the 10 most recent
// on the charge.
func TestRefundsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id, other := w.pay(), w.pay()
	for range 12 {
		w.refund(id, "1", "")
	}
	w.refund(other, "1", "")
	ten := []string{"12", "11", "10", "09", "08", "07", "06", "05", "04", "03"}
	for form, want := range map[string]struct {
		ids  []string
		more bool
	}{
		"":                                           {append([]string{"13"}, ten[:9]...), true},
		"payment_intent=" + id:                       {ten, true},
		"limit=100&payment_intent=" + id:             {append(slices.Clone(ten), "02", "01"), false},
		"payment_intent=" + other:                    {[]string{"13"}, false},
		"starting_after=re_000003&limit=1":           {[]string{"02"}, true},
		"starting_after=re_000003&limit=2":           {[]string{"02", "01"}, false},
		"payment_intent=" + w.create("pm_card_visa"): {nil, false},
	} {
		ids, more := page(w.Do(w.now, request("GET", refunds, "", form)).Refunds)
		if more != want.more || !slices.Equal(ids, want.ids) {
			t.Errorf("%s: got %v, more %t, want %v, %t", form, ids, more, want.ids, want.more)
		}
	}
	onCharge := w.Do(w.now, request("GET", root+"/"+id, "", "expand[]=latest_charge.refunds"))
	if ids, more := page(onCharge.Refunds); !more || !slices.Equal(ids, ten) || onCharge.Charge == nil {
		t.Errorf("on the charge: got %v, more %t, want %v and more", ids, more, ten)
	}
	for _, form := range []string{"limit=101", "limit=0", "starting_after=re_nope", "payment_intent=pi_nope"} {
		if got := w.Do(w.now, request("GET", refunds, "", form)).Status; got != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", form, got)
		}
	}
}

func TestAListOfRefundsMayLag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{RefundLag: time.Minute})
	id := w.pay()
	made := w.refund(id, "1", "a").Refund
	list := func() int {
		onCharge := w.Do(w.now, request("GET", root+"/"+id, "", "expand[]=latest_charge.refunds"))
		return len(w.get(refunds).Refunds.Items) + len(onCharge.Refunds.Items)
	}
	if got := list(); got != 0 {
		t.Errorf("got %d refunds at once, want none", got)
	}
	if sum, _ := w.refunded(id); sum != 1 || w.get(refunds+"/"+made.ID).Status != http.StatusOK {
		t.Errorf("got %d refunded, want the sum and the refund itself at once", sum)
	}
	w.now = w.now.Add(time.Minute)
	if got := list(); got != 2 {
		t.Errorf("got %d refunds a minute later, want one in both lists", got)
	}
}

// docs.stripe.com/error-low-level: a 500 may be rolled forward; and a request may be
// executed long after its client gave up.
func TestAFailedRefundMayBeExecutedLater(t *testing.T) {
	t.Parallel()
	for fault, want := range map[stripetest.FaultKind]struct {
		first, again string
		refunds      int
	}{
		stripetest.ServerErrorBeforeEffect: {"500 api_error", "500 api_error replayed", 1},
		stripetest.ServerErrorAfterEffect:  {"500 api_error", "500 api_error replayed", 1},
		stripetest.LoseRequest:             {"0 lost", refundSucceeds, 1},
		stripetest.LoseResponse:            {"200 lost succeeded", "200 replayed succeeded", 1},
		stripetest.Unavailable:             {"503 api_error", refundSucceeds, 1},
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.pay()
		w.Fail(stripetest.Fault{Kind: fault, On: stripetest.CreateRefund, OrderID: "ORD1"})
		first, again := refundSummary(w.refund(id, "1000", "a")), refundSummary(w.refund(id, "1000", "a"))
		if first != want.first || again != want.again {
			t.Errorf("%s: got %q, then %q, want %q, then %q", fault, first, again, want.first, want.again)
		}
		for range 2 {
			w.RollForward(w.now)
		}
		if got := len(w.Refunds()); got != want.refunds {
			t.Errorf("%s: got %d refunds, want %d", fault, got, want.refunds)
		}
	}
}

// A key that was pruned is a new request, whose refund may double the first.
func TestAPrunedKeyRefundsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.pay()
	w.refund(id, "900", "a")
	w.now = w.now.Add(24 * time.Hour)
	if got := refundSummary(w.refund(id, "900", "a")); got != refundSucceeds || len(w.Refunds()) != 2 {
		t.Errorf("got %q and %d refunds, want a second one", got, len(w.Refunds()))
	}
}

// docs.stripe.com/rate-limits: object locks.
func TestConcurrentRefundsOfAChargeLockIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.pay()
	ticket, refused := w.Begin(w.now, request("POST", refunds, "a", "payment_intent="+id+"&amount=1000"))
	if refused != nil {
		t.Fatalf("got %s, want it to execute", refused.Body())
	}
	for key, want := range map[string]string{"a": keyInUse, "b": "429 invalid_request_error lock_timeout"} {
		if got := refundSummary(w.post(refunds, key, "payment_intent="+id+"&amount=1000")); got != want {
			t.Errorf("key %s: got %q, want %q", key, got, want)
		}
	}
	if got := refundSummary(w.End(w.now, ticket)); got != refundSucceeds {
		t.Errorf("got %q, want %q", got, refundSucceeds)
	}
}

// docs.stripe.com/api/events/types. The charge of an event is as it was then.
func TestEventsOfARefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.pay()
	made := w.refund(id, "1000", "a").Refund
	must(t, w.ChangeRefund(made.ID, stripetest.RefundFailed))
	type object struct {
		ID       string `json:"id"`
		Object   string `json:"object"`
		Status   string `json:"status"`
		Intent   string `json:"payment_intent"`
		Refunded int64  `json:"amount_refunded"`
	}
	var got []object
	var kinds []string
	for _, e := range w.Events()[1:] {
		var body struct {
			Type string `json:"type"`
			Data struct {
				Object object `json:"object"`
			} `json:"data"`
		}
		must(t, json.Unmarshal(e.Body(w.now), &body))
		kinds, got = append(kinds, body.Type), append(got, body.Data.Object)
	}
	failed := object{made.ID, "refund", "failed", id, 0}
	want := []object{
		{made.ID, "refund", "succeeded", id, 0}, {"ch_000001", "charge", "succeeded", id, 1000}, failed, failed,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("objects (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(kinds, []string{"refund.created", "charge.refunded", "refund.updated", "refund.failed"}); diff != "" {
		t.Errorf("types (-got +want):\n%s", diff)
	}
}

func TestTheDateIsThatOfTheServersClock(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{Now: func() time.Time { return time.Unix(1_767_225_600, 0) }})
	s.Advance(time.Hour)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+refunds, http.NoBody)
	must(t, err)
	r.Header.Set("Authorization", "Bearer sk_test_pretend")
	res, err := s.client.Do(r)
	must(t, err)
	must(t, res.Body.Close())
	if got := res.Header.Get("Date"); got != "Thu, 01 Jan 2026 01:00:00 GMT" {
		t.Errorf("got %q, want the server's time", got)
	}
}

func TestStripeGoUnderstandsRefunds(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{})
	api := stripeClient(s, 0)
	params := createParams("pm_card_visa", "r")
	params.Confirm = new(true)
	intent, err := api.PaymentIntents.New(params)
	must(t, err)
	made, err := api.Refunds.New(&stripe.RefundParams{
		PaymentIntent: &intent.ID, Amount: new(int64(500)), Reason: new("duplicate"),
	})
	must(t, err)
	if made.Status != stripe.RefundStatusSucceeded || made.Reason != stripe.RefundReasonDuplicate || made.Amount != 500 {
		t.Errorf("got %+v, want a refund of 500", made)
	}
	read, err := api.Refunds.Get(made.ID, nil)
	must(t, err)
	list := api.Refunds.List(&stripe.RefundListParams{PaymentIntent: &intent.ID})
	if !list.Next() || list.Refund().ID != read.ID || list.Next() {
		t.Errorf("got %v, want a list of the refund", list.RefundList())
	}
	expand := &stripe.PaymentIntentParams{}
	expand.AddExpand("latest_charge.refunds")
	full, err := api.PaymentIntents.Get(intent.ID, expand)
	must(t, err)
	if c := full.LatestCharge; c.AmountRefunded != 500 || len(c.Refunds.Data) != 1 || c.Refunds.HasMore {
		t.Errorf("got charge %+v, want the refund on it", c)
	}
}
