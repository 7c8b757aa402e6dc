package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/config"
	"orderonce/scripts/orders/shell"
)

// Report is what a run found, in the form in which it is kept and sent.
type Report struct {
	Service  string    `json:"service"`
	Endpoint string    `json:"endpoint"` // "double", "live", or the emulator's name and version
	At       time.Time `json:"at"`
	Version  string    `json:"version"` // of this project
	Calls    int64     `json:"calls"`
	Prefix   string    `json:"prefix"` // of the names of what it made
	Results  []Result  `json:"results"`
}

// of returns the result of a rule, or the zero Result.
func (r *Report) of(rule string) Result {
	if i := slices.IndexFunc(r.Results, func(is Result) bool { return is.Rule == rule }); i >= 0 {
		return r.Results[i]
	}
	return Result{Rule: rule, Outcome: NotBegun}
}

func (r *Report) set(is Result) {
	r.Results = append(slices.DeleteFunc(r.Results, func(old Result) bool { return old.Rule == is.Rule }), is)
}

func (r *Report) count(o Outcome) (n int) {
	for _, is := range r.Results {
		if is.Outcome == o {
			n++
		}
	}
	return n
}

// ended reports whether a rule need not be checked again.
func (r Result) ended(now time.Time) bool {
	switch r.Outcome {
	case Kept, Broken, Lacking, Offline:
		return true
	case Waiting:
		return r.Due.After(now)
	case Failed, NotBegun:
	}
	return false
}

type running struct {
	shell.Shell

	service service
	target  target
	only    string // a part of the ids, or ""
	path    string // where the report is kept; "" if it is not

	mu     sync.Mutex
	report *Report
	err    error // that ended the run
}

// all runs the rules, with a stack if they need one.
func (r *running) all(ctx context.Context) (err error) {
	if r.service.stack && r.target.endpoint == live {
		fmt.Fprintf(r.People(), "%s: creating a stack with a function and an API, which takes a minute ...\n", r.service.name)
		w, failed := r.target.world(ctx, r.service, "")
		if failed == nil {
			r.target.stack, failed = openStack(ctx, w.Config, r.target.prefix+"stack")
		}
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, r.target.stack.close(ctx)) }()
	}
	return r.run(ctx)
}

// run checks each rule that has no result, several at once, and keeps the report after
// each. A rule that fails ends the run: what is wrong then, such as a permission, is
// wrong for all of them.
func (r *running) run(ctx context.Context) error {
	began, slots := r.report.Calls, make(chan struct{}, max(1, r.service.atOnce))
	running, stop := context.WithCancel(ctx)
	defer stop()
	var checks sync.WaitGroup
	for _, rule := range r.service.rules() {
		slots <- struct{}{}
		r.mu.Lock()
		last := r.report.of(rule.ID)
		r.mu.Unlock()
		if running.Err() != nil || !strings.Contains(rule.ID, r.only) || last.ended(r.Now()) {
			<-slots
			continue
		}
		checks.Go(func() {
			result, err := r.check(running, rule, last)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.report.Calls = began + r.target.meter.calls.Load()
			if r.err = errors.Join(r.err, r.record(rule, result, err)); r.err != nil {
				stop()
			}
			<-slots
		})
	}
	checks.Wait()
	return cmp.Or(r.err, ctx.Err())
}

// record keeps and prints a result, unless the end of the run has ended its check.
func (r *running) record(rule Rule, result Result, err error) error {
	if result.Outcome == NotBegun {
		return err
	}
	r.report.set(result)
	return errors.Join(err, r.show(rule, result), r.keep())
}

func (r *running) check(ctx context.Context, rule Rule, last Result) (result Result, err error) {
	w, err := r.target.world(ctx, r.service, rule.ID)
	if err != nil {
		return Result{Rule: rule.ID, Outcome: NotBegun}, err
	}
	if w.close != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	return check(ctx, w, rule, last)
}

func (r *running) show(rule Rule, is Result) error {
	mark := string(is.Outcome)
	if is.Outcome == Broken || is.Outcome == Failed {
		mark = strings.ToUpper(mark)
	}
	text := fmt.Sprintf("%-8s %-28s %s\n", mark, rule.ID, rule.Says)
	if is.Detail != "" {
		text += strings.Repeat(" ", 38) + is.Detail + "\n"
	}
	if is.Outcome == Waiting {
		text += fmt.Sprintf("%38suntil %s: run it again with --resume\n", "", is.Due.Format(time.RFC3339))
	}
	if is.Outcome == Broken {
		text += fmt.Sprintf("%38ssource: %s\n", "", rule.Source)
	}
	return r.Result(text, is)
}

func (r *running) summary() string {
	s := fmt.Sprintf("%s at %s:", r.service.name, r.report.Endpoint)
	for _, o := range []Outcome{Kept, Broken, Lacking, Offline, Waiting, Failed} {
		if n := r.report.count(o); n > 0 || o == Kept {
			s += fmt.Sprintf(" %s %d,", o, n)
		}
	}
	s = strings.TrimSuffix(s, ",")
	return s + fmt.Sprintf("; %d calls, %s\n", r.report.Calls, r.service.cost(r.report.Calls))
}

// keep writes the report beside its old version, and then replaces it.
func (r *running) keep() error {
	if r.path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r.report, "", "  ")
	err = errors.Join(err, os.MkdirAll(filepath.Dir(r.path), 0o750),
		os.WriteFile(r.path+".new", append(text, '\n'), 0o600))
	if err == nil {
		err = os.Rename(r.path+".new", r.path)
	}
	if err != nil {
		return fmt.Errorf("keep the report: %w", err)
	}
	return nil
}

// newReport returns the report of a run that begins, or, if resume is set, the one that
// an earlier run left.
func newReport(path string, resume bool, s service, t target, now time.Time) (*Report, error) {
	fresh := &Report{
		Service: s.name, Endpoint: t.endpoint, At: now.UTC().Truncate(time.Second), Version: config.Version, Prefix: t.prefix,
	}
	if !resume {
		return fresh, nil
	}
	old := &Report{}
	err := readJSON(path, old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--resume: there is no report %s of an earlier run", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	return old, nil
}
