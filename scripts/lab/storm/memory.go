package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// memory samples the memory of this process and its children once a second until the
// context ends, and returns the peak in bytes. Shared pages count once. It is 0 on other
// systems than Linux.
func memory(ctx context.Context) (peak int64) {
	tick := time.NewTicker(time.Second) // each sample costs the kernel a page walk
	defer tick.Stop()
	for {
		peak = max(peak, sampleMemory())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return peak
		}
	}
}

func sampleMemory() int64 {
	sum := proportionalSetSize(os.Getpid())
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task) //nolint:gosec // G304: /proc; an ended thread has no file
		for pid := range bytes.FieldsSeq(text) {
			n, _ := strconv.Atoi(string(pid))
			sum += proportionalSetSize(n)
		}
	}
	return sum
}

// proportionalSetSize returns the Pss of proc_pid_smaps(5), or 0 for a process that has
// ended.
func proportionalSetSize(pid int) int64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	_, rest, _ := bytes.Cut(text, []byte("\nPss:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}
