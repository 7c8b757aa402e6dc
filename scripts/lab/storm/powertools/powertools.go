// Package powertools bundles the handler that Powertools for AWS Lambda documents, for
// Node.js. The storm and the bench compare the product with it.
package powertools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Folder has the handler, relative to the lab.
const Folder = "storm/powertools"

// Node returns the path of Node.js. The error says what is missing.
func Node(lab string) (node string, err error) {
	if node, err = exec.LookPath("node"); err != nil {
		return "", errors.New("powertools-typescript skipped: no node on PATH")
	}
	if _, err := os.Stat(filepath.Join(lab, Folder, "node_modules")); err != nil {
		return "", errors.New("powertools-typescript skipped: run make storm-powertools, which needs npm")
	}
	return node, nil
}

// Bundle bundles the handler and its imports into one executable file.
func Bundle(ctx context.Context, lab, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	//nolint:gosec // G204: our own paths
	cmd := exec.CommandContext(ctx, "npm", "run", "--silent", "build",
		"--prefix", filepath.Join(lab, Folder), "--", "--outfile="+out)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bundle %s: %w\n%s", Folder, err, output)
	}
	return os.Chmod(out, 0o700) //nolint:gosec // G302: an executable
}
