package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"orderonce/scripts/lab/storm/powertools"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

// powertoolsHandler returns the handler that Powertools for AWS Lambda documents. The
// error says what is missing.
func powertoolsHandler() (run.Handler, error) {
	node, err := powertools.Node(".")
	if err != nil {
		return run.Handler{}, err
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
		path := filepath.Join(dir, version, "bootstrap")
		return path, powertools.Bundle(ctx, ".", path)
	}
	binary, first := bundled("v1")
	next, second := bundled("v2")
	return binary, next, errors.Join(first, second)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
