package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/lab/progress"
)

// runner runs gremlins over packages of a copy of the module.
type runner struct {
	gremlins string
	workers  int
	dir      string // the copy
	engine   dynamodbtest.Location
	out      io.Writer // for progress
}

// mutate tests every mutant of one package, named by its folder.
func (r runner) mutate(ctx context.Context, pkg string) ([]mutant, error) {
	if err := r.prepare(pkg); err != nil {
		return nil, err
	}
	report := filepath.Join(r.dir, "mutants.json")
	cmd := exec.CommandContext(ctx, "go", r.args(pkg, report)...) //nolint:gosec // G204: our own arguments
	cmd.Dir, cmd.Env = r.dir, r.environ(os.Environ())
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = r.out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	last := r.follow(pkg, printed)
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("mutate %s: %w\n%s", pkg, err, last)
	}
	text, err := os.ReadFile(report) //nolint:gosec // G304: it was just written
	if err != nil {
		return nil, err
	}
	mutants, err := parseReport(text, pkg, os.DirFS(r.dir))
	if err != nil {
		return nil, err
	}
	return mutants, r.markNotViable(ctx, pkg, mutants)
}

// markNotViable marks the mutants that do not compile. gremlins counts them as killed,
// because go test fails. They are string concatenations, in which gremlins replaces + by
// -.
func (r runner) markNotViable(ctx context.Context, pkg string, mutants []mutant) error {
	for i, m := range mutants {
		before, after, _ := strings.Cut(m.Code, mark+"+")
		if m.status != killed || m.Type != "ARITHMETIC_BASE" || before == m.Code {
			continue
		}
		compiles, err := r.compiles(ctx, pkg, m, before+"-"+after)
		if err != nil {
			return err
		}
		if !compiles {
			mutants[i].status = notViable
		}
	}
	return nil
}

// compiles reports whether the package compiles with another line of code.
func (r runner) compiles(ctx context.Context, pkg string, m mutant, line string) (bool, error) {
	file := filepath.Join(r.dir, filepath.FromSlash(m.File))
	source, err := os.ReadFile(file) //nolint:gosec // G304: a file of the copy
	if err != nil {
		return false, err
	}
	lines := strings.Split(string(source), "\n")
	lines[m.line-1] = line
	changed, overlay := filepath.Join(r.dir, "changed.txt"), filepath.Join(r.dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		return false, err
	}
	for name, text := range map[string]string{changed: strings.Join(lines, "\n"), overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return false, err
		}
	}
	args := []string{"build", "-o", os.DevNull, "-overlay", overlay, "./" + pkg}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: as above
	cmd.Dir = r.dir
	if err := cmd.Run(); err != nil {
		if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// args returns the arguments of go. A mutant times out after five times the duration of
// the tests.
func (r runner) args(pkg, report string) []string {
	return []string{
		"run", r.gremlins, "unleash", "--output", report,
		"--workers", strconv.Itoa(r.workers), "--timeout-coefficient", "5",
		"--exclude-files", `[a-z]test/`, // the doubles
		"--invert-logical", "--invert-loopctrl",
		"./" + pkg,
	}
}

// environ disables go test's cache, whose short durations would also shorten the timeout,
// and enables every test. The engine is not one of gremlins' copies: gremlins keeps every
// file open that it wrote, and Linux does not execute a file that is open for writing.
func (r runner) environ(environ []string) []string {
	env := append(environ, "GOFLAGS=-count=1", "ORDERONCE_ALL=1")
	if r.engine.Binary != "" {
		folder, _ := filepath.Abs(filepath.Dir(r.engine.Binary)) // Find returns an absolute path, or one from PATH
		env = append(env, "PATH="+folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return env
}

// follow prints the survivors and the progress, and returns the last line.
func (r runner) follow(pkg string, printed io.Reader) (last string) {
	lines := bufio.NewScanner(printed)
	done, printLine := 0, progress.Every(30*time.Second, r.out, time.Now)
	for lines.Scan() {
		last = strings.TrimSpace(lines.Text())
		status, _, isMutant := strings.Cut(last, " ")
		switch {
		case isMutant && (status == "LIVED" || status == "TIMED"):
			done++
			_, _ = fmt.Fprintf(r.out, "%s: %s\n", pkg, last)
		case status == "KILLED":
			done++
		}
		printLine("%s: %d mutants tested", pkg, done)
	}
	return last
}

// report is the JSON report of gremlins.
type report struct {
	Files []struct {
		Name      string `json:"file_name"` // relative to the package
		Mutations []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
		} `json:"mutations"`
	} `json:"files"`
}

// parseReport parses a report and reads the lines of code that it names.
func parseReport(text []byte, pkg string, module fs.FS) ([]mutant, error) {
	var rep report
	if err := json.Unmarshal(text, &rep); err != nil {
		return nil, fmt.Errorf("parse gremlins report of %s: %w", pkg, err)
	}
	var all []mutant
	for _, f := range rep.Files {
		name := path.Join(pkg, filepath.ToSlash(f.Name))
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range f.Mutations {
			if m.Line < 1 || m.Line > len(lines) || m.Column < 1 || m.Column > len(lines[m.Line-1])+1 {
				return nil, fmt.Errorf("gremlins report: %s has no line %d, column %d", name, m.Line, m.Column)
			}
			line := lines[m.Line-1]
			all = append(all, mutant{
				place: place{
					File: name,
					Type: m.Type,
					Code: strings.TrimSpace(line[:m.Column-1] + mark + line[m.Column-1:]),
				},
				status: m.Status, line: m.Line,
			})
		}
	}
	return all, nil
}
