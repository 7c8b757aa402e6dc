package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownTerminal makes this process the only one that Ctrl-C interrupts, and returns a
// function that undoes it. Otherwise the terminal would interrupt make as well, which
// then fails although the system ended as it should. It does nothing unless tty is a
// terminal and this process runs in the foreground on behalf of another one.
func ownTerminal(tty *os.File) (release func()) {
	fd := int(tty.Fd())
	before, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || before != unix.Getpgrp() || before == os.Getpid() {
		return func() {}
	}
	// SIGTTOU would stop this process when it gives the terminal back, from the
	// background. At Ctrl-Z the shell would not notice that this process has stopped.
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTSTP)
	if err := unix.Setpgid(0, 0); err != nil {
		return func() {}
	}
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, os.Getpid()) // without it, Ctrl-C interrupts make
	return func() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, before) // the shell does the same
	}
}
