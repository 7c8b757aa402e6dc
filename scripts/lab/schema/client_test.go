package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// full is an order with every member that the document lists, in the currency with the
// largest amounts.
const full = `{"type":"order","orderId":"O-1","customerId":"CUST987","currency":"idr","lines":[{"sku":"MUG","quantity":2,` +
	`"unitAmount":1999}],"payment":{"customer":"cus_1","method":"pm_1"}}`

// TestABodyIsAcceptedIfTheDocumentAcceptsIt changes an order in one place, in every way:
// a member is missing, is another value, or has an unknown one beside it. The handler
// accepts a body if the schema does, unless its amounts are beyond the currency, which no
// schema can say. Every answer is one that the document lists.
func TestABodyIsAcceptedIfTheDocumentAcceptsIt(t *testing.T) {
	d := load(t)
	schema := d.schema(t, "/components/schemas/Order")
	bodies := []string{full, valid}
	whole := unmarshal(t, full).(map[string]any)
	everywhere(whole, func(object map[string]any, key string) {
		was := object[key]
		delete(object, key)
		bodies = append(bodies, encode(t, whole))
		for _, value := range strange() {
			object[key] = value
			bodies = append(bodies, encode(t, whole))
		}
		object[key], object["added"] = was, was
		bodies = append(bodies, encode(t, whole))
		delete(object, "added")
	})
	for _, body := range bodies {
		w := newWorld()
		a := w.do(t.Context(), request{method: http.MethodPut, path: "/orders/O-1", body: body})
		must(t, d.check(t, "/orders/{orderId}", http.MethodPut, a))
		value := unmarshal(t, body)
		invalid := schema.Validate(value) != nil
		if id, named := value.(map[string]any)["orderId"]; named && id != "O-1" {
			invalid = true // the document says so in words
		}
		switch {
		case invalid && a.Code != http.StatusUnprocessableEntity:
			t.Errorf("got %d, want 422 of %s", a.Code, body)
		case !invalid && a.Code != http.StatusAccepted && !aboutMoney(t, a.Body.Bytes(), value.(map[string]any)):
			t.Errorf("got %d, want 202 of %s\n%s", a.Code, body, a.Body.Bytes())
		}
		if accepted := a.Code == http.StatusAccepted; accepted != (len(w.sent) == 1) {
			t.Errorf("got %d and %d orders sent of %s", a.Code, len(w.sent), body)
		}
	}
}

// everywhere calls f for each member of an object and of those within it.
func everywhere(object map[string]any, f func(object map[string]any, key string)) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		f(object, key)
		switch inner := object[key].(type) {
		case map[string]any:
			everywhere(inner, f)
		case []any:
			everywhere(inner[0].(map[string]any), f)
		}
	}
}

// strange returns values that are valid nowhere, or in some places: those at a limit, and
// beyond it, too.
func strange() []any {
	all := []any{
		nil, true, "", "a b", "\u00e9", "4242424242424242", "!~", 0, -1, 1.5, 1 << 53,
		[]any{},
		[]any{nil},
		map[string]any{},
		1, 1_000_000, 1_000_001, 999_999_999_999, 1_000_000_000_000,
		"usd", "USD", "us", "eth", "xpf", "c_1", "_1", "cus_", "cus", "Cus_1", "cus_-", "order", "refund", "O-2",
	}
	for _, length := range []int{1, 64, 65, 128, 129, 255, 256} {
		all = append(all, strings.Repeat("x", length), "cus_"+strings.Repeat("x", max(length-4, 0)))
	}
	line := map[string]any{"sku": "MUG", "quantity": 1, "unitAmount": 100}
	return append(all, slices.Repeat([]any{line}, 1), slices.Repeat([]any{line}, 100), slices.Repeat([]any{line}, 101))
}

// aboutMoney reports whether an answer lists nothing but amounts that the currency does
// not have.
func aboutMoney(t *testing.T, answer []byte, value map[string]any) bool {
	t.Helper()
	var problem struct {
		Errors []struct{ Pointer, Detail string }
	}
	must(t, json.Unmarshal(answer, &problem))
	for _, e := range problem.Errors {
		currency := fmt.Sprintf(" in %s", value["currency"])
		amount := e.Pointer == "#/lines" || strings.HasSuffix(e.Pointer, "/unitAmount")
		if !amount || !strings.Contains(e.Detail, currency) {
			return false
		}
	}
	return len(problem.Errors) > 0
}

func TestAKeyIsAcceptedIfTheDocumentAcceptsIt(t *testing.T) {
	d := load(t)
	schema := d.schema(t, "/paths/~1orders/post/parameters/0/schema")
	keys := []string{strings.Repeat("k", 255), strings.Repeat("k", 256), "a b"}
	for c := byte(' '); c < 0x7f; c++ {
		keys = append(keys, string(c)+"k")
	}
	for _, key := range keys {
		a := newWorld().do(t.Context(), request{method: http.MethodPost, path: "/orders", key: key, body: valid})
		must(t, d.check(t, "/orders", http.MethodPost, a))
		if accepted := a.Code == http.StatusAccepted; accepted != (schema.Validate(key) == nil) {
			t.Errorf("got %d of key %q", a.Code, key)
		}
	}
}
