package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// memory looks once a second at what this process and its children have in memory, until the context ends, and returns the most
// that it saw, in bytes. Pages that several of them share count once, or else each instance would count the whole program
// again. It knows Linux only; elsewhere it is 0.
func memory(ctx context.Context) (peak int64) {
	tick := time.NewTicker(time.Second) // the kernel counts pages for each look
	defer tick.Stop()
	for {
		peak = max(peak, inUse())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return peak
		}
	}
}

func inUse() int64 {
	sum := share(os.Getpid())
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task) //nolint:gosec // a file of the kernel; a thread that ended has none
		for pid := range bytes.FieldsSeq(text) {
			n, _ := strconv.Atoi(string(pid))
			sum += share(n)
		}
	}
	return sum
}

// share is Pss of proc_pid_smaps(5), "the process's proportional share" of what it has mapped. A process that ended has none.
func share(pid int) int64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	_, rest, _ := bytes.Cut(text, []byte("\nPss:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}
