package stripe_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

const all = "prepare confirm read"

func TestAResponseShowsTheIntent(t *testing.T) {
	t.Parallel()
	var (
		noFailure   order.Failure
		funds       = order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"}
		generic     = order.Failure{Code: "card_declined", DeclineCode: "generic_decline"}
		auth        = order.Failure{Code: "authentication_required", DeclineCode: "authentication_required"}
		unexplained = order.Failure{Code: "unexplained"}

		waiting     = rigtest.Intent("requires_confirmation", rigtest.Null)
		needsMethod = rigtest.Intent("requires_payment_method", rigtest.Null)
		declined    = rigtest.Intent("requires_payment_method", rigtest.DeclinedError)
		needsAuth   = rigtest.Intent("requires_payment_method", `{"type":"card_error","code":"authentication_required",`+
			`"decline_code":"authentication_required","message":"m"}`)
		paid = rigtest.Intent("succeeded", rigtest.Null)

		edited         = rigtest.IntentWithCharge("requires_payment_method", rigtest.Null, rigtest.Charge)
		editedExpanded = rigtest.IntentWithCharge("requires_payment_method", rigtest.Null, rigtest.ExpandedCharge)
		emptyCharge    = rigtest.IntentWithCharge("requires_payment_method", rigtest.Null, `{"id":"ch_3","outcome":null}`)
	)
	tests := map[string]struct {
		methods  string
		response rigtest.Response
		state    order.IntentState
		failure  order.Failure
	}{
		"a new intent":                   {all, rigtest.OK(waiting), order.NeedsConfirmation, noFailure},
		"a paid intent":                  {all, rigtest.OK(paid), order.Succeeded, noFailure},
		"a processing intent":            {all, rigtest.OK(rigtest.Intent("processing", rigtest.Null)), order.Processing, noFailure},
		"an intent that requires action": {all, rigtest.OK(rigtest.Intent("requires_action", rigtest.Null)), order.NeedsAction, noFailure},
		"a canceled intent":              {all, rigtest.OK(rigtest.Intent("canceled", rigtest.Null)), order.IntentCanceled, noFailure},
		"a declined intent that is read": {"read", rigtest.OK(declined), order.NeedsMethod, funds},
		"a replayed success":             {"confirm", rigtest.Replay(200, paid), order.Succeeded, noFailure},
		"a last error without a code": {
			all, rigtest.OK(rigtest.Intent("requires_payment_method", `{"type":"api_error","message":"m"}`)),
			order.NeedsMethod,
			order.Failure{Code: "api_error"},
		},
		"a cleared error, with the charge":   {all, rigtest.OK(editedExpanded), order.NeedsMethod, auth},
		"a cleared error, with empty charge": {all, rigtest.OK(emptyCharge), order.NeedsMethod, unexplained},
		"a last error wins over the charge": {
			all, rigtest.OK(rigtest.IntentWithCharge("requires_payment_method", rigtest.DeclinedError, rigtest.Charge)), order.NeedsMethod, funds,
		},

		"402 with a declined intent":       {all, rigtest.Failure(402, rigtest.CardDeclined, declined), order.NeedsMethod, funds},
		"402 that requires authentication": {"confirm", rigtest.Failure(402, rigtest.CardDeclined, needsAuth), order.NeedsMethod, auth},
		"402 that alone shows the decline": {"confirm", rigtest.Failure(402, rigtest.CardDeclined, needsMethod), order.NeedsMethod, generic},
		"402 without a type and a code": {
			"confirm", rigtest.Failure(402, `"param":""`, needsMethod), order.NeedsMethod, unexplained,
		},
		"402 without an outcome":         {"confirm", rigtest.Failure(402, rigtest.CardDeclined, waiting), order.NeedsConfirmation, generic},
		"402 wins over the charge":       {"confirm", rigtest.Failure(402, rigtest.CardDeclined, edited), order.NeedsMethod, generic},
		"400 because the intent is paid": {"confirm", rigtest.Failure(400, rigtest.UnexpectedState, paid), order.Succeeded, noFailure},
		"400 because it is declined":     {"confirm", rigtest.Failure(400, rigtest.UnexpectedState, declined), order.NeedsMethod, funds},
		"400 is no failure of a payment": {
			"confirm", rigtest.Failure(400, rigtest.UnexpectedState, needsMethod), order.NeedsMethod, noFailure,
		},
		"replayed 400 because it is paid": {
			"confirm", rigtest.Replay(400, rigtest.ErrorWithIntent(rigtest.UnexpectedState, paid)), order.Succeeded, noFailure,
		},
	}
	for name, tt := range tests {
		for method := range strings.FieldsSeq(tt.methods) {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				got, err := rigtest.Methods(t, rigtest.Serving(t, tt.response.ServeHTTP))[method](t.Context())
				want := order.Intent{
					ID: rigtest.IntentID, State: tt.state, Total: order.Money{Amount: 2500, Currency: "eur"},
					OrderID: "ORD-1", Scope: "test", Failure: tt.failure, Fingerprint: "v1:0", Mode: order.TestMode,
				}
				if diff := cmp.Diff(got, want); err != nil || diff != "" {
					t.Errorf("error %v, intent (-got +want):\n%s", err, diff)
				}
			})
		}
	}
}

func TestAResponseIsAnError(t *testing.T) {
	t.Parallel()
	var (
		paid    = rigtest.Intent("succeeded", rigtest.Null)
		waiting = rigtest.Intent("requires_confirmation", rigtest.Null)
		another = strings.Replace(paid, "pi_3Pretend", "pi_4", 1)
		noID    = strings.Replace(paid, `"pi_3Pretend"`, `""`, 1)
		half    = paid[:len(paid)/2]
	)
	tests := map[string]struct {
		methods  string
		response rigtest.Response
		want     order.ErrorKind
	}{
		"409, the key is in use":         {all, rigtest.Failure(409, rigtest.KeyInUse, ""), order.KindUnavailable},
		"409":                            {all, rigtest.Failure(409, rigtest.InvalidRequest, ""), order.KindUnavailable},
		"429":                            {all, rigtest.Failure(429, rigtest.InvalidRequest+`,"code":"rate_limit"`, ""), order.KindUnavailable},
		"503":                            {all, rigtest.Failure(503, rigtest.APIError, ""), order.KindUnavailable},
		"a server error":                 {all, rigtest.Failure(500, rigtest.APIError, ""), order.KindUnknown},
		"a server error with the intent": {"confirm", rigtest.Failure(500, rigtest.APIError, paid), order.KindUnknown},
		"424":                            {all, rigtest.Failure(424, rigtest.APIError, ""), order.KindUnknown},
		"a proxy's 502 in HTML":          {all, rigtest.Raw(502, "<html>Bad Gateway</html>"), order.KindUnknown},
		"a body that is not JSON":        {all, rigtest.OK("ok"), order.KindUnknown},
		"a truncated intent":             {all, rigtest.OK(half), order.KindUnknown},
		"trailing data":                  {all, rigtest.OK(paid + paid), order.KindUnknown},
		"a string for an amount":         {all, rigtest.OK(strings.Replace(paid, "2500", `"2500"`, 1)), order.KindUnknown},
		"an intent without an id":        {all, rigtest.OK(noID), order.KindUnknown},
		"another intent":                 {"confirm read", rigtest.OK(another), order.KindUnknown},
		"an unknown status":              {all, rigtest.OK(rigtest.Intent("requires_capture", rigtest.Null)), order.KindUnknown},
		"a redirect":                     {all, rigtest.Raw(302, paid), order.KindUnknown},
		"400 without an error":           {all, rigtest.Raw(400, paid), order.KindUnknown},
		"400 with a string as error":     {all, rigtest.Raw(400, `{"error":"no"}`), order.KindUnknown},
		"402 with a number as intent":    {all, rigtest.Failure(402, rigtest.CardDeclined, "5"), order.KindUnknown},
		"replayed 500":                   {"prepare confirm", rigtest.Replay(500, rigtest.Error(rigtest.APIError)), order.KindReplayed},
		"replayed 400":                   {"prepare confirm", rigtest.Replay(400, rigtest.Error(rigtest.InvalidRequest)), order.KindReplayed},
		"replayed 402 without an intent": {"prepare confirm", rigtest.Replay(402, rigtest.Error(rigtest.CardDeclined)), order.KindReplayed},
		"replayed 402 of a creation": {
			"prepare", rigtest.Replay(402, rigtest.ErrorWithIntent(rigtest.CardDeclined, rigtest.DeclinedIntent())), order.KindReplayed,
		},
		"400, the key was used before": {"prepare confirm", rigtest.Failure(400, rigtest.KeyMismatch, ""), order.KindKeyReused},
		"404 of the intent":            {"confirm read", rigtest.Failure(404, rigtest.ResourceMissing, ""), order.KindMisconfigured},
		"404 of the URL":               {all, rigtest.Failure(404, rigtest.InvalidRequest, ""), order.KindMisconfigured},
		"404 of the customer":          {"prepare", rigtest.Failure(404, rigtest.ResourceMissing, ""), order.KindRefused},
		"400 with the intent": {
			"confirm", rigtest.Failure(400, `"code":"amount_too_small"`, waiting), order.KindRefused,
		},
		"402 without an intent":   {"prepare confirm", rigtest.Failure(402, rigtest.CardDeclined, ""), order.KindRefused},
		"402 with another intent": {"confirm", rigtest.Failure(402, rigtest.CardDeclined, another), order.KindRefused},
		"402 with the intent's id only": {
			"confirm", rigtest.Failure(402, rigtest.CardDeclined, `"pi_3Pretend"`), order.KindRefused,
		},

		// Stripe gave us the id that is read, so the order cannot be wrong.
		"400 of a read": {"read", rigtest.Failure(400, rigtest.InvalidRequest, ""), order.KindMisconfigured},
		"402 of a read": {"read", rigtest.Failure(402, rigtest.CardDeclined, ""), order.KindMisconfigured},
	}
	for name, tt := range tests {
		for method := range strings.FieldsSeq(tt.methods) {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				got, err := rigtest.Methods(t, rigtest.Serving(t, tt.response.ServeHTTP))[method](t.Context())
				if kind := rigtest.KindOf(t, err); kind != tt.want || got != (order.Intent{}) {
					t.Errorf("got %v, %q (%v), want %q", got, kind, err, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), "nil") {
					t.Errorf("%q names no cause", err)
				}
			})
		}
	}
}

func TestAnErrorNamesTheCallItsCauseAndTheRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		response rigtest.Response
		want     string
	}{
		{rigtest.Raw(502, "<html>"), "unknown: read intent pi_3Pretend: unreadable response"},
		{rigtest.OK("<html>"), "unknown: read intent pi_3Pretend: unreadable response (request req_pretend)"},
		{rigtest.OK("{}"), "unknown: read intent pi_3Pretend: response without a PaymentIntent (request req_pretend)"},
		{
			rigtest.OK(`{"id":"pi_4","status":"succeeded"}`),
			"unknown: read intent pi_3Pretend: response with another PaymentIntent (request req_pretend)",
		},
		{
			rigtest.OK(rigtest.Intent("requires_capture", rigtest.Null)),
			`unknown: read intent pi_3Pretend: unknown PaymentIntent status requires_capture (request req_pretend)`,
		},
		{
			rigtest.Failure(404, rigtest.ResourceMissing, ""),
			"misconfigured: read intent pi_3Pretend: stripe: 404 resource_missing (request req_pretend)",
		},
		{
			rigtest.Failure(402, rigtest.CardDeclined+`,"param":"automatic_payment_methods[enabled]"`, ""),
			"misconfigured: read intent pi_3Pretend: stripe: 402 card_declined (generic_decline), " +
				"param automatic_payment_methods[enabled] (request req_pretend)",
		},
		{
			rigtest.Failure(400, `"code":"No such","param":"`+strings.Repeat("a", 81)+`"`, ""),
			"misconfigured: read intent pi_3Pretend: stripe: 400 [withheld], param [withheld] (request req_pretend)",
		},
		{rigtest.Failure(400, `"param":""`, ""), "misconfigured: read intent pi_3Pretend: stripe: 400 (request req_pretend)"},
		{
			rigtest.Failure(500, rigtest.APIError, ""),
			"unknown: read intent pi_3Pretend: stripe: 500 api_error (request req_pretend)",
		},
	} {
		_, err := rigtest.Methods(t, rigtest.Responding(t, tt.response))["read"](t.Context())
		if got := err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestErrorsContainNoSecrets responds with everything that must not reach a log, wherever
// Stripe or a proxy might put it.
func TestErrorsContainNoSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{
		rigtest.Key, "sk_test_*******canary", "rk_live_canary", "pk_test_canary",
		"cus_canary", "cus_pretend", "pm_canary", "pm_card_visa",
		"card_canary", "card_1Canary", "src_1Canary", "ba_1Canary", "tok_canary", "btok_1Canary", "seti_1Canary_secret_canary",
		"pi_3Pretend_secret_canary", "whsec_Canary1", "ephkey_1Canary",
	}
	all := strings.Join(secrets, "', '")
	message := `"message":"No such thing: '` + all + `'.","param":"` + all + `"`
	intent := rigtest.Intent("requires_capture", rigtest.DeclinedError)
	responses := []rigtest.Response{
		rigtest.Raw(200, intent),
		rigtest.Raw(200, all),
		rigtest.Raw(200, `{"id":"pi_3Pretend","status":"`+all+`"}`),
		rigtest.Raw(302, intent),
		rigtest.Raw(400, intent),
		rigtest.Raw(400, all),
		rigtest.Raw(400, `{"error":{`+message+`,"type":"idempotency_error","payment_method":{"id":"pm_canary"}}}`),
		rigtest.Raw(401, `{"error":{`+message+`}}`),
		rigtest.Raw(402, `{"error":{`+message+`,"payment_intent":`+intent+`}}`),
		rigtest.Raw(404, `{"error":{`+message+`,"source":{"id":"card_canary"}}}`),
		rigtest.Replay(500, `{"error":{`+message+`}}`),
		rigtest.Raw(502, "<html>"+all),
	}
	secrets = append(secrets, "last4", "No such thing")
	for _, res := range responses {
		for name, call := range rigtest.Methods(t, rigtest.Serving(t, res.ServeHTTP)) {
			_, err := call(t.Context())
			if err == nil {
				t.Errorf("%s: %d %.80s is not an error", name, res.Status, res.Body)
				continue
			}
			for _, canary := range secrets {
				if strings.Contains(err.Error(), canary) {
					t.Errorf("%s: %q is in %q", name, canary, err)
				}
			}
		}
	}
}

// A proxy may send parts of a request back in a response that is not HTTP, and net/http
// repeats it in its error.
func TestNetworkErrorsDoNotRepeatTheRequest(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for cause, want := range map[error]string{
		errors.New(`malformed HTTP response "john_smith"`):                           "unreadable response",
		textproto.ProtocolError("malformed MIME header line: Bearer " + rigtest.Key): "unreadable response",
		refused:          "dial tcp: connection refused",
		io.EOF:           "EOF",
		context.Canceled: "context canceled",
		&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}: "tls: failed to verify certificate: " +
			"x509: certificate signed by unknown authority",
	} {
		p := rigtest.Options(t, "https://proxy.test/john", rigtest.RoundTripFunc(func(*http.Request) (*http.Response, error) {
			return nil, cause
		}))
		_, err := charge.New(p).Read(t.Context(), rigtest.IntentID)
		if got, want := err.Error(), "unknown: read intent pi_3Pretend: "+want; got != want || !errors.Is(err, cause) {
			t.Errorf("got %q, want %q that wraps its cause", got, want)
		}
	}
}

// FuzzResponse holds for any bytes: no panic, no unusable intent, no secret in an error.
func FuzzResponse(f *testing.F) {
	for _, seed := range []rigtest.Response{
		rigtest.Raw(200, rigtest.Intent("succeeded", rigtest.Null)),
		rigtest.Raw(402, rigtest.ErrorWithIntent(rigtest.CardDeclined, rigtest.Intent("requires_payment_method", rigtest.DeclinedError))),
		rigtest.Replay(400, rigtest.ErrorWithIntent(rigtest.UnexpectedState, rigtest.Intent("succeeded", rigtest.Null))),
		rigtest.Raw(409, rigtest.Error(rigtest.KeyInUse)),
		rigtest.Replay(500, rigtest.Error(rigtest.APIError)),
		rigtest.Raw(404, rigtest.Error(rigtest.ResourceMissing)),
		rigtest.Raw(200, "<html>"),
	} {
		f.Add(seed.Status, seed.Replayed, seed.Body)
	}
	f.Fuzz(func(t *testing.T, status int, replayed bool, body string) {
		for name, call := range rigtest.Methods(t, rigtest.Responding(t, rigtest.Response{Status: status, Replayed: replayed, Body: body})) {
			got, err := call(t.Context())
			switch kind := rigtest.KindOf(t, err); {
			case err == nil && (got.ID == "" || got.State == "" || name != "prepare" && got.ID != rigtest.IntentID):
				t.Errorf("%s: got the intent %+v", name, got)
			case err != nil && (kind == "" || got != (order.Intent{})):
				t.Errorf("%s: got %+v and %v", name, got, err)
			case err != nil && strings.Contains(err.Error(), rigtest.Key):
				t.Errorf("%s: the key is in %q", name, err)
			}
		}
	})
}
