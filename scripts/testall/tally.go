package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// event is a line of `go test -json`; go doc test2json explains it. The events of a package have no Test.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func (e event) ends() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }

type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// tally counts tests and prints what did not pass.
type tally struct {
	counts

	out     io.Writer
	running map[string]map[string]string // what the tests of a package have printed that has not ended; under "", the package itself
	broken  map[string]bool              // packages with a test that failed
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, running: map[string]map[string]string{}, broken: map[string]bool{}}
}

// longestLine is how long one line of output may be. Past it the run is an error, and not half read.
const longestLine = 16 << 20

// read takes a stream to its end. Lines that are no event are printed as they are.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(t.out, lines.Text())
			continue
		}
		t.take(e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the output of go test: %w", err)
	}
	return nil
}

func (t *tally) take(e event) {
	if e.Action == "build-output" {
		fmt.Fprint(t.out, e.Output)
	}
	if e.Package == "" {
		return
	}
	tests := t.running[e.Package]
	if tests == nil {
		tests = map[string]string{}
		t.running[e.Package] = tests
	}
	tests[e.Test] += e.Output
	if e.ends() {
		t.count(e)
		t.show(e, tests)
		delete(tests, e.Test)
	}
	if e.ends() && e.Test == "" {
		delete(t.running, e.Package)
	}
}

// count counts tests, and a package that failed without one, because it could not be built or ended itself.
func (t *tally) count(e event) {
	switch {
	case e.Action == "fail" && (e.Test != "" || !t.broken[e.Package]):
		t.failed++
		t.broken[e.Package] = true
	case e.Test == "": // a package that passed, or that has no tests
	case e.Action == "pass":
		t.passed++
	case e.Action == "skip":
		t.skipped++
	}
}

// show prints one line for a package, and everything for a test that did not pass.
func (t *tally) show(e event, tests map[string]string) {
	switch {
	case e.Test != "" && e.Action != "pass":
		fmt.Fprint(t.out, tests[e.Test])
	case e.Test == "" && e.Action == "fail":
		t.tell(tests)
	case e.Test == "" && e.Action == "pass":
		fmt.Fprintf(t.out, "ok    %-50s %6.1f s\n", e.Package, e.Elapsed)
	}
}

// tell prints what a package has said, and before it what those of its tests have said that never ended: a process that exits or
// is killed ends none of them.
func (t *tally) tell(tests map[string]string) {
	for _, test := range slices.Sorted(maps.Keys(tests)) {
		if test != "" {
			fmt.Fprint(t.out, tests[test])
		}
	}
	fmt.Fprint(t.out, tests[""])
}

// verdict is nil only if every test ran and passed. How go test ended counts as well: one that the system killed has printed
// nothing wrong. Where a test failed it always ends with an error, which says nothing new.
func (t *tally) verdict(ended error) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(t.running)) {
		t.tell(t.running[name])
		all = append(all, fmt.Errorf("%s did not end", name))
	}
	if ended != nil && t.failed == 0 {
		all = append(all, fmt.Errorf("go test ended before it was done: %w", ended))
	}
	if t.failed > 0 {
		all = append(all, errors.New("not everything passed"))
	}
	if t.skipped > 0 {
		all = append(all, errors.New("what was skipped shows nothing"))
	}
	if t.passed == 0 {
		all = append(all, errors.New("nothing passed"))
	}
	return errors.Join(all...)
}
