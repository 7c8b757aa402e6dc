package systemtest

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orderonce/scripts/local/system"
)

// Terminal is a program in a pseudo-terminal, and the person in front of it.
type Terminal struct {
	tb     testing.TB
	cmd    *exec.Cmd
	person *os.File
	shown  system.Log
	ended  chan struct{} // closed when nothing has the terminal any more
}

// StartTerminal starts a program in a pseudo-terminal.
func StartTerminal(tb testing.TB, cmd *exec.Cmd) *Terminal {
	tb.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	Must(tb, err)
	tb.Cleanup(func() { _ = person.Close() }) // all of it was read
	Must(tb, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	Must(tb, err)
	program, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	Must(tb, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	Must(tb, cmd.Start())
	Must(tb, program.Close()) // so that reading ends with the program
	t := &Terminal{tb: tb, cmd: cmd, person: person, ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		_, _ = io.Copy(&t.shown, person) // an error once nothing has the terminal
	}()
	return t
}

// Await waits until the program has printed a text, or has ended.
func (t *Terminal) Await(text string) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.tb.Context(), 5*time.Minute)
	defer cancel()
	if err := system.Until(ctx, time.Millisecond, func() (bool, error) {
		select {
		case <-t.ended:
			return true, nil
		default:
			return strings.Contains(t.shown.Text(), text), nil
		}
	}); err != nil || !strings.Contains(t.shown.Text(), text) {
		t.tb.Fatalf("no %q, %v, in\n%s", text, err, t.shown.Text())
	}
}

// End types a text, and returns what the program has printed when it has ended, and how.
func (t *Terminal) End(typed string) (shown string, err error) {
	if _, err := t.person.WriteString(typed); err != nil {
		return t.shown.Text(), err
	}
	<-t.ended
	return t.shown.Text(), t.cmd.Wait()
}
