package system_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/local/system"
)

func TestLog(t *testing.T) {
	t.Parallel()
	var passed strings.Builder
	log := &system.Log{To: &passed}
	lines := []string{
		`{"level":"ERROR","msg":"order","order_id":"A","message_id":"1","delivery":2,"attempt":3,"status":"open",` +
			`"verdict":"redeliver","reason":"provider_unknown","error":"no answer"}` + "\n",
		`{"_aws":{},"Received":1}` + "\n", // a metric
		"panic: no JSON\n",
		`{"order_id":"B","verdict":"done","reason":"settled"}` + "\n",
	}
	for _, line := range lines {
		if _, err := log.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	want := []system.Line{
		{
			OrderID: "A", MessageID: "1", Delivery: 2, Attempt: 3, Status: "open",
			Verdict: "redeliver", Reason: "provider_unknown", Error: "no answer",
		},
		{OrderID: "B", Verdict: "done", Reason: "settled"},
	}
	if diff := cmp.Diff(log.Lines(), want); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	if all := strings.Join(lines, ""); log.Text() != all || passed.String() != all {
		t.Errorf("kept %q and passed on %q, want all of %q", log.Text(), passed.String(), all)
	}
}

func TestALogThatCannotBeCopiedIsKept(t *testing.T) {
	t.Parallel()
	log := &system.Log{To: full{}}
	if _, err := log.Write([]byte("a\n")); !errors.Is(err, errFull) || log.Text() != "a\n" {
		t.Errorf("kept %q with error %v, want the line and errFull", log.Text(), err)
	}
	silent := &system.Log{}
	if n, err := silent.Write([]byte("a\n")); n != 2 || err != nil || silent.Lines() != nil {
		t.Errorf("wrote %d bytes, %v, and found %v, want 2, none and none", n, err, silent.Lines())
	}
}

var errFull = errors.New("disk full")

// full is a writer that always fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
