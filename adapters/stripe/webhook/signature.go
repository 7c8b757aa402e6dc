package webhook

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	stripewebhook "github.com/stripe/stripe-go/v76/webhook"
)

// tolerance is the largest difference between the time of a signature and ours, as in
// Stripe's libraries (docs.stripe.com/webhooks, "Preventing replay attacks").
const tolerance = 300 * time.Second

var (
	errSignature  = errors.New("invalid Stripe-Signature")
	errNoSecret   = errors.New("no secret")
	errNotSecrets = errors.New( // contains none of them
		"want a signing secret, which starts with whsec_, or two while one is rolled, separated by a blank")
)

// ParseSecrets returns the secrets of an endpoint. A wrong one would show only when
// Stripe's first event is refused.
func ParseSecrets(text string) ([]string, error) {
	if !regexp.MustCompile(`^\s*whsec_[A-Za-z0-9+/=_-]+(\s+whsec_[A-Za-z0-9+/=_-]+)?\s*$`).MatchString(text) {
		return nil, errNotSecrets
	}
	return strings.Fields(text), nil
}

// verify returns nil if one of the secrets signed the body as it was received
// (docs.stripe.com/webhooks, "Verify webhook signatures manually"). No error contains a
// part of a signature.
//
// stripe-go compares the signatures. It would take the time from time.Now, and accept one
// from the future.
func verify(body []byte, header string, secrets []string, now time.Time) error {
	err := errNoSecret
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		if err = stripewebhook.ValidatePayloadIgnoringTolerance(body, header, secret); err == nil {
			return verifyTime(header, now)
		}
	}
	return fmt.Errorf("%w with one of %d secrets: %w", errSignature, len(secrets), err)
}

// verifyTime checks the time of a header whose signature was verified. As in stripe-go
// the last time of a header counts.
func verifyTime(header string, now time.Time) error {
	var seconds int64
	for part := range strings.SplitSeq(header, ",") {
		if value, found := strings.CutPrefix(part, "t="); found {
			seconds, _ = strconv.ParseInt(value, 10, 64) // was verified
		}
	}
	if age := now.Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return fmt.Errorf("%w: %v old, want at most %v either way", errSignature, age, tolerance)
	}
	return nil
}
