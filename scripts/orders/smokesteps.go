package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/deadletters"
)

// smokeOrder is an order of 1.00 USD.
type smokeOrder struct {
	order.Order

	draft order.Draft
	row   order.Record // as it was seen last
}

const smokeSKU = "SMOKE"

// newOrder returns an order with one of the payment methods.
func (t *smokeTest) newOrder(ctx context.Context, method int) (o *smokeOrder, err error) {
	if len(t.Method) <= method {
		return nil, fmt.Errorf("%w: --method names none such as %s", errLeftOut, smokeCards()[method])
	}
	o = &smokeOrder{draft: order.Draft{
		ID: newID(t.Now()), CustomerID: "smoke", Currency: "usd",
		Lines:   []order.Line{{SKU: smokeSKU, Quantity: 1, UnitAmount: 100}},
		Payment: order.Payment{Customer: t.Customer, Method: t.Method[method]},
	}}
	if o.Order, err = order.New(o.draft); err != nil {
		return nil, err
	}
	t.all = append(t.all, o.ID())
	if err := t.smokeStock(ctx, 1); err != nil {
		return nil, err
	}
	return o, nil
}

// smokeStock adds units where the deployment tracks them.
func (t *smokeTest) smokeStock(ctx context.Context, units int64) (err error) {
	if t.StockTable != "" && units != 0 {
		_, err = t.Store().AddStock(ctx, smokeSKU, units)
	}
	return err
}

func (t *smokeTest) post(ctx context.Context, d order.Draft) (string, error) {
	return t.QueueAt(t.Queue).Send(ctx, order.ID(d.ID), newID(t.Now()), orders.Encode(d))
}

// sells posts a new order, and sees what becomes of it.
func (t *smokeTest) sells(
	ctx context.Context, method int, passes, want order.Status,
) (o *smokeOrder, saw string, err error) {
	if o, err = t.newOrder(ctx, method); err == nil {
		_, err = t.post(ctx, o.draft)
	}
	if err == nil {
		saw, err = t.sees(ctx, o, passes, want)
	}
	return o, saw, err
}

// sees waits until an order is settled, with another status than the one that it passes.
// It returns an error unless that is the wanted one and the intent at Stripe agrees.
func (t *smokeTest) sees(ctx context.Context, o *smokeOrder, passes, want order.Status) (string, error) {
	var i order.Intent
	_, err := t.until(ctx, o.ID(), func(ctx context.Context) (done bool, saw string, err error) {
		now, err := t.Store().Load(ctx, o.ID())
		if err != nil && !errors.Is(err, order.ErrNotFound) {
			return false, "", err
		}
		o.row = now
		return o.row.Status != "" && o.row.Status != order.Open && o.row.Status != passes, summary(o.row), nil
	})
	if err == nil && o.row.Intent != "" {
		i, err = t.Payments().Read(ctx, o.row.Intent)
	}
	if err == nil {
		err = compare(t.Scope, o.Order, o.row, i, want)
	}
	return fmt.Sprintf("%s, row %s, %s %s, %s", o.ID(), o.row.Status, i.ID, i.State, o.row.Total), err
}

// summary describes a row in one line, with where to look next.
func summary(r order.Record) string {
	switch {
	case r.Status == "":
		return "no row yet: check the function's log, its event source mapping, and that ORDERS_TABLE is its table"
	case r.LastError != "":
		return fmt.Sprintf("%s, last error %s: see docs/reference/failures.md", r.Status, r.LastError)
	}
	return string(r.Status) + " " + r.Failure
}

// compare returns an error unless the order has this status, and its row and its intent
// agree.
func compare(s order.Scope, o order.Order, r order.Record, i order.Intent, want order.Status) error {
	state := map[order.Status]order.IntentState{
		order.Paid: order.Succeeded, order.Declined: order.NeedsMethod, order.ActionRequired: order.NeedsMethod,
		order.Canceled: order.IntentCanceled,
	}[want]
	err := order.Verify(i, s, o.ID(), o.Total())
	if err == nil && r.Status == want && r.Total == o.Total() && i.State == state {
		return nil
	}
	return errors.Join(fmt.Errorf("order %q: got %s, %s, intent %s, want %s, %s, intent %s: see orders show %s",
		o.ID(), summary(r), r.Total, i.State, want, o.Total(), state, o.ID()), err)
}

func smokePay(ctx context.Context, t *smokeTest) (saw string, err error) {
	t.paid, saw, err = t.sells(ctx, 0, "", order.Paid)
	return saw, err
}

// smokeRepeat posts the paid order again. That must leave the queue and change nothing.
// SQS counts late and approximately, so it looks at the queues three times.
func smokeRepeat(ctx context.Context, t *smokeTest) (string, error) {
	id, looks := t.paid.ID(), 0
	had, _, err := t.Watched().Depths(ctx)
	if err == nil {
		_, err = t.post(ctx, t.paid.draft)
	}
	if err != nil {
		return "", err
	}
	return t.until(ctx, id, func(ctx context.Context) (bool, string, error) {
		has, _, err := t.Watched().Depths(ctx)
		if looks++; has.Total() > had.Total() {
			looks = 0
		}
		if err != nil || looks < 3 {
			return false, "its repetition may still be in the queue: see the function's log", err
		}
		f, notRead, err := t.Ask(ctx, id)
		if err = errors.Join(err, notRead); err == nil && !reflect.DeepEqual(*f.Record, t.paid.row) {
			err = fmt.Errorf("order %q: its repetition changed the row: see orders show %s", id, id)
		} else if err == nil && f.Charges() != 1 {
			err = fmt.Errorf("order %q: got %d charges at Stripe, want 1: see orders show %s", id, f.Charges(), id)
		}
		return true, "queue left, row unchanged, one charge at Stripe", err
	})
}

// smokePark posts the paid order's id with another amount, which must be parked.
func smokePark(ctx context.Context, t *smokeTest) (saw string, err error) {
	other := t.paid.draft
	other.Lines = []order.Line{{SKU: smokeSKU, Quantity: 1, UnitAmount: 101}}
	if t.parked, err = t.post(ctx, other); err != nil {
		return "", err
	}
	return t.letter(ctx, 1, nil)
}

// smokeRedrive sends the dead letter back, which must be parked again.
func smokeRedrive(ctx context.Context, t *smokeTest) (string, error) {
	if _, err := t.letter(ctx, 1, t.Letters().Redrive); err != nil {
		return "", err
	}
	return t.letter(ctx, 2, nil)
}

// letter waits until the message is a dead letter that was parked so many times, and
// calls move with it, if there is one.
func (t *smokeTest) letter(
	ctx context.Context, times int, move func(context.Context, deadletters.Message) error,
) (string, error) {
	id := t.paid.ID()
	return t.until(ctx, id, func(ctx context.Context) (done bool, saw string, err error) {
		saw = "message " + t.parked + " with another amount is not parked: see the function's log"
		_, err = t.Letters().Each(ctx, mostShown, func(ctx context.Context, m deadletters.Message) (bool, error) {
			if m.FirstID != t.parked || m.TimesParked != times {
				return false, nil
			}
			done, saw = true, fmt.Sprintf("message %s, parked as %s, times: %d", m.FirstID, m.ReasonShown(), times)
			if m.Reason != order.ReasonConflict {
				return false, fmt.Errorf("order %q: %s: want conflict: see orders dead-letters show %s", id, saw, id)
			}
			if move == nil {
				return false, nil
			}
			return true, move(ctx, m)
		})
		return done, saw, err
	})
}

// smokeDecline posts an order whose card is declined. Where stock is tracked, the
// function then cancels it.
func smokeDecline(ctx context.Context, t *smokeTest) (saw string, err error) {
	passes, want := order.Status(""), order.Declined
	if t.StockTable != "" {
		passes, want = order.Declined, order.Canceled
	}
	_, saw, err = t.sells(ctx, 1, passes, want)
	return saw, err
}

// cancels cancels an order that waits for its customer.
func (t *smokeTest) cancels(ctx context.Context, cancel func(*smokeOrder) error) (string, error) {
	o, _, err := t.sells(ctx, 2, "", order.ActionRequired)
	if err == nil {
		err = cancel(o)
	}
	if err != nil {
		return "", err
	}
	return t.sees(ctx, o, order.ActionRequired, order.Canceled)
}

func smokeCancel(ctx context.Context, t *smokeTest) (string, error) {
	return t.cancels(ctx, func(o *smokeOrder) error {
		return cancel{ID: o.draft.ID, Yes: true}.cancel(ctx, t.quiet)
	})
}

// smokeRefund gives a part back. A refund needs what a charge does not: a connection that
// outlives a request.
func smokeRefund(ctx context.Context, t *smokeTest) (string, error) {
	m := makeRefund{Order: t.paid.draft.ID, Amount: "0.40", Reason: "duplicate", Yes: true, Limit: t.Limit}
	if err := m.refund(ctx, t.quiet); err != nil {
		return "", fmt.Errorf("order %q: %w", m.Order, err)
	}
	a, err := t.Accounts().Load(ctx, t.paid.ID())
	i, _ := a.Item("operator-40")
	return fmt.Sprintf("%s, %s %s, %s USD back", m.Order, i.Refund, i.Status, m.Amount), err
}

// smokeWebhook cancels an order's intent at Stripe alone, so that only Stripe's event can
// settle the row so soon.
func smokeWebhook(ctx context.Context, t *smokeTest) (string, error) {
	saw, err := t.cancels(ctx, func(o *smokeOrder) error {
		_, err := t.Payments().CancelIntent(ctx, o.row.Intent, order.CancelKey(t.Scope, o.ID(), t.Now()))
		return err
	})
	if err != nil {
		err = fmt.Errorf("%w: see the webhook function's log, and Stripe's deliveries to %s", err, t.Webhook)
	}
	return saw, err
}

// smokeIntake puts an order by HTTP, gets it, and puts it again.
func smokeIntake(ctx context.Context, t *smokeTest) (saw string, err error) {
	o, err := t.newOrder(ctx, 0)
	for _, c := range [...]struct{ method, want string }{{"PUT", "202 {"}, {"GET", "200 {"}, {"PUT", "200 {"}} {
		answer := ""
		if err == nil {
			answer, err = t.call(ctx, c.method, o)
		}
		if err == nil && !strings.HasPrefix(answer, c.want) {
			err = fmt.Errorf("order %q: %s %s/%s: got %s, want %s", o.ID(), c.method, t.Intake, o.ID(), answer, c.want)
		}
		if err == nil {
			saw, err = t.sees(ctx, o, "", order.Paid)
		}
	}
	return saw + ", PUT 202, then GET and the same PUT 200", err
}

// call sends a signed request about an order by HTTP, and returns status and body.
func (t *smokeTest) call(ctx context.Context, method string, o *smokeOrder) (string, error) {
	body := orders.Encode(o.draft)
	if method == http.MethodGet {
		body = ""
	}
	r, err := http.NewRequestWithContext(ctx, method, string(t.Intake)+"/"+o.draft.ID, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	who, err := t.AWS.Credentials.Retrieve(ctx)
	if err == nil {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
		err = v4.NewSigner().SignHTTP(ctx, who, r, sum, "execute-api", t.AWS.Region, t.Now())
	}
	if err != nil {
		return "", err
	}
	response, err := cloud.HTTPClient().Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	text, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, text), err
}

// smokeReceipt waits for the receipt of the paid order.
func smokeReceipt(ctx context.Context, t *smokeTest) (saw string, err error) {
	saw, err = t.until(ctx, t.paid.ID(), func(ctx context.Context) (bool, string, error) {
		i, err := t.Receipts().Load(ctx, t.paid.ID(), receipt.Paid)
		if err == nil && i.Status != "" && i.Status != receipt.Sending && i.Message == "" {
			err = fmt.Errorf("order %q: receipt %s, %s: see docs/guides/receipts.md", t.paid.ID(), i.Status, i.Failure)
		}
		return i.Status == receipt.Sent || i.Status == receipt.Delivered, "receipt " + string(i.Status), err
	})
	return saw + ": its event came through stream, bus and rule", err
}
