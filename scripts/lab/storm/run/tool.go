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

// Books is what `orders audit`, the operator's tool, finds after a storm.
type Books struct {
	books.Summary `json:"summary"`

	Findings []string `json:"-"` // as JSON
}

// exitDiffers is the exit code of the tool if table and Stripe differ.
const exitDiffers = 2

// auditByTool runs the compiled tool over the whole storm. Stripe's clock is weeks ahead
// of the function's.
func (st *storm) auditByTool(ctx context.Context, s *system.System) (b Books, err error) {
	cmd := exec.CommandContext(ctx, st.tool, //nolint:gosec // G204: a program that we built
		"audit", "--json", "--stripe-rate=1e6", "--table-rate=1e6", "--from=2026-01-01", "--to=2100-01-01")
	cmd.Env = append(s.OperatorEnv(), "TMPDIR="+st.Dir)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitDiffers {
			return b, fmt.Errorf("orders audit: %w: %s", err, &errOut)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1 // the summary
	b.Findings = lines[:last]
	if err := json.Unmarshal([]byte(lines[last]), &b); err != nil {
		return b, fmt.Errorf("orders audit: summary %q: %w", lines[last], err)
	}
	return b, nil
}
