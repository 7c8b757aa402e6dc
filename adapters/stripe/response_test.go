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
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
)

func TestAResponseShowsTheIntent(t *testing.T) {
	t.Parallel()
	var (
		noFailure   order.Failure
		funds       = order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"}
		generic     = order.Failure{Code: "card_declined", DeclineCode: "generic_decline"}
		auth        = order.Failure{Code: "authentication_required", DeclineCode: "authentication_required"}
		unexplained = order.Failure{Code: "unexplained"}

		waiting     = intentJSON("requires_confirmation", null)
		needsMethod = intentJSON("requires_payment_method", null)
		declined    = intentJSON("requires_payment_method", declinedError)
		needsAuth   = intentJSON("requires_payment_method", authenticationError)
		paid        = intentJSON("succeeded", null)

		edited         = intentWithCharge("requires_payment_method", null, charge)
		editedExpanded = intentWithCharge("requires_payment_method", null, expandedCharge)
		emptyCharge    = intentWithCharge("requires_payment_method", null, `{"id":"ch_3","outcome":null}`)
	)
	tests := map[string]struct {
		methods  string
		response response
		state    order.IntentState
		failure  order.Failure
	}{
		"a new intent":                   {all, ok(waiting), order.NeedsConfirmation, noFailure},
		"a new intent without a card":    {all, ok(needsMethod), order.NeedsMethod, noFailure},
		"a paid intent":                  {all, ok(paid), order.Succeeded, noFailure},
		"a processing intent":            {all, ok(intentJSON("processing", null)), order.Processing, noFailure},
		"an intent that requires action": {all, ok(intentJSON("requires_action", null)), order.NeedsAction, noFailure},
		"a canceled intent":              {all, ok(intentJSON("canceled", null)), order.IntentCanceled, noFailure},
		"a declined intent that is read": {"read", ok(declined), order.NeedsMethod, funds},
		"an intent paid after a decline": {"read", ok(intentJSON("succeeded", declinedError)), order.Succeeded, funds},
		"a replayed creation":            {"prepare", replay(200, waiting), order.NeedsConfirmation, noFailure},
		"a replayed success":             {"confirm", replay(200, paid), order.Succeeded, noFailure},
		"a last error without a code": {
			all, ok(intentJSON("requires_payment_method", typedError)), order.NeedsMethod, order.Failure{Code: "api_error"},
		},
		"a last error without any code": {
			"read", ok(intentJSON("requires_payment_method", "{}")), order.NeedsMethod, unexplained,
		},
		"a cleared error, with the charge":   {all, ok(editedExpanded), order.NeedsMethod, auth},
		"a cleared error, with empty charge": {all, ok(emptyCharge), order.NeedsMethod, unexplained},
		"a paid intent with its charge":      {all, ok(intentWithCharge("succeeded", null, charge)), order.Succeeded, noFailure},
		"a last error wins over the charge": {
			all, ok(intentWithCharge("requires_payment_method", declinedError, charge)), order.NeedsMethod, funds,
		},
		"a last error with a decline code and no code": {
			all, ok(intentJSON("requires_payment_method", uncodedError)),
			order.NeedsMethod,
			order.Failure{Code: "card_error", DeclineCode: "do_not_honor"},
		},

		"402 with a declined intent":       {all, failure(402, cardDeclined, declined), order.NeedsMethod, funds},
		"402 that requires authentication": {"confirm", failure(402, cardDeclined, needsAuth), order.NeedsMethod, auth},
		"402 that alone shows the decline": {"confirm", failure(402, cardDeclined, needsMethod), order.NeedsMethod, generic},
		"402 without a code": {
			all, failure(402, cardError, needsMethod), order.NeedsMethod, order.Failure{Code: "card_error"},
		},
		"402 without a type and a code": {
			"confirm", failure(402, `"param":""`, needsMethod), order.NeedsMethod, unexplained,
		},
		"402 wins over the charge":       {"confirm", failure(402, cardDeclined, edited), order.NeedsMethod, generic},
		"400 because the intent is paid": {"confirm", failure(400, unexpectedState, paid), order.Succeeded, noFailure},
		"400 because it is declined":     {"confirm", failure(400, unexpectedState, declined), order.NeedsMethod, funds},
		"400 is no failure of a payment": {
			"confirm", failure(400, unexpectedState, needsMethod), order.NeedsMethod, noFailure,
		},
		"replayed 400 because it is paid": {
			"confirm", replay(400, errorWithIntent(unexpectedState, paid)), order.Succeeded, noFailure,
		},
	}
	for name, tt := range tests {
		for method := range strings.FieldsSeq(tt.methods) {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				got, err := methods(t, serving(t, tt.response.ServeHTTP))[method](t.Context())
				want := order.Intent{
					ID: intentID, State: tt.state, Total: order.Money{Amount: 2500, Currency: "eur"},
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
		paid    = intentJSON("succeeded", null)
		waiting = intentJSON("requires_confirmation", null)
		another = strings.Replace(paid, "pi_3Pretend", "pi_4", 1)
		noID    = strings.Replace(paid, `"pi_3Pretend"`, `""`, 1)
		half    = paid[:len(paid)/2]
	)
	type row struct {
		methods  string
		response response
		want     order.ErrorKind
	}
	tests := map[string]row{
		"409, the key is in use": {all, failure(409, keyInUse, ""), order.KindUnavailable},
		"409":                    {all, failure(409, invalidRequest, ""), order.KindUnavailable},
		"429":                    {all, failure(429, invalidRequest+`,"code":"rate_limit"`, ""), order.KindUnavailable},
		"429 with the locked intent": {
			"confirm", failure(429, `"code":"lock_timeout"`, waiting), order.KindUnavailable,
		},
		"503":                            {all, failure(503, apiError, ""), order.KindUnavailable},
		"a server error":                 {all, failure(500, apiError, ""), order.KindUnknown},
		"a server error with the intent": {"confirm", failure(500, apiError, paid), order.KindUnknown},
		"a server error about our key":   {all, failure(500, `"code":"api_key_expired"`, ""), order.KindUnknown},
		"504":                            {all, failure(504, apiError, ""), order.KindUnknown},
		"424":                            {all, failure(424, apiError, ""), order.KindUnknown},
		"a proxy's 502 in HTML":          {all, response{502, false, "<html>Bad Gateway</html>"}, order.KindUnknown},
		"a proxy's 403 in HTML":          {all, response{403, false, "<html>"}, order.KindUnknown},
		"an empty body":                  {all, ok(""), order.KindUnknown},
		"a body that is not JSON":        {all, ok("ok"), order.KindUnknown},
		"a JSON array":                   {all, ok("[]"), order.KindUnknown},
		"null":                           {all, ok("null"), order.KindUnknown},
		"a truncated intent":             {all, ok(half), order.KindUnknown},
		"trailing data":                  {all, ok(paid + paid), order.KindUnknown},
		"a string for an amount":         {all, ok(strings.Replace(paid, "2500", `"2500"`, 1)), order.KindUnknown},
		"a fraction for an amount":       {all, ok(strings.Replace(paid, "2500", "2500.5", 1)), order.KindUnknown},
		"an intent without an id":        {all, ok(noID), order.KindUnknown},
		"another intent":                 {"confirm read", ok(another), order.KindUnknown},
		"an unknown status":              {all, ok(intentJSON("requires_capture", null)), order.KindUnknown},
		"a redirect":                     {all, response{302, false, paid}, order.KindUnknown},
		"202":                            {all, response{202, false, paid}, order.KindUnknown},
		"400 without an error":           {all, response{400, false, paid}, order.KindUnknown},
		"400 with a null error":          {all, response{400, false, `{"error":null}`}, order.KindUnknown},
		"400 with a number as message":   {all, response{400, false, `{"error":{"message":5}}`}, order.KindUnknown},
		"400 with a string as error":     {all, response{400, false, `{"error":"no"}`}, order.KindUnknown},
		"402 with a number as intent":    {all, failure(402, cardDeclined, "5"), order.KindUnknown},
		"replayed 500":                   {"prepare confirm", replay(500, errorJSON(apiError)), order.KindReplayed},
		"replayed 503":                   {"prepare confirm", replay(503, errorJSON(apiError)), order.KindReplayed},
		"replayed 400":                   {"prepare confirm", replay(400, errorJSON(invalidRequest)), order.KindReplayed},
		"replayed 400 about our account": {
			"prepare confirm", replay(400, errorJSON(`"code":"livemode_mismatch"`)), order.KindReplayed,
		},
		"replayed 402 without an intent": {"prepare confirm", replay(402, errorJSON(cardDeclined)), order.KindReplayed},
		"replayed 402 of a creation": {
			"prepare", replay(402, errorWithIntent(cardDeclined, declinedIntent())), order.KindReplayed,
		},
		"a truncated replay":           {"confirm", replay(200, half), order.KindUnknown},
		"400, the key was used before": {"prepare confirm", failure(400, keyMismatch, ""), order.KindKeyReused},
		"401":                          {all, failure(401, invalidRequest, ""), order.KindMisconfigured},
		"403":                          {all, failure(403, invalidRequest, ""), order.KindMisconfigured},
		"404 of the intent":            {"confirm read", failure(404, resourceMissing, ""), order.KindMisconfigured},
		"404 of the URL":               {all, failure(404, invalidRequest, ""), order.KindMisconfigured},
		"404 of the customer":          {"prepare", failure(404, resourceMissing, ""), order.KindRefused},
		"400, no such payment method":  {"prepare confirm", failure(400, resourceMissing, ""), order.KindRefused},
		"400 with the intent": {
			"confirm", failure(400, `"code":"amount_too_small"`, waiting), order.KindRefused,
		},
		"402 without an intent":   {"prepare confirm", failure(402, cardDeclined, ""), order.KindRefused},
		"402 with another intent": {"confirm", failure(402, cardDeclined, another), order.KindRefused},
		"402 with the intent's id only": {
			"confirm", failure(402, cardDeclined, `"pi_3Pretend"`), order.KindRefused,
		},
		"402 about our account": {
			"confirm", failure(402, `"code":"testmode_charges_only"`, waiting), order.KindMisconfigured,
		},

		// Stripe gave us the id that is read, so the order cannot be wrong.
		"400 of a read":          {"read", failure(400, invalidRequest, ""), order.KindMisconfigured},
		"400 of a read, missing": {"read", failure(400, resourceMissing, ""), order.KindMisconfigured},
		"400 of a read, parameter": {
			"read", failure(400, `"code":"parameter_unknown"`, ""), order.KindMisconfigured,
		},
		"400 of a read, idempotency key": {"read", failure(400, keyMismatch, ""), order.KindMisconfigured},
		"402 of a read":                  {"read", failure(402, cardDeclined, ""), order.KindMisconfigured},
		"405 of a read":                  {"read", failure(405, invalidRequest, ""), order.KindMisconfigured},
		"410 of a read":                  {"read", failure(410, invalidRequest, ""), order.KindMisconfigured},
	}
	for code := range strings.FieldsSeq(codesMisconfigured) {
		for _, status := range []int{400, 401, 403, 404} {
			tests[strconv.Itoa(status)+" "+code] = row{
				all, failure(status, invalidRequest+`,"code":"`+code+`"`, ""), order.KindMisconfigured,
			}
		}
	}
	for name, tt := range tests {
		for method := range strings.FieldsSeq(tt.methods) {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				got, err := methods(t, serving(t, tt.response.ServeHTTP))[method](t.Context())
				if kind := kindOf(t, err); kind != tt.want || got != (order.Intent{}) {
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
		response response
		want     string
	}{
		{response{502, false, "<html>"}, "unknown: read intent pi_3Pretend: unreadable response"},
		{ok("<html>"), "unknown: read intent pi_3Pretend: unreadable response (request req_pretend)"},
		{ok("{}"), "unknown: read intent pi_3Pretend: response without a PaymentIntent (request req_pretend)"},
		{
			ok(`{"id":"pi_4","status":"succeeded"}`),
			"unknown: read intent pi_3Pretend: response with another PaymentIntent (request req_pretend)",
		},
		{
			ok(intentJSON("requires_capture", null)),
			`unknown: read intent pi_3Pretend: unknown PaymentIntent status requires_capture (request req_pretend)`,
		},
		{
			failure(404, resourceMissing, ""),
			"misconfigured: read intent pi_3Pretend: stripe: 404 resource_missing (request req_pretend)",
		},
		{
			failure(402, cardDeclined+`,"param":"automatic_payment_methods[enabled]"`, ""),
			"misconfigured: read intent pi_3Pretend: stripe: 402 card_declined (generic_decline), " +
				"param automatic_payment_methods[enabled] (request req_pretend)",
		},
		{
			failure(400, `"code":"No such","param":"`+strings.Repeat("a", 81)+`"`, ""),
			"misconfigured: read intent pi_3Pretend: stripe: 400 [withheld], param [withheld] (request req_pretend)",
		},
		{failure(400, `"param":""`, ""), "misconfigured: read intent pi_3Pretend: stripe: 400 (request req_pretend)"},
		{
			failure(500, apiError, ""),
			"unknown: read intent pi_3Pretend: stripe: 500 api_error (request req_pretend)",
		},
	} {
		_, err := methods(t, responding(t, tt.response))["read"](t.Context())
		if got := err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestConfirmReadsTheIntentAgainAfterAReplay(t *testing.T) {
	t.Parallel()
	tests := map[string]response{
		"402":                        replay(402, errorWithIntent(cardDeclined, declinedIntent())),
		"400 with a declined intent": replay(400, errorWithIntent(unexpectedState, declinedIntent())),
		"400 with a canceled intent": replay(400, errorWithIntent(unexpectedState, intentJSON("canceled", null))),
		"200 with processing":        replay(200, intentJSON("processing", null)),
	}
	for name, replayed := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serving(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet { // the customer has paid since
					ok(intentJSON("succeeded", declinedError)).ServeHTTP(w, r)
					return
				}
				replayed.ServeHTTP(w, r)
			})
			got, err := methods(t, p)["confirm"](t.Context())
			if err != nil || got.State != order.Succeeded {
				t.Errorf("got %v, %v, want the paid intent", got, err)
			}
		})
	}
}

// TestErrorsContainNoSecrets responds with everything that must not reach a log, wherever
// Stripe or a proxy might put it.
func TestErrorsContainNoSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{
		testKey, "sk_test_*******canary", "rk_live_canary", "pk_test_canary",
		"cus_canary", "cus_pretend", "pm_canary", "pm_card_visa",
		"card_canary", "card_1Canary", "src_1Canary", "ba_1Canary", "tok_canary", "btok_1Canary", "seti_1Canary_secret_canary",
		"pi_3Pretend_secret_canary", "whsec_Canary1", "ephkey_1Canary",
	}
	all := strings.Join(secrets, "', '")
	message := `"message":"No such thing: '` + all + `'.","param":"` + all + `"`
	intent := intentJSON("requires_capture", declinedError)
	responses := []response{
		{200, false, intent},
		{200, false, all},
		{200, false, `{"id":"pi_3Pretend","status":"` + all + `"}`},
		{302, false, intent},
		{400, false, intent},
		{400, false, all},
		{400, false, `{"error":{` + message + `,"type":"idempotency_error","payment_method":{"id":"pm_canary"}}}`},
		{401, false, `{"error":{` + message + `}}`},
		{402, false, `{"error":{` + message + `,"payment_intent":` + intent + `}}`},
		{404, false, `{"error":{` + message + `,"source":{"id":"card_canary"}}}`},
		{500, true, `{"error":{` + message + `}}`},
		{502, false, "<html>" + all},
	}
	secrets = append(secrets, "last4", "No such thing")
	for _, res := range responses {
		for name, call := range methods(t, serving(t, res.ServeHTTP)) {
			_, err := call(t.Context())
			if err == nil {
				t.Errorf("%s: %d %.80s is not an error", name, res.status, res.body)
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
		errors.New(`malformed HTTP response "john_smith"`):                       "unreadable response",
		textproto.ProtocolError("malformed MIME header line: Bearer " + testKey): "unreadable response",
		refused:          "dial tcp: connection refused",
		io.EOF:           "EOF",
		context.Canceled: "context canceled",
		&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}: "tls: failed to verify certificate: " +
			"x509: certificate signed by unknown authority",
	} {
		p := newPayments(t, "https://proxy.test/john", roundTripFunc(func(*http.Request) (*http.Response, error) {
			return nil, cause
		}))
		_, err := p.Read(t.Context(), intentID)
		if got, want := err.Error(), "unknown: read intent pi_3Pretend: "+want; got != want || !errors.Is(err, cause) {
			t.Errorf("got %q, want %q that wraps its cause", got, want)
		}
	}
}

// TestNothingIsPrinted runs this program again, because stripe-go can print whole
// responses to the outputs of the process.
func TestNothingIsPrinted(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestAResponse|TestErrorsContain)")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "canary") || strings.Contains(string(out), "[ERROR]") {
		t.Errorf("error %v, printed:\n%s", err, out)
	}
}

// FuzzResponse holds for any bytes: no panic, no unusable intent, no secret in an error.
func FuzzResponse(f *testing.F) {
	for _, seed := range []response{
		{200, false, intentJSON("succeeded", null)},
		{402, false, errorWithIntent(cardDeclined, intentJSON("requires_payment_method", declinedError))},
		{400, true, errorWithIntent(unexpectedState, intentJSON("succeeded", null))},
		{409, false, errorJSON(keyInUse)},
		{500, true, errorJSON(apiError)},
		{404, false, errorJSON(resourceMissing)},
		{200, false, "<html>"},
	} {
		f.Add(seed.status, seed.replayed, seed.body)
	}
	f.Fuzz(func(t *testing.T, status int, replayed bool, body string) {
		for name, call := range methods(t, responding(t, response{status, replayed, body})) {
			got, err := call(t.Context())
			switch kind := kindOf(t, err); {
			case err == nil && (got.ID == "" || got.State == "" || name != "prepare" && got.ID != intentID):
				t.Errorf("%s: got the intent %+v", name, got)
			case err != nil && (kind == "" || got != (order.Intent{})):
				t.Errorf("%s: got %+v and %v", name, got, err)
			case err != nil && strings.Contains(err.Error(), testKey):
				t.Errorf("%s: the key is in %q", name, err)
			}
		}
	})
}
