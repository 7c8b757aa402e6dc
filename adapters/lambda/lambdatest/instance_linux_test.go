package lambdatest_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

// Lambda developer guide, "Lambda execution environment lifecycle": the environment is
// frozen between invocations, and "background processes or callbacks that were initiated
// by your Lambda function and did not complete when the function ended resume if Lambda
// reuses the execution environment".
func TestAnIdleInstanceIsFrozen(t *testing.T) {
	t.Parallel()
	host := start(t, lambdatest.Options{})
	path := filepath.Join(t.TempDir(), "file")
	pid := strconv.Itoa(ask(t, host, do("later", path)).PID)
	await(t, "the idle instance is frozen", func() bool { return stopped(t, pid) })
	touch(t, path)
	if _, err := os.Stat(path + ".seen"); err == nil {
		t.Error("a background goroutine ran between the invocations")
	}
	if again := ask(t, host, do("until", path+".seen")).PID; strconv.Itoa(again) != pid {
		t.Errorf("process %d, want %s thawed", again, pid)
	}
	await(t, "it is frozen again", func() bool { return stopped(t, pid) })
	if err := host.Replace(subject(t)); err != nil { // kills what is idle
		t.Fatal(err)
	}
	await(t, "the frozen instance is dead", func() bool { return host.Report().Live == 0 })
}

func stopped(t *testing.T, pid string) bool {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	must(t, err)
	return bytes.Contains(stat, []byte(") T "))
}

// The test runs itself once more as the process that has a host, and kills that process.
func TestAFrozenInstanceDiesWithTheProcessOfItsHost(t *testing.T) {
	t.Parallel()
	if flag.Arg(0) == "parent" {
		pid := ask(t, start(t, lambdatest.Options{}), do("echo", "")).PID
		_, _ = os.Stdout.WriteString(strconv.Itoa(pid) + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	program, err := os.Executable()
	must(t, err)
	parent := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "parent")
	stdout, err := parent.StdoutPipe()
	must(t, err)
	stdin, err := parent.StdinPipe()
	must(t, err)
	must(t, parent.Start())
	defer func() { _ = stdin.Close() }()
	pid, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	must(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	await(t, "the instance is dead", func() bool { return dead(strings.TrimSpace(pid)) })
}

// dead reports whether a process is gone, or a zombie.
func dead(pid string) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}
