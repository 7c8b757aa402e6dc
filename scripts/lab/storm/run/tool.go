package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
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
	cmd := exec.CommandContext(ctx, st.tool, //nolint:gosec // G204: a program that we built
		"audit", "--json", "--stripe-rate=1e6", "--table-rate=1e6", "--from=2026-01-01", "--to=2100-01-01")
	cmd.Env = append(s.OperatorEnv(), "TMPDIR="+st.Dir)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitDiffers {
			return nil, fmt.Errorf("orders audit: %w: %s", err, &errOut)
		}
	}
	var findings []string
	for line := range strings.Lines(out.String()) {
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
