package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"orderonce/adapters/config"
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

func newClients(c environment, out io.Writer) clients {
	warm(c)
	return clients{
		meter:    lambda.NewMeter(out, "orderonce", map[string]string{"Scope": string(c.Scope)}, time.Now),
		parallel: c.Parallel, answer: c.StripeTimeout,
	}
}

// warm loads the certificate roots while the function starts, 11 to 14 ms with the CPU of a start, rather than while its
// first order holds a lease, with the little CPU of an invocation. Nothing needs them where Stripe is pretend.
func warm(c environment) {
	if !strings.HasPrefix(string(c.StripeAddress), "http:") {
		_, _ = x509.SystemCertPool() // whoever needs it finds out what is wrong with it
	}
}

// awsAnswer bounds the wait for one answer of an AWS service: far above what they need, far below an order's budget,
// so that the SDK's next attempt still has time.
const awsAnswer = 2 * time.Second

func (c clients) aws() *http.Client {
	return &http.Client{Transport: c.timed(config.NewTransport(c.parallel, awsAnswer), config.AWSCallName)}
}

func (c clients) stripe() http.RoundTripper {
	return c.timed(config.NewTransport(c.parallel, c.answer), stripe.CallName)
}

func (c clients) timed(next http.RoundTripper, name func(*http.Request) string) http.RoundTripper {
	observe := func(call string, _ int, d time.Duration) {
		c.meter.Observe(config.MetricCallLatency, config.DimensionCall, call, d)
	}
	return config.Timed(next, observe, name, time.Now)
}

// stripeKey is the key itself, which the environment's checks have seen, or what the secret holds.
func stripeKey(ctx context.Context, c environment, calls clients) (string, error) {
	secret := c.StripeSecret.Reveal()
	if secret == "" {
		return c.StripeKey.Reveal(), nil
	}
	key, err := secretsmanager.Read(ctx, c.AWS.Config(config.SecretsManager, calls.aws()), secret)
	if err != nil {
		return "", err
	}
	if err := stripe.CheckKey(key, string(c.StripeAddress)); err != nil {
		return "", fmt.Errorf("secret %s: %w", secret, err)
	}
	return key, nil
}

// newOwner is a fencing token: 128 random bits, so that no two claims ever share one.
func newOwner() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

func jitter() float64 { return mathrand.Float64() } //nolint:gosec // G404: it spreads retries, nobody gains by guessing it
