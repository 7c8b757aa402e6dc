package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/caarlos0/env/v11"
	"golang.org/x/term"

	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type commands struct {
	JSON bool `name:"json" help:"Print results as JSON, one per line, and text for people to standard error."`

	Check checking `cmd:"" default:"withargs" help:"Check the rules of services."`
	Clean cleaning `cmd:"" help:"Remove what killed runs have left in an AWS account."`
	Page  paging   `cmd:"" help:"Print docs/reference/conformance.md."`
}

// checking is `conform check`.
type checking struct {
	Services []string      `arg:"" optional:"" help:"Which: ${services}. Default: all."`
	Endpoint string        `default:"double" env:"ENDPOINT" help:"double, the URL of an emulator, or live: the real service. Default: ${default}."`
	As       string        `placeholder:"NAME" help:"The emulator's name and version, for the report."`
	Only     string        `placeholder:"TEXT" help:"Check the rules whose id contains this."`
	Resume   bool          `help:"Continue: check what the last run of the service did not end."`
	Yes      bool          `help:"Do not ask before calls to the real service."`
	Limit    int64         `default:"3000" help:"Calls to a service, at most. Default: ${default}."`
	Identity string        `placeholder:"ADDRESS" env:"SES_IDENTITY" help:"An address from which SES may send, for e-mails to its mailbox simulator."`
	Folder   string        `default:"build/conform" help:"Where reports are kept. Default: ${default}."`
	Account  cloud.Account `embed:"" group:"AWS"`
}

// errBroken means that a service does not keep every rule.
var errBroken = errors.New("rules are broken")

// Run checks the rules of each service. Real services are checked side by side, because
// most of their time checks wait.
func (c checking) Run(ctx context.Context, sh shell.Shell) error {
	chosen, err := choose(c.Services)
	if err != nil {
		return err
	}
	var runs []*running
	for _, s := range chosen {
		r, err := c.prepare(ctx, sh, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		runs = append(runs, r)
	}
	if c.Endpoint == live && !c.Yes && !sh.Confirms(c.question(runs), "yes") {
		return shell.ErrNotConfirmed
	}
	var all sync.WaitGroup
	for _, r := range runs {
		if c.Endpoint != live {
			all.Wait()
		}
		all.Go(func() { r.err = r.all(ctx) })
	}
	all.Wait()
	return end(sh, runs)
}

// end prints the summary of each service, and returns what is wrong.
func end(sh shell.Shell, runs []*running) (err error) {
	broken := 0
	for _, r := range runs {
		fmt.Fprint(sh.People(), r.summary())
		if broken += r.report.count(Broken); r.err != nil {
			err = errors.Join(err, fmt.Errorf("%w\nthe rest of %s is not checked; continue: conform %s --endpoint=%s --resume",
				r.err, r.service.name, r.service.name, r.target.endpoint))
		}
	}
	if err == nil && broken > 0 {
		return shell.Left("%w: %d", errBroken, broken)
	}
	return err
}

// choose returns the services with these names, or all.
func choose(names []string) (chosen []service, err error) {
	all := services()
	for _, name := range names {
		i := slices.IndexFunc(all, func(s service) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("service %q: want one of %s", name, serviceNames())
		}
		chosen = append(chosen, all[i])
	}
	if len(names) == 0 {
		chosen = all
	}
	return chosen, nil
}

func serviceNames() string {
	var names []string
	for _, s := range services() {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

func (c checking) question(runs []*running) string {
	var text strings.Builder
	for _, r := range runs {
		s := r.service
		fmt.Fprintf(&text, "%-12s about %d calls, at most %d; %s (%s)\n", s.name, s.calls, c.Limit, s.cost(2*s.calls), s.source)
	}
	return text.String() + "What they make is named " + prefix + "* and removed at the end.\nType yes to go on: "
}

func (c checking) prepare(ctx context.Context, sh shell.Shell, s service) (*running, error) {
	t := newTarget(c.Endpoint, c.Account, env.ToMap(sh.Environ)["STRIPE_SECRET_KEY"], c.Limit)
	t.identity = c.Identity
	r := &running{Shell: sh, service: s, only: c.Only, path: filepath.Join(c.Folder, s.name+"-"+t.name()+".json")}
	var err error
	if r.report, err = newReport(r.path, c.Resume, s, t, sh.Now()); err != nil {
		return nil, err
	}
	if t.prefix = r.report.Prefix; c.As != "" {
		r.report.Endpoint = c.As
	}
	if r.target = t; c.Endpoint != double {
		_, err = t.world(ctx, s, "") // is there a key, and are there credentials
	}
	return r, err
}

func main() {
	var c commands
	parser := kong.Must(&c, kong.Name("conform"), kong.Vars{"services": serviceNames()}, kong.Description(strings.Join([]string{
		"Check the rules of Stripe and AWS on which orderonce rests: at the doubles of its tests, at an emulator that others",
		"wrote, or at the services themselves, with your AWS profile and a test key in STRIPE_SECRET_KEY.",
		"docs/guides/conform.md explains it.",
		"",
		"Exit codes: 0 every rule is kept, 1 an error, 2 rules are broken, 80 a wrong command line.",
	}, "\n")))
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	k.BindTo(ctx, (*context.Context)(nil))
	err = k.Run(shell.Shell{
		Environ: os.Environ(), In: shell.Interruptible(ctx, os.Stdin), Out: os.Stdout, ErrOut: os.Stderr, Now: time.Now,
		JSON: c.JSON, Terminal: term.IsTerminal(int(os.Stdout.Fd())),
	})
	stop()
	k.FatalIfErrorf(err)
}
