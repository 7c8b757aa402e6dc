package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/internal/strictjson"
)

type document struct {
	ID     string              `json:"id"`
	Note   *string             `json:"note"`
	Amount *int64              `json:"amount"`
	Seq    int                 `json:"seq"`
	Lines  []line              `json:"lines"`
	Payer  payer               `json:"payer"`
	Tags   map[string][]string `json:"tags"`
	Parent *payer              `json:"parent"`
	Type   *string             `json:"type" null:"refused"`
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
		"null for anything": {`{"id":null,"note":null,"amount":null,"seq":null,"lines":null,"payer":null,"tags":null,"parent":null}`, document{}},
		"lists and maps": {
			`{"lines":[{"sku":"a"},{},null],"tags":{"a":["1","2"],"b":[]}}`,
			document{Lines: []line{{"a"}, {}, {}}, Tags: map[string][]string{"a": {"1", "2"}, "b": nil}},
		},
		"the largest body": {`{"seq":7}` + strings.Repeat(" ", strictjson.MaxBody-9), document{Seq: 7}},
		"the longest list": {`{"lines":[` + strings.Repeat("{},", 999) + `{}]}`, document{Lines: make([]line, 1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []strictjson.Decoder[document]{strictjson.New[document](), strictjson.NewLenient[document]()} {
				got, err := d.Decode([]byte(tt.body))
				if diff := cmp.Diff(got, tt.want); err != nil || diff != "" {
					t.Errorf("%v (-got +want):\n%s", err, diff)
				}
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

		"a field twice":                     {`{"id":"a","id":"a"}`, `duplicate field "id"`},
		"a field twice, by an escape":       {`{"id":"a","\u0069d":"a"}`, `duplicate field "id"`},
		"a field twice in a line":           {`{"lines":[{},{"sku":"a","sku":"b"}]}`, `duplicate field "lines[1].sku"`},
		"a field twice in a map":            {`{"tags":{"a":[],"a":[]}}`, `duplicate field "tags.a"`},
		"a field twice, in other case":      {`{"id":"a","ID":"a"}`, `unknown field "ID": want "id"`},
		"an unknown field":                  {`{"discount":5}`, `unknown field "discount"`},
		"an unknown field in a line":        {`{"lines":[{},{"tax":5}]}`, `unknown field "lines[1].tax"`},
		"a wrong case":                      {`{"payer":{"Name":"a"}}`, `unknown field "payer.Name": want "name"`},
		"a long s":                          {`{"line` + "\u017f" + `":[]}`, `unknown field [withheld: length 5, with '\u017f']: want "lines"`},
		"a card number for a field":         {`{"` + cardNumber + `":5}`, `unknown field [withheld: length 16, with 16 digits]`},
		"a card number for a nested field":  {`{"payer":{"` + cardNumber + `":5}}`, `unknown field payer.[withheld: length 16, with 16 digits]`},
		"a field's name of a kilobyte":      {`{"` + strings.Repeat("x", 1024) + `":5}`, `unknown field [withheld: length 1024]`},
		"a number for a string":             {`{"id":5}`, "id: want a string"},
		"a float":                           {`{"amount":2.0}`, "amount: " + wantInteger},
		"an exponent":                       {`{"amount":2e0}`, "amount: " + wantInteger},
		"a quoted number":                   {`{"amount":"2"}`, "amount: " + wantInteger},
		"a number beyond 64 bits":           {`{"amount":9223372036854775808}`, "amount: " + wantInteger},
		"a truth":                           {`{"seq":true}`, "seq: " + wantInteger},
		"an object for a list":              {`{"lines":{}}`, "lines: want a list"},
		"a number for an element":           {`{"lines":[{},5]}`, "lines[1]: want an object"},
		"a list for an element":             {`{"lines":[[]]}`, "lines[0]: want an object"},
		"a card number for an object":       {`{"payer":"` + cardNumber + `"}`, "payer: want an object"},
		"a card number under a card number": {`{"tags":{"` + cardNumber + `":5}}`, "tags.[withheld: length 16, with 16 digits]: want a list"},
		"a list too long":                   {`{"lines":[` + strings.Repeat("{},", 1000) + `{}]}`, "lines: want at most 1000 elements"},
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

func TestALenientDecoderSkipsUnknownFieldsAlone(t *testing.T) {
	decoder := strictjson.NewLenient[document]()
	deep := strings.Repeat("[", 15) + strings.Repeat("]", 15)
	got, err := decoder.Decode([]byte(`{"x":` + deep + `,"z":"\ud800","ID":"b","id":"a","payer":{"y":{"z":[1,"]"]},"name":"c"}}`))
	if diff := cmp.Diff(got, document{ID: "a", Payer: payer{"c"}}); err != nil || diff != "" {
		t.Errorf("%v (-got +want):\n%s", err, diff)
	}
	for body, want := range map[string]string{
		`{"x":[` + deep + `]}`:             "nested deeper than 16 levels",
		`{"x":{"a":1,"a":1}}`:              `duplicate field "x.a"`,
		`{"x":{"Jane Doe":{"a":1,"a":1}}}`: `duplicate field "a"`,
		`{"x":[1,]}`:                       "invalid JSON at byte 8",
		`{"x":1,"id":5}`:                   "id: want a string",
	} {
		if _, err := decoder.Decode([]byte(body)); err == nil || err.Error() != "message body: "+want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
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
	if _, err := strictjson.Members([]byte(`{"a":1,"a":2}`)); err == nil {
		t.Error("a duplicate field: got no error")
	}
}

// crafted returns bodies of about size bytes that are made to be expensive, by name.
func crafted(size int) map[string]string {
	fill := func(pattern string, bytes int) string { // %d is a number that differs each time
		var b strings.Builder
		for i := 0; b.Len() < bytes; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(pattern, "%d", fmt.Sprint(i)))
		}
		return b.String()
	}
	long := `"` + strings.Repeat("k", size/2) + `":`
	lines := func(line string, bytes int) string { return `{"lines":[` + fill(line, bytes) + "]}" }
	half := size / 2
	return map[string]string{
		"many fields under a long name":    "{" + long + "{" + fill(`"%d":0`, half) + "}}",
		"many lists under a long name":     "{" + long + "[" + fill(`[]`, half) + "]}",
		"long names in long names":         "{" + strings.Repeat(`"`+strings.Repeat("k", size/16)+`":{`, 12) + strings.Repeat("}", 13),
		"many lists at the lowest level":   `{"a":` + strings.Repeat("[", 13) + fill(`[[]]`, size) + strings.Repeat("]", 13) + "}",
		"many fields":                      "{" + fill(`"%d":0`, size) + "}",
		"many small objects":               `{"a":[` + fill(`{"a":{}}`, size) + "]}",
		"many objects of nine fields":      `{"a":[` + fill(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`, size) + "]}",
		"a long duplicate field, escaped":  "{" + strings.Repeat(`"`+strings.Repeat(`\u017f`, size/12)+`":0,`, 2) + `"a":0}`,
		"a long text of escapes":           `{"id":"` + strings.Repeat(`\u00e9`, size/6) + `"}`,
		"a long number":                    `{"seq":` + strings.Repeat("9", size) + `}`,
		"many nulls for lines":             lines("null", size),
		"many tags":                        `{"tags":{` + fill(`"%d":[]`, size) + "}}",
		"brackets":                         strings.Repeat("[", size),
		"an escape in each of many fields": "{" + fill(`"%d\n":"\n"`, size) + "}",
	}
}

// A body may allocate this many bytes for each of its own, and these for itself.
const maxPerByte, maxPerBody = 64, 256 << 10

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// checkCost fails the test if reading a body allocates more than its length justifies.
// No other test may run beside it.
func checkCost(t *testing.T, body string) {
	t.Helper()
	strict, lenient := strictjson.New[document](), strictjson.NewLenient[document]()
	for name, read := range map[string]func([]byte){
		"Decode":         func(b []byte) { _, _ = strict.Decode(b) },
		"Decode lenient": func(b []byte) { _, _ = lenient.Decode(b) },
		"Members":        func(b []byte) { _, _ = strictjson.Members(b) },
		"Member":         func(b []byte) { strictjson.Member(b, "none") },
	} {
		raw := []byte(body)
		if got, most := allocated(func() { read(raw) }), uint64(maxPerByte*len(body)+maxPerBody); got > most {
			t.Errorf("%s: %d bytes allocated %d, want at most %d", name, len(body), got, most)
		}
	}
}

// One message of 256 KiB must not use up the memory and the time of its whole batch.
func TestABodyCostsWhatItsLengthCosts(t *testing.T) {
	for name, body := range crafted(strictjson.MaxBody - 4<<10) {
		t.Run(name, func(t *testing.T) { checkCost(t, body) })
	}
}

func FuzzCost(f *testing.F) {
	for _, body := range crafted(4 << 10) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		checkCost(t, body)
		many := strings.Repeat(body+",", 1+(32<<10)/(len(body)+1)) + body
		checkCost(t, `{"a":[`+many+`]}`)
		checkCost(t, `{"lines":[`+many+`]}`)
	})
}

// What is accepted is what encoding/json reads, and no other.
func FuzzDecode(f *testing.F) {
	for _, bad := range malformed() {
		if len(bad[0]) < 4096 { // large seeds only slow the fuzzer down
			f.Add(bad[0])
		}
	}
	f.Add(`{"id":"\u00e9","note":null,"amount":-1,"seq":0,"lines":[{"sku":"a"},null],"payer":{"name":"b"},"tags":{"c":["d"]},"parent":{}}`)
	strict, lenient := strictjson.New[document](), strictjson.NewLenient[document]()
	f.Fuzz(func(t *testing.T, body string) {
		got, err := strict.Decode([]byte(body))
		if err != nil {
			return
		}
		var want document
		decoder := json.NewDecoder(strings.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("accepted, but encoding/json: %v", err)
		}
		if again, err := lenient.Decode([]byte(body)); err != nil || !cmp.Equal(again, got) {
			t.Errorf("lenient: got %+v, %v, want %+v", again, err, got)
		}
		a, errA := json.Marshal(got)
		b, errB := json.Marshal(want)
		empty := strings.NewReplacer("[]", "null")
		if errors.Join(errA, errB) != nil || empty.Replace(string(a)) != empty.Replace(string(b)) {
			t.Errorf("got %s, want %s", a, b)
		}
	})
}
