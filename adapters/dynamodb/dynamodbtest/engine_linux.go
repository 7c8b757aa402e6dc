package dynamodbtest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the engine when this process ends, and protects the
// engine from the terminal's Ctrl-C while this process shuts down.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
