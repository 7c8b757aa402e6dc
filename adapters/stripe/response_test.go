package stripe_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

const all = "prepare confirm read"

// call returns what a method makes of a response: the kind of the error, or the intent's
// state and failure.
func call(t *testing.T, method string, r stripe.Response) (text string, err error) {
	t.Helper()
	i, err := rigtest.Methods(t, rigtest.Responding(r))[method](t.Context())
	if err == nil {
		return strings.TrimSpace(fmt.Sprint(i.State, " ", i.Failure.Code, " ", i.Failure.DeclineCode)), nil
	}
	if i != (order.Intent{}) || strings.Contains(err.Error(), "nil") {
		t.Errorf("got %+v, %v, want no intent, and the cause", i, err)
	}
	return string(rigtest.KindOf(t, err)), err
}

func TestAResponse(t *testing.T) {
	const (
		waits   = "requires_confirmation"
		funds   = "requires_payment_method card_declined insufficient_funds"
		generic = "requires_payment_method card_declined generic_decline"
		auth    = "requires_payment_method authentication_required authentication_required"

		unavailable, unknown, misconfigured = "unavailable", "unknown", "misconfigured"
		replayed, keyReused, refused        = "replayed", "key_reused", "refused"

		method, declined, null      = "requires_payment_method", rigtest.CardDeclined, rigtest.Null
		invalid, missing, apiError  = rigtest.InvalidRequest, rigtest.ResourceMissing, rigtest.APIError
		unexpected, writes, confirm = rigtest.UnexpectedState, "prepare confirm", "confirm"
	)
	ok, raw, fails, failsWith := rigtest.OK, rigtest.Raw, rigtest.Failure, rigtest.FailureWith
	replay, intent, with := rigtest.Replay, rigtest.Intent, rigtest.IntentWith
	authError := `{"type":"card_error","code":"authentication_required","decline_code":"authentication_required"}`
	paid, waiting, needsMethod := intent("succeeded"), intent("requires_confirmation"), intent(method)
	another := strings.Replace(paid, "pi_3Pretend", "pi_4", 1)
	for name, tt := range map[string]struct {
		methods  string
		response stripe.Response
		want     string
	}{
		"a new intent":                   {all, ok(waiting), waits},
		"a paid intent":                  {all, ok(paid), "succeeded"},
		"a processing intent":            {all, ok(intent("processing")), "processing"},
		"an intent that requires action": {all, ok(intent("requires_action")), "requires_action"},
		"a canceled intent":              {all, ok(intent("canceled")), "canceled"},
		"a declined intent that is read": {"read", ok(rigtest.DeclinedIntent()), funds},
		"a replayed success":             {confirm, replay(ok(paid)), "succeeded"},
		"a last error without a code":    {all, ok(with(method, `{"type":"api_error"}`, null)), "requires_payment_method api_error"},

		"a cleared error, with the charge":   {all, ok(with(method, null, rigtest.ExpandedCharge)), auth},
		"a cleared error, with empty charge": {all, ok(with(method, null, `{"outcome":null}`)), "requires_payment_method unexplained"},
		"a last error wins over the charge":  {all, ok(with(method, rigtest.DeclinedError, rigtest.Charge)), funds},

		"402 with a declined intent":       {all, failsWith(402, declined, rigtest.DeclinedIntent()), funds},
		"402 that requires authentication": {confirm, failsWith(402, declined, with(method, authError, null)), auth},
		"402 that alone shows the decline": {confirm, failsWith(402, declined, needsMethod), generic},
		"402 without a type and a code":    {confirm, failsWith(402, `"param":""`, needsMethod), "requires_payment_method unexplained"},
		"402 without an outcome":           {confirm, failsWith(402, declined, waiting), waits + " card_declined generic_decline"},
		"402 wins over the charge":         {confirm, failsWith(402, declined, with(method, null, rigtest.Charge)), generic},
		"400 because the intent is paid":   {confirm, failsWith(400, unexpected, paid), "succeeded"},
		"400 because it is declined":       {confirm, failsWith(400, unexpected, rigtest.DeclinedIntent()), funds},
		"400 is no failure of a payment":   {confirm, failsWith(400, unexpected, needsMethod), "requires_payment_method"},
		"replayed 400 because it is paid":  {confirm, replay(failsWith(400, unexpected, paid)), "succeeded"},

		"409, the key is in use":         {all, fails(409, rigtest.KeyInUse), unavailable},
		"409":                            {all, fails(409, invalid), unavailable},
		"429":                            {all, fails(429, rigtest.RateLimit), unavailable},
		"503":                            {all, fails(503, apiError), unavailable},
		"a server error":                 {all, fails(500, apiError), unknown},
		"a server error with the intent": {confirm, failsWith(500, apiError, paid), unknown},
		"424":                            {all, fails(424, apiError), unknown},
		"a proxy's 502 in HTML":          {all, raw(502, "<html>Bad Gateway</html>"), unknown},
		"a body that is not JSON":        {all, ok("ok"), unknown},
		"a truncated intent":             {all, ok(paid[:len(paid)/2]), unknown},
		"trailing data":                  {all, ok(paid + paid), unknown},
		"a string for an amount":         {all, ok(strings.Replace(paid, "2500", `"2500"`, 1)), unknown},
		"an intent without an id":        {all, ok(strings.Replace(paid, `"pi_3Pretend"`, `""`, 1)), unknown},
		"another intent":                 {"confirm read", ok(another), unknown},
		"an unknown status":              {all, ok(intent("requires_capture")), unknown},
		"a redirect":                     {all, raw(302, paid), unknown},
		"400 without an error":           {all, raw(400, paid), unknown},
		"400 with a string as error":     {all, raw(400, `{"error":"no"}`), unknown},
		"402 with a number as intent":    {all, failsWith(402, declined, "5"), unknown},
		"replayed 500":                   {writes, replay(fails(500, apiError)), replayed},
		"replayed 400":                   {writes, replay(fails(400, invalid)), replayed},
		"replayed 402 without an intent": {writes, replay(fails(402, declined)), replayed},
		"replayed 402 of a creation":     {"prepare", replay(failsWith(402, declined, rigtest.DeclinedIntent())), replayed},
		"400, the key was used before":   {writes, fails(400, rigtest.KeyMismatch), keyReused},
		"400 with the intent":            {confirm, failsWith(400, `"code":"amount_too_small"`, waiting), refused},
		"402 without an intent":          {writes, fails(402, declined), refused},
		"402 with another intent":        {confirm, failsWith(402, declined, another), refused},
		"402 with the intent's id only":  {confirm, failsWith(402, declined, `"pi_3Pretend"`), refused},
		"402 of the account":             {confirm, failsWith(402, `"code":"testmode_charges_only"`, needsMethod), misconfigured},

		// A missing intent is in another account or mode. A missing customer or payment method
		// is the order's.
		"404 of the intent":   {"confirm read", fails(404, missing), misconfigured},
		"404 by its name":     {confirm, fails(404, missing+`,"param":"intent"`), misconfigured},
		"404 by another name": {confirm, fails(404, missing+`,"param":"payment_intent"`), misconfigured},
		"404 of the URL":      {all, fails(404, invalid), misconfigured},
		"404 of the customer": {confirm, fails(404, missing+`,"param":"customer"`), refused},
		"404 of the method":   {confirm, fails(404, missing+`,"param":"payment_method"`), refused},
		"404 of a creation":   {"prepare", fails(404, missing), refused},
		"400 of the intent":   {confirm, fails(400, missing+`,"param":"intent"`), refused},

		// Stripe gave us the id that is read, so the order cannot be wrong.
		"404 of a read": {"read", fails(404, missing+`,"param":"customer"`), misconfigured},
		"400 of a read": {"read", fails(400, invalid), misconfigured},
		"402 of a read": {"read", fails(402, declined), misconfigured},
	} {
		for method := range strings.FieldsSeq(tt.methods) {
			t.Run(name+"/"+method, func(t *testing.T) {
				if got, err := call(t, method, tt.response); got != tt.want {
					t.Errorf("got %q (%v), want %q", got, err, tt.want)
				}
			})
		}
	}
}

// kindByCode returns the kind of every code in stripe-go's source, and of a newer one
// (docs.stripe.com/changelog/acacia/2024-09-30/error-code-transaction-limit). A code that
// is not listed here is about the order and refuses it (docs.stripe.com/error-codes).
func kindByCode(t *testing.T) map[string]order.ErrorKind {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/stripe/stripe-go/v76").Output()
	rigtest.Must(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "error.go"))
	rigtest.Must(t, err)
	kinds := map[string]order.ErrorKind{"charge_exceeds_transaction_limit": order.KindRefused}
	for _, code := range regexp.MustCompile(`(?m)^\tErrorCode\w+ +ErrorCode += "(\w+)"$`).FindAllSubmatch(source, -1) {
		kinds[string(code[1])] = order.KindRefused
	}
	if len(kinds) != 168 {
		t.Errorf("stripe-go has %d codes, want 167: find out what each new one means", len(kinds)-1)
	}
	for kind, codes := range map[order.ErrorKind]string{
		// Our key, account, mode or integration is wrong. The order waits until it is fixed.
		order.KindMisconfigured: `api_key_expired platform_api_key_expired secret_key_required account_invalid
			platform_account_required not_allowed_on_standard_account livemode_mismatch
			testmode_charges_only payment_method_invalid_parameter_testmode payment_method_unactivated
			sepa_unsupported_account application_fees_not_allowed progressive_onboarding_limit_exceeded
			tls_version_unsupported alipay_upgrade_required bitcoin_upgrade_required parameter_unknown
			parameter_missing parameters_exclusive parameter_invalid_empty parameter_invalid_string_blank
			parameter_invalid_string_empty charge_exceeds_transaction_limit`,
		// A retry may succeed. Nothing has happened.
		order.KindUnavailable: `rate_limit lock_timeout idempotency_key_in_use token_in_use payment_method_not_available
			acss_debit_session_incomplete charge_exceeds_source_limit`,
		// A retry may succeed. Money may have moved.
		order.KindUnknown: `processing_error payment_method_provider_timeout`,
	} {
		for code := range strings.FieldsSeq(codes) {
			if kinds[code] == "" {
				t.Errorf("stripe-go has no code %q", code)
			}
			kinds[code] = kind
		}
	}
	return kinds
}

// A code decides what an error means, unless its intent shows an outcome: a failed
// attempt takes the payment method off the intent, and then no attempt can confirm it. An
// error about the account says nothing about the payment.
func TestEveryErrorCodeHasAKind(t *testing.T) {
	for code, kind := range kindByCode(t) {
		fields := rigtest.InvalidRequest + `,"code":"` + code + `"`
		of := func(status int) stripe.Response { return rigtest.Failure(status, fields) }
		with := func(intent string) stripe.Response { return rigtest.FailureWith(402, fields, intent) }
		lastError := rigtest.IntentWith("requires_payment_method", `{"code":"`+code+`"}`, rigtest.Null)
		want, ofRead, canceled, unconfirmed := string(kind), string(kind), "canceled "+code, string(kind)
		switch kind { //nolint:exhaustive // the others have no case of their own
		case order.KindRefused: // only then an unconfirmed intent hides the error
			ofRead, unconfirmed = string(order.KindMisconfigured), "requires_confirmation "+code
		case order.KindMisconfigured:
			canceled = "canceled"
		}
		for _, tt := range []struct {
			methods  string
			response stripe.Response
			want     string
		}{
			{"prepare confirm", of(400), want},
			{"prepare confirm", of(402), want},
			{"read", of(400), ofRead},
			{all, of(401), "misconfigured"},
			{all, of(429), "unavailable"},
			{all, of(500), "unknown"},
			{"prepare confirm", rigtest.Replay(of(400)), "replayed"},
			{"confirm", with(lastError), "requires_payment_method " + code},
			{"confirm", with(rigtest.DeclinedIntent()), "requires_payment_method card_declined insufficient_funds"},
			{"confirm", with(rigtest.Intent("canceled")), canceled},
			{"confirm", with(rigtest.Intent("requires_confirmation")), unconfirmed},
		} {
			for method := range strings.FieldsSeq(tt.methods) {
				got, err := call(t, method, tt.response)
				if got != tt.want || err != nil && order.CodeOf(err, "none") != code {
					t.Errorf("%s, %d, %s: got %q (%v), want %q", code, tt.response.Status, method, got, err, tt.want)
				}
			}
		}
	}
}

func TestAnErrorNamesTheCallItsCauseAndTheRequest(t *testing.T) {
	const unknown, misconfigured = "unknown: read intent pi_3Pretend: ", "misconfigured: read intent pi_3Pretend: "
	const request, enabled = " (request req_pretend)", "automatic_payment_methods[enabled]"
	failure := rigtest.Failure
	for want, response := range map[string]stripe.Response{
		unknown + "unreadable response":                                      rigtest.Raw(502, "<html>"),
		unknown + "unreadable response" + request:                            rigtest.OK("<html>"),
		unknown + "response without a PaymentIntent" + request:               rigtest.OK("{}"),
		unknown + "response with another PaymentIntent" + request:            rigtest.OK(`{"id":"pi_4","status":"canceled"}`),
		unknown + "unknown PaymentIntent status requires_capture" + request:  rigtest.OK(rigtest.Intent("requires_capture")),
		unknown + "stripe: 500 api_error" + request:                          failure(500, rigtest.APIError),
		misconfigured + "stripe: 400" + request:                              failure(400, `"param":""`),
		misconfigured + "stripe: 401 invalid_request_error" + request:        failure(401, rigtest.InvalidRequest),
		misconfigured + "stripe: 404 resource_missing" + request:             failure(404, rigtest.ResourceMissing),
		misconfigured + "stripe: 400 [withheld], param [withheld]" + request: failure(400, `"code":"No such","param":"A"`),
		misconfigured + "stripe: 400 idempotency_error, param [withheld]" + request: failure(
			400, rigtest.KeyMismatch+`,"param":"`+strings.Repeat("a", 81)+`"`),
		misconfigured + "stripe: 402 card_declined (generic_decline), param " + enabled + request: failure(
			402, rigtest.CardDeclined+`,"param":"`+enabled+`"`),
	} {
		if _, err := call(t, "read", response); err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// TestErrorsContainNoSecrets responds with what must not reach a log, wherever Stripe or
// a proxy might put it.
func TestErrorsContainNoSecrets(t *testing.T) {
	const secrets = "sk_test_*******canary cus_canary', 'card_1Canary pi_3Pretend_secret_canary"
	message := `"message":"No such thing: '` + secrets + `'.","param":"` + secrets + `"`
	intent := rigtest.IntentWith("requires_capture", rigtest.DeclinedError, rigtest.Null)
	for _, r := range []stripe.Response{
		rigtest.OK(intent),
		rigtest.OK(secrets),
		rigtest.OK(`{"id":"pi_3Pretend","status":"` + secrets + `"}`),
		rigtest.Raw(302, intent),
		rigtest.Raw(400, intent),
		rigtest.Raw(400, secrets),
		rigtest.Failure(400, message+`,"type":"idempotency_error","payment_method":{"id":"pm_canary"}`),
		rigtest.Failure(401, message),
		rigtest.FailureWith(402, message, intent),
		rigtest.Failure(404, message+`,"source":{"id":"card_canary"}`),
		rigtest.Replay(rigtest.Failure(500, message)),
		rigtest.Raw(502, "<html>"+secrets),
	} {
		for method := range strings.FieldsSeq(all) {
			_, err := call(t, method, r)
			if err == nil || regexp.MustCompile(`anary|last4|No such thing|`+rigtest.Key).MatchString(err.Error()) {
				t.Errorf("%s: %d %.80s: got %v, want an error without secrets", method, r.Status, r.Body, err)
			}
		}
	}
}

// FuzzResponse holds for any bytes: no panic, no unusable intent, no secret in an error.
func FuzzResponse(f *testing.F) {
	for _, seed := range []stripe.Response{
		rigtest.OK(rigtest.Intent("succeeded")),
		rigtest.FailureWith(402, rigtest.CardDeclined, rigtest.DeclinedIntent()),
		rigtest.Replay(rigtest.FailureWith(400, rigtest.UnexpectedState, rigtest.Intent("succeeded"))),
		rigtest.Failure(409, rigtest.KeyInUse),
		rigtest.Replay(rigtest.Failure(500, rigtest.APIError)),
		rigtest.OK("<html>"),
	} {
		f.Add(seed.Status, seed.Header.Get("Idempotent-Replayed") != "", string(seed.Body))
	}
	f.Fuzz(func(t *testing.T, status int, replayed bool, body string) {
		r := rigtest.Raw(status, body)
		if replayed {
			r = rigtest.Replay(r)
		}
		for name, call := range rigtest.Methods(t, rigtest.Responding(r)) {
			got, err := call(t.Context())
			switch kind := rigtest.KindOf(t, err); {
			case err == nil && (got.ID == "" || got.State == "" || name != "prepare" && got.ID != rigtest.IntentID):
				t.Errorf("%s: got the intent %+v", name, got)
			case err != nil && (kind == "" || got != (order.Intent{}) || strings.Contains(err.Error(), rigtest.Key)):
				t.Errorf("%s: got %+v and %v", name, got, err)
			}
		}
	})
}
