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
	t.Parallel()
	body := []byte(`{"id":"evt_1"}`)
	current, both := []string{endpointSecret}, []string{endpointSecret, rolledSecret}
	signed := stripetest.Signature(body, signedAt(), endpointSecret)
	_, v1, _ := strings.Cut(signed, ",")
	second := stripetest.Signature(body, signedAt(), "whsec_other", endpointSecret)
	unsigned := stripetest.Signature(body, signedAt(), "")
	byStripe := sdk.GenerateTestSignedPayload(&sdk.UnsignedPayload{
		Payload: body, Secret: endpointSecret, Timestamp: signedAt(),
	})
	for claim, tt := range map[string]struct {
		body    string
		header  string
		secrets []string
		after   time.Duration // between signature and verification
		want    error
	}{
		"a signature of ours":                       {string(body), signed, current, 0, nil},
		"a signature of Stripe's library":           {string(body), byStripe.Header, current, 0, nil},
		"an old secret that was rolled":             {string(body), stripetest.Signature(body, signedAt(), rolledSecret), both, 0, nil},
		"the second of two signatures":              {string(body), second, current, 0, nil},
		"a signature of five minutes ago":           {string(body), signed, current, 300 * time.Second, nil},
		"a clock that is five minutes behind":       {string(body), signed, current, -300 * time.Second, nil},
		"a signature that is too old":               {string(body), signed, current, 301 * time.Second, webhook.ErrSignature},
		"a signature from the future":               {string(body), signed, current, -301 * time.Second, webhook.ErrSignature},
		"another body":                              {`{"id":"evt_2"}`, signed, current, 0, webhook.ErrSignature},
		"the same JSON in other bytes":              {`{"id": "evt_1"}`, signed, current, 0, webhook.ErrSignature},
		"no secret":                                 {string(body), signed, nil, 0, webhook.ErrSignature},
		"an empty secret, signed with an empty one": {string(body), unsigned, []string{""}, 0, webhook.ErrSignature},
		"another time":                              {string(body), "t=1790000001," + v1, current, 0, webhook.ErrSignature},
		"no time":                                   {string(body), v1, current, 0, webhook.ErrSignature},
		"a time that is not a number":               {string(body), "t=now," + v1, current, 0, webhook.ErrSignature},
		"no signature":                              {string(body), "t=1790000000", current, 0, webhook.ErrSignature},
		"a signature that is not hexadecimal":       {string(body), "t=1790000000,v1=signature", current, 0, webhook.ErrSignature},
		"the scheme v0 alone":                       {string(body), strings.Replace(signed, "v1=", "v0=", 1), current, 0, webhook.ErrSignature},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			err := webhook.VerifySignature([]byte(tt.body), tt.header, tt.secrets, signedAt().Add(tt.after))
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "whsec") || strings.Contains(err.Error(), v1[3:])) {
				t.Errorf("error contains a secret or a signature: %v", err)
			}
		})
	}
}
