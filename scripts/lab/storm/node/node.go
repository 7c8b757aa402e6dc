// Package node bundles the handlers of the storm that run on Node.js: those of Powertools
// for AWS Lambda, of Lambda durable functions and of Restate. The bench uses the first.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
)

// Folder has the handlers, relative to the lab.
const Folder = "storm/node"

// Find returns the path of Node.js. The error says what to install.
func Find(lab string) (path string, err error) {
	if path, err = exec.LookPath("node"); err != nil {
		return "", errors.New("no node on PATH: install Node.js 22 with npm (https://nodejs.org)")
	}
	if _, err := os.Stat(filepath.Join(lab, Folder, "node_modules")); err != nil {
		return "", errors.New("the handlers on Node.js are not installed: run make storm-node, which needs npm")
	}
	return path, nil
}

// Handler bundles a handler, such as "powertools", with what it imports and the runtime
// of Lambda into one executable file.
func Handler(ctx context.Context, lab, name, out string) error {
	return Bundle(ctx, lab, out, "bootstrap.ts", "--alias:handler=./"+name+".ts")
}

// Bundle bundles a program and its imports into one executable file.
func Bundle(ctx context.Context, lab, out string, args ...string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	args = append([]string{
		"run", "--silent", "build", "--prefix", filepath.Join(lab, Folder), "--", "--outfile=" + out,
	}, args...)
	cmd := exec.CommandContext(ctx, "npm", args...) //nolint:gosec // G204: our own paths
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bundle %s: %w\n%s", args[len(args)-1], err, output)
	}
	return os.Chmod(out, 0o700) //nolint:gosec // G302: an executable
}

// Versions returns the version of each package that the handlers depend on.
func Versions(lab string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(lab, Folder, "package.json")) //nolint:gosec // G304: our own path
	if err != nil {
		return nil, err
	}
	var file struct{ Dependencies, OptionalDependencies map[string]string }
	err = json.Unmarshal(text, &file)
	all := map[string]string{}
	maps.Copy(all, file.Dependencies)
	maps.Copy(all, file.OptionalDependencies)
	return all, err
}
