package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// cgroup is a control group with a share of a processor.
type cgroup struct{ folder string }

// newCgroup makes a control group, of either version. It needs root on Linux. Lambda
// gives a function of 1,769 MB one processor and one of less memory less, here in periods
// of 20 ms (docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
func newCgroup(share float64) (cgroup, error) {
	const period = 20_000 // microseconds
	quota := int(period * share)
	name := fmt.Sprintf("bench-%d", os.Getpid())
	v1, v2 := cgroup{filepath.Join("/sys/fs/cgroup/cpu", name)}, cgroup{filepath.Join("/sys/fs/cgroup", name)}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		err := errors.Join(os.Mkdir(v2.folder, 0o750), v2.write("cpu.max", fmt.Sprint(quota, " ", period)))
		return v2, err
	}
	return v1, errors.Join(os.Mkdir(v1.folder, 0o750),
		v1.write("cpu.cfs_period_us", strconv.Itoa(period)), v1.write("cpu.cfs_quota_us", strconv.Itoa(quota)))
}

func (c cgroup) add(pid int) error { return c.write("cgroup.procs", strconv.Itoa(pid)) }

func (c cgroup) write(file, text string) error {
	return os.WriteFile(filepath.Join(c.folder, file), []byte(text), 0o600)
}

// Close removes the group, whose processes must have ended.
func (c cgroup) Close() error { return os.Remove(c.folder) }
