package stripe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stripe/stripe-go/v76"

	"orderonce/domain/order"
)

// apiError is the body of an error response (docs.stripe.com/api/errors).
type apiError struct {
	errorCodes
	Param  string                    `json:"param"`
	Intent Expandable[PaymentIntent] `json:"payment_intent"`
}

// Result is the intent that a response shows.
type Result struct {
	order.Intent

	Charge      Expandable[Charge] // the intent's latest
	NeedsCharge bool               // the intent has failed, and only its latest charge can tell why
	InError     bool               // the response is an error that shows the intent
}

// Intent returns what a response means for the order (docs.stripe.com/api/errors,
// /error-low-level): a Result, or a *order.PaymentError. err is the error of the call.
func (c *Call) Intent(err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	shown, intent, err := c.intentIn()
	inError := c.response.Status != http.StatusOK
	if err == nil && (!inError || c.settles(intent)) {
		return Result{intent, shown.LatestCharge, shown.needsCharge(intent.Failure), inError}, nil
	}
	return Result{}, c.Reject(err)
}

// Reject is the error of a response that does not show what was asked for; err is why,
// unless the response is an error.
func (c *Call) Reject(err error) error {
	if c.response.Status >= http.StatusBadRequest {
		err = c.describe()
	}
	return c.Fail(c.kindOf(), err)
}

// intentIn returns the intent that a response or its error shows, if it is the one that
// was asked for. Only a 402 around an intent is why a payment failed, unless it is about
// the account.
func (c *Call) intentIn() (*PaymentIntent, order.Intent, error) {
	shown, outer := c.apiError.Intent.Object, order.Failure{}
	switch status := c.response.Status; {
	case c.err != nil:
		return nil, order.Intent{}, c.err
	case status == http.StatusOK:
		if json.Unmarshal(c.response.Body, &shown) != nil {
			return nil, order.Intent{}, errUnreadable
		}
	case status == http.StatusPaymentRequired && kindOfCode(c.apiError.Code) != order.KindMisconfigured:
		outer = c.apiError.failure()
	}
	if shown == nil {
		return nil, order.Intent{}, errNoIntent
	}
	intent, err := shown.toOrder(outer)
	if err == nil && c.intent != "" && intent.ID != c.intent {
		err = ErrOtherIntent
	}
	return shown, intent, err
}

// settles reports whether the intent inside an error response decides, and not the error.
// It does if it shows an outcome, whatever the 402 says: a failed attempt takes the
// payment method off the intent, and then no attempt can confirm it. A replayed error of
// Prepare means that the key is spent, so the order needs another one.
func (c *Call) settles(i order.Intent) bool {
	if c.Replayed() && c.intent == "" {
		return false
	}
	switch _, settled := order.OutcomeOf(i); c.response.Status {
	case http.StatusPaymentRequired:
		return settled || kindOfCode(c.apiError.Code) == order.KindRefused
	case http.StatusBadRequest:
		return c.apiError.Code == stripe.ErrorCodePaymentIntentUnexpectedState
	}
	return false
}

// kindOf returns what a response without a usable intent means for the order.
func (c *Call) kindOf() order.ErrorKind {
	status, ofCode := c.response.Status, kindOfCode(c.apiError.Code)
	switch {
	case c.Replayed() && (status >= 500 || status >= 400 && !c.FinalRefusal): // the key holds a failure
		return order.KindReplayed
	case status == http.StatusConflict, // the key or the intent is in use
		status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return order.KindUnavailable
	case status < 400,
		status >= 500,
		status == http.StatusFailedDependency: // 424: Stripe's upstream failed
		return order.KindUnknown
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return order.KindMisconfigured
	case ofCode != order.KindRefused:
		return ofCode
	case c.method == http.MethodGet: // Stripe gave us the id, so the order cannot be wrong
		return order.KindMisconfigured
	case c.apiError.Type == stripe.ErrorTypeIdempotency:
		return order.KindKeyReused
	case status == http.StatusNotFound && c.isElsewhere():
		return order.KindMisconfigured
	}
	return order.KindRefused
}

// isElsewhere reports whether a 404 means another account or mode, or not Stripe's API,
// and not that the intent's customer or payment method is missing.
func (c *Call) isElsewhere() bool {
	ofIntent := slices.Contains([]string{"", "intent", "payment_intent"}, c.apiError.Param)
	return c.apiError.Code != stripe.ErrorCodeResourceMissing || c.intent != "" && ofIntent
}

// describe is the error of an error response: status, code, decline code and parameter.
// It leaves out the message, which may repeat what was sent, such as a customer's name.
func (c *Call) describe() error {
	e, text := c.apiError, fmt.Sprintf("stripe: %d", c.response.Status)
	for _, part := range []struct{ form, value string }{
		{" %s", cmp.Or(string(e.Code), string(e.Type))}, {" (%s)", e.DeclineCode}, {", param %s", e.Param},
	} {
		if part.value != "" {
			text += fmt.Sprintf(part.form, name(part.value))
		}
	}
	if c.response.Status == http.StatusForbidden {
		permission := cmp.Or(c.Permission, "PaymentIntents: Write")
		if c.method == http.MethodGet {
			permission = cmp.Or(c.Permission, "PaymentIntents: Read")
		}
		text += fmt.Sprintf(" (a restricted key needs the permission %q)", permission)
	}
	return errors.New(text)
}

// name returns a code or a parameter's name, and withholds text that Stripe does not
// define.
func name(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_[]") != "" || len(s) > 80 {
		return "[withheld]"
	}
	return s
}

// kindOfCode returns what an error code means, whatever the status is
// (docs.stripe.com/error-codes): Refused for codes about the order.
//
// Only the code identifies an account error: the status has been 401 for an expired key
// (github.com/stripe/stripe-cli/issues/1341), 403 for a publishable one
// (github.com/SiimKirjanen/seatreg/issues/97), and 400 or 404 for an account that is not
// activated (github.com/antiwork/gumroad/pull/4479).
func kindOfCode(code stripe.ErrorCode) order.ErrorKind {
	switch code { //nolint:exhaustive // a test lists every code and what it becomes
	// The API key is expired or publishable.
	case stripe.ErrorCodeAPIKeyExpired, stripe.ErrorCodePlatformAPIKeyExpired, stripe.ErrorCodeSecretKeyRequired,
		// The account does not exist, or is of a type that may not do this.
		stripe.ErrorCodeAccountInvalid, stripe.ErrorCodePlatformAccountRequired,
		stripe.ErrorCodeNotAllowedOnStandardAccount,
		// The key is of the other mode, or the account is not activated for live mode.
		stripe.ErrorCodeLivemodeMismatch, stripe.ErrorCodeTestmodeChargesOnly,
		stripe.ErrorCodePaymentMethodInvalidParameterTestmode,
		// The account's settings do not allow the type of payment method.
		stripe.ErrorCodePaymentMethodUnactivated, stripe.ErrorCodeSEPAUnsupportedAccount,
		stripe.ErrorCodeApplicationFeesNotAllowed,
		// The account has reached its limit: ask Stripe to raise it.
		chargeExceedsTransactionLimit, stripe.ErrorCodeProgressiveOnboardingLimitExceeded,
		// Our integration is too old.
		stripe.ErrorCodeTLSVersionUnsupported, stripe.ErrorCodeAlipayUpgradeRequired,
		stripe.ErrorCodeBitcoinUpgradeRequired,
		// Our parameters are wrong: every order sends the same ones, none of them empty.
		stripe.ErrorCodeParameterUnknown, stripe.ErrorCodeParameterMissing, stripe.ErrorCodeParametersExclusive,
		stripe.ErrorCodeParameterInvalidEmpty, stripe.ErrorCodeParameterInvalidStringBlank,
		stripe.ErrorCodeParameterInvalidStringEmpty:
		return order.KindMisconfigured

	// Too many concurrent requests, in total or for one object.
	case stripe.ErrorCodeRateLimit, stripe.ErrorCodeLockTimeout,
		stripe.ErrorCodeIdempotencyKeyInUse, stripe.ErrorCodeTokenInUse,
		// The payment method's processor is temporarily unavailable, or not ready.
		stripe.ErrorCodePaymentMethodNotAvailable, stripe.ErrorCodeACSSDebitSessionIncomplete,
		// The account's limit for a rolling period is used up.
		stripe.ErrorCodeChargeExceedsSourceLimit:
		return order.KindUnavailable

	// The bank or the processor timed out: money may have moved.
	case stripe.ErrorCodeProcessingError, stripe.ErrorCodePaymentMethodProviderTimeout:
		return order.KindUnknown
	}
	return order.KindRefused
}

// chargeExceedsTransactionLimit is newer than stripe-go v76
// (docs.stripe.com/changelog/acacia/2024-09-30/error-code-transaction-limit).
const chargeExceedsTransactionLimit stripe.ErrorCode = "charge_exceeds_transaction_limit"
