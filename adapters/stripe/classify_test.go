package stripe_test

import (
	"context"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// What every error code becomes that stripe-go knows (docs.stripe.com/error-codes): if it comes with a 400, and if it comes
// with a 402 and no intent in the error.
const (
	// Our key, account, mode or integration. The order waits until somebody mends it.
	codesMisconfigured = `
		api_key_expired platform_api_key_expired secret_key_required account_invalid platform_account_required
		not_allowed_on_standard_account livemode_mismatch testmode_charges_only payment_method_invalid_parameter_testmode
		payment_method_unactivated sepa_unsupported_account application_fees_not_allowed
		progressive_onboarding_limit_exceeded tls_version_unsupported alipay_upgrade_required bitcoin_upgrade_required
		parameter_unknown parameter_missing parameters_exclusive parameter_invalid_empty parameter_invalid_string_blank
		parameter_invalid_string_empty`

	// Something that passes. Nothing has happened.
	codesNotNow = `
		rate_limit lock_timeout idempotency_key_in_use token_in_use payment_method_not_available
		acss_debit_session_incomplete charge_exceeds_source_limit`

	// Something that passes. Money may have moved.
	codesUnknown = `processing_error payment_method_provider_timeout`

	// The bank, Stripe or the customer declines. These come as 402 with the intent, which then settles the order.
	codesDeclined = `
		account_closed authentication_required bank_account_declined bank_account_restricted bank_account_unusable
		bank_account_unverified bank_account_verification_failed billing_invalid_mandate card_decline_rate_limit_exceeded
		card_declined debit_not_authorized expired_card incorrect_address incorrect_cvc incorrect_number incorrect_zip
		insufficient_funds invalid_card_type invalid_cvc invalid_expiry_month invalid_expiry_year invalid_number no_account
		payment_intent_action_required payment_intent_authentication_failure payment_intent_mandate_invalid
		payment_intent_payment_attempt_expired payment_intent_payment_attempt_failed payment_method_bank_account_blocked
		payment_method_customer_decline payment_method_provider_decline postal_code_invalid refer_to_customer`

	// What this order asks for cannot be: its amount, customer, payment method, or the state of its intent.
	codesRefused = `
		account_number_invalid amount_too_large amount_too_small bank_account_bad_routing_numbers charge_invalid_parameter
		clearing_code_unsupported country_code_invalid email_invalid intent_invalid_state
		intent_verification_method_missing invalid_characters invalid_charge_amount invalid_source_usage missing
		parameter_invalid_integer payment_intent_incompatible_payment_method payment_intent_invalid_parameter
		payment_intent_unexpected_state payment_method_billing_details_address_missing payment_method_currency_mismatch
		payment_method_invalid_parameter payment_method_unexpected_state payment_method_unsupported_type resource_missing
		routing_number_invalid token_already_used token_card_network_invalid url_invalid`

	// Requests that are not made here: payouts, refunds, captures, invoices, setup, tax, Connect, Issuing, Terminal and others.
	codesElsewhere = `
		account_country_invalid_address account_error_country_change_requires_additional_steps account_information_mismatch
		balance_insufficient balance_invalid_parameter bank_account_exists capture_charge_authorization_expired
		capture_unauthorized_payment cardholder_phone_number_required charge_already_captured charge_already_refunded
		charge_disputed charge_expired_for_capture charge_not_refundable country_unsupported coupon_expired
		customer_max_payment_methods customer_max_subscriptions customer_tax_location_invalid
		financial_connections_account_inactive financial_connections_no_successful_transaction_refresh
		forwarding_api_inactive forwarding_api_invalid_parameter forwarding_api_upstream_connection_error
		forwarding_api_upstream_connection_timeout instant_payouts_config_disabled instant_payouts_currency_disabled
		instant_payouts_limit_exceeded instant_payouts_unsupported invalid_tax_location invoice_no_customer_line_items
		invoice_no_payment_method_types invoice_no_subscription_line_items invoice_not_editable
		invoice_on_behalf_of_not_editable invoice_payment_intent_requires_action invoice_upcoming_none out_of_inventory
		ownership_declaration_not_allowed payment_intent_konbini_rejected_confirmation_number
		payment_method_bank_account_already_verified payment_method_configuration_failures
		payment_method_microdeposit_failed payment_method_microdeposit_verification_amounts_invalid
		payment_method_microdeposit_verification_amounts_mismatch
		payment_method_microdeposit_verification_attempts_exceeded
		payment_method_microdeposit_verification_descriptor_code_mismatch
		payment_method_microdeposit_verification_timeout payout_reconciliation_not_ready payouts_limit_exceeded
		payouts_not_allowed product_inactive refund_disputed_payment resource_already_exists return_intent_already_processed
		setup_attempt_failed setup_intent_authentication_failure setup_intent_invalid_parameter
		setup_intent_mandate_invalid setup_intent_setup_attempt_expired setup_intent_unexpected_state
		shipping_calculation_failed sku_inactive state_unsupported status_transition_invalid stripe_tax_inactive
		tax_id_invalid taxes_calculation_failed terminal_location_country_unsupported terminal_reader_busy
		terminal_reader_hardware_fault terminal_reader_offline terminal_reader_timeout
		transfer_source_balance_parameters_mismatch transfers_not_allowed`

	// Codes that Stripe has added since: docs.stripe.com/changelog/acacia/2024-09-30/error-code-transaction-limit.
	codesMisconfiguredSince = `charge_exceeds_transaction_limit`
)

func troubleByCode() map[string]order.ErrorKind {
	all := map[string]order.ErrorKind{}
	for codes, trouble := range map[string]order.ErrorKind{
		codesMisconfigured: order.Misconfigured, codesMisconfiguredSince: order.Misconfigured,
		codesNotNow: order.Unavailable, codesUnknown: order.Unknown,
		codesDeclined: order.Refused, codesRefused: order.Refused, codesElsewhere: order.Refused,
	} {
		for code := range strings.FieldsSeq(codes) {
			all[code] = trouble
		}
	}
	return all
}

func TestEveryErrorCodeHasAMeaning(t *testing.T) {
	t.Parallel()
	type row struct {
		calls string
		said  said
		want  order.ErrorKind
	}
	for code, want := range troubleByCode() {
		rest := invalid + `,"code":"` + code + `"`
		tests := map[string]row{
			"with a 400":                   {"prepare confirm", said{400, false, failure(rest)}, want},
			"with a 402 without an intent": {"prepare confirm", said{402, false, failure(rest)}, want},
			"of a read":                    {"read", said{400, false, failure(rest)}, ofARead(want)},
			"with a 401":                   {every, said{401, false, failure(rest)}, order.Misconfigured},
			"with a 403":                   {every, said{403, false, failure(rest)}, order.Misconfigured},
			"with a 429":                   {every, said{429, false, failure(rest)}, order.Unavailable},
			"with a 500":                   {every, said{500, false, failure(rest)}, order.Unknown},
			"replayed":                     {"prepare confirm", said{400, true, failure(rest)}, order.Replayed},
		}
		if want != order.Refused { // an intent that only waits does not hide what is wrong
			waits := in(rest, body("requires_confirmation", none))
			tests["with a 402 and an intent that waits"] = row{"prepare confirm", said{402, false, waits}, want}
		}
		for name, tt := range tests {
			for call := range strings.FieldsSeq(tt.calls) {
				got, err := calls(t, offline(t, tt.said))[call](t.Context())
				if trouble := kindOf(t, err); trouble != tt.want || got != (order.Intent{}) {
					t.Errorf("%s %s, %s: got %q (%v), want %q", code, name, call, trouble, err, tt.want)
				}
			}
		}
	}
}

// ofARead is what a refused Read means: Stripe gave us the id, so the order cannot be wrong.
func ofARead(t order.ErrorKind) order.ErrorKind {
	if t == order.Refused {
		return order.Misconfigured
	}
	return t
}

// TestAnIntentThatShowsAnOutcomeWinsOverEveryErrorCode is a failed attempt that took the payment method off the intent. No
// later attempt can confirm it, whatever the error says, so it settles the order.
func TestAnIntentThatShowsAnOutcomeWinsOverEveryErrorCode(t *testing.T) {
	t.Parallel()
	for code, meaning := range troubleByCode() {
		rest := `"type":"card_error","code":"` + code + `"`
		own := `{"type":"card_error","code":"` + code + `","message":"m"}`
		type row struct {
			intent string
			want   order.Failure
		}
		tests := map[string]row{
			"its last error":  {body("requires_payment_method", own), order.Failure{Code: code}},
			"another error":   {body("requires_payment_method", declined), order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"}},
			"its cancelation": {body("canceled", none), order.Failure{Code: code}},
		}
		if meaning == order.Misconfigured { // the error around it is about us, and not about the payment
			tests["its cancelation"] = row{body("canceled", none), order.Failure{}}
		} else {
			tests["the error around it"] = row{body("requires_payment_method", none), order.Failure{Code: code}}
		}
		for name, tt := range tests {
			got, err := calls(t, offline(t, said{402, false, in(rest, tt.intent)}))["confirm"](t.Context())
			if _, settled := order.OutcomeOf(got); err != nil || !settled || got.Failure != tt.want {
				t.Errorf("%s, told by %s: got %+v, %v, want it settled with %+v", code, name, got, err, tt.want)
			}
		}
	}
	aboutUs := in(`"code":"testmode_charges_only"`, body("requires_payment_method", none))
	if got, err := calls(t, offline(t, said{402, false, aboutUs}))["confirm"](t.Context()); kindOf(t, err) != order.Misconfigured {
		t.Errorf("an intent that has not failed itself: got %+v, %v, want our mistake", got, err)
	}
}

// TestTheTableOfErrorCodesIsComplete compares it with the constants of the library's source.
func TestTheTableOfErrorCodesIsComplete(t *testing.T) {
	t.Parallel()
	library, err := build.Import("github.com/stripe/stripe-go/v76", ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(library.Dir, "error.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
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
	table := troubleByCode()
	for _, code := range known {
		if _, ok := table[code]; !ok {
			t.Errorf("code %q is not in the table", code)
		}
	}
	for code := range table {
		if since := strings.Contains(codesMisconfiguredSince, code); slices.Contains(known, code) == since {
			t.Errorf("code %q: stripe-go knows it: %t", code, !since)
		}
	}
	if len(known) < 160 {
		t.Errorf("found %d codes in stripe-go, want at least 160", len(known))
	}
}

// offline is a Payments whose every call gets one response, without a network.
func offline(tb testing.TB, answer said) *stripe.Payments {
	tb.Helper()
	return open(tb, "", roundTrip(answer.respond))
}

// TestAMissingResourceIsTheOrdersUnlessItIsTheIntent tells a customer who does not exist from an intent that does not: the
// second is in another account or mode.
func TestAMissingResourceIsTheOrdersUnlessItIsTheIntent(t *testing.T) {
	t.Parallel()
	for param, want := range map[string]order.ErrorKind{
		`"customer"`: order.Refused, `"payment_method"`: order.Refused,
		`"intent"`: order.Misconfigured, `"payment_intent"`: order.Misconfigured, `""`: order.Misconfigured, `null`: order.Misconfigured,
	} {
		for status, want := range map[int]order.ErrorKind{404: want, 400: order.Refused} {
			answer := said{status, false, failure(noSuch + `,"param":` + param)}
			for name, call := range map[string]func(context.Context) (order.Intent, error){
				"confirm": calls(t, offline(t, answer))["confirm"], "read": calls(t, offline(t, answer))["read"],
			} {
				want := want
				if name == "read" {
					want = order.Misconfigured
				}
				if _, err := call(t.Context()); kindOf(t, err) != want {
					t.Errorf("%s, %d with param %s: got %v, want %s", name, status, param, err, want)
				}
			}
		}
	}
}
