package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orderonce/scripts/lab/storm/node"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

type program struct {
	name, version      string
	does, bound, fails string
}

// nodeHandlers returns the handlers on Node.js. lab is the path of the lab's folder. The
// error says what to install.
func nodeHandlers(lab string) ([]run.Handler, error) {
	path, err := node.Find(lab)
	if err != nil {
		return nil, errors.Join(err, errors.New("or run the product alone: --baselines=0"))
	}
	versions, err := node.Versions(lab)
	if err != nil {
		return nil, err
	}
	var all []run.Handler
	for _, p := range []program{
		{
			name: "powertools", version: versions["@aws-lambda-powertools/idempotency"],
			does: "Powertools for TypeScript: an idempotency record by orderId for 24 h with payload check, " +
				"and a Stripe key",
			bound: "the same around the bind",
			fails: "as idempotency-record-24h",
		},
		{
			name: "durable", version: "SDK " + versions["@aws/durable-execution-sdk-js"],
			does: "a Lambda durable function: for each batch an execution with the steps charge, with a Stripe " +
				"key, and save; the testing package of the SDK is the service",
			bound: "the same with the steps create, bind, confirm, save",
			fails: "a delivery after 24 h is another execution, which knows no step of the one before",
		},
		{
			name: "restate",
			version: "server " + versions[restateServers+"linux-x64"] + ", " +
				"SDK " + versions["@restatedev/restate-sdk"],
			does: "a call of Restate's server by orderId, kept for 30 days (default: one), to a virtual object " +
				"with the steps charge, with a Stripe key, and save",
			bound: "the same with the steps create, bind, confirm, save, and a comparison of the content",
			fails: "a step that is tried again after 24 h; a conflicting order gets the result of the first",
		},
	} {
		all = append(all, p.handler(lab, path, false), p.handler(lab, path, true))
	}
	return all, nil
}

// handler returns the handler, with the bind or without it.
func (p program) handler(lab, path string, bind bool) run.Handler {
	h := run.Handler{
		Name: p.name, Version: p.version, Does: p.does, Fails: p.fails, Prepare: createTable, Rows: baselineRows,
		Build: func(ctx context.Context, dir string) (path string, err error) {
			path = filepath.Join(dir, "bootstrap")
			return path, node.Handler(ctx, lab, p.name, path)
		},
		Options: func(o *system.Options) { nodeOptions(o, lab, path) },
	}
	if bind {
		h.Name, h.Does, h.Fails = h.Name+bound, p.bound, "as stripe-key + bind"
		without := h.Options
		h.Options = func(o *system.Options) { without(o); o.Env["BIND"] = "1" }
	}
	if p.name == "restate" {
		(&restate{lab: lab}).join(&h)
	}
	return h
}

const bound = " + bind"

// isOnNode reports whether a handler runs what others wrote, which is on Node.js.
func isOnNode(h run.Handler) bool { return h.Version != "" }

func hasBind(h run.Handler) bool { return strings.HasSuffix(h.Name, bound) }

// nodeOptions gives a handler on Node.js more time than the others: it starts slowly.
func nodeOptions(o *system.Options, lab, path string) {
	o.Travels = true
	o.FunctionTimeout, o.Visibility = 5*time.Second, 6*time.Second
	modules, _ := filepath.Abs(filepath.Join(lab, node.Folder, "node_modules"))
	o.Env = map[string]string{
		tableVariable: system.TableIn(o.Engine, "baselines"), "PATH": filepath.Dir(path),
		"NODE_PATH":           modules, // of the packages that are not in the bundle
		"STRIPE_TIMEOUT_MS":   milliseconds(system.StripeWaits),
		"FUNCTION_TIMEOUT_MS": milliseconds(o.FunctionTimeout),
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
