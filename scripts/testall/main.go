// Command testall is `make test`: it runs every test of the module with what plain `go test ./...` leaves out, prints
// what failed, and fails if anything was skipped, because a test that did not run shows nothing. Arguments go to
// `go test`, such as -race. It closes with one line: passed, failed, skipped.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// event is a line of `go test -json`; go doc test2json explains it.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// oneByOne are tests that the race detector sees nothing in and takes minutes over: searches without a second goroutine,
// and tests that run `go test` or compiled binaries in processes of their own. They run without it.
const oneByOne = "^(TestPairs|TestThePageTellsOfEveryControl|TestEveryMissingGuardIsCaughtAndTheTreeStaysAsItIs|TestTheStormSees)$"

func main() {
	passed, failed, skipped, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if err != nil || failed > 0 || skipped > 0 || passed == 0 {
		os.Exit(1)
	}
}

func run(args []string) (passed, failed, skipped int, err error) {
	env := append(os.Environ(), "ORDERONCE_REQUIRE_ENGINE=1", "ORDERONCE_SLOW=1")
	if slices.Contains(args, "-race") {
		args = append(args, "-skip", oneByOne)
		env = append(env, "ORDERONCE_PROVE_WORLDS=2000")
	}
	args = append(append([]string{"test", "-json"}, args...), "./...")
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // what the caller asked for, until it ends
	cmd.Env = env
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	texts, broken := map[string]string{}, map[string]bool{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		text := keep(texts, e)
		switch e.Action {
		case "pass", "fail", "skip":
			show(e, text)
		case "build-output":
			fmt.Print(e.Output)
		}
		switch {
		case e.Action == "fail" && (e.Test != "" || !broken[e.Package]): // a package may also fail to build
			failed++
			broken[e.Package] = true
		case e.Test == "":
		case e.Action == "pass":
			passed++
		case e.Action == "skip":
			skipped++
		}
	}
	if err := lines.Err(); err != nil {
		return passed, failed, skipped, err
	}
	_ = cmd.Wait() // it says no more than the counts
	return passed, failed, skipped, nil
}

// keep collects what a test printed until it ends.
func keep(texts map[string]string, e event) string {
	name := e.Package + "." + e.Test
	text := texts[name] + e.Output
	texts[name] = text
	if e.Action == "pass" || e.Action == "fail" || e.Action == "skip" {
		delete(texts, name)
	}
	return text
}

// show prints one line for a package, and everything for a test that did not pass.
func show(e event, text string) {
	switch {
	case e.Test != "" && e.Action != "pass":
		fmt.Print(text)
	case e.Test == "" && e.Action == "fail":
		fmt.Print(text)
	case e.Test == "" && e.Action == "pass":
		fmt.Printf("ok    %-50s %6.1f s\n", e.Package, e.Elapsed)
	}
}
