package stripe

import (
	"net/http"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// classify turns a response into an intent or a trouble (docs.stripe.com/api/errors, /error-low-level). The first case
// that fits counts.
func (c call) classify(r response) (order.Intent, error) {
	if r.intent.ID != "" && (r.status == http.StatusOK || c.settles(r)) {
		return r.intent, nil
	}
	return order.Intent{}, c.fail(c.trouble(r), r.requestID, r.err)
}

// settles reports whether the intent inside an error says more than the error. A replayed error of Prepare does not: the
// order needs another key.
//
// A declined payment comes as 402, and so may an error about our account. The intent wins if it shows an outcome, because
// an outcome is final whatever the error says: a failed attempt takes the payment method off the intent, which cannot
// be confirmed again.
func (c call) settles(r response) bool {
	if r.replayed && c.bound == "" {
		return false
	}
	switch _, settled := order.OutcomeOf(r.intent); r.status {
	case http.StatusPaymentRequired:
		return settled || kindOf(r.code) == order.Refused
	case http.StatusBadRequest:
		return r.code == stripe.ErrorCodePaymentIntentUnexpectedState
	}
	return false
}

// trouble says what a response without a usable intent means for the order.
func (c call) trouble(r response) order.ErrorKind {
	switch {
	case r.status >= 400 && r.replayed:
		return order.Replayed
	case r.status == http.StatusConflict, r.status == http.StatusTooManyRequests, r.status == http.StatusServiceUnavailable:
		return order.Unavailable // the key or the intent is in use; a rate limit; Stripe is unavailable
	case r.status < 400, r.status >= 500, r.status == http.StatusFailedDependency: // 424: a service behind Stripe failed
		return order.Unknown
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		return order.Misconfigured
	case kindOf(r.code) != order.Refused:
		return kindOf(r.code)
	case c.method == http.MethodGet: // of an id that Stripe gave us: the order cannot be wrong
		return order.Misconfigured
	case r.kind == stripe.ErrorTypeIdempotency:
		return order.KeyReused
	case r.status == http.StatusNotFound && (r.code != stripe.ErrorCodeResourceMissing || c.bound != "" && aboutIntent(r.param)):
		return order.Misconfigured // the intent is in another account or mode; or this is not Stripe's API
	}
	return order.Refused
}

// aboutIntent reports whether a parameter is the intent in the path, and not the customer or payment method inside it.
func aboutIntent(param string) bool {
	return param == "" || param == "intent" || param == "payment_intent"
}

// kindOf says what an error code means (docs.stripe.com/error-codes), whatever the status is. Refused, the default,
// is for codes about what was asked for, and for codes of requests that are not made here.
//
// The code alone tells an account problem: 401 came with an expired key (github.com/stripe/stripe-cli/issues/1341),
// 403 with a publishable one (github.com/SiimKirjanen/seatreg/issues/97), and the InvalidRequestError that Stripe's
// libraries make of 400 and 404 with an account that is not activated (github.com/antiwork/gumroad/pull/4479).
//
// A customer or payment method of the other mode has no code of its own. It is resource_missing, like one that never
// existed, and only the message tells the two apart (github.com/dj-stripe/dj-stripe/issues/1113).
func kindOf(code stripe.ErrorCode) order.ErrorKind {
	switch code { //nolint:exhaustive // a test lists every code and what it becomes
	// The key is expired, or publishable.
	case stripe.ErrorCodeAPIKeyExpired, stripe.ErrorCodePlatformAPIKeyExpired, stripe.ErrorCodeSecretKeyRequired,
		// The key's account does not exist, or is of a kind that may not do this.
		stripe.ErrorCodeAccountInvalid, stripe.ErrorCodePlatformAccountRequired, stripe.ErrorCodeNotAllowedOnStandardAccount,
		// The key is of the other mode, or the account is not activated for live mode.
		stripe.ErrorCodeLivemodeMismatch, stripe.ErrorCodeTestmodeChargesOnly, stripe.ErrorCodePaymentMethodInvalidParameterTestmode,
		// The payment method's type is not activated or not available for the account: change its settings.
		stripe.ErrorCodePaymentMethodUnactivated, stripe.ErrorCodeSEPAUnsupportedAccount, stripe.ErrorCodeApplicationFeesNotAllowed,
		// The account has reached its limit: ask Stripe for a higher one.
		chargeExceedsTransactionLimit, stripe.ErrorCodeProgressiveOnboardingLimitExceeded,
		// Our integration is too old.
		stripe.ErrorCodeTLSVersionUnsupported, stripe.ErrorCodeAlipayUpgradeRequired, stripe.ErrorCodeBitcoinUpgradeRequired,
		// Our parameters are wrong: every order sends the same ones, and none of them empty.
		stripe.ErrorCodeParameterUnknown, stripe.ErrorCodeParameterMissing, stripe.ErrorCodeParametersExclusive,
		stripe.ErrorCodeParameterInvalidEmpty, stripe.ErrorCodeParameterInvalidStringBlank, stripe.ErrorCodeParameterInvalidStringEmpty:
		return order.Misconfigured

	// Too many requests at a time, in all or for one object.
	case stripe.ErrorCodeRateLimit, stripe.ErrorCodeLockTimeout, stripe.ErrorCodeIdempotencyKeyInUse, stripe.ErrorCodeTokenInUse,
		// The payment method's processor is temporarily unavailable, or not ready.
		stripe.ErrorCodePaymentMethodNotAvailable, stripe.ErrorCodeACSSDebitSessionIncomplete,
		// The account's limit for a rolling period is used up.
		stripe.ErrorCodeChargeExceedsSourceLimit:
		return order.Unavailable

	// The bank or the processor did not answer in time: money may have moved.
	case stripe.ErrorCodeProcessingError, stripe.ErrorCodePaymentMethodProviderTimeout:
		return order.Unknown
	}
	return order.Refused
}

// chargeExceedsTransactionLimit is newer than v76 (docs.stripe.com/changelog/acacia/2024-09-30/error-code-transaction-limit).
const chargeExceedsTransactionLimit stripe.ErrorCode = "charge_exceeds_transaction_limit"
