// Package shell is what a command reads and writes: the environment, questions to a
// person, results as text or JSON. It does not know what the commands do.
package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/term"
)

// Shell is what a command reads and writes.
type Shell struct {
	Environ []string
	In      io.Reader
	Out     io.Writer // the result, alone
	ErrOut  io.Writer // progress, questions and, with --json, everything for people
	Now     func() time.Time
	AWS     func(context.Context) (aws.Config, error)
	// EmptyWait is how long a receive waits for messages at the end of a queue.
	EmptyWait time.Duration

	JSON     bool // the result is JSON, one object per line
	Terminal bool // a person reads out
}

// People returns where text for people goes: not into a result that a program reads.
func (sh Shell) People() io.Writer {
	if sh.JSON {
		return Visible(sh.ErrOut)
	}
	return Visible(sh.Out)
}

// Result prints the result of a command: text for people, or value as one line of JSON.
func (sh Shell) Result(text string, value any) error {
	if !sh.JSON {
		_, err := io.WriteString(Visible(sh.Out), text)
		return err
	}
	return json.NewEncoder(Visible(sh.Out)).Encode(value)
}

// Record prints value with --json, after a command that has printed text as it went.
func (sh Shell) Record(value any) error {
	if !sh.JSON {
		return nil
	}
	return sh.Result("", value)
}

// Progress overwrites one line on a terminal. "" clears it.
func (sh Shell) Progress(format string, args ...any) {
	if sh.Terminal && !sh.JSON {
		fmt.Fprintf(sh.ErrOut, "\r\x1b[K"+format, args...)
	}
}

// Confirms asks the person to type a word.
func (sh Shell) Confirms(question, word string) bool {
	fmt.Fprint(sh.People(), question)
	typed, _ := bufio.NewReader(sh.In).ReadString('\n') // the end of the input is not a confirmation
	return strings.TrimSpace(typed) == word
}

// through writes what change makes of each text.
type through struct {
	out    io.Writer
	change func([]byte) []byte
}

// Write implements io.Writer.
func (w through) Write(p []byte) (int, error) {
	if _, err := w.out.Write(w.change(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Visible returns a writer that writes text with \u escapes for what a terminal does
// not print: colors, and characters that hide or reorder others. In JSON they mean the
// same.
func Visible(out io.Writer) io.Writer { return through{out, escaped} }

func escaped(p []byte) (b []byte) {
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
	return b
}

// Painted returns a writer that prints what a pattern matches in bold red, if out is a
// terminal and the environment does not forbid colors (no-color.org).
func Painted(out *os.File, wrong *regexp.Regexp, environ []string) io.Writer {
	plain := func(v string) bool {
		return v == "TERM=dumb" || strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR="
	}
	if !term.IsTerminal(int(out.Fd())) || slices.ContainsFunc(environ, plain) {
		return out
	}
	return painted(out, wrong)
}

func painted(out io.Writer, wrong *regexp.Regexp) io.Writer {
	return through{out, func(p []byte) []byte { return wrong.ReplaceAll(p, []byte("\x1b[1;31m$0\x1b[m")) }}
}

// Interruptible returns a reader that ends with its context, also while it waits for a
// person.
func Interruptible(ctx context.Context, in io.Reader) io.Reader { return interruptible{ctx, in} }

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

// LeftError is the error of a command that did its work, and something is left or
// differs. The exit code is 2, and that of every other error 1.
type LeftError struct{ Err error }

// Left returns a LeftError.
func Left(format string, args ...any) error { return LeftError{fmt.Errorf(format, args...)} }

// Error returns what is left.
func (e LeftError) Error() string { return e.Err.Error() }

// ExitCode implements kong.ExitCoder.
func (LeftError) ExitCode() int { return 2 }

// Unwrap returns the error.
func (e LeftError) Unwrap() error { return e.Err }

// Errors of several commands.
var (
	ErrNotConfirmed = errors.New("nothing was changed: the word was not typed")
	ErrRate         = errors.New("--rate: want at least 1")
)
