package main

import (
	"cmp"
	"context"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/httpapi"
	"orderonce/domain/intake"
	"orderonce/domain/order"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table string     `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Queue config.URL `env:"QUEUE_URL,notEmpty"    want:"the URL of the order queue"`
	Owner string     `env:"OWNER_CLAIM"`
	Payer string     `env:"CUSTOMER_CLAIM"`
}

// client is the claim of a token that names the caller, unless OWNER_CLAIM names another:
// the program that got the token, because a person must not name prices (RFC 9068,
// section 2.2).
const client = "client_id"

// identify returns a function that returns who sent a request. The owner is the name of a
// claim that every caller needs, or "": then an IAM principal is a caller too.
func identify(owner string) func(context.Context) (intake.Caller, error) {
	return func(ctx context.Context) (intake.Caller, error) {
		c, known := apigateway.CallerOf(ctx)
		switch {
		case !known:
			return "", httpapi.ErrUnauthenticated
		case c.Principal != "" && owner == "":
			return intake.NewCaller("iam", c.Principal), nil
		}
		claim := cmp.Or(owner, client)
		if c.Claims[claim] == "" {
			return "", httpapi.ErrForbidden
		}
		return intake.NewCaller("jwt", c.Claims["iss"], claim, c.Claims[claim]), nil
	}
}

// paidBy returns accept for orders whose payment.customer is the value of the claim of
// the caller's token; any other is ErrPayer. Without a claim it returns accept: every
// caller is trusted with every payer.
func paidBy(claim string, accept httpapi.Accept) httpapi.Accept {
	if claim == "" {
		return accept
	}
	return func(ctx context.Context, o order.Order, c intake.Caller, t order.Trace) (intake.View, error) {
		known, _ := apigateway.CallerOf(ctx)
		if known.Claims[claim] != o.Payment().Customer {
			return intake.View{}, httpapi.ErrPayer
		}
		return accept(ctx, o, c, t)
	}
}
