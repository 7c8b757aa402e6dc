package schema_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"orderonce/domain/intake"
	"orderonce/domain/order"
)

const valid = `{"customerId":"CUST987","currency":"usd","lines":[{"sku":"MUG","quantity":2,"unitAmount":1999}],` +
	`"payment":{"customer":"cus_1","method":"pm_1"}}`

// TestEveryAnswerIsInTheDocument causes every status of every operation but those of the
// API alone: 429 and 500.
func TestEveryAnswerIsInTheDocument(t *testing.T) {
	d, w := load(t), newWorld()
	seen := map[string]map[int]bool{putRoute: {}, postRoute: {}, getRoute: {}}
	do := func(in request, want int) {
		t.Helper()
		a := w.do(t.Context(), in)
		route := in.method + " /orders"
		if in.method != http.MethodPost {
			route += "/{orderId}"
		}
		if err := d.check(t, strings.TrimPrefix(route, in.method+" "), in.method, a); err != nil {
			t.Errorf("%+v: %v\n%s", in, err, a.Body)
		}
		if a.Code != want {
			t.Errorf("%+v: got %d, want %d\n%s", in, a.Code, want, a.Body)
		}
		seen[route][a.Code] = true
	}
	refused := strings.Replace(valid, `"quantity":2`, `"quantity":0`, 1)
	other := strings.Replace(valid, "MUG", "BAG", 1)
	for _, in := range []request{
		{method: "PUT", path: "/orders/O-1", body: valid}, {method: "POST", path: "/orders", key: "k", body: valid},
	} {
		change := func(f func(*request)) request {
			changed := in
			f(&changed)
			return changed
		}
		do(change(func(r *request) { r.body = "{" }), 400)
		do(change(func(r *request) { r.authorization = "Bearer" }), 401)
		do(change(func(r *request) { r.authorization = "open" }), 401)
		do(change(func(r *request) { r.authorization = "unsigned" }), 403)
		do(change(func(r *request) { r.authorization = "Bearer e30.eyJzdWIiOiJ1In0.s" }), 403)
		do(change(func(r *request) { r.body = strings.Repeat(" ", 256<<10) + valid }), 413)
		do(change(func(r *request) { r.body = strings.Repeat(" ", 10<<20) + valid }), 413)
		do(change(func(r *request) { r.content = "text/plain" }), 415)
		do(change(func(r *request) { r.body = refused }), 422)
		do(change(func(r *request) { r.body = `{"lines":[{}]}` }), 422)
		do(change(func(r *request) { r.body = `[]` }), 422)
		w.down = true
		do(in, 503)
		w.down = false
		do(in, 202)
		do(change(func(r *request) { r.body = other }), 409)
	}
	do(request{method: "POST", path: "/orders", body: valid}, 400)
	do(request{method: "GET", path: "/orders/O-1"}, 200)
	must(t, w.settle(t.Context(), order.Declined, "insufficient_funds"))
	do(request{method: "PUT", path: "/orders/O-1", body: valid}, 200)
	do(request{method: "POST", path: "/orders", key: "k", body: valid}, 200)
	do(request{method: "GET", path: "/orders/O-1"}, 200)
	do(request{method: "GET", path: "/orders/O-2"}, 404)
	do(request{method: "GET", path: "/orders/_"}, 404)
	do(request{method: "GET", path: "/orders/O-1", authorization: "open"}, 401)
	do(request{method: "GET", path: "/orders/O-1", authorization: "unsigned"}, 403)
	causeConflictOfGet(t, w)
	do(request{method: "GET", path: "/orders/O-3"}, 409)
	do(request{method: "PUT", path: "/orders/_", body: valid}, 422)
	for route, statuses := range seen {
		method, path, _ := strings.Cut(route, " ")
		statuses[429], statuses[500], statuses[503] = true, true, true // 503 of GET: a table that is down
		listed, _ := d.at("paths", path, strings.ToLower(method), "responses").(map[string]any)
		var got []string
		for status := range statuses {
			got = append(got, fmt.Sprint(status))
		}
		slices.Sort(got)
		if diff := cmp.Diff(got, slices.Sorted(maps.Keys(listed))); diff != "" {
			t.Errorf("%s: statuses (-seen +document):\n%s", route, diff)
		}
	}
}

// causeConflictOfGet registers O-3, and lets another content of the queue be claimed.
func causeConflictOfGet(t *testing.T, w *world) {
	t.Helper()
	w.do(t.Context(), request{method: "PUT", path: "/orders/O-3", body: valid})
	o, err := order.New(order.Draft{
		ID: "O-3", CustomerID: "CUST1", Currency: "usd", Lines: []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: 100}},
		Payment: order.Payment{Customer: "cus_1", Method: "pm_1"},
	})
	must(t, err)
	w.sent = []order.Order{o}
	must(t, w.settle(t.Context(), order.Paid, ""))
}

func TestEveryExampleOfTheDocumentIsValid(t *testing.T) {
	d, n := load(t), 0
	d.examples(func(where, schema string, value any) {
		n++
		if err := d.schema(t, schema).Validate(value); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	})
	if n < 15 {
		t.Errorf("got %d examples, want at least 15", n)
	}
}

func TestTheDocumentListsEveryStatusAndCurrency(t *testing.T) {
	d := load(t)
	want := []string{intake.Received, intake.NotSent}
	for _, s := range order.Statuses() {
		want = append(want, string(s))
	}
	if diff := cmp.Diff(enum(d.at("components", "schemas", "OrderView", "properties", "status", "enum")), sorted(want)); diff != "" {
		t.Errorf("statuses (-document +code):\n%s", diff)
	}
	var currencies []string
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for i := range 26 * 26 * 26 {
		if s := string([]byte{letters[i/676], letters[i/26%26], letters[i%26]}); order.ValidCurrency(s) {
			currencies = append(currencies, s)
		}
	}
	if diff := cmp.Diff(enum(d.at("components", "schemas", "Currency", "enum")), currencies); diff != "" {
		t.Errorf("currencies (-document +code):\n%s", diff)
	}
}

func enum(value any) (all []string) {
	for _, v := range value.([]any) {
		all = append(all, v.(string))
	}
	return sorted(all)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func unmarshal(t *testing.T, body string) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(body)))
	must(t, err)
	return value
}
