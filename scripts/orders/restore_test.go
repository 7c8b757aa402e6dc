package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/view"
)

func TestRestoreWritesALostRow(t *testing.T) {
	t.Parallel()
	const id = order.ID("ORD-1")
	store, bank := &ordertest.Memory{}, &ordertest.Bank{Scope: scope}
	process(t, store, bank, id, ordertest.PaymentMethod(ordertest.Pays))
	before, err := store.Load(t.Context(), id)
	must(t, err)
	store.Delete(id)
	bank.ForgetKeys()

	after, err := order.Restore(t.Context(), store, bank, scope, id, before.Intent, noon().Add(48*time.Hour))
	must(t, err)
	want := "order      ORD-1\nstatus     paid\namount     39.98 USD\nintent     pi_1\nmode       test\n"
	if got := view.Order(after); !strings.HasPrefix(got, want) {
		t.Errorf("printed\n%s\nwant it to begin with\n%s", got, want)
	}
	process(t, store, bank, id, ordertest.PaymentMethod(ordertest.Pays))
	if charged := len(bank.Charges(id)); charged != 1 {
		t.Errorf("charged %d times after a redelivery, want once", charged)
	}
}

func TestRestoreRefusesAnIntentOfAnotherOrderOrScope(t *testing.T) {
	t.Parallel()
	store, bank := &ordertest.Memory{}, &ordertest.Bank{Scope: scope}
	process(t, store, bank, "ORD-1", ordertest.PaymentMethod(ordertest.Pays))
	process(t, store, bank, "ORD-2", ordertest.PaymentMethod(ordertest.Pays))
	for name, c := range map[string]struct {
		scope  order.Scope
		id     order.ID
		intent order.IntentID
	}{
		"an intent of another order":      {scope, "ORD-3", "pi_1"},
		"an intent of another scope":      {"other", "ORD-1", "pi_1"},
		"a row that names another intent": {scope, "ORD-2", "pi_1"},
	} {
		_, err := order.Restore(t.Context(), store, bank, c.scope, c.id, c.intent, noon())
		if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch {
			t.Errorf("%s: got %v, want a MismatchError", name, err)
		}
	}
}

func TestAScopeOnTheCommandLineReplacesTheEnvironments(t *testing.T) {
	t.Parallel()
	c := cloud.StripeEnv{Scope: "corrected"}
	for flag, want := range map[string]string{"": "corrected", "mistyped": "mistyped"} {
		if o, err := c.Under(flag); err != nil || o.Scope != want {
			t.Errorf("--scope=%q: got scope %q, %v, want %q", flag, o.Scope, err, want)
		}
	}
	if _, err := c.Under("Not A Scope"); err == nil || !strings.Contains(err.Error(), `scope "Not A Scope"`) {
		t.Errorf("got %v, want that it is not a scope", err)
	}
}

// The row is lost with its refunds.
func TestRestoreRecordsRefunds(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	d.stripe.Machine(func(m *stripetest.Machine) {
		_, err := m.RefundInDashboard(d.stripe.Now(), "pi_000001", 998)
		must(t, err)
	})
	_, err := d.table.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &d.table.Table, Key: map[string]types.AttributeValue{
			"orderId": &types.AttributeValueMemberS{Value: "ORD-1"}, "sk": &types.AttributeValueMemberS{Value: "order"},
		},
	})
	must(t, err)
	var out strings.Builder
	must(t, restore{ID: "ORD-1", Intent: "pi_000001"}.Run(t.Context(), testShell(d.environ, "", &out)))
	for _, want := range []string{
		"restored: the row names pi_000001 and is paid\n\n", "status     partially_refunded\n", "by others  9.98 USD\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwant %q in it", &out, want)
		}
	}
}
