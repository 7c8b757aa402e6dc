package lambdatest

import (
	"os/exec"
	"syscall"
)

const canFreeze = true

// freeze stops an idle process: "Lambda freezes the execution environment when the
// runtime and each extension have completed and there are no pending events" (Lambda
// developer guide, "Lambda execution environment lifecycle"). A goroutine that the
// function left running stops, and continues during the next invocation. Unlike in
// Lambda, child processes are not frozen.
func (in *instance) freeze() { _ = in.cmd.Process.Signal(syscall.SIGSTOP) }

func (in *instance) thaw() { _ = in.cmd.Process.Signal(syscall.SIGCONT) }

// DieWithParent ends a process with the thread that starts it, even if this program is
// killed. A frozen process would not notice that its connection is closed.
func DieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
