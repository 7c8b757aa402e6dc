package lambdatest

import (
	"os/exec"
	"syscall"
)

// freeze stops a process that has nothing to do: "Lambda freezes the execution environment when the runtime and each extension have
// completed and there are no pending events" (Lambda developer guide, "Lambda execution environment lifecycle"). A goroutine that the
// function left behind stands still, and goes on with the next invocation. What the process has started runs on, unlike in Lambda.
func (in *instance) freeze() { _ = in.cmd.Process.Signal(syscall.SIGSTOP) }

func (in *instance) thaw() { _ = in.cmd.Process.Signal(syscall.SIGCONT) }

// dieWithParent lets no instance outlive a killed host: a frozen one would not see that its connection has ended.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
