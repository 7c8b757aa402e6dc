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
// of the function's. It counts the orders and returns what the tool finds, as JSON.
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
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1 // the summary
	var end struct{ Summary books.Summary }
	if err := json.Unmarshal([]byte(lines[last]), &end); err != nil {
		return nil, fmt.Errorf("orders audit: summary %q: %w", lines[last], err)
	}
	f[Audited], f[Matched], f[Differing] = end.Summary.Orders, end.Summary.Matched, end.Summary.Differing
	return lines[:last], nil
}
