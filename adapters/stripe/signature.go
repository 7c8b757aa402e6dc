package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SignatureTolerance is the largest difference between the time of a signature and ours.
// Stripe's libraries use the same (docs.stripe.com/webhooks, "Preventing replay
// attacks"), but let signatures from the future pass.
const SignatureTolerance = 300 * time.Second

// ErrSignature means that a request was not signed with a secret of the endpoint, or not
// within SignatureTolerance.
var ErrSignature = errors.New("invalid Stripe-Signature")

// The reasons why the secrets of an endpoint are not used. No error contains a secret.
var (
	ErrSecretCount = errors.New("want one signing secret, or two while one is rolled, separated by blanks")
	ErrNotASecret  = errors.New("want signing secrets of an endpoint, which start with whsec_")
)

// CheckSigningSecrets returns ErrSecretCount or ErrNotASecret unless these can be the
// secrets of an endpoint. Without the check a wrong one would show when Stripe's first
// event is refused.
func CheckSigningSecrets(secrets []string) error {
	if len(secrets) < 1 || len(secrets) > 2 {
		return ErrSecretCount
	}
	form := regexp.MustCompile(`^whsec_[A-Za-z0-9+/=_-]+$`)
	if slices.ContainsFunc(secrets, func(s string) bool { return !form.MatchString(s) }) {
		return ErrNotASecret
	}
	return nil
}

// VerifySignature returns nil if one of the secrets signed the body as it was received.
// The header has a v1 for each of the endpoint's secrets: two while one is rolled
// (docs.stripe.com/webhooks, "Verify webhook signatures manually"). Every error is an
// ErrSignature; none contains a part of a signature.
func VerifySignature(body []byte, header string, secrets []string, now time.Time) error {
	seconds, signatures := "", [][]byte(nil)
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(part, "="); strings.TrimSpace(name) {
		case "t":
			seconds = value
		case "v1":
			if signature, err := hex.DecodeString(value); err == nil {
				signatures = append(signatures, signature)
			}
		}
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: no time", ErrSignature)
	}
	if age := now.Sub(time.Unix(unix, 0)); age.Abs() > SignatureTolerance {
		return fmt.Errorf("%w: %v old, want at most %v either way", ErrSignature, age, SignatureTolerance)
	}
	for _, secret := range secrets {
		want := sign(body, seconds, secret)
		for _, signature := range signatures {
			if secret != "" && hmac.Equal(signature, want) { // in constant time
				return nil
			}
		}
	}
	return fmt.Errorf("%w: no v1 of %d matches one of %d secrets", ErrSignature, len(signatures), len(secrets))
}

func sign(body []byte, seconds, secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
