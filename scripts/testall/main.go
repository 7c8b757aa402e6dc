// Command testall is `make test`: it runs every test of the module with what plain `go test ./...` leaves out, prints
// what failed, and fails if anything was skipped or cut short, because a test that did not run shows nothing. Arguments go to
// `go test`, such as -race. It closes with one line: passed, failed, skipped.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// oneByOne are tests that the race detector sees nothing in and takes minutes over: searches without a second goroutine,
// and tests that run `go test` or compiled binaries in processes of their own. They run without it.
const oneByOne = "^(TestPairs|TestThePageTellsOfEveryControl|TestEveryMissingGuardIsCaughtAndTheTreeStaysAsItIs|TestTheStormSees)$"

const about = `Usage: testall [flags of go test]

Run every test of the module with what plain "go test ./..." leaves out: the slow ones, and those that need the DynamoDB-compatible
engine (make engine). Print what failed, and fail if anything was skipped or cut short. -race leaves out what the race detector
sees nothing in.`

func main() {
	if slices.ContainsFunc(os.Args[1:], func(arg string) bool { return arg == "-h" || arg == "--help" }) {
		fmt.Println(about)
		return
	}
	counts, err := watch(command(os.Args[1:], os.Environ()), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println(counts)
	if err != nil {
		os.Exit(1)
	}
}

// command is `go test` for the whole module.
func command(args, environ []string) *exec.Cmd {
	env := append(slices.Clone(environ), "ORDERONCE_REQUIRE_ENGINE=1", "ORDERONCE_SLOW=1")
	if slices.Contains(args, "-race") {
		args = append(slices.Clone(args), "-skip", oneByOne)
		env = append(env, "ORDERONCE_PROVE_WORLDS=2000")
	}
	args = slices.Concat([]string{"test", "-json"}, args, []string{"./..."})
	cmd := exec.Command("go", args...) //nolint:gosec,noctx // what the caller asked for, until it ends
	cmd.Env, cmd.Stderr = env, os.Stderr
	return cmd
}

// watch runs a program that prints what `go test -json` prints, and judges it.
func watch(cmd *exec.Cmd, w io.Writer) (counts, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return counts{}, err
	}
	if err := cmd.Start(); err != nil {
		return counts{}, err
	}
	t := newTally(w)
	unread := t.read(out)
	_ = out.Close() // so that a program whose output nobody reads to its end does not wait for a reader
	ended := cmd.Wait()
	return t.counts, errors.Join(unread, t.verdict(ended))
}
