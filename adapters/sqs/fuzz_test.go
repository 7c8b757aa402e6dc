package sqs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// canary is what no error may repeat: it has a blank, so that no field for personal or payment data accepts it.
const canary = "4242 4242 canary"

func FuzzDecode(f *testing.F) {
	for _, seed := range [][]badBody{shapeless(), invalid()} {
		for _, bad := range seed {
			if len(bad.body) < 4096 { // large seeds only slow the fuzzer down
				f.Add(bad.body)
			}
		}
	}
	for _, body := range []string{good, fromEventBridge(good), fromSNS(good), bodyOf(3)} {
		f.Add(body)
	}
	decoder := sqs.NewDecoder()
	f.Fuzz(func(t *testing.T, body string) {
		got, err := decoder.Decode(body)
		if err != nil {
			isDecodeError(t, err)
		} else if again, err := decoder.Decode(canonical(t, body)); err != nil || again.Fingerprint() != got.Fingerprint() {
			t.Errorf("written again it has fingerprint %s (%v), want %s", again.Fingerprint(), err, got.Fingerprint())
		}
		for _, planted := range plant(body) {
			_, err := decoder.Decode(planted)
			if err == nil {
				t.Fatalf("%s was accepted", planted)
			}
			isDecodeError(t, err)
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error repeats private data: %v", err)
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

// canonical writes a body again, with sorted keys, no blanks and other escapes.
func canonical(t *testing.T, body string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("an accepted body is no JSON: %v", err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// plant puts the canary where personal and payment data stand, in the right form and in wrong ones.
func plant(body string) []string {
	var fields map[string]any
	if strings.Contains(body, "canary") || len(body) > 1<<15 || json.Unmarshal([]byte(body), &fields) != nil || fields == nil {
		return nil
	}
	var all []string
	for field, values := range map[string][]any{
		"customerId": {canary, []string{canary}, map[string]int{"x": 1, "y": 2}},
		"payment": {
			canary,
			[]string{canary},
			map[string]any{"customer": canary, "method": canary},
			map[string]any{"method": []string{canary}},
		},
	} {
		before, had := fields[field]
		for _, value := range values {
			fields[field] = value
			planted, err := json.Marshal(fields)
			if err != nil {
				continue
			}
			all = append(all, string(planted))
		}
		if delete(fields, field); had {
			fields[field] = before
		}
	}
	return all
}
