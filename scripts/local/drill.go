package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/local/incidents"
)

type drill struct {
	Runbook string `arg:"" optional:"" help:"Number of the runbook; without it, list them."`
}

// Run puts a system into the situation of a runbook, lets happen what a person types, and
// audits what they leave behind.
func (d drill) Run(ctx context.Context) error {
	for n, b := range slices.Concat(incidents.Runbooks(), incidents.Others()) {
		name, title := b.Name()
		switch d.Runbook {
		case "":
			fmt.Printf("  make drill RUNBOOK=%-9s %s\n", name, title)
		case name:
			page := incidents.Page
			if n >= len(incidents.Runbooks()) {
				page = incidents.OperatePage
			}
			defer ownTerminal(os.Stdin)()
			return practice(ctx, b, page, folder(filepath.Join("build/drill", name)))
		}
	}
	if d.Runbook == "" {
		return nil
	}
	return fmt.Errorf("no runbook %q: make drill lists them", d.Runbook)
}

func practice(ctx context.Context, b incidents.Runbook, page string, f folder) (err error) {
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return err
	}
	fmt.Println("Compiling the functions and making the incident happen ...")
	file, err := compile(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	programs, err := filepath.Abs(string(f))
	if err != nil {
		return err
	}
	i, err := b.Start(ctx, incidents.Setup{
		Root: ".", Folder: programs, Patience: 20 * time.Second, Engine: engine, Log: file,
		Build: func(function string) (string, error) { return f.binary(function), nil },
		Operate: func(i *incidents.Incident, line string) error {
			cmd := exec.CommandContext(ctx, f.binary("orders"), strings.Fields(line)...) //nolint:gosec // ours
			cmd.Env = i.OperatorEnv()
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("orders %s: %w\n%s", line, err, out)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	if err := f.writeEnv(environment(i.System)); err != nil {
		return err
	}
	fmt.Printf(briefing, b.Title, strings.ReplaceAll(b.Seen, "\n", "\n  "), page, f.env())
	return listen(ctx, i, os.Stdin, os.Stdout)
}

const briefing = `
%s

  %s

In another terminal, in this folder, with %s:

  . ./%s    # endpoints, pretend credentials, and the tool orders on the PATH

What AWS, Stripe and other people do happens here, when you type its number and Enter. The
schedule's function does not run. Post and refund only what the incident needs: the audit
knows no other orders.

`

// unfinishedError is what a drill leaves behind that is not right.
type unfinishedError struct{ error }

// ExitCode is that of an audit that found something.
func (unfinishedError) ExitCode() int { return 2 }

// listen lets happen what a person types, until they say that it is over, and audits.
func listen(ctx context.Context, i *incidents.Incident, in io.Reader, out io.Writer) error {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for typed := bufio.NewScanner(in); typed.Scan(); {
			lines <- strings.TrimSpace(typed.Text())
		}
	}()
	for {
		events := i.CanHappen()
		for n, event := range events {
			mark := map[bool]string{true: "  (happened)"}[event.Happened]
			fmt.Fprintf(out, "  %-5d %s%s\n", n+1, event.Name, mark)
		}
		fmt.Fprintf(out, "  done  it is over: audit what I leave behind (or Ctrl-D)\n\n")
		select {
		case <-ctx.Done():
			return unfinishedError{errors.New("the drill ended without an audit")}
		case typed, more := <-lines:
			if !more || typed == "done" {
				results, err := i.Audit()
				if err == nil {
					err = showChecks(out, results)
				}
				if err != nil {
					return unfinishedError{err}
				}
				return nil
			}
			if n, err := strconv.Atoi(typed); err == nil && 0 < n && n <= len(events) {
				typed = events[n-1].Name
			}
			if err := i.Happen(typed); err != nil {
				fmt.Fprintf(out, "%v\n\n", err)
			} else {
				fmt.Fprintf(out, "It has happened: %s.\n\n", typed)
			}
		}
	}
}
