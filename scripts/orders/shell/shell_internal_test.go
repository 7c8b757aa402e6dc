package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestATerminalGetsNothingThatItInterprets(t *testing.T) {
	const strange = "ä€😀\t\x1b[31m\u009b\u202e\r\U000e0041\xff\n"
	const want = "ä€😀\t\\u001b[31m\\u009b\\u202e\\u000d\\udb40\\udc41\ufffd\n"
	var out strings.Builder
	sh := Shell{Out: &out}
	must(t, sh.Result(strange, nil))
	fmt.Fprint(sh.People(), strange)
	if got := out.String(); got != want+want {
		t.Errorf("printed %q, want %q twice", got, want)
	}
	out.Reset()
	sh.JSON = true
	must(t, sh.Result("", strange))
	var got string
	must(t, json.Unmarshal([]byte(out.String()), &got))
	if got != strings.ToValidUTF8(strange, "\ufffd") || strings.ContainsAny(out.String(), "\u009b\u202e") {
		t.Errorf("printed %q as JSON, want the same text in escapes", &out)
	}
}

func TestWhatIsWrongIsRedOnATerminalOnly(t *testing.T) {
	var out strings.Builder
	red := Visible(painted(&out, regexp.MustCompile("(?m)^WARNING: .*")))
	n, err := fmt.Fprint(red, "all is well\nWARNING: \x1b[31mtwo charges\nthat is all\n")
	must(t, err)
	const want = "all is well\n\x1b[1;31mWARNING: \\u001b[31mtwo charges\x1b[m\nthat is all\n"
	if out.String() != want || n != 50 {
		t.Errorf("printed %q after %d bytes, want %q", &out, n, want)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	if got := Painted(file, nil, nil); got != file {
		t.Errorf("got %T for a file, want the file", got)
	}
}

// A signal ends a command also while it waits for a person's answer.
func TestAQuestionEndsWithTheContext(t *testing.T) {
	silent, person := io.Pipe()
	t.Cleanup(func() { _ = person.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	sh := Shell{Out: io.Discard}
	sh.In = Interruptible(ctx, silent)
	answered := make(chan bool)
	go func() { answered <- sh.Confirms("Type the word: ", "word") }()
	cancel()
	if <-answered {
		t.Error("got a yes of nobody")
	}
	sh.In = Interruptible(t.Context(), strings.NewReader("word\n"))
	if !sh.Confirms("Type the word: ", "word") {
		t.Error("got a no, want a yes after the word")
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestAMomentIsADateATimeOrHowLongAgo(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC)
	for text, want := range map[string]string{
		"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T08:00:00+01:00": "2026-11-01T07:00:00Z",
		"25h": "2026-11-20T11:00:00Z", "0s": "2026-11-21T12:00:00Z", "-1h": "", "yesterday": "", "": "",
	} {
		var m Moment
		err := m.UnmarshalText([]byte(text))
		if got := m.At(now).Format(time.RFC3339); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: got %s, %v, want %q", text, got, err, want)
		}
	}
	if got := (Moment{}).At(now); !got.IsZero() {
		t.Errorf("not typed: got %s, want the zero time", got)
	}
}
