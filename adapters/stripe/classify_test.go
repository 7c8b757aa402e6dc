package stripe_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// The error codes that are not about the order (docs.stripe.com/error-codes), with a 400,
// and with a 402 without an intent. Every other code of stripe-go's refuses the order.
const (
	// Our key, account, mode or integration is wrong. The order waits until it is fixed.
	codesMisconfigured = `
		api_key_expired platform_api_key_expired secret_key_required account_invalid
		platform_account_required not_allowed_on_standard_account livemode_mismatch
		testmode_charges_only payment_method_invalid_parameter_testmode payment_method_unactivated
		sepa_unsupported_account application_fees_not_allowed progressive_onboarding_limit_exceeded
		tls_version_unsupported alipay_upgrade_required bitcoin_upgrade_required parameter_unknown
		parameter_missing parameters_exclusive parameter_invalid_empty parameter_invalid_string_blank
		parameter_invalid_string_empty`

	// A retry may succeed. Nothing has happened.
	codesUnavailable = `
		rate_limit lock_timeout idempotency_key_in_use token_in_use payment_method_not_available
		acss_debit_session_incomplete charge_exceeds_source_limit`

	// A retry may succeed. Money may have moved.
	codesUnknown = `processing_error payment_method_provider_timeout`

	// Codes that are newer than stripe-go v76
	// (docs.stripe.com/changelog/acacia/2024-09-30/error-code-transaction-limit).
	codesMisconfiguredSince = `charge_exceeds_transaction_limit`
)

// kindByCode returns the kind of every code in stripe-go's source, and of newer ones.
func kindByCode(t *testing.T) map[string]order.ErrorKind {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/stripe/stripe-go/v76").Output()
	rigtest.Must(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "error.go"))
	rigtest.Must(t, err)
	all := map[string]order.ErrorKind{}
	for _, code := range regexp.MustCompile(`(?m)^\tErrorCode\w+ +ErrorCode += "(\w+)"$`).FindAllSubmatch(source, -1) {
		all[string(code[1])] = order.KindRefused
	}
	if len(all) != 167 {
		t.Errorf("stripe-go has %d codes, want 167: find out what each new one means", len(all))
	}
	all[codesMisconfiguredSince] = order.KindRefused
	for codes, kind := range map[string]order.ErrorKind{
		codesMisconfigured + " " + codesMisconfiguredSince: order.KindMisconfigured,
		codesUnavailable: order.KindUnavailable, codesUnknown: order.KindUnknown,
	} {
		for code := range strings.FieldsSeq(codes) {
			if all[code] == "" {
				t.Errorf("stripe-go has no code %q", code)
			}
			all[code] = kind
		}
	}
	return all
}

func TestEveryErrorCodeHasAKind(t *testing.T) {
	t.Parallel()
	type row struct {
		methods  string
		response rigtest.Response
		want     order.ErrorKind
	}
	for code, want := range kindByCode(t) {
		rest := rigtest.InvalidRequest + `,"code":"` + code + `"`
		tests := []row{
			{"prepare confirm", rigtest.Failure(400, rest, ""), want},
			{"prepare confirm", rigtest.Failure(402, rest, ""), want},
			{"read", rigtest.Failure(400, rest, ""), kindOfRead(want)},
			{all, rigtest.Failure(401, rest, ""), order.KindMisconfigured},
			{all, rigtest.Failure(403, rest, ""), order.KindMisconfigured},
			{all, rigtest.Failure(429, rest, ""), order.KindUnavailable},
			{all, rigtest.Failure(500, rest, ""), order.KindUnknown},
			{"prepare confirm", rigtest.Replay(400, rigtest.Error(rest)), order.KindReplayed},
		}
		if want != order.KindRefused { // an unconfirmed intent does not hide the error
			unconfirmed := rigtest.Failure(402, rest, rigtest.Intent("requires_confirmation", rigtest.Null))
			tests = append(tests, row{"prepare confirm", unconfirmed, want})
		}
		for _, tt := range tests {
			for call := range strings.FieldsSeq(tt.methods) {
				got, err := rigtest.Methods(t, rigtest.Responding(t, tt.response))[call](t.Context())
				if kind := rigtest.KindOf(t, err); kind != tt.want || got != (order.Intent{}) || rigtest.PaymentError(t, err).Code != code {
					t.Errorf("%s, %d, %s: got %q (%v), want %q", code, tt.response.Status, call, kind, err, tt.want)
				}
			}
		}
	}
}

// kindOfRead is the kind of a Read's error: Stripe gave us the id, so the order cannot be
// wrong.
func kindOfRead(k order.ErrorKind) order.ErrorKind {
	if k == order.KindRefused {
		return order.KindMisconfigured
	}
	return k
}

// A failed attempt takes the payment method off the intent, and then no attempt can
// confirm it, whatever the error code is. So the intent settles the order.
func TestAnIntentThatShowsAnOutcomeWinsOverEveryErrorCode(t *testing.T) {
	t.Parallel()
	for code, kind := range kindByCode(t) {
		rest := `"type":"card_error","code":"` + code + `"`
		own := `{"type":"card_error","code":"` + code + `","message":"m"}`
		type row struct {
			intent string
			want   order.Failure
		}
		tests := map[string]row{
			"its last error": {rigtest.Intent("requires_payment_method", own), order.Failure{Code: code}},
			"another last error": {
				rigtest.Intent("requires_payment_method", rigtest.DeclinedError),
				order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"},
			},
			"its cancellation": {rigtest.Intent("canceled", rigtest.Null), order.Failure{Code: code}},
		}
		if kind == order.KindMisconfigured { // the outer error is about the account, and not about the payment
			tests["its cancellation"] = row{rigtest.Intent("canceled", rigtest.Null), order.Failure{}}
		} else {
			tests["the outer error"] = row{rigtest.Intent("requires_payment_method", rigtest.Null), order.Failure{Code: code}}
		}
		for name, tt := range tests {
			p := rigtest.Responding(t, rigtest.Failure(402, rest, tt.intent))
			got, err := rigtest.Methods(t, p)["confirm"](t.Context())
			if _, settled := order.OutcomeOf(got); err != nil || !settled || got.Failure != tt.want {
				t.Errorf("%s, %s: got %+v, %v, want it settled with %+v", code, name, got, err, tt.want)
			}
		}
	}
	p := rigtest.Responding(t, rigtest.Failure(402, `"code":"testmode_charges_only"`, rigtest.Intent("requires_payment_method", rigtest.Null)))
	if got, err := rigtest.Methods(t, p)["confirm"](t.Context()); rigtest.KindOf(t, err) != order.KindMisconfigured {
		t.Errorf("an intent that has not failed: got %+v, %v, want %s", got, err, order.KindMisconfigured)
	}
}

// A missing intent is in another account or mode. A missing customer or payment method is
// the order's.
func TestAMissingResourceIsRefusedUnlessItIsTheIntent(t *testing.T) {
	t.Parallel()
	for param, want := range map[string]order.ErrorKind{
		`"customer"`: order.KindRefused, `"payment_method"`: order.KindRefused,
		`"intent"`: order.KindMisconfigured, `"payment_intent"`: order.KindMisconfigured,
		`""`: order.KindMisconfigured, `null`: order.KindMisconfigured,
	} {
		for status, want := range map[int]order.ErrorKind{404: want, 400: order.KindRefused} {
			res := rigtest.Failure(status, rigtest.ResourceMissing+`,"param":`+param, "")
			for _, name := range []string{"confirm", "read"} {
				want := want
				if name == "read" {
					want = order.KindMisconfigured
				}
				if _, err := rigtest.Methods(t, rigtest.Responding(t, res))[name](t.Context()); rigtest.KindOf(t, err) != want {
					t.Errorf("%s, %d with param %s: got %v, want %s", name, status, param, err, want)
				}
			}
		}
	}
}
