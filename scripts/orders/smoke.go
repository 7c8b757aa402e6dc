package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
)

type smoke struct {
	Customer string        `and:"payer" help:"An existing customer, instead of a new one in Stripe's test mode. Needs --method."`
	Method   []string      `and:"payer" help:"Payment methods of that customer: one that pays, one that is declined, one whose bank wants authentication."`
	Only     []string      `placeholder:"STEP" help:"Only these steps, such as pay,cancel, and those that they go on from."`
	Limit    time.Duration `default:"2m" help:"A step fails if it has not seen what it waits for by then."`
}

// smokeStep is a part of the smoke test. It goes on from the order of the step after, and
// runs where the variable needs is set; "" is none. Without run it cannot be observed.
type smokeStep struct {
	name, after, needs string
	run                func(context.Context, *smokeTest) (saw string, err error)
}

func smokeSteps() []smokeStep {
	return []smokeStep{
		{"pay", "", "", smokePay},
		{"repeat", "pay", "", smokeRepeat},
		{"park", "pay", "", smokePark},
		{"redrive", "park", "", smokeRedrive},
		{"decline", "", "", smokeDecline},
		{"cancel", "", "", smokeCancel},
		{"refund", "pay", "REFUND_QUEUE_URL", smokeRefund},
		{"webhook", "", "WEBHOOK_URL", smokeWebhook},
		{"http", "", "INTAKE_URL", smokeIntake},
		{"receipt", "pay", "RECEIPTS_TABLE", smokeReceipt},
		{"publish", "", "EVENT_BUS", nil},
	}
}

// smokeCards are the test cards of the smoke test, in the order of --method. Stripe
// attaches no other declined card to a customer (docs.stripe.com/testing).
func smokeCards() []string {
	return []string{"pm_card_visa", "pm_card_chargeCustomerFail", "pm_card_authenticationRequired"}
}

type smokeTest struct {
	cloud.Deployment
	smoke

	quiet   cloud.Deployment // the same, which prints nothing
	created string           // the customer; "" if it existed before
	all     []order.ID
	paid    *smokeOrder
	parked  string // the id of the message that is to be parked
}

var (
	errLiveKey = errors.New("STRIPE_SECRET_KEY: want a test key, which starts with sk_test_ or rk_test_; " +
		"got a live one, which refuses the smoke test's cards")
	errLeftOut = errors.New("not run")
)

// Run runs the steps, removes what they made, and returns an error unless everything
// works that is deployed.
func (s smoke) Run(ctx context.Context, d cloud.Deployment) error {
	if stripe.Live(d.Key.Reveal()) {
		return errLiveKey
	}
	steps, err := s.steps()
	if err == nil {
		err = d.CompareQueues(ctx)
	}
	if err != nil {
		return err
	}
	t := &smokeTest{Deployment: d, smoke: s, quiet: d}
	t.quiet.Out, t.quiet.ErrOut, t.quiet.JSON, t.quiet.Terminal = io.Discard, io.Discard, false, false
	if s.Customer == "" {
		name := string(d.Scope) + "/smoke/" + newID(d.Now())
		t.Customer, t.Method, err = cloud.NewPayers(d.Env).Create(ctx, name, smokeCards()...)
		t.created = t.Customer
	}
	if err == nil {
		err = t.run(ctx, steps)
	}
	return errors.Join(err, t.clean(ctx))
}

// steps returns the steps of --only and those that they go on from, or all.
func (s smoke) steps() (wanted []smokeStep, err error) {
	only := append([]string{""}, s.Only...)
	for _, step := range slices.Backward(smokeSteps()) {
		if len(s.Only) == 0 || slices.Contains(only, step.name) {
			only = append(slices.DeleteFunc(only, func(n string) bool { return n == step.name }), step.after)
			wanted = append(wanted, step)
		}
	}
	slices.Reverse(wanted)
	if unknown := slices.Max(only); unknown != "" {
		err = fmt.Errorf("--only %s: no such step: see orders smoke --help", order.Quote(unknown))
	}
	return wanted, err
}

func (t *smokeTest) run(ctx context.Context, steps []smokeStep) error {
	variables, worked := env.ToMap(t.Environ), map[string]bool{"": true}
	var failed []error
	for _, step := range steps {
		began, saw, err := t.Now(), "", ctx.Err()
		switch {
		case err != nil:
		case !worked[step.after]:
			err = fmt.Errorf("%w: it goes on from the order of %s", errLeftOut, step.after)
		case step.needs != "" && variables[step.needs] == "":
			err = fmt.Errorf("%w: not deployed, %s is not set", errLeftOut, step.needs)
		case step.run == nil:
			err = fmt.Errorf("%w: not observable from here", errLeftOut)
		default:
			saw, err = step.run(ctx, t)
		}
		worked[step.name] = err == nil
		saw = "ok   " + saw
		if errors.Is(err, errLeftOut) {
			saw = err.Error()
		} else if err != nil {
			saw, failed = "FAILED", append(failed, fmt.Errorf("smoke step %s: %w", step.name, err))
		}
		t.Progress("")
		fmt.Fprintf(t.People(), "%-8s %s, %.1f s\n", step.name, saw, t.Now().Sub(began).Seconds())
	}
	return errors.Join(failed...)
}

// until looks again and again until look is done. The error after the limit has what it
// saw last.
func (t *smokeTest) until(
	ctx context.Context, id order.ID, look func(ctx context.Context) (done bool, saw string, err error),
) (seen string, err error) {
	limited, stop := context.WithTimeout(ctx, t.Limit)
	defer stop()
	err = cloud.Until(limited, lookEvery, func() (bool, error) {
		done, saw, err := look(limited)
		seen = cmp.Or(saw, seen)
		t.Progress("order %s: %s", id, seen)
		return done, err
	})
	if err != nil && limited.Err() != nil {
		err = cmp.Or(ctx.Err(), fmt.Errorf("order %q: gave up after %s: %s", id, t.Limit, seen))
	}
	return seen, err
}

// cleanTime is how long the end takes at most, also after Ctrl-C.
const cleanTime = time.Minute

// clean closes the orders that were not charged, removes what can be removed, and prints
// what is left.
func (t *smokeTest) clean(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer stop()
	var errs []error
	letters, unsold := t.Letters(), int64(0)
	for _, id := range t.all {
		err := cancel{ID: string(id), Yes: true}.cancel(ctx, t.quiet)
		if _, charged := errors.AsType[cloud.NotCanceledError](err); !charged {
			errs = append(errs, err)
			unsold++
		}
	}
	if len(t.all) > 0 {
		fmt.Fprintf(t.People(), "left     rows, which stay so that no order is charged twice: %s\n", t.all)
		_, err := letters.Each(ctx, mostShown, func(ctx context.Context, m deadletters.Message) (bool, error) {
			if !slices.Contains(t.all, m.OrderID()) {
				return false, nil
			}
			fmt.Fprintf(t.People(), "removed  dead letter %s of %s\n", m.ID, m.OrderID())
			return true, letters.Delete(ctx, m)
		})
		errs = append(errs, err)
	}
	errs = append(errs, t.smokeStock(ctx, -unsold))
	if t.created != "" {
		fmt.Fprintf(t.People(), "removed  customer %s\n", t.created)
		errs = append(errs, cloud.NewPayers(t.Env).Delete(ctx, "smoke/delete/"+t.created, t.created))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("not removed, or not closed: %w", err)
	}
	return nil
}

// newID returns a new orderId that shows its purpose.
func newID(now time.Time) string {
	return "SMOKE-" + now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// lookEvery is the time between two looks at a row that a command waits for.
const lookEvery = 500 * time.Millisecond
