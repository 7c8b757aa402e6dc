package stripe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// The kind of error for each error code of stripe-go (docs.stripe.com/error-codes), with
// a 400, and with a 402 without an intent.
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

	// The bank, Stripe or the customer declines. These are 402s with the intent, which
	// settles the order.
	codesDeclined = `
		account_closed authentication_required bank_account_declined bank_account_restricted
		bank_account_unusable bank_account_unverified bank_account_verification_failed
		billing_invalid_mandate card_decline_rate_limit_exceeded card_declined debit_not_authorized
		expired_card incorrect_address incorrect_cvc incorrect_number incorrect_zip insufficient_funds
		invalid_card_type invalid_cvc invalid_expiry_month invalid_expiry_year invalid_number no_account
		payment_intent_action_required payment_intent_authentication_failure
		payment_intent_mandate_invalid payment_intent_payment_attempt_expired
		payment_intent_payment_attempt_failed payment_method_bank_account_blocked
		payment_method_customer_decline payment_method_provider_decline postal_code_invalid
		refer_to_customer`

	// The order is invalid: its amount, customer, payment method, or the status of its
	// intent.
	codesRefused = `
		account_number_invalid amount_too_large amount_too_small bank_account_bad_routing_numbers
		charge_invalid_parameter clearing_code_unsupported country_code_invalid email_invalid
		intent_invalid_state intent_verification_method_missing invalid_characters invalid_charge_amount
		invalid_source_usage missing parameter_invalid_integer
		payment_intent_incompatible_payment_method payment_intent_invalid_parameter
		payment_intent_unexpected_state payment_method_billing_details_address_missing
		payment_method_currency_mismatch payment_method_invalid_parameter
		payment_method_unexpected_state payment_method_unsupported_type resource_missing
		routing_number_invalid token_already_used token_card_network_invalid url_invalid`

	// Requests that the adapter does not send: payouts, refunds, captures, invoices,
	// setup, tax, Connect, Issuing, Terminal and others.
	codesOfOtherRequests = `
		account_country_invalid_address account_error_country_change_requires_additional_steps
		account_information_mismatch balance_insufficient balance_invalid_parameter bank_account_exists
		capture_charge_authorization_expired capture_unauthorized_payment
		cardholder_phone_number_required charge_already_captured charge_already_refunded charge_disputed
		charge_expired_for_capture charge_not_refundable country_unsupported coupon_expired
		customer_max_payment_methods customer_max_subscriptions customer_tax_location_invalid
		financial_connections_account_inactive financial_connections_no_successful_transaction_refresh
		forwarding_api_inactive forwarding_api_invalid_parameter
		forwarding_api_upstream_connection_error forwarding_api_upstream_connection_timeout
		instant_payouts_config_disabled instant_payouts_currency_disabled instant_payouts_limit_exceeded
		instant_payouts_unsupported invalid_tax_location invoice_no_customer_line_items
		invoice_no_payment_method_types invoice_no_subscription_line_items invoice_not_editable
		invoice_on_behalf_of_not_editable invoice_payment_intent_requires_action invoice_upcoming_none
		out_of_inventory ownership_declaration_not_allowed
		payment_intent_konbini_rejected_confirmation_number payment_method_bank_account_already_verified
		payment_method_configuration_failures payment_method_microdeposit_failed
		payment_method_microdeposit_verification_amounts_invalid
		payment_method_microdeposit_verification_amounts_mismatch
		payment_method_microdeposit_verification_attempts_exceeded
		payment_method_microdeposit_verification_descriptor_code_mismatch
		payment_method_microdeposit_verification_timeout payout_reconciliation_not_ready
		payouts_limit_exceeded payouts_not_allowed product_inactive refund_disputed_payment
		resource_already_exists return_intent_already_processed setup_attempt_failed
		setup_intent_authentication_failure setup_intent_invalid_parameter setup_intent_mandate_invalid
		setup_intent_setup_attempt_expired setup_intent_unexpected_state shipping_calculation_failed
		sku_inactive state_unsupported status_transition_invalid stripe_tax_inactive tax_id_invalid
		taxes_calculation_failed terminal_location_country_unsupported terminal_reader_busy
		terminal_reader_hardware_fault terminal_reader_offline terminal_reader_timeout
		transfer_source_balance_parameters_mismatch transfers_not_allowed`

	// Codes that are newer than stripe-go v76
	// (docs.stripe.com/changelog/acacia/2024-09-30/error-code-transaction-limit).
	codesMisconfiguredSince = `charge_exceeds_transaction_limit`
)

func kindByCode() map[string]order.ErrorKind {
	all := map[string]order.ErrorKind{}
	for codes, kind := range map[string]order.ErrorKind{
		codesMisconfigured: order.KindMisconfigured, codesMisconfiguredSince: order.KindMisconfigured,
		codesUnavailable: order.KindUnavailable, codesUnknown: order.KindUnknown,
		codesDeclined: order.KindRefused, codesRefused: order.KindRefused, codesOfOtherRequests: order.KindRefused,
	} {
		for code := range strings.FieldsSeq(codes) {
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
	for code, want := range kindByCode() {
		rest := rigtest.InvalidRequest + `,"code":"` + code + `"`
		tests := map[string]row{
			"with a 400":                   {"prepare confirm", rigtest.Failure(400, rest, ""), want},
			"with a 402 without an intent": {"prepare confirm", rigtest.Failure(402, rest, ""), want},
			"of a read":                    {"read", rigtest.Failure(400, rest, ""), kindOfRead(want)},
			"with a 401":                   {all, rigtest.Failure(401, rest, ""), order.KindMisconfigured},
			"with a 403":                   {all, rigtest.Failure(403, rest, ""), order.KindMisconfigured},
			"with a 429":                   {all, rigtest.Failure(429, rest, ""), order.KindUnavailable},
			"with a 500":                   {all, rigtest.Failure(500, rest, ""), order.KindUnknown},
			"replayed":                     {"prepare confirm", rigtest.Replay(400, rigtest.Error(rest)), order.KindReplayed},
		}
		if want != order.KindRefused { // an unconfirmed intent does not hide the error
			unconfirmed := rigtest.Failure(402, rest, rigtest.Intent("requires_confirmation", rigtest.Null))
			tests["with a 402 and an unconfirmed intent"] = row{"prepare confirm", unconfirmed, want}
		}
		for name, tt := range tests {
			for call := range strings.FieldsSeq(tt.methods) {
				got, err := rigtest.Methods(t, rigtest.Responding(t, tt.response))[call](t.Context())
				if kind := rigtest.KindOf(t, err); kind != tt.want || got != (order.Intent{}) {
					t.Errorf("%s %s, %s: got %q (%v), want %q", code, name, call, kind, err, tt.want)
				}
				if got := rigtest.PaymentError(t, err).Code; got != code {
					t.Errorf("%s %s, %s: got code %q", code, name, call, got)
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
	for code, kind := range kindByCode() {
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

// TestTheTableOfErrorCodesIsComplete compares the table with the constants in stripe-go's
// source.
func TestTheTableOfErrorCodesIsComplete(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/stripe/stripe-go/v76").Output()
	rigtest.Must(t, err)
	source := filepath.Join(strings.TrimSpace(string(dir)), "error.go")
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
	rigtest.Must(t, err)
	var known []string
	ast.Inspect(file, func(n ast.Node) bool {
		constant, ok := n.(*ast.ValueSpec)
		if !ok || len(constant.Values) != 1 {
			return true
		}
		if kind, ok := constant.Type.(*ast.Ident); ok && kind.Name == "ErrorCode" {
			code, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Error(err)
			}
			known = append(known, code)
		}
		return true
	})
	table := kindByCode()
	for _, code := range known {
		if _, ok := table[code]; !ok {
			t.Errorf("code %q is not in the table", code)
		}
	}
	for code := range table {
		if since := strings.Contains(codesMisconfiguredSince, code); slices.Contains(known, code) == since {
			t.Errorf("code %q: got it in stripe-go %t, want %t", code, since, !since)
		}
	}
	if len(known) < 160 {
		t.Errorf("found %d codes in stripe-go, want at least 160", len(known))
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
