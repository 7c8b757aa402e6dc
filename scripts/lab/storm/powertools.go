package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

const powertoolsFolder = "storm/powertools"

// powertools returns the handler that Powertools for AWS Lambda documents, on Node.js.
// The error says what is missing.
func powertools() (run.Handler, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return run.Handler{}, errors.New("powertools-typescript skipped: no node on PATH")
	}
	if _, err := os.Stat(filepath.Join(powertoolsFolder, "node_modules")); err != nil {
		return run.Handler{}, errors.New(
			"powertools-typescript skipped: run make storm-powertools, which needs npm",
		)
	}
	return run.Handler{
		Name:  "powertools-typescript",
		Does:  "Powertools itself: an idempotency record by orderId for 24 h with payload check, and a Stripe key",
		Fails: "as idempotency-record-24h",
		Build: bundle,
		Options: func(o *system.Options) {
			o.Travels = true
			o.FunctionTimeout, o.Visibility = 5*time.Second, 6*time.Second // Node.js starts slowly
			o.Env = map[string]string{
				tableVariable: system.TableIn(o.Engine, "baselines"), "PATH": filepath.Dir(node),
				"STRIPE_TIMEOUT_MS":   milliseconds(system.StripeWaits),
				"FUNCTION_TIMEOUT_MS": milliseconds(o.FunctionTimeout),
			}
		},
		Prepare: createTable,
		Rows:    baselineRows,
	}, nil
}

// bundle bundles the handler and its imports into one executable file, twice.
func bundle(ctx context.Context, dir string) (binary, next string, err error) {
	bundled := func(version string) (string, error) {
		path, err := filepath.Abs(filepath.Join(dir, version, "bootstrap"))
		if err != nil {
			return "", err
		}
		//nolint:gosec // G204: our own paths
		cmd := exec.CommandContext(ctx, "npm", "run", "--silent", "build", "--prefix", powertoolsFolder, "--",
			"--outfile="+path)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("bundle %s: %w\n%s", powertoolsFolder, err, out)
		}
		return path, os.Chmod(path, 0o700) //nolint:gosec // G302: an executable
	}
	binary, first := bundled("v1")
	next, second := bundled("v2")
	return binary, next, errors.Join(first, second)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
