package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The error is what a person reads, so no list of all flags hides it.
func TestAWrongCommandLineIsAnsweredInAFewLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"refund ORD-1 --amount 9.99 --reason duplicate": `--amount: amount "9.99": want an integer; 1999 is an amount of 19.99 USD`,
		"refund ORD-1 --amount= --reason duplicate":     `--amount: amount "": want an integer`,
		"list --statsu paid":                            "unknown flag --statsu",
		"lsit":                                          "unexpected argument lsit",
		"dead-letters list --field sku":                 "--field: ",
	} {
		var c commands
		var out strings.Builder
		code := 0
		parser, err := newParser(&c, kong.Writers(&out, &out), kong.Exit(func(n int) { code = n }))
		must(t, err)
		_, err = parser.Parse(strings.Fields(line))
		parser.FatalIfErrorf(err)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; code != 80 || len(lines) > 5 || !strings.Contains(last, "orders: error: "+want) {
			t.Errorf("orders %s: got exit code %d and\n%s\nwant 80, and %q in at most five lines", line, code, &out, want)
		}
	}
	var c commands
	parser, err := newParser(&c)
	must(t, err)
	_, err = parser.Parse([]string{"refund", "ORD-1", "--amount=1999", "--reason=duplicate"})
	if err != nil || c.Refund.Make.Amount != 1999 {
		t.Errorf("got %d, %v, want 1999", c.Refund.Make.Amount, err)
	}
}
