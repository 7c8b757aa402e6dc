package main

import (
	"context"
	"fmt"

	"orderonce/adapters/config"
	"orderonce/adapters/secretsmanager"
	"orderonce/adapters/stripe"
)

// stripeKey returns the key from the environment, or reads the secret that the
// environment names. A key from the environment was checked with it.
func stripeKey(ctx context.Context, c environment, clients config.Clients) (string, error) {
	arn := c.StripeSecret.Reveal()
	if arn == "" {
		return c.StripeKey.Reveal(), nil
	}
	key, err := secretsmanager.Read(ctx, c.AWS.Config(config.SecretsManager, clients.AWS()), arn)
	if err != nil {
		return "", err
	}
	if err := stripe.CheckKey(key, string(c.StripeAddress)); err != nil {
		return "", fmt.Errorf("secret %s: %w", arn, err)
	}
	return key, nil
}
