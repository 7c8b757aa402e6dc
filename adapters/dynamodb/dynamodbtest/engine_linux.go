package dynamodbtest

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets no engine outlive a killed test, and keeps a terminal's Ctrl-C from
// the engine while its parent still drains.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
