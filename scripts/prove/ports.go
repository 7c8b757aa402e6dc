package prove

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

var (
	_ order.Claims   = claims{}
	_ order.Payments = payments{}
)

// claims is the store as one worker reaches it.
type claims struct{ *worker }

func (c claims) Begin(ctx context.Context, o order.Order, l order.Lease) (got order.Claim, err error) {
	err = c.call(ordertest.Begin, "begin "+string(o.ID()), func() (string, error) {
		got, err = c.store.Begin(ctx, o, l)
		if got.Intent != "" {
			return fmt.Sprintf("attempt %d, %s is bound", got.Attempt, got.Intent), err
		}
		return fmt.Sprintf("attempt %d, no intent bound", got.Attempt), err
	})
	return got, err
}

func (c claims) Bind(ctx context.Context, claim order.Claim, id order.IntentID, at time.Time) error {
	return c.call(ordertest.Bind, "bind "+string(id), func() (string, error) { return "ok", c.store.Bind(ctx, claim, id, at) })
}

func (c claims) Finish(ctx context.Context, claim order.Claim, o order.Outcome, at time.Time) error {
	what := fmt.Sprintf("finish %s as %s", claim.Order.ID(), o.Status)
	return c.call(ordertest.Finish, what, func() (string, error) { return "ok", c.store.Finish(ctx, claim, o, at) })
}

func (c claims) Release(ctx context.Context, claim order.Claim, why order.Reason, at time.Time) error {
	what := fmt.Sprintf("release %s: %s", claim.Order.ID(), why)
	return c.call(ordertest.Release, what, func() (string, error) { return "ok", c.store.Release(ctx, claim, why, at) })
}

// payments is Stripe as one worker reaches it, through the deployed adapter.
type payments struct{ *worker }

func (p payments) Prepare(ctx context.Context, o order.Order, k order.Key) (order.Intent, error) {
	return p.intent(ordertest.Prepare, "prepare under "+k.String(), func() (order.Intent, error) { return p.pay.Prepare(ctx, o, k) })
}

func (p payments) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	return p.intent(ordertest.Confirm, "confirm "+string(id), func() (order.Intent, error) { return p.pay.Confirm(ctx, id, k) })
}

func (p payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return p.intent(ordertest.Read, "read "+string(id), func() (order.Intent, error) { return p.pay.Read(ctx, id) })
}

func (p payments) intent(c ordertest.Call, what string, do func() (order.Intent, error)) (got order.Intent, err error) {
	err = p.call(c, what, func() (string, error) {
		got, err = do()
		return fmt.Sprintf("%s %s", got.ID, got.State), err
	})
	return got, err
}

// stripeFault is the fault as the pretend Stripe knows it, so that the adapter has to make sense of it.
func (k *worker) stripeFault(c ordertest.Call) (f stripetest.Fault, at bool) {
	switch c {
	case ordertest.Prepare, ordertest.Confirm, ordertest.Read:
	case ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release, reply:
		return f, false
	}
	switch k.fault {
	case NeverArrives:
		f.Kind = stripetest.LoseAnswerBeforeEffect
	case LosesAnswer:
		f.Kind = stripetest.LoseAnswerAfterEffect
	case FailsBefore:
		f.Kind = stripetest.ServerErrorBeforeEffect
	case FailsAfter:
		f.Kind = stripetest.ServerErrorAfterEffect
	case NotNow:
		f.Kind = stripetest.RateLimited
	case None, Dies, Freezes, Suspends:
		return f, false
	}
	return f, true
}

// wire carries the adapter's HTTP to the pretend Stripe without a socket.
type wire struct{ *World }

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	form := r.URL.Query()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		must(err)
		form = must1(url.ParseQuery(string(body)))
	}
	a := w.stripe.Do(w.now, stripetest.Request{
		Method: r.Method, Path: r.URL.Path, APIKey: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
		Key: r.Header.Get("Idempotency-Key"), Form: form,
	})
	if a.Lost {
		return nil, ordertest.ErrConnection
	}
	body := a.Body()
	header := http.Header{"Request-Id": {a.RequestID.String()}, "Content-Type": {"application/json"}}
	if a.Replayed() {
		header.Set("Idempotent-Replayed", "true")
	}
	return &http.Response{
		StatusCode: a.Status, Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}
