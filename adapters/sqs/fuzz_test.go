package sqs_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/internal/strictjson"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/refunds"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// FuzzDecode decodes each body as an order and as a refund. It puts the canary into
// values, of the right type and of wrong ones, and into names of fields.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{bodytest.Order, bodytest.Refund} {
		event := bodytest.FromEventBridge(body)
		f.Add(body)
		f.Add(event)
		f.Add(bodytest.FromSNS(body))
		f.Add(bodytest.FromSNS(event))
	}
	readOrder, readRefund := orders.NewDecoder(), refunds.NewDecoder()
	f.Fuzz(func(t *testing.T, body string) {
		checkDecode(t, body, readOrder.Decode)
		checkDecode(t, body, readRefund.Decode)
	})
}

func checkDecode[T any](t *testing.T, body string, decode func(string) (T, error)) {
	t.Helper()
	got, err := decode(body)
	if err != nil {
		isDecodeError(t, err)
	} else if again, err := decode(canonical(t, body)); err != nil ||
		!cmp.Equal(again, got, cmp.AllowUnexported(order.Order{}, refund.Request{})) {
		t.Errorf("in canonical JSON it is %+v (%v), want %+v", again, err, got)
	}
	for _, planted := range plant(body) {
		_, err := decode(planted)
		if err == nil {
			t.Fatalf("%s was accepted", planted)
		}
		isDecodeError(t, err)
		if strings.Contains(err.Error(), canary) {
			t.Errorf("the error contains a value of the message: %v", err)
		}
	}
}

func isDecodeError(t *testing.T, err error) {
	t.Helper()
	_, body := errors.AsType[*strictjson.Error](err)
	_, invalid := errors.AsType[*order.InvalidError](err)
	if !body && !invalid {
		t.Errorf("got %T: %v, want *strictjson.Error or *order.InvalidError", err, err)
	}
}

// canonical encodes a body again, with sorted keys, no blanks and other escapes.
func canonical(t *testing.T, body string) string {
	t.Helper()
	var v any // its numbers are integers that a float64 holds
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("an accepted body is not JSON: %v", err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// plant returns the body with the canary in each place of a message.
func plant(body string) (all []string) {
	var fields map[string]any
	if strings.Contains(body, "canary") || len(body) > 1<<15 ||
		json.Unmarshal([]byte(body), &fields) != nil || fields == nil {
		return nil
	}
	names := []string{
		"type", "orderId", "customerId", "currency", "lines", "payment", "refundId", "amount", "reason", "detail",
	}
	if fields["detail"] == nil && fields["Message"] == nil { // wrappers may have any field
		names = append(names, canary)
	}
	for _, name := range names {
		for _, value := range []any{
			canary,
			[]string{canary},
			map[string]any{canary: 1},
			map[string]any{"customer": canary, "method": canary},
			[]any{map[string]any{"sku": canary, "quantity": 1, "unitAmount": 1}},
			[]any{map[string]any{canary: 1}},
		} {
			planted := maps.Clone(fields)
			planted[name] = value
			if text, err := json.Marshal(planted); err == nil {
				all = append(all, string(text))
			}
		}
	}
	return all
}
