package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"orderonce/scripts/local/system"
	books "orderonce/scripts/orders/audit"
)

// exitDiffers is the exit code of the tool if table and Stripe differ.
const exitDiffers = 2

// auditByTool runs the compiled tool over the whole storm. Stripe's clock is weeks ahead
// of the function's. It counts the orders and returns what the tool finds, as JSON; an
// unknown refund is no finding.
func (st *storm) auditByTool(ctx context.Context, s *system.System, f Figures) ([]string, error) {
	out, err := st.runTool(ctx, s, "audit")
	if err != nil {
		return nil, err
	}
	var findings []string
	for line := range strings.Lines(out) {
		var l struct {
			Class   books.Class
			Summary *books.Summary
			Verdict *books.Verdict
		}
		err := json.Unmarshal([]byte(line), &l)
		switch {
		case err != nil:
			return nil, fmt.Errorf("orders audit: line %q: %w", line, err)
		case l.Summary != nil:
			f[Audited] = l.Summary.Orders
			f[Matched] = l.Summary.Matched + l.Summary.Findings[books.RefundUnknown]
			f[Differing] = f[Audited] - f[Matched]
		case l.Verdict != nil && l.Verdict.Safe, l.Class == books.RefundUnknown: // table and Stripe agree
		default:
			findings = append(findings, line)
		}
	}
	return findings, nil
}

// verifyByTool runs `orders verify` likewise, with the log and the events of the storm.
// What it read is in the storm's folder afterwards.
func (st *storm) verifyByTool(ctx context.Context, s *system.System) (findings []string, err error) {
	dir := filepath.Join(st.Dir, st.handler.Name)
	var events bytes.Buffer
	for _, e := range s.Bus.Archive() {
		events.Write(append(e.Delivered(), '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), events.Bytes(), 0o600); err != nil {
		return nil, err
	}
	out, err := st.runTool(ctx, s, "verify", "--rest=2100-01-01", "--save="+dir, "--in-order",
		"--events="+filepath.Join(dir, "events.jsonl"), "--logs="+filepath.Join(dir, logName))
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, `{"summary"`) {
			findings = append(findings, "orders verify: "+line)
		}
	}
	return findings, err
}

// runTool returns what a command over everything prints. That it finds something is no
// error.
func (st *storm) runTool(ctx context.Context, s *system.System, command ...string) (string, error) {
	command = append(command,
		"--json", "--stripe-rate=1e6", "--table-rate=1e6", "--from=2026-01-01", "--to=2100-01-01")
	cmd := exec.CommandContext(ctx, st.tool, command...) //nolint:gosec // G204: a program that we built
	cmd.Env = append(s.OperatorEnv(), "TMPDIR="+st.Dir)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	failed, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && (!ok || failed.ExitCode() != exitDiffers) {
		return "", fmt.Errorf("orders %s: %w: %s", command[0], err, &errOut)
	}
	return out.String(), nil
}
