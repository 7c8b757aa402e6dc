package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"orderonce/adapters/internal/strictjson"
)

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
		"brackets":                         strings.Repeat("[", size),
		"an escape in each of many fields": "{" + fill(`"%d\n":"\n"`, size) + "}",
	}
}

// A body may allocate this many bytes for each of its own, and these for itself.
const maxPerByte, maxPerBody = 64, 256 << 10

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
	decoder := strictjson.New[document]()
	for name, read := range map[string]func([]byte){
		"Decode":  func(b []byte) { _, _ = decoder.Decode(b) },
		"Members": func(b []byte) { _, _ = strictjson.Members(b) },
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
	f.Add(`{"id":"\u00e9","note":null,"amount":-1,"seq":0,"lines":[{"sku":"a"},null],"payer":{"name":"b"},"parent":{}}`)
	decoder := strictjson.New[document]()
	f.Fuzz(func(t *testing.T, body string) {
		got, err := decoder.Decode([]byte(body))
		if err != nil {
			return
		}
		var want document
		reader := json.NewDecoder(strings.NewReader(body))
		reader.DisallowUnknownFields()
		if err := reader.Decode(&want); err != nil {
			t.Fatalf("accepted, but encoding/json: %v", err)
		}
		a, errA := json.Marshal(got)
		b, errB := json.Marshal(want)
		empty := strings.NewReplacer("[]", "null")
		if errors.Join(errA, errB) != nil || empty.Replace(string(a)) != empty.Replace(string(b)) {
			t.Errorf("got %s, want %s", a, b)
		}
	})
}
