package provider_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/stripe"
	"orderonce/functions/internal/functiontest"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

func TestARN(t *testing.T) {
	const secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-AbCdEf"
	var got provider.ARN
	err := got.UnmarshalText([]byte("sk_live_canary"))
	if err == nil || err.Error() != `not an ARN: want prefix "arn:"` {
		t.Errorf("error of a key = %v, want one without the key", err)
	}
	if err := got.UnmarshalText([]byte(secret)); err != nil || got.Reveal() != secret {
		t.Errorf("got %q, %v, want %q", got.Reveal(), err, secret)
	}
	text := fmt.Sprintf("%v %+v %#v", got, provider.Stripe{Secret: got}, got)
	if strings.Contains(text, "arn:aws") {
		t.Errorf("got %s, want [redacted] instead of the ARN", text)
	}
}

// No request shows the time-out of a call to Stripe.
func TestStripeOptions(t *testing.T) {
	s := provider.Stripe{Address: "http://127.0.0.1:1", Timeout: 3 * time.Second}
	want := stripe.Options{Key: "sk_test_canary", Scope: "test", BaseURL: "http://127.0.0.1:1", Timeout: 3 * time.Second}
	s.Key = config.NewSecret(want.Key)
	got, err := s.Options(t.Context(), setup.Environment{Scope: "test"}.Function(io.Discard, 1, s.Address, ""))
	functiontest.Must(t, err)
	if got.Transport == nil || got.Dedicated == nil || got.Measure == nil || got.Now == nil {
		t.Errorf("got %+v, want every transport and the clock", got)
	}
	if limit := got.Dedicated.ResponseHeaderTimeout; limit != s.Timeout {
		t.Errorf("got a limit of %v for a refund, want %v", limit, s.Timeout)
	}
	got.Transport, got.Dedicated, got.Measure, got.Now = nil, nil, nil, nil
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("options (-got +want):\n%s", diff)
	}
}
