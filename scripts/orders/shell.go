package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/stripe"
)

// shell is what a command reads and writes.
type shell struct {
	environ []string
	in      io.Reader
	out     io.Writer // the result, alone
	errOut  io.Writer // progress, questions and, with --json, everything for people
	now     func() time.Time
	aws     func(context.Context) (aws.Config, error)

	json     bool // the result is JSON, one object per line
	terminal bool // a person reads out
}

// people returns where text for people goes: not into a result that a program reads.
func (sh shell) people() io.Writer {
	if sh.json {
		return visible{sh.errOut}
	}
	return visible{sh.out}
}

// result prints the result of a command: text for people, or value as one line of JSON.
func (sh shell) result(text string, value any) error {
	if !sh.json {
		_, err := io.WriteString(visible{sh.out}, text)
		return err
	}
	return json.NewEncoder(visible{sh.out}).Encode(value)
}

// record prints value with --json, after a command that has printed text as it went.
func (sh shell) record(value any) error {
	if !sh.json {
		return nil
	}
	return sh.result("", value)
}

// progress overwrites one line on a terminal. "" clears it.
func (sh shell) progress(format string, args ...any) {
	if sh.terminal && !sh.json {
		fmt.Fprintf(sh.errOut, "\r\x1b[K"+format, args...)
	}
}

// where prints what a change is about to change: table, region, scope and Stripe's mode.
func (sh shell) where(env stripeConfig, cfg aws.Config) {
	fmt.Fprintf(sh.people(), "table %s in %s, scope %s, Stripe in %s mode\n\n",
		env.Orders.Table, cfg.Region, env.Scope, modeOf(stripe.Live(env.Key.Reveal())))
}

// modeOf names Stripe's mode for a person.
func modeOf(live bool) string {
	if live {
		return "LIVE"
	}
	return "test"
}

// confirms asks the person to type a word.
func (sh shell) confirms(question, word string) bool {
	fmt.Fprint(sh.people(), question)
	typed, _ := bufio.NewReader(sh.in).ReadString('\n') // the end of the input is not a confirmation
	return strings.TrimSpace(typed) == word
}

// visible writes text with \u escapes for what a terminal does not print: colors, and
// characters that hide or reorder others. In JSON they mean the same.
type visible struct{ out io.Writer }

// Write implements io.Writer.
func (v visible) Write(p []byte) (int, error) {
	var b []byte
	for _, r := range string(p) { // an invalid byte is U+FFFD
		switch {
		case r == '\n', r == '\t', unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		default:
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
	}
	if _, err := v.out.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}

// interruptible is a reader that ends with its context, also while it waits for a person.
type interruptible struct {
	ctx context.Context //nolint:containedctx // io.Reader takes none
	in  io.Reader
}

// Read implements io.Reader.
func (r interruptible) Read(p []byte) (int, error) {
	type result struct {
		bytes []byte
		err   error
	}
	read := make(chan result, 1)
	go func() {
		b := make([]byte, len(p))
		n, err := r.in.Read(b)
		read <- result{b[:n], err}
	}()
	select {
	case got := <-read:
		return copy(p, got.bytes), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// exit is an error with an exit code of its own: 2 if the command did its work, and
// something is left or differs. Every other error exits with 1.
type exit struct {
	error
	code int
}

// ExitCode implements kong.ExitCoder.
func (e exit) ExitCode() int { return e.code }

// Unwrap returns the error.
func (e exit) Unwrap() error { return e.error }
