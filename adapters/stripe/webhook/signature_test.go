package webhook_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/stripe/stripe-go/v76/webhook"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/webhook"
)

const (
	endpointSecret = "whsec_pretend_current"
	rolledSecret   = "whsec_pretend_rolled"
)

func signedAt() time.Time { return time.Unix(1_790_000_000, 0) }

func TestVerifySignature(t *testing.T) {
	const body = `{"id":"evt_1"}`
	current, both := []string{endpointSecret}, []string{endpointSecret, rolledSecret}
	sign := func(secrets ...string) string { return stripetest.Signature([]byte(body), signedAt(), secrets...) }
	signed := sign(endpointSecret)
	_, v1, _ := strings.Cut(signed, ",")
	byStripe := sdk.GenerateTestSignedPayload(&sdk.UnsignedPayload{
		Payload: []byte(body), Secret: endpointSecret, Timestamp: signedAt(),
	})
	for claim, tt := range map[string]struct {
		body    string
		header  string
		secrets []string
		after   time.Duration // between signature and verification
		valid   bool
	}{
		"a signature of ours":                       {body, signed, current, 0, true},
		"a signature of Stripe's library":           {body, byStripe.Header, current, 0, true},
		"an old secret that was rolled":             {body, sign(rolledSecret), both, 0, true},
		"the second of two signatures":              {body, sign("whsec_other", endpointSecret), current, 0, true},
		"a signature of five minutes ago":           {body, signed, current, 300 * time.Second, true},
		"a clock that is five minutes behind":       {body, signed, current, -300 * time.Second, true},
		"a signature that is too old":               {body, signed, current, 301 * time.Second, false},
		"a signature from the future":               {body, signed, current, -301 * time.Second, false},
		"another body":                              {`{"id":"evt_2"}`, signed, current, 0, false},
		"the same JSON in other bytes":              {`{"id": "evt_1"}`, signed, current, 0, false},
		"no secret":                                 {body, signed, nil, 0, false},
		"an empty secret, signed with an empty one": {body, sign(""), []string{""}, 0, false},
		"another time":                              {body, "t=1790000001," + v1, current, 0, false},
		"no time":                                   {body, v1, current, 0, false},
		"a time that is not a number":               {body, "t=now," + v1, current, 0, false},
		"no signature":                              {body, "t=1790000000", current, 0, false},
		"a signature that is not hexadecimal":       {body, "t=1790000000,v1=signature", current, 0, false},
		"the scheme v0 alone":                       {body, strings.Replace(signed, "v1=", "v0=", 1), current, 0, false},
	} {
		t.Run(claim, func(t *testing.T) {
			err := webhook.VerifySignature([]byte(tt.body), tt.header, tt.secrets, signedAt().Add(tt.after))
			if (err == nil) != tt.valid || err != nil && !errors.Is(err, webhook.ErrSignature) {
				t.Fatalf("got %v, want it valid: %t", err, tt.valid)
			}
			if err != nil && (strings.Contains(err.Error(), "whsec") || strings.Contains(err.Error(), v1[3:])) {
				t.Errorf("error contains a secret or a signature: %v", err)
			}
		})
	}
}
