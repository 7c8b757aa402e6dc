package lambdatest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Report has what a host has measured so far.
type Report struct {
	Live        int // processes that run or are frozen
	Invocations int // that ended with a response
	// FirstResponseMS is the time from the start of a process to its first response, in
	// milliseconds, of the process whose first response is the latest.
	FirstResponseMS float64
	// CPUMS is the user and system time of all processes, including their starts. Live
	// processes count on Linux only, in steps of 10 ms. It is exact after Close.
	CPUMS float64
	// PeakRSSBytes is the largest resident set of any process, without those that exited by
	// themselves before a Report. It is measured on Linux only.
	PeakRSSBytes int64
}

// Report may be called at any time, also after Close.
func (h *Host) Report() Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	report := h.ends
	report.Live = len(h.live)
	for in := range h.live {
		in.sample()
		report.CPUMS += ms(liveCPU(in.cmd.Process.Pid))
		report.PeakRSSBytes = max(report.PeakRSSBytes, in.peakRSS.Load())
	}
	return report
}

func (h *Host) observe(in *instance, err error) {
	defer h.publish()
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.alive() {
		h.note(in, Answered, err)
	}
	if err == nil {
		h.ends.Invocations++
	}
	if err == nil && !in.warm {
		in.warm = true
		h.ends.FirstResponseMS = ms(h.opts.Now().Sub(in.began))
	}
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

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
