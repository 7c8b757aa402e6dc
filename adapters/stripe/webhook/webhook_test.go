package webhook_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	sdk "github.com/stripe/stripe-go/v76/webhook"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/domain/settle"
)

const (
	endpointSecret = "whsec_pretend_current"
	rolledSecret   = "whsec_pretend_rolled"
)

func signedAt() time.Time { return time.Unix(1_790_000_000, 0) }

// delivery is one request to an endpoint, and what came of it.
type delivery struct {
	Status int
	Count  string
	Hint   settle.Hint // what was followed; empty if nothing was
}

// endpoint is a Webhook whose Follow returns followed and err.
type endpoint struct {
	followed settle.Followed
	record   order.Record
	err      error
	later    time.Duration // between the event and the request
	secrets  []string      // nil: both
}

func (e endpoint) deliver(tb testing.TB, body io.Reader, header string) (d delivery, log string) {
	tb.Helper()
	var out bytes.Buffer
	if e.secrets == nil {
		e.secrets = []string{endpointSecret, rolledSecret}
	}
	h := &webhook.Endpoint{
		Secrets: e.secrets,
		Follow: func(_ context.Context, hint settle.Hint) (settle.Followed, order.Record, error) {
			d.Hint = hint
			return e.followed, e.record, e.err
		},
		Now: func() time.Time { return signedAt().Add(e.later) },
		Log: slog.New(slog.NewJSONHandler(&out, nil)), Count: func(result string) { d.Count = result },
	}
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/stripe/webhook", body)
	r.Header.Set("Stripe-Signature", header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if d.Status = w.Code; w.Body.Len() > 0 {
		tb.Errorf("got a body %q, want none", w.Body)
	}
	return d, out.String()
}

// signed returns a signature of the moment at which the endpoint receives the body.
func (e endpoint) signed(body []byte) string {
	return stripetest.Signature(body, signedAt().Add(e.later), endpointSecret)
}

func snapshot(kind, object string) []byte {
	return fmt.Appendf(nil, `{"id":"evt_1","object":"event","type":%q,"created":1790000000,"data":{"object":%s}}`,
		kind, object)
}

const paidIntent = `{"id":"pi_1","object":"payment_intent","status":"succeeded","amount":1998,"currency":"usd",` +
	`"description":"canary@example.com","metadata":{"orderId":"ORD-1","scope":"test"}}`

func TestAWebhookIsAHint(t *testing.T) {
	intent := func(status, rest string) string {
		return strings.Replace(paidIntent, `"succeeded"`, fmt.Sprintf("%q%s", status, rest), 1)
	}
	hint := func(s order.Status) settle.Hint {
		return settle.Hint{OrderID: "ORD-1", Scope: "test", Intent: "pi_1", Status: s}
	}
	const dispute, refund, other = `{"id":"du_1","status":"lost","payment_intent":"pi_1"}`,
		`{"id":"re_1","payment_intent":"pi_1","metadata":{"orderId":"ORD-1","scope":"test","refundId":"R1"}}`,
		`{"id":5,"payment_intent":"pi_1","status":{}}` // of another API version
	disputed := settle.Hint{Intent: "pi_1", Status: order.Paid, Disputed: true}
	refunded := settle.Hint{Intent: "pi_1", Status: order.Paid, Refunded: true}
	ours := hint(order.Paid)
	ours.Refunded = true
	const failed = `,"last_payment_error":{"type":"card_error","code":"card_declined","decline_code":"lost_card"}`
	for claim, tt := range map[string]struct {
		body []byte
		want settle.Hint
	}{
		"paid":              {snapshot("payment_intent.succeeded", paidIntent), hint(order.Paid)},
		"pending":           {snapshot("payment_intent.processing", intent("processing", "")), hint(order.Pending)},
		"declined":          {snapshot("payment_intent.payment_failed", intent("requires_payment_method", failed)), hint(order.Declined)},
		"canceled":          {snapshot("payment_intent.canceled", intent("canceled", "")), hint(order.Canceled)},
		"action required":   {snapshot("payment_intent.requires_action", intent("requires_action", "")), hint(order.ActionRequired)},
		"an unknown status": {snapshot("payment_intent.succeeded", intent("settled", "")), hint("")},
		"another API version": {
			snapshot("payment_intent.succeeded", `{"id":"pi_1","amount":{"value":1998}}`), settle.Hint{Intent: "pi_1"},
		},
		"an intent of something else": {
			snapshot("payment_intent.succeeded", `{"id":"pi_1","status":"succeeded"}`), settle.Hint{},
		},
		"an order id that is not ours": {
			snapshot("payment_intent.succeeded", strings.Replace(paidIntent, "ORD-1", "a b", 1)), settle.Hint{},
		},
		"a thin event": {
			[]byte(`{"id":"evt_1","object":"v2.core.event","type":"payment_intent.succeeded","created":"2026-09-21T13:33:20Z",` +
				`"related_object":{"id":"pi_1","type":"payment_intent","url":"/v1/payment_intents/pi_1"}}`),
			settle.Hint{Intent: "pi_1"},
		},

		"a refund":                    {snapshot("refund.created", refund), ours},
		"a changed refund":            {snapshot("refund.updated", refund), ours},
		"a failed refund":             {snapshot("refund.failed", refund), ours},
		"a refund, older API version": {snapshot("charge.refund.updated", refund), ours},
		"a refunded charge":           {snapshot("charge.refunded", strings.Replace(refund, "re_1", "ch_1", 1)), ours},
		"a refund by others":          {snapshot("refund.created", `{"payment_intent":"pi_1","metadata":{}}`), refunded},
		"a refund, invalid order":     {snapshot("refund.created", strings.Replace(refund, "ORD-1", "a b", 1)), refunded},
		"a refund, newer API version": {snapshot("refund.updated", other), refunded},
		"a refund without an intent":  {snapshot("refund.created", `{"payment_intent":null}`), settle.Hint{}},
		"no refund":                   {snapshot("refund.created", `{"payment_intent":5}`), settle.Hint{}},

		"a dispute":                    {snapshot("charge.dispute.created", dispute), disputed},
		"a changed dispute":            {snapshot("charge.dispute.updated", dispute), disputed},
		"a closed dispute":             {snapshot("charge.dispute.closed", dispute), disputed},
		"a dispute, newer API version": {snapshot("charge.dispute.closed", other), disputed},
		"funds were withdrawn":         {snapshot("charge.dispute.funds_withdrawn", dispute), settle.Hint{}},
		"a dispute without an intent":  {snapshot("charge.dispute.created", `{"payment_intent":null}`), settle.Hint{}},
		"no dispute":                   {snapshot("charge.dispute.created", `{"payment_intent":5}`), settle.Hint{}},
		"a thin event of a dispute": {
			[]byte(`{"id":"evt_1","object":"v2.core.event","type":"charge.dispute.created","created":"2026-09-21T13:33:20Z",` +
				`"related_object":{"id":"du_1","type":"dispute","url":"/v1/disputes/du_1"}}`),
			settle.Hint{},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			record := order.Record{OrderID: "ORD-9", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
			e := endpoint{followed: settle.HintSettled, record: record}
			got, log := e.deliver(t, bytes.NewReader(tt.body), e.signed(tt.body))
			want := delivery{http.StatusOK, "settled", tt.want}
			if tt.want.Intent == "" {
				want.Count = "ignored"
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			ids := `"event_id":"evt_1","event_type":`
			if tt.want.Intent != "" {
				ids = `"order_id":"ORD-9","intent_id":"pi_1","trace_id":"0af7651916cd43dd8448eb211c80319c"`
			}
			if strings.Contains(log, "canary") || !strings.Contains(log, ids) {
				t.Errorf("got log %s, want %s and nothing of the customer", log, ids)
			}
		})
	}
}

func TestTheResponseToAWebhook(t *testing.T) {
	unavailable := &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("503")}
	for claim, tt := range map[string]struct {
		endpoint
		status int
		count  string
	}{
		"a row that agrees":                       {endpoint{followed: settle.HintAgrees}, 200, "agrees"},
		"an order that a worker holds":            {endpoint{followed: settle.HintLeased}, 200, "leased"},
		"another scope":                           {endpoint{followed: settle.HintForeign}, 200, "foreign"},
		"Stripe is unavailable":                   {endpoint{err: unavailable}, 503, "unavailable"},
		"the table is unavailable":                {endpoint{err: context.DeadlineExceeded}, 503, "unavailable"},
		"a row that changed again and again":      {endpoint{err: order.ErrStale}, 503, "unavailable"},
		"a record of a newer release":             {endpoint{err: order.ErrUnknownVersion}, 503, "unavailable"},
		"money that another intent took":          {endpoint{err: &order.MismatchError{}}, 200, "mismatch"},
		"a paid order that is not paid at Stripe": {endpoint{err: &order.TransitionError{}}, 200, "mismatch"},
		"no row, an event of now":                 {endpoint{err: order.ErrNotFound}, 503, "row_not_yet"},
		"no row, an event of almost an hour ago":  {endpoint{err: order.ErrNotFound, later: time.Hour - time.Second}, 503, "row_not_yet"},
		"no row, an event of an hour ago":         {endpoint{err: order.ErrNotFound, later: time.Hour}, 200, "row_missing"},
		"no row, an event of three days ago":      {endpoint{err: order.ErrNotFound, later: 72 * time.Hour}, 200, "row_missing"},
	} {
		body := snapshot("payment_intent.succeeded", paidIntent)
		got, _ := tt.deliver(t, bytes.NewReader(body), tt.signed(body))
		if got.Status != tt.status || got.Count != tt.count {
			t.Errorf("%s: got %d, %s, want %d, %s", claim, got.Status, got.Count, tt.status, tt.count)
		}
	}
}

func TestARejectedRequestReadsNothing(t *testing.T) {
	var e endpoint
	body := snapshot("payment_intent.succeeded", paidIntent)
	filled := func(n int) []byte { return append(bytes.Clone(body), bytes.Repeat([]byte(" "), n-len(body))...) }
	sign := func(at time.Time, secret string) string { return stripetest.Signature(body, at, secret) }
	for claim, tt := range map[string]struct {
		body   []byte // nil breaks off: Stripe sends the event again
		header string // "" is a valid one
		status int
		count  string
	}{
		"a forged request":               {body, sign(signedAt(), "whsec_forged"), 400, "invalid_signature"},
		"a stale request":                {body, sign(signedAt().Add(-time.Hour), endpointSecret), 400, "invalid_signature"},
		"a truncated and signed request": {body[:40], "", 400, "not_an_event"},
		"one byte too many":              {filled(webhook.MaxBody + 1), "", 413, "too_large"},
		"an array":                       {[]byte(`[]`), "", 400, "not_an_event"},
		"an object that is not an event": {[]byte(`{"id":"pi_1","object":"payment_intent","type":"x"}`), "", 400, "not_an_event"},
		"another type of event":          {snapshot("customer.created", paidIntent), "", 200, "ignored"},
		"a request that breaks off":      {nil, "", 400, "unreadable"},
	} {
		t.Run(claim, func(t *testing.T) {
			header, sent := cmp.Or(tt.header, e.signed(tt.body)), io.Reader(bytes.NewReader(tt.body))
			if tt.body == nil {
				sent = iotest.ErrReader(io.ErrUnexpectedEOF)
			}
			got, log := e.deliver(t, sent, header)
			if want := (delivery{Status: tt.status, Count: tt.count}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			level := map[bool]string{true: `"level":"INFO"`, false: `"level":"WARN"`}[tt.status == http.StatusOK]
			if strings.Contains(log, "canary") || strings.Contains(log, "whsec") || !strings.Contains(log, level) {
				t.Errorf("got log %s, want %s, without personal data and secrets", log, level)
			}
		})
	}
	full := filled(webhook.MaxBody)
	accepting := endpoint{followed: settle.HintAgrees}
	if got, _ := accepting.deliver(t, bytes.NewReader(full), e.signed(full)); got.Status != http.StatusOK {
		t.Errorf("a body of the largest size: got %d, want 200", got.Status)
	}
}

func TestASignature(t *testing.T) {
	const body = `{"id":"evt_1","object":"event","type":"x"}`
	current, both := []string{endpointSecret}, []string{endpointSecret, rolledSecret}
	sign := func(secrets ...string) string { return stripetest.Signature([]byte(body), signedAt(), secrets...) }
	signed := sign(endpointSecret)
	_, v1, _ := strings.Cut(signed, ",")
	byStripe := sdk.GenerateTestSignedPayload(&sdk.UnsignedPayload{
		Payload: []byte(body), Secret: endpointSecret, Timestamp: signedAt(),
	})
	for claim, tt := range map[string]struct {
		body    string
		header  string
		secrets []string
		after   time.Duration // between signature and verification
		want    string
	}{
		"of ours":                         {body, signed, current, 0, "ignored"},
		"of Stripe's library":             {body, byStripe.Header, current, 0, "ignored"},
		"with an old, rolled secret":      {body, sign(rolledSecret), both, 0, "ignored"},
		"the second of two":               {body, sign("whsec_other", endpointSecret), current, 0, "ignored"},
		"of five minutes ago":             {body, signed, current, 300 * time.Second, "ignored"},
		"by a clock five minutes ahead":   {body, signed, current, -300 * time.Second, "ignored"},
		"that is too old":                 {body, signed, current, 301 * time.Second, "invalid_signature"},
		"from the future":                 {body, signed, current, -301 * time.Second, "invalid_signature"},
		"of the same JSON in other bytes": {body + " ", signed, current, 0, "invalid_signature"},
		"without a secret":                {body, signed, []string{}, 0, "invalid_signature"},
		"with an empty secret":            {body, sign(""), []string{""}, 0, "invalid_signature"},
		"of another time":                 {body, "t=1790000001," + v1, current, 0, "invalid_signature"},
		"without a time":                  {body, v1, current, 0, "invalid_signature"},
		"of a time that is not a number":  {body, "t=now," + v1, current, 0, "invalid_signature"},
		"that is missing":                 {body, "t=1790000000", current, 0, "invalid_signature"},
		"that is not hexadecimal":         {body, "t=1790000000,v1=signature", current, 0, "invalid_signature"},
		"of the scheme v0 alone":          {body, strings.Replace(signed, "v1=", "v0=", 1), current, 0, "invalid_signature"},
	} {
		t.Run(claim, func(t *testing.T) {
			e := endpoint{secrets: tt.secrets, later: tt.after}
			got, log := e.deliver(t, strings.NewReader(tt.body), tt.header)
			if got.Count != tt.want || strings.Contains(log, "whsec") || strings.Contains(log, v1[3:]) {
				t.Errorf("got %+v, want %s, and neither a secret nor a signature in %s", got, tt.want, log)
			}
		})
	}
}

func FuzzWebhook(f *testing.F) {
	body := snapshot("payment_intent.succeeded", paidIntent)
	f.Add(body, stripetest.Signature(body, signedAt(), endpointSecret))
	f.Add([]byte(`{"id":"evt_1","object":"event","type":"payment_intent.canceled","data":{"object":{"id":1}}}`), "t=1,v1=00")
	f.Add([]byte("null"), "t=,v1=,t=1790000000")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		e := endpoint{followed: settle.HintAgrees}
		if got, _ := e.deliver(t, bytes.NewReader(body), header); got.Hint != (settle.Hint{}) && header != e.signed(body) {
			t.Errorf("a request that was not signed was followed: %+v", got)
		}
		got, _ := e.deliver(t, bytes.NewReader(body), e.signed(body))
		if got.Status >= 500 || got.Hint.OrderID != "" && !order.ValidID(string(got.Hint.OrderID)) {
			t.Errorf("got %+v, want no server error and a valid order id", got)
		}
	})
}
