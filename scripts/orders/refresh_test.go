package main

import (
	stdcmp "cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

const (
	scope      = order.Scope("test")
	pretendKey = "sk_test_pretend"
)

// process processes an order of 39.98 USD once.
func process(t *testing.T, claims order.Claims, payments order.Payments, id order.ID, method string) {
	t.Helper()
	d := ordertest.Draft(id)
	d.Payment.Method = method
	o, err := order.New(d)
	must(t, err)
	p := &order.Processor{Claims: claims, Payments: payments, Scope: scope, Now: noon, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "owner-of-" + string(id), From: noon(), Until: noon().Add(time.Minute)}
	p.Process(t.Context(), o, noon(), lease)
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	const id = order.ID("ORD-1")
	for claim, tt := range map[string]struct {
		card      ordertest.Card
		mishap    ordertest.Fault // at Prepare
		ask       order.ID        // "" for that of the order
		scope     order.Scope     // "" for that of the order
		meanwhile func(*ordertest.Bank, order.IntentID)
		printed   string
		status    order.Status
		err       error
	}{
		"a pending order that the bank has paid since is settled": {
			card: ordertest.TakesDays, meanwhile: (*ordertest.Bank).Clear,
			printed: "settled: paid, it was pending\n\norder      ORD-1\nstatus     paid\n", status: order.Paid,
		},
		"a declined order that the customer has paid since is settled": {
			card: ordertest.Declines, meanwhile: (*ordertest.Bank).CustomerPays,
			printed: "settled: paid, it was declined\n\norder      ORD-1\nstatus     paid\n", status: order.Paid,
		},
		"an order that is still pending is unchanged": {
			card: ordertest.TakesDays, printed: "unchanged: Stripe has no newer status than pending\n\norder      ORD-1\n", status: order.Pending,
		},
		"a paid order is unchanged": {
			card: ordertest.Pays, printed: "unchanged: Stripe has no newer status than paid\n\norder      ORD-1\n", status: order.Paid,
		},
		"an order without an intent is an error": {
			card: ordertest.Pays, mishap: ordertest.ReturnsUnavailable, status: order.Open, err: order.ErrNoIntent,
		},
		"an order that was not posted is not found": {
			card: ordertest.Pays, ask: "ORD-2", status: order.Paid, err: order.ErrNotFound,
		},
		"an order of another scope is not touched": {
			card: ordertest.TakesDays, scope: "other", meanwhile: (*ordertest.Bank).Clear, status: order.Pending, err: &order.MismatchError{},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			store, bank := &ordertest.Memory{}, &ordertest.Bank{Scope: scope}
			if tt.mishap != "" {
				bank.Fail(ordertest.Prepare, tt.mishap)
			}
			process(t, store, bank, id, ordertest.PaymentMethod(tt.card))
			before, err := store.Load(t.Context(), id)
			must(t, err)
			if tt.meanwhile != nil {
				tt.meanwhile(bank, before.Intent)
			}
			summary, after, err := settle(t.Context(), store, bank, stdcmp.Or(tt.scope, scope),
				stdcmp.Or(tt.ask, id), noon().Add(time.Hour))
			if !sameError(err, tt.err) {
				t.Errorf("error = %v, want %v", err, tt.err)
			}
			if got := summary + view.Order(after); err == nil && !strings.HasPrefix(got, tt.printed) {
				t.Errorf("printed\n%s\nwant it to begin with\n%s", got, tt.printed)
			}
			if after, err := store.Load(t.Context(), id); err != nil || after.Status != tt.status {
				t.Errorf("status = %s, %v, want %s", after.Status, err, tt.status)
			}
			if charged := len(bank.Charges(id)); charged > 1 {
				t.Errorf("charged %d times", charged)
			}
		})
	}
}

// sameError compares a *MismatchError by its type and every other error by identity.
func sameError(got, want error) bool {
	if _, mismatch := errors.AsType[*order.MismatchError](want); mismatch {
		_, mismatch = errors.AsType[*order.MismatchError](got)
		return mismatch
	}
	return errors.Is(got, want)
}

// operatorEnv returns an environment with a pretend Stripe. Nothing listens at its
// table's address, unless the changes set another one.
func operatorEnv(s *stripetest.Server, changes ...string) []string {
	return environment(append([]string{"AWS_ENDPOINT_URL=http://127.0.0.1:1", "STRIPE_API_BASE=" + s.URL}, changes...)...)
}

func pretendStripe(t *testing.T) *stripetest.Server {
	t.Helper()
	s, err := stripetest.Serve(stripetest.Options{Rules: stripetest.Rules{Key: pretendKey}, Now: noon})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// deployment is a table in the engine and a pretend Stripe, as the commands and the
// function use them.
type deployment struct {
	environ  []string
	stripe   *stripetest.Server
	store    *dynamodb.Store
	payments *charge.Payments
	table    *dynamodbtest.Harness
}

func deploy(t *testing.T) deployment {
	t.Helper()
	h := dynamodbtest.Open(t)
	s := pretendStripe(t)
	credentials, err := h.Config.Credentials.Retrieve(t.Context())
	must(t, err)
	environ := operatorEnv(
		s, "AWS_ENDPOINT_URL_DYNAMODB="+h.Proxy.URL, "ORDERS_TABLE="+h.Table, "AWS_REGION="+h.Config.Region,
		"AWS_ACCESS_KEY_ID="+credentials.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+credentials.SecretAccessKey,
		"AWS_SESSION_TOKEN="+credentials.SessionToken,
	)
	return deployment{
		environ, s, dynamodb.New(h.Config, h.Table), charge.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: s.URL}), h,
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_usBankAccount_processing")
	d.stripe.Machine(func(m *stripetest.Machine) { must(t, m.Settle(d.stripe.Now(), "pi_000001", true)) })
	for _, step := range []struct {
		claim string
		run   interface {
			Run(context.Context, shell.Shell) error
		}
		printed []string
		err     error
	}{
		{"show prints a row", show{"ORD-1"}, []string{"order      ORD-1\nstatus     pending\namount     39.98 USD\nintent     pi_000001\n"}, nil},
		{"refresh settles it", refresh{ID: "ORD-1"}, []string{"settled: paid, it was pending\n\norder      ORD-1\n"}, nil},
		{"refresh settles it once", refresh{ID: "ORD-1"}, []string{"unchanged: Stripe has no newer status than paid\n\norder      ORD-1\n"}, nil},
		{"show prints the settled row", show{"ORD-1"}, []string{"status     paid\n", "pending -> paid\n"}, nil},
		{"restore leaves a paid row", restore{ID: "ORD-1", Intent: "pi_000001"}, []string{"restored: the row names pi_000001 and is paid"}, nil},
		{"show finds nothing", show{"ORD-2"}, nil, order.ErrNotFound},
		{"refresh finds nothing", refresh{ID: "ORD-2"}, nil, order.ErrNotFound},
	} {
		var out strings.Builder
		err := step.run.Run(t.Context(), testShell(d.environ, "", &out))
		if !sameError(err, step.err) {
			t.Errorf("%s: error = %v, want %v", step.claim, err, step.err)
		}
		for _, want := range step.printed {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: printed\n%s\nwant %q in it", step.claim, &out, want)
			}
		}
		if strings.Contains(out.String(), "CUST987") || step.err != nil && strings.Contains(out.String(), "status") {
			t.Errorf("%s: printed\n%s", step.claim, &out)
		}
	}
}

func TestAnOrderThatIsNotFoundMayBeElsewhere(t *testing.T) {
	t.Parallel()
	c, cfg := cloud.TableEnv{Table: "orders"}, aws.Config{Region: "eu-west-1"}
	err := c.Explain(cfg, order.ErrNotFound)
	for _, want := range []string{
		`in table "orders" at eu-west-1`, "not delivered yet", "aws sqs get-queue-attributes",
		"dead-letter queue", "orders dead-letters list", "ORDERS_TABLE, --region and --profile",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error\n%v\nwant %q in it", err, want)
		}
	}
	if !errors.Is(err, order.ErrNotFound) {
		t.Errorf("errors.Is(%v, order.ErrNotFound) = false", err)
	}
	if other := errors.New("other"); cmp.Diff(c.Explain(cfg, other).Error(), other.Error()) != "" {
		t.Errorf("got %v, want another error as it is", c.Explain(cfg, other))
	}
}

func TestRefreshSendsNothingWithAWrongEnvironment(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		changes []string
		want    []string
	}{
		"a live key with another base URL": {
			[]string{"STRIPE_SECRET_KEY=sk_live_canary"},
			[]string{"STRIPE_SECRET_KEY: live key with another base URL: a live key may be sent to Stripe only"},
		},
		"a value that is not a key": {
			[]string{"STRIPE_SECRET_KEY=canary"},
			[]string{"STRIPE_SECRET_KEY: want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_"},
		},
		"every problem is reported at once": {
			[]string{"STRIPE_SECRET_KEY=", "STRIPE_API_BASE=localhost", "SCOPE=", "ORDERS_TABLE="},
			[]string{
				"ORDERS_TABLE: want the name of the orders table, got empty",
				"SCOPE: want the deployment's scope, got empty", "STRIPE_SECRET_KEY: want a secret, got empty",
				`STRIPE_API_BASE: want a URL, or nothing for Stripe itself, got "localhost"`,
			},
		},
		"an invalid scope": {
			[]string{"SCOPE=Prod EU"}, []string{`SCOPE: scope "Prod EU": want ` + order.ScopeRule},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := pretendStripe(t)
			var out strings.Builder
			err := refresh{ID: "ORD-1"}.Run(t.Context(), testShell(operatorEnv(s, tt.changes...), "", &out))
			problems, _ := errors.AsType[*config.Error](err)
			if problems == nil {
				t.Fatalf("got %v, want an EnvError", err)
			}
			if diff := cmp.Diff(problems.Problems, tt.want); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
			text := cloud.Hint(err).Error()
			if strings.Contains(text, "canary") || !strings.Contains(text, "build/up/env") || out.Len() > 0 {
				t.Errorf("printed %q, and the error is %v", &out, cloud.Hint(err))
			}
			if sent := len(s.Calls()); sent > 0 {
				t.Errorf("%d requests were sent", sent)
			}
		})
	}
}

// A wrong scope, a key of another account and a table of another region say what to
// correct.
func TestAWrongDeploymentNamesTheRemedy(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	for change, want := range map[string]string{
		"SCOPE=other":                       "SCOPE must be that of the deployment",
		"STRIPE_SECRET_KEY=sk_test_another": "STRIPE_SECRET_KEY must be a valid key of the account and the mode",
		"ORDERS_TABLE=another":              "no such table in this region and account",
	} {
		err := cloud.Hint(refresh{ID: "ORD-1"}.Run(t.Context(), testShell(append(d.environ, change), "", new(strings.Builder))))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk_test") {
			t.Errorf("%s: got %v, want %q and no key", change, err, want)
		}
	}
}
