package play

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

// memory keeps the most that this process and its children had in memory at once, in bytes. Pages that several of them share
// count once, or else each instance would count the whole program again. It knows Linux only; elsewhere it is 0.
type memory struct {
	peak atomic.Int64
	last time.Time
}

// look is cheap between seconds: the kernel counts pages for it.
func (m *memory) look() {
	now := time.Now()
	if now.Sub(m.last) < time.Second {
		return
	}
	m.last = now
	sum := share(os.Getpid())
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task) //nolint:gosec // a file of the kernel; a thread that ended has none
		for pid := range bytes.FieldsSeq(text) {
			n, _ := strconv.Atoi(string(pid))
			sum += share(n)
		}
	}
	m.peak.Store(max(m.peak.Load(), sum))
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
