package sqs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// canary must appear in no error. It has a blank, so that no field accepts it.
const canary = "4242 4242 canary"

func FuzzDecode(f *testing.F) {
	for _, seed := range [][]badBody{malformed(), malformedLayers(), absent(), invalid()} {
		for _, bad := range seed {
			if len(bad.body) < 4096 { // large seeds only slow the fuzzer down
				f.Add(bad.body)
			}
		}
	}
	for _, body := range []string{good, fromEventBridge(good), fromSNS(good), fromSNS(fromEventBridge(good)), bodyOf(3)} {
		f.Add(body)
	}
	decoder := sqs.NewDecoder()
	f.Fuzz(func(t *testing.T, body string) {
		got, err := decoder.Decode(body)
		if err != nil {
			isDecodeError(t, err)
		} else if again, err := decoder.Decode(canonical(t, body)); err != nil || again.Fingerprint() != got.Fingerprint() {
			t.Errorf("in canonical JSON it has fingerprint %s (%v), want %s",
				again.Fingerprint(), err, got.Fingerprint())
		}
		for _, planted := range plant(body) {
			_, err := decoder.Decode(planted)
			if err == nil {
				t.Fatalf("%s was accepted", planted)
			}
			isDecodeError(t, err)
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error contains a value of the message: %v", err)
			}
		}
	})
}

func isDecodeError(t *testing.T, err error) {
	t.Helper()
	var body *sqs.BodyError
	var invalid *order.InvalidError
	if !errors.As(err, &body) && !errors.As(err, &invalid) {
		t.Errorf("got %T: %v, want *BodyError or *order.InvalidError", err, err)
	}
}

// canonical encodes a body again, with sorted keys, no blanks and other escapes.
func canonical(t *testing.T, body string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("an accepted body is not JSON: %v", err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// plant puts the canary into values, of the right type and of wrong ones, and into names
// of fields.
func plant(body string) []string {
	var fields map[string]any
	if strings.Contains(body, "canary") || len(body) > 1<<15 || json.Unmarshal([]byte(body), &fields) != nil ||
		fields == nil {
		return nil
	}
	twice := map[string]int{canary + "s": 1, canary + "S": 2}
	planted := map[string][]any{
		"orderId":    {canary, []string{canary}, twice},
		"customerId": {canary, []string{canary}, twice},
		"currency":   {canary, []string{canary}, twice},
		"lines": {
			canary,
			[]any{map[string]any{"sku": canary, "quantity": 1, "unitAmount": 1}},
			[]any{map[string]any{"sku": []string{canary}}},
			[]any{map[string]any{canary: 1}},
		},
		"payment": {
			canary,
			[]string{canary},
			map[string]any{"customer": canary, "method": canary},
			map[string]any{"method": []string{canary}},
			map[string]any{canary: 1},
		},
		"detail": {twice}, // what an event carries, or an order has not
	}
	if fields["detail"] == nil && fields["Message"] == nil { // wrappers may have any field
		planted[canary] = []any{1, twice}
	}
	var all []string
	for field, values := range planted {
		before, had := fields[field]
		for _, value := range values {
			fields[field] = value
			if text, err := json.Marshal(fields); err == nil {
				all = append(all, string(text))
			}
		}
		if delete(fields, field); had {
			fields[field] = before
		}
	}
	return all
}
