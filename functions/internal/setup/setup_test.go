package setup_test

import (
	"fmt"
	"strings"
	"testing"

	"orderonce/functions/internal/setup"
)

func TestARN(t *testing.T) {
	t.Parallel()
	const secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-AbCdEf"
	var got setup.ARN
	err := got.UnmarshalText([]byte("sk_live_canary"))
	if err == nil || err.Error() != `not an ARN: want prefix "arn:"` {
		t.Errorf("error of a key = %v, want one without the key", err)
	}
	if err := got.UnmarshalText([]byte(secret)); err != nil || got.Reveal() != secret {
		t.Errorf("got %q, %v, want %q", got.Reveal(), err, secret)
	}
	text := fmt.Sprintf("%v %+v %#v", got, setup.Stripe{Secret: got}, got)
	if strings.Contains(text, "arn:aws") {
		t.Errorf("got %s, want [redacted] instead of the ARN", text)
	}
}
