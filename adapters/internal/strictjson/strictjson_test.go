package strictjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/internal/strictjson"
)

type document struct {
	ID     string  `json:"id"`
	Note   *string `json:"note"`
	Amount *int64  `json:"amount"`
	Seq    int     `json:"seq"`
	Lines  []line  `json:"lines"`
	Payer  payer   `json:"payer"`
	Parent *payer  `json:"parent"`
	Type   *string `json:"type" null:"refused"`
}

type line struct {
	SKU string `json:"sku"`
}

type payer struct {
	Name string `json:"name,omitempty"`
}

const (
	cardNumber  = "4242424242424242" // Stripe's test card
	wantInteger = "want an integer of at most 64 bits, without a fraction, an exponent or quotes"
)

func TestDecode(t *testing.T) {
	text, number := "x", int64(-9223372036854775808)
	for name, tt := range map[string]struct {
		body string
		want document
	}{
		"no fields":        {`{}`, document{}},
		"blanks around it": {"\n\t {\"id\" : \"a\" } \r\n", document{ID: "a"}},
		"escapes":          {`{"\u0069d":"\u00e9\n\\"}`, document{ID: "é\n\\"}},
		"pointers": {
			`{"note":"x","amount":-9223372036854775808,"parent":{"name":"a"}}`,
			document{Note: &text, Amount: &number, Parent: &payer{"a"}},
		},
		"null for anything": {`{"id":null,"note":null,"amount":null,"seq":null,"lines":null,"payer":null,"parent":null}`, document{}},
		"a list":            {`{"lines":[{"sku":"a"},{},null]}`, document{Lines: []line{{"a"}, {}, {}}}},
		"the largest body":  {`{"seq":7}` + strings.Repeat(" ", strictjson.MaxBody-9), document{Seq: 7}},
		"the longest list":  {`{"lines":[` + strings.Repeat("{},", 999) + `{}]}`, document{Lines: make([]line, 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := strictjson.New[document]().Decode([]byte(tt.body))
			if diff := cmp.Diff(got, tt.want); err != nil || diff != "" {
				t.Errorf("%v (-got +want):\n%s", err, diff)
			}
		})
	}
}

// malformed returns bodies that are refused, with the error.
func malformed() map[string][2]string {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return map[string][2]string{
		"too large":             {strings.Repeat(" ", strictjson.MaxBody) + `{}`, "too large: 262146 bytes, want at most 262144"},
		"empty":                 {"", "truncated JSON"},
		"not JSON":              {"hello", "invalid JSON at byte 1"},
		"a byte order mark":     {"\ufeff{}", "invalid JSON at byte 1"},
		"truncated in a name":   {`{"i`, "truncated JSON"},
		"no last brace":         {`{"id":"a"`, "truncated JSON"},
		"a bracket for a brace": {`{"id":"a"]`, "invalid JSON at byte 10"},
		"invalid UTF-8":         {"{\"id\":\"\xff\"}", "invalid JSON at byte 8"},
		"half a surrogate":      {`{"id":"\ud800"}`, "invalid JSON at byte 8"},
		"two objects":           {`{"id":"a"}{}`, "trailing data after the JSON object at byte 10"},
		"trailing bytes":        {`{"id":"a"} x`, "trailing data after the JSON object at byte 10"},
		"a brace too many":      {`{}}`, "trailing data after the JSON object at byte 2"},
		"null":                  {"null", "not a JSON object"},
		"a list of one object":  {`[{"id":"a"}]`, "not a JSON object"},
		"brackets":              {strings.Repeat("[", 100_000), "nested deeper than 16 levels"},
		"null for a type":       {`{"type":null}`, "type: want a string"},
		"depth for a text":      {`{"id":` + nested(17) + `}`, "id: want a string"},

		"a field twice":                    {`{"id":"a","id":"a"}`, `duplicate field "id"`},
		"a field twice, by an escape":      {`{"id":"a","\u0069d":"a"}`, `duplicate field "id"`},
		"a field twice in a line":          {`{"lines":[{},{"sku":"a","sku":"b"}]}`, `duplicate field "lines[1].sku"`},
		"a field twice, in other case":     {`{"id":"a","ID":"a"}`, `unknown field "ID": want "id"`},
		"an unknown field":                 {`{"discount":5}`, `unknown field "discount"`},
		"an unknown field in a line":       {`{"lines":[{},{"tax":5}]}`, `unknown field "lines[1].tax"`},
		"a wrong case":                     {`{"payer":{"Name":"a"}}`, `unknown field "payer.Name": want "name"`},
		"a long s":                         {`{"line` + "\u017f" + `":[]}`, `unknown field [withheld: length 5, with '\u017f']: want "lines"`},
		"a card number for a field":        {`{"` + cardNumber + `":5}`, `unknown field [withheld: length 16, with 16 digits]`},
		"a card number for a nested field": {`{"payer":{"` + cardNumber + `":5}}`, `unknown field payer.[withheld: length 16, with 16 digits]`},
		"a field's name of a kilobyte":     {`{"` + strings.Repeat("x", 1024) + `":5}`, `unknown field [withheld: length 1024]`},
		"a number for a string":            {`{"id":5}`, "id: want a string"},
		"a float":                          {`{"amount":2.0}`, "amount: " + wantInteger},
		"an exponent":                      {`{"amount":2e0}`, "amount: " + wantInteger},
		"a quoted number":                  {`{"amount":"2"}`, "amount: " + wantInteger},
		"a number beyond 64 bits":          {`{"amount":9223372036854775808}`, "amount: " + wantInteger},
		"a truth":                          {`{"seq":true}`, "seq: " + wantInteger},
		"an object for a list":             {`{"lines":{}}`, "lines: want a list"},
		"a number for an element":          {`{"lines":[{},5]}`, "lines[1]: want an object"},
		"a list for an element":            {`{"lines":[[]]}`, "lines[0]: want an object"},
		"a card number for an object":      {`{"payer":"` + cardNumber + `"}`, "payer: want an object"},
		"a list too long":                  {`{"lines":[` + strings.Repeat("{},", 1000) + `{}]}`, "lines: want at most 1000 elements"},
	}
}

func TestDecodeRejects(t *testing.T) {
	decoder := strictjson.New[document]()
	for name, bad := range malformed() {
		t.Run(name, func(t *testing.T) {
			_, err := decoder.Decode([]byte(bad[0]))
			var body *strictjson.Error
			if !errors.As(err, &body) || body.Problem != bad[1] {
				t.Errorf("got %v, want %s", err, bad[1])
			}
			if got, want := errors.Is(err, strictjson.ErrSyntax), isSyntax(bad[1]); got != want {
				t.Errorf("a syntax error: got %t, want %t", got, want)
			}
		})
	}
}

func isSyntax(problem string) bool {
	return strings.Contains(problem, " JSON at ") || strings.HasPrefix(problem, "truncated") || strings.HasPrefix(problem, "trailing")
}

func TestMembers(t *testing.T) {
	got, err := strictjson.Members([]byte(` { "a" : "x\"" , "\u0062":{"c": [1 , 2]},"d":-1 } `))
	want := map[string][]byte{"a": []byte(`"x\""`), "b": []byte(`{"c": [1 , 2]}`), "d": []byte("-1")}
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	if text := strictjson.Text(got["a"]) + strictjson.Text(got["d"]) + strictjson.Text(nil); text != `x"` {
		t.Errorf("got text %q, want x\"", text)
	}
	deep := strings.Repeat("[", 15) + strings.Repeat("]", 15)
	for body, want := range map[string]string{
		`{"x":` + deep + `}`:               "",
		`{"x":[` + deep + `]}`:             "nested deeper than 16 levels",
		`{"x":{"a":1,"a":1}}`:              `duplicate field "x.a"`,
		`{"x":{"Jane Doe":{"a":1,"a":1}}}`: `duplicate field "a"`,
		`{"x":"\ud800","y":[1,]}`:          "invalid JSON at byte 21",
	} {
		if _, err := strictjson.Members([]byte(body)); (err == nil) != (want == "") || err != nil && err.Error() != "message body: "+want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}
