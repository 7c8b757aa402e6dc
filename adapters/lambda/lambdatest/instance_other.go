//go:build !linux

package lambdatest

import "os/exec"

const canFreeze = false

// freeze does nothing, because a frozen process would stay after its host is killed.
func (in *instance) freeze() {}

func (in *instance) thaw() {}

// DieWithParent does nothing on this system.
func DieWithParent(*exec.Cmd) {}
