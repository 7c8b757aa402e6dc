package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachPartIsMadeAloneAndLeftOut(t *testing.T) {
	t.Parallel()
	s, out := clone(t)
	err := checkParts{}.Run(s)
	if err == nil || !strings.Contains(err.Error(), "part refund: lines = 0, want 3") {
		t.Errorf("got %v, want the lines of the part", err)
	}
	for _, want := range []string{"ok    1 of 2", ": charge\n", "ok    2 of 2", ": charge,refund\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
	err = checkParts{Lists: []string{"charge", "refund"}}.Run(s)
	if err == nil || !strings.Contains(err.Error(), "parts refund: part refund needs charge") {
		t.Errorf("got %v, want the list that cannot be made", err)
	}
	out.Reset()
	err = checkParts{MakeRun: true}.Run(s)
	if err == nil || !strings.Contains(err.Error(), "parts charge,refund: make run: ") {
		t.Errorf("got %v, want the project that does not run", err)
	}
	if !strings.Contains(out.String(), "ok    1 of 2") {
		t.Errorf("got %s, want the other one to run", out)
	}
	late := "package payonce\n\nimport \"testing\"\n\nfunc TestLate(t *testing.T) { t.Error(\"late\") }\n"
	must(t, os.WriteFile(filepath.Join(s.root, "late_test.go"), []byte(late), 0o600))
	if _, err := run(t.Context(), s.root, nil, "git", "add", "late_test.go"); err != nil {
		t.Fatal(err)
	}
	err = checkParts{MakeRun: true, Lists: []string{"charge"}}.Run(s)
	if err == nil || !strings.Contains(err.Error(), "parts charge: go -C . test -vet=off ./...: ") {
		t.Errorf("got %v, want the project whose test fails", err)
	}
}
