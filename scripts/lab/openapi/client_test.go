package openapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestABodyIsAcceptedIfTheDocumentAcceptsIt generates requests from the document's
// schemas, half of them changed in one place. The handler accepts a body if the schema
// does, unless its amounts are beyond the currency, which no schema can say. Every answer
// is one that the document lists.
func TestABodyIsAcceptedIfTheDocumentAcceptsIt(t *testing.T) {
	t.Parallel()
	d := load(t)
	schema := d.schema(t, "/components/schemas/Order")
	generator := generator{d}
	const route = "/orders/{orderId}"
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		id := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`).Draw(t, "orderId")
		value := generator.object(t, "order", d.at("components", "schemas", "Order").(map[string]any))
		if _, named := value["orderId"]; named {
			value["orderId"] = id
		}
		if rapid.Bool().Draw(t, "change it") {
			generator.change(t, value)
		}
		body := encode(t, value)
		a := w.do(t.Context(), request{method: http.MethodPut, path: "/orders/" + id, body: body})
		must(t, d.check(t, route, http.MethodPut, a))
		invalid := schema.Validate(unmarshal(t, body))
		if named, is := value["orderId"]; is && named != id {
			invalid = errOtherID // the document says so in words
		}
		switch {
		case invalid != nil && a.status != http.StatusUnprocessableEntity:
			t.Fatalf("got %d, want 422 of %s\n%v", a.status, body, invalid)
		case invalid == nil && a.status != http.StatusAccepted && !aboutMoney(t, a.body, value):
			t.Fatalf("got %d, want 202 of %s\n%s", a.status, body, a.body)
		}
		if accepted := a.status == http.StatusAccepted; accepted != (len(w.sent) == 1) {
			t.Fatalf("got %d and %d orders sent of %s", a.status, len(w.sent), body)
		}
	})
}

// TestABodyThatIsNotJSONIsMalformed cuts a valid body, and adds to it.
func TestABodyThatIsNotJSONIsMalformed(t *testing.T) {
	t.Parallel()
	d := load(t)
	rapid.Check(t, func(t *rapid.T) {
		body := valid[:rapid.IntRange(0, len(valid)-1).Draw(t, "cut at")]
		if rapid.Bool().Draw(t, "add") {
			body = valid + rapid.SampledFrom([]string{"}", "x", valid, ",", "]"}).Draw(t, "added")
		}
		a := newWorld().do(t.Context(), request{method: http.MethodPost, path: "/orders", key: "k", body: body})
		must(t, d.check(t, "/orders", http.MethodPost, a))
		if a.status != http.StatusBadRequest {
			t.Fatalf("got %d, want 400 of %s", a.status, body)
		}
	})
}

// TestAKeyIsAcceptedIfTheDocumentAcceptsIt generates the header Idempotency-Key.
func TestAKeyIsAcceptedIfTheDocumentAcceptsIt(t *testing.T) {
	t.Parallel()
	d := load(t)
	schema := d.schema(t, "/paths/~1orders/post/parameters/0/schema")
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(
			rapid.StringMatching(`[!-~]{1,255}`), rapid.StringMatching(`[ -~]{1,255}`), rapid.StringMatching(`[!-~]{250,260}`),
		).Draw(t, "key")
		a := newWorld().do(t.Context(), request{method: http.MethodPost, path: "/orders", key: key, body: valid})
		must(t, d.check(t, "/orders", http.MethodPost, a))
		if accepted := a.status == http.StatusAccepted; accepted != (schema.Validate(key) == nil) {
			t.Fatalf("got %d of key %q", a.status, key)
		}
	})
}

var errOtherID = errors.New("not the id of the URL")

// aboutMoney reports whether an answer lists nothing but amounts that the currency does
// not have.
func aboutMoney(t *rapid.T, answer []byte, value map[string]any) bool {
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

// generator makes values of the document's schemas. It knows the keywords that they use.
type generator struct{ document }

func (g generator) value(t *rapid.T, name string, schema map[string]any) any {
	schema, _ = g.resolve(schema).(map[string]any)
	number := func(key string, otherwise int64) int64 {
		if n, is := schema[key].(json.Number); is {
			otherwise, _ = n.Int64()
		}
		return otherwise
	}
	switch {
	case schema["const"] != nil:
		return schema["const"]
	case schema["enum"] != nil:
		return rapid.SampledFrom(schema["enum"].([]any)).Draw(t, name)
	case schema["type"] == "object":
		return g.object(t, name, schema)
	case schema["type"] == "array":
		items := make([]any, rapid.Int64Range(number("minItems", 0), number("maxItems", 9)).Draw(t, name))
		for i := range items {
			items[i] = g.value(t, fmt.Sprintf("%s[%d]", name, i), schema["items"].(map[string]any))
		}
		return items
	case schema["type"] == "integer":
		return rapid.Int64Range(number("minimum", 0), number("maximum", 9)).Draw(t, name)
	case schema["type"] == "string":
		return rapid.StringMatching(schema["pattern"].(string)).Filter(func(s string) bool {
			return int64(len(s)) <= number("maxLength", 1000)
		}).Draw(t, name)
	}
	t.Fatalf("%s: no generator for %v", name, schema)
	return nil
}

// object makes an object with all that is required and some that is not.
func (g generator) object(t *rapid.T, name string, schema map[string]any) map[string]any {
	out := map[string]any{}
	properties := schema["properties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(schema["required"].([]any), any(key)) || rapid.Bool().Draw(t, "with "+key) {
			out[key] = g.value(t, name+"."+key, properties[key].(map[string]any))
		}
	}
	return out
}

// change changes an object, or one within it, in one place.
func (g generator) change(t *rapid.T, object map[string]any) {
	keys := slices.Sorted(maps.Keys(object))
	key := rapid.SampledFrom(keys).Draw(t, "change at")
	inner, isObject := object[key].(map[string]any)
	items, isList := object[key].([]any)
	if isList && len(items) > 0 {
		inner, isObject = items[rapid.IntRange(0, len(items)-1).Draw(t, "line")].(map[string]any)
	}
	if isObject && rapid.Bool().Draw(t, "within") {
		g.change(t, inner)
		return
	}
	switch rapid.SampledFrom([]string{"remove", "add", "replace"}).Draw(t, "change") {
	case "remove":
		delete(object, key)
	case "add":
		object[rapid.StringMatching(`[a-zA-Z]{1,8}`).Draw(t, "added")] = rapid.SampledFrom(strange()).Draw(t, "value")
	case "replace":
		object[key] = rapid.SampledFrom(strange()).Draw(t, "value")
	}
}

// strange returns values that are valid nowhere, or in some places.
func strange() []any {
	return []any{
		nil, true, "", "a b", "\u00e9", "4242424242424242", strings.Repeat("x", 300), int64(0), int64(-1), 1.5, int64(1) << 53,
		[]any{},
		map[string]any{},
		"usd", "cus_1", "order", "refund",
	}
}

// TestTheLimitsOfTheDocumentAreThoseOfTheCode puts one value at a limit, or beyond it,
// into an order. Both accept it, or neither does.
func TestTheLimitsOfTheDocumentAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	d := load(t)
	schema := d.schema(t, "/components/schemas/Order")
	long := func(prefix string, length int) string { return prefix + strings.Repeat("x", length-len(prefix)) }
	lines := func(n int) []any {
		return slices.Repeat([]any{map[string]any{"sku": "MUG", "quantity": 1, "unitAmount": 100}}, n)
	}
	for pointer, values := range map[string][2][]any{ // accepted, and not
		"#/customerId":         {{"x", long("", 128), "!~"}, {"", long("", 129), "a b", "\u00e9"}},
		"#/currency":           {{"usd", "xpf"}, {"", "USD", "us", "eth"}},
		"#/lines":              {{lines(1), lines(100)}, {lines(0), lines(101), nil}},
		"#/lines/0/sku":        {{"x", long("", 64), "!~"}, {"", long("", 65), "a b"}},
		"#/lines/0/quantity":   {{1, 1_000_000}, {0, 1_000_001, -1, nil}},
		"#/lines/0/unitAmount": {{0, 999_999_999_999}, {-1, 1_000_000_000_000, nil}},
		"#/payment/customer":   {{"c_1", long("cus_", 255)}, {"", "_1", "cus_", "cus", "Cus_1", "cus_-", long("cus_", 256)}},
		"#/payment/method":     {{"pm_1_A"}, {"4242424242424242"}},
	} {
		for i, accepted := range []bool{true, false} {
			for _, v := range values[i] {
				order := unmarshal(t, strings.Replace(valid, "usd", "idr", 1)).(map[string]any)
				set(order, strings.Split(pointer, "/")[1:], v)
				body := encode(t, order)
				a := newWorld().do(t.Context(), request{method: http.MethodPut, path: "/orders/O-1", body: body})
				if got := schema.Validate(unmarshal(t, body)) == nil; got != accepted {
					t.Errorf("%s: the document accepts %v: %t, want %t", pointer, v, got, accepted)
				}
				if got := !strings.Contains(string(a.body), fmt.Sprintf("%q", pointer)) || aboutTotal(a.body); got != accepted {
					t.Errorf("%s: the code accepts %v: %t, want %t\n%s", pointer, v, got, accepted, a.body)
				}
			}
		}
	}
}

// aboutTotal reports whether an answer says that the lines are more than one charge can
// hold.
func aboutTotal(answer []byte) bool { return strings.Contains(string(answer), " in idr") }

// set sets a value within an object. A list has one element.
func set(object map[string]any, path []string, value any) {
	if len(path) == 1 {
		object[path[0]] = value
		return
	}
	if list, is := object[path[0]].([]any); is {
		set(list[0].(map[string]any), path[2:], value)
		return
	}
	set(object[path[0]].(map[string]any), path[1:], value)
}
