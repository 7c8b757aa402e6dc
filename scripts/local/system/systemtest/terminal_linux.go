package systemtest

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal returns both ends of a pseudo-terminal: what a person types and sees, and what
// a program has as its terminal. The caller closes the second after it started the
// program, so that reading the first ends with it.
func Terminal(tb testing.TB) (person, program *os.File) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	tb.Cleanup(func() { _ = person.Close() }) // all of it was read
	must(unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	must(err)
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(err)
	return person, program
}
