// Package provider is how the functions that call Stripe reach it: the variables, and the
// secrets that are read when a function starts.
package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/secretsmanager"
	"orderonce/adapters/stripe"
	"orderonce/functions/internal/setup"
)

// ARN is the ARN of a secret. It prints as a [config.Secret] does, because somebody may
// paste the secret itself.
type ARN struct{ config.Secret }

var errNotARN = errors.New(`not an ARN: want prefix "arn:"`)

// UnmarshalText requires the prefix of an ARN.
func (a *ARN) UnmarshalText(text []byte) error {
	if !strings.HasPrefix(string(text), "arn:") {
		return errNotARN
	}
	return a.Secret.UnmarshalText(text)
}

// Secret returns the text of a secret, or value if there is no secret.
func Secret(ctx context.Context, f setup.Function, secret ARN, value config.Secret) (string, error) {
	if secret.Reveal() == "" {
		return value.Reveal(), nil
	}
	return secretsmanager.Read(ctx, f.Config(config.SecretsManager), secret.Reveal())
}

// Stripe has the variables of a function that calls Stripe.
type Stripe struct {
	Secret  ARN           `env:"STRIPE_SECRET_ARN" want:"the ARN of a secret"`
	Key     config.Secret `env:"STRIPE_SECRET_KEY"`
	Address config.URL    `env:"STRIPE_API_BASE"   want:"a URL, or nothing for Stripe itself"`
	Timeout time.Duration `env:"STRIPE_TIMEOUT"    envDefault:"8s"`
}

// Problems returns what is wrong with the variables together.
func (s Stripe) Problems() []string {
	var problems []string
	key := s.Key.Reveal()
	if (s.Secret.Reveal() == "") == (key == "") {
		problems = append(problems, "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them")
	}
	if err := stripe.CheckKey(key, string(s.Address)); key != "" && err != nil {
		problems = append(problems, "STRIPE_SECRET_KEY: "+err.Error())
	}
	if s.Timeout <= 0 {
		problems = append(problems, "STRIPE_TIMEOUT: want more than 0")
	}
	return problems
}

// Options returns the options of a client that observes its calls, with the key from the
// environment or from the secret that the environment names.
func (s Stripe) Options(ctx context.Context, f setup.Function) (stripe.Options, error) {
	key, err := Secret(ctx, f, s.Secret, s.Key)
	if err != nil {
		return stripe.Options{}, err
	}
	if err := stripe.CheckKey(key, string(s.Address)); err != nil {
		return stripe.Options{}, fmt.Errorf("secret %s: %w", s.Secret.Reveal(), err)
	}
	return stripe.Options{
		Key: key, Scope: f.Scope.Order(), BaseURL: string(s.Address),
		Timeout: s.Timeout, Transport: f.Clients.Transport(s.Timeout, stripe.CallName),
		Dedicated: config.NewTransport(1, s.Timeout), Measure: f.Clients.Measure(stripe.CallName),
		Now: f.Clients.Now,
	}, nil
}
