package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/adapters/secretsmanager"
	"orderonce/adapters/stripe"
)

// clients makes the HTTP clients, whose calls are all timed.
type clients struct {
	meter    *lambda.Meter
	parallel int
	answer   time.Duration
}

// awsAnswer bounds the wait for one answer of an AWS service: far above what they need, far below an order's budget,
// so that the SDK's next attempt still has time.
const awsAnswer = 2 * time.Second

func (c clients) aws() *http.Client {
	return &http.Client{Transport: c.timed(lambda.Transport(c.parallel, awsAnswer), lambda.CallName)}
}

func (c clients) stripe() http.RoundTripper {
	return c.timed(lambda.Transport(c.parallel, c.answer), stripe.CallName)
}

func (c clients) timed(next http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	observe := func(call string, _ int, d time.Duration) { c.meter.Observe("CallLatency", "Call", call, d) }
	return lambda.Timed(next, observe, name, time.Now)
}

// warm loads the certificate roots while the function starts, 11 to 14 ms with the CPU of a start, rather than while its
// first order holds a lease, with the little CPU of an invocation. Nothing needs them where Stripe is pretend.
func (clients) warm(c config) {
	if !strings.HasPrefix(string(c.StripeAddress), "http:") {
		_, _ = x509.SystemCertPool() // whoever needs it finds out what is wrong with it
	}
}

// stripeKey is the key itself, or what the secret holds.
func stripeKey(ctx context.Context, c config, calls clients) (string, error) {
	if c.StripeSecret == "" {
		return c.StripeKey.Reveal(), nil
	}
	return secretsmanager.Read(ctx, c.AWS.Config(lambda.SecretsManager, calls.aws()), c.StripeSecret)
}

// newOwner is a fencing token: 128 random bits, so that no two claims ever share one.
func newOwner() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

func luck() float64 { return mathrand.Float64() } //nolint:gosec // G404: it spreads retries, nobody gains by guessing it
