// Package setup is the configuration that several functions share: types of variables,
// and secrets that are read when a function starts. It does not know what a function
// does.
package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/secretsmanager"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// Scope is a deployment's scope.
type Scope order.Scope

// Order returns the scope as the domain has it.
func (s Scope) Order() order.Scope { return order.Scope(s) }

// UnmarshalText validates and sets the scope.
func (s *Scope) UnmarshalText(text []byte) error {
	parsed, err := order.NewScope(string(text))
	*s = Scope(parsed)
	return err
}

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
func Secret(
	ctx context.Context, a config.AWS, clients config.Clients, secret ARN, value config.Secret,
) (string, error) {
	if secret.Reveal() == "" {
		return value.Reveal(), nil
	}
	return secretsmanager.Read(ctx, a.Config(config.SecretsManager, clients.AWS()), secret.Reveal())
}

// Stripe is how a function reaches Stripe.
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

// Options returns the options of a client with the given key, which observes its calls.
func (s Stripe) Options(key string, scope Scope, clients config.Clients) stripe.Options {
	return stripe.Options{
		Key: key, Scope: scope.Order(), BaseURL: string(s.Address),
		Timeout: s.Timeout, Transport: clients.Transport(s.Timeout, stripe.CallName),
		Dedicated: config.NewTransport(1, s.Timeout), Measure: clients.Measure(stripe.CallName), Now: clients.Now,
	}
}

// ReadKey returns the key from the environment, or reads the secret that the environment
// names. A key from the environment was checked with it.
func (s Stripe) ReadKey(ctx context.Context, a config.AWS, clients config.Clients) (string, error) {
	key, err := Secret(ctx, a, clients, s.Secret, s.Key)
	if err != nil || s.Secret.Reveal() == "" {
		return key, err
	}
	if err := stripe.CheckKey(key, string(s.Address)); err != nil {
		return "", fmt.Errorf("secret %s: %w", s.Secret.Reveal(), err)
	}
	return key, nil
}
