package sqs_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"orderonce/adapters/sqs"
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
	event := func(fields string) string { return `{"Notification":0,"detail-type":0,` + fields + `}` }
	long := `"` + strings.Repeat("k", size/2) + `":`
	lines := func(line string, bytes int) string { return with(goodLines, "["+fill(line, bytes)+"]") }
	half := size / 2
	return map[string]string{
		"many fields under a long name":         event(long + "{" + fill(`"%d":0`, half) + "}"),
		"many objects under a long name":        event(long + "[" + fill(`{"a":0}`, half) + "]"),
		"many lists under a long name":          event(long + "[" + fill(`[]`, half) + "]"),
		"long names in long names":              event(strings.Repeat(`"`+strings.Repeat("k", size/16)+`":{`, 12) + strings.Repeat("}", 12)),
		"many lists at the lowest level":        event(`"a":` + strings.Repeat("[", 14) + fill(`[[]]`, size) + strings.Repeat("]", 14)),
		"many fields":                           event(fill(`"%d":0`, size)),
		"many fields, escaped":                  event(fill(`"\u0061%d":0`, size)),
		"many fields, wrapped twice":            fromSNS(event(fill(`"%d":0`, half))),
		"many small objects":                    event(`"a":[` + fill(`{"a":{}}`, size) + "]"),
		"many objects of nine fields":           event(`"a":[` + fill(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`, size) + "]"),
		"a long unknown field":                  with(`"currency"`, `"`+strings.Repeat("x", size)+`":0,"currency"`),
		"a long duplicate field":                event(long + "0," + long + "0"),
		"a long duplicate field, escaped":       event(strings.Repeat(`"`+strings.Repeat(`\u017f`, size/12)+`":0,`, 2) + `"a":0`),
		"a long text":                           with("CUST987", strings.Repeat("x", size)),
		"a long text of escapes":                with("CUST987", strings.Repeat(`\u00e9`, size/6)),
		"a long id":                             with("ORD12345", strings.Repeat("1", size)),
		"a long number":                         with("1999", strings.Repeat("9", size)),
		"many numbers for lines":                lines("1", size),
		"many texts for lines":                  lines(`""`, size),
		"many lists for lines":                  lines("[]", size),
		"many empty lines":                      lines("{}", size),
		"many lines":                            lines(`{"sku":"","quantity":1,"unitAmount":1}`, size),
		"many lines of long numbers":            lines(`{"sku":"","quantity":`+strings.Repeat("9", 99)+`}`, size),
		"many blanks":                           strings.Repeat(" ", size) + good,
		"many types":                            `{` + fill(`"type":0`, size) + `}`,
		"no end":                                strings.TrimSuffix(event(fill(`"%d":0`, size)), "}"),
		"a refund with many fields":             `{"type":"refund",` + fill(`"%d":0`, size) + `}`,
		"a notification of a long text":         fromSNS(strings.Repeat("x", size)),
		"a notification of a notification text": fromSNS(strings.Repeat(`"Notification"`, size/16)),
	}
}

func BenchmarkDecodeCrafted(b *testing.B) {
	d := sqs.NewDecoder()
	for name, body := range crafted(sqs.MaxBody - 4<<10) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = d.DecodeJob(body)
			}
		})
	}
}

// A body may allocate this many bytes for each of its own, and these for itself.
const maxPerByte, maxPerBody = 64, 256 << 10

// checkCost fails the test if decoding a body allocates more than its length justifies.
// No other test may run beside it.
func checkCost(t *testing.T, d *sqs.Decoder, body string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = d.DecodeJob(body)
	runtime.ReadMemStats(&after)
	got, most := after.TotalAlloc-before.TotalAlloc, uint64(maxPerByte*len(body)+maxPerBody)
	if got > most {
		t.Errorf("decoding %d bytes allocated %d, want at most %d", len(body), got, most)
	}
}

// One message of 256 KiB must not use up the memory and the time of its whole batch.
//
//nolint:paralleltest // it measures what the whole process allocates
func TestABodyCostsWhatItsLengthCosts(t *testing.T) {
	d := sqs.NewDecoder()
	for name, body := range crafted(sqs.MaxBody - 4<<10) {
		t.Run(name, func(t *testing.T) { checkCost(t, d, body) })
	}
}

func FuzzCostOfDecoding(f *testing.F) {
	for _, body := range crafted(4 << 10) {
		f.Add(body)
	}
	d := sqs.NewDecoder()
	f.Fuzz(func(t *testing.T, body string) {
		checkCost(t, d, body)
		many := strings.Repeat(body+",", 1+(32<<10)/(len(body)+1)) + body
		checkCost(t, d, `{"detail-type":0,"a":[`+many+`]}`)
		checkCost(t, d, with(goodLines, "["+many+"]"))
	})
}
