package lambdatest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// Report has the counts and times of a host so far.
type Report struct {
	Live       int // processes that run or are frozen
	ColdStarts int
	Kills      int // processes that Kill, or the deadline of an invocation, ended
	// FirstResponseMS is the median time from the start of a process to its first
	// response, in milliseconds.
	FirstResponseMS float64
	// CPUMS is the user and system time of all processes, including their starts. Live
	// processes count on Linux only, in steps of 10 ms. It is exact after Close.
	CPUMS float64
	// PeakRSSBytes is the largest resident set of any process, without those that exited by
	// themselves before a Report. It is measured on Linux only.
	PeakRSSBytes int64
}

// Report returns the counts and times so far. It may be called at any time, also after
// Close.
func (h *Host) Report() Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	cpu, peak := h.tally.cpu, h.tally.peakRSS
	for in := range h.live {
		in.sample()
		cpu += liveCPU(in.cmd.Process.Pid)
		peak = max(peak, in.peakRSS.Load())
	}
	report := h.tally.Report
	report.Live = len(h.live)
	report.FirstResponseMS = medianMS(h.tally.firsts)
	report.CPUMS = ms(cpu)
	report.PeakRSSBytes = peak
	return report
}

// tally has the counts of the report, and the samples for its median and sums.
type tally struct {
	Report
	firsts  []time.Duration
	cpu     time.Duration // of ended processes
	peakRSS int64         // of ended processes
}

func (h *Host) observe(in *instance, err error) {
	defer h.publish()
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.alive() {
		h.note(in, Answered, err)
	}
	if errors.Is(err, ErrTimedOut) {
		h.tally.Kills++
	}
	if err == nil && !in.warm {
		in.warm = true
		h.tally.firsts = append(h.tally.firsts, h.opts.Now().Sub(in.began))
	}
}

func (t *tally) ended(in *instance) {
	state := in.cmd.ProcessState
	t.cpu += state.UserTime() + state.SystemTime()
	t.peakRSS = max(t.peakRSS, in.peakRSS.Load())
}

// sample records the peak of the resident set while the process still runs.
func (in *instance) sample() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", in.cmd.Process.Pid))
	if err != nil {
		return
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	if fields := bytes.Fields(rest); len(fields) > 0 {
		kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		in.peakRSS.Store(max(in.peakRSS.Load(), kib<<10))
	}
}

// liveCPU returns utime and stime, fields 14 and 15 of proc_pid_stat(5), which are in
// ticks of 10 ms. Field 2 may contain spaces.
func liveCPU(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func medianMS(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return ms(sorted[len(sorted)/2])
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
