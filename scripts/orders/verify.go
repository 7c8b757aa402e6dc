package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/orders/audit"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/verify"
)

type verifyHistory struct {
	From       shell.Moment `placeholder:"T" help:"Start: 2026-11-01, 2026-11-01T08:00:00Z, or how long ago. Default: 26h; of files everything."`
	To         shell.Moment `placeholder:"T" help:"End, likewise, not included. Default: 1h; of files everything."`
	Rest       shell.Moment `placeholder:"T" help:"An order that changed after it is in progress, not a finding. Default: 20m; of files never."`
	Rows       []string     `placeholder:"FILE" help:"Items of the table, as its export to S3 has them."`
	Stripe     []string     `placeholder:"FILE" help:"PaymentIntents, refunds, disputes and charges, as Stripe's API or CLI prints them."`
	Events     []string     `placeholder:"FILE" help:"Events of the bus, one a line."`
	Logs       []string     `placeholder:"FILE" help:"What the functions printed, also with a time before each line."`
	Save       string       `placeholder:"DIR" help:"Keep what is read of table and Stripe there, without customers, as rows.jsonl and stripe.jsonl."`
	InOrder    bool         `help:"The bus accepted the events in the order of --events. EventBridge does not deliver in order."`
	StripeRate float64      `default:"10" placeholder:"N" help:"Calls to Stripe in a second, at most. Default: ${default}."`
	TableRate  float64      `default:"5" placeholder:"N" help:"Pages of the scan in a second, at most. Default: ${default}."`
}

// Run verifies a period.
func (v verifyHistory) Run(ctx context.Context, sh shell.Shell) error {
	dir, err := os.MkdirTemp("", "orders-verify-")
	if err != nil {
		return err
	}
	table := env.ToMap(sh.Environ)["ORDERS_TABLE"] != "" || len(v.Events)+len(v.Logs) == 0
	checking := &verifying{verifyHistory: v, Shell: sh, live: table && len(v.Rows)+len(v.Stripe) == 0}
	s, err := checking.run(ctx, dir)
	switch err = errors.Join(err, os.RemoveAll(dir)); {
	case err != nil:
		return fmt.Errorf("verify: %w", err)
	case checking.findings > 0:
		return shell.Left("findings: %d, in orders: %d", checking.findings, s.Broken)
	}
	return nil
}

type verifying struct {
	verifyHistory
	shell.Shell

	live     bool // the table and Stripe are read
	findings int
	shown    int
}

func (v *verifying) run(ctx context.Context, dir string) (s verify.Summary, err error) {
	check := &verify.Verifier{
		Now: v.Now(), Ordered: v.InOrder, Found: v.found,
		Have: map[verify.Source]bool{
			verify.Rows: v.live || v.Rows != nil, verify.Stripe: v.live || v.Stripe != nil,
			verify.Events: v.Events != nil, verify.Logs: v.Logs != nil,
		},
	}
	from, to, rest := 26*time.Hour, time.Hour, 20*time.Minute
	if !v.live {
		from, to, rest = forever, -forever, -forever
	}
	check.Window = audit.Window{From: v.at(v.From, from), To: v.at(v.To, to)}
	check.Rest = v.at(v.Rest, rest)
	f, err := verify.Open(dir)
	if err != nil {
		return s, err
	}
	f.Leaked, f.Scope = v.found, order.Scope(env.ToMap(v.Environ)["SCOPE"])
	if v.live {
		err = v.readLive(ctx, f, check.Window)
	}
	if err == nil {
		err = v.readFiles(f)
	}
	if err == nil {
		s, err = check.Run(f)
	}
	if err == nil {
		err = v.summarize(s)
	}
	return s, errors.Join(err, f.Close())
}

const forever = 100 * 365 * 24 * time.Hour

// at returns a moment, or how long ago if it was not typed.
func (v *verifying) at(m shell.Moment, ago time.Duration) time.Time {
	if m.Typed() {
		return m.At(v.Now())
	}
	return v.Now().Add(-ago)
}

// readLive reads Stripe first and the table then: a row that changed meanwhile is in
// progress. What belongs to an order may be made long after it.
func (v *verifying) readLive(ctx context.Context, f *verify.Folder, w audit.Window) error {
	d, err := cloud.OpenStripe(ctx, v.Shell)
	if err != nil {
		return err
	}
	d.Where()
	b := d.Books(v.StripeRate, v.TableRate)
	w = audit.Window{From: w.From.Add(-order.MaxSkew), To: v.Now().Add(order.MaxSkew)}
	if v.To.At(v.Now()).After(w.To) {
		w.To = v.To.At(v.Now())
	}
	err = v.saved("stripe.jsonl", func(save *json.Encoder) (err error) {
		for _, of := range []string{"payment_intents", "refunds", "disputes"} {
			err = cmp.Or(err, addAll(b.Objects(ctx, w, of), func(o verify.Object) error {
				return errors.Join(f.AddObject(o), save.Encode(o))
			}))
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.saved("rows.jsonl", func(save *json.Encoder) error {
		return addAll(b.Items(ctx), func(i verify.Item) error { // which loses its customer
			return errors.Join(f.AddItem(i), save.Encode(map[string]verify.Item{"Item": i}))
		})
	})
}

// saved calls read with what writes a file into the folder of --save.
func (v *verifying) saved(name string, read func(*json.Encoder) error) error {
	if v.Save == "" {
		return read(json.NewEncoder(io.Discard))
	}
	return write(filepath.Join(v.Save, name), func(w io.Writer) error {
		b := bufio.NewWriter(w)
		return errors.Join(read(json.NewEncoder(b)), b.Flush())
	})
}

func addAll[T any](pages iter.Seq2[audit.Page[T], error], add func(T) error) error {
	for page, err := range pages {
		for n := 0; n < len(page.Items) && err == nil; n++ {
			err = add(page.Items[n])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifying) readFiles(f *verify.Folder) (err error) {
	read := func(names []string, read func(name string, in io.Reader) error) {
		for _, name := range names {
			if wrong := v.readFile(name, read); err == nil && wrong != nil {
				err = fmt.Errorf("%s: %w", name, wrong)
			}
		}
	}
	read(v.Rows, func(_ string, in io.Reader) error { return f.ReadRows(in) })
	read(v.Stripe, func(_ string, in io.Reader) error { return f.ReadStripe(in) })
	read(v.Events, func(_ string, in io.Reader) error { return f.ReadEvents(in) })
	read(v.Logs, f.ReadLogs)
	return err
}

// readFile reads a file, which may be compressed with gzip. "-" is standard input.
func (v *verifying) readFile(name string, read func(string, io.Reader) error) error {
	in := io.NopCloser(v.In)
	if name != "-" {
		file, err := os.Open(filepath.Clean(name))
		if err != nil {
			return err
		}
		in = file
	}
	b, err := unzipped(in)
	if err == nil {
		err = read(name, b)
	}
	return errors.Join(err, in.Close())
}

func unzipped(in io.Reader) (io.Reader, error) {
	b := bufio.NewReader(in)
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		return gzip.NewReader(b)
	}
	return b, nil
}

// found prints what was found about an order; on a terminal, about the first fifty.
func (v *verifying) found(r verify.Report) error {
	v.findings += len(r.Findings)
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-4s %s  %s\n", f.Invariant, cmp.Or(r.OrderID, "-"), f.Detail)
	}
	for _, m := range r.Timeline {
		fmt.Fprintf(&b, "     %s  %-6s  %s\n", m.At.UTC().Format("2006-01-02 15:04:05.000"), m.From, m.What)
	}
	if v.shown++; !v.JSON && v.shown > shownFindings {
		return nil
	}
	return v.Result(b.String(), r)
}

func (v *verifying) summarize(s verify.Summary) error {
	var b strings.Builder
	if more := v.shown - shownFindings; more > 0 {
		fmt.Fprintf(&b, "and %d more: see --json\n", more)
	}
	fmt.Fprintf(&b, "\n%9d items of the table, %d objects of Stripe, %d events, %d log lines; of others: %d\n",
		s.Read[verify.Rows], s.Read[verify.Stripe], s.Read[verify.Events], s.Read[verify.Logs], s.Skipped)
	fmt.Fprintf(&b, "%9d orders: %d in progress, %d with findings, %d too old for their events\n\n",
		s.Orders, s.InProgress, s.Broken, s.Expired)
	for n, claim := range invariants.All() {
		i, mark := s.Invariants[n], "-     "
		if i.Broken > 0 {
			mark = "BROKEN"
		} else if i.Checked {
			mark = "ok    "
		}
		note := ""
		if i.Note != "" {
			note = " (" + i.Note + ")"
		}
		fmt.Fprintf(&b, "  %s %-4s %s%s\n", mark, i.ID, claim.Claim, note)
	}
	return v.Result(b.String(), map[string]verify.Summary{"summary": s})
}
