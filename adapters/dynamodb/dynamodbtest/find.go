// Package dynamodbtest gives tests and the local system a real DynamoDB-compatible
// engine, the orders table in it, and a proxy that counts, delays, refuses or loses any
// call. It refuses to know what the calls are for: it imports neither the store nor the
// domain.
package dynamodbtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoEngine is what Find returns when there is no engine to run. Its text says how to
// get one.
var ErrNoEngine = errors.New(`no DynamoDB engine found; do one of these:
  make engine    (linux x64, needs npm: installs the pinned binary with npm ci --ignore-scripts)
  docker run -d -p 127.0.0.1:8000:8000 amazon/dynamodb-local && export DYNAMODB_ENDPOINT=http://127.0.0.1:8000`)

// Location says where an engine is. Exactly one field is set.
type Location struct {
	Endpoint string // URL of an engine that runs already
	Binary   string // path of a dynoxide program to start
}

// Find looks for an engine: $DYNAMODB_ENDPOINT, then dynoxide on $PATH, then the npm
// package in this folder, which it finds from dir, any directory of this repository. It
// returns ErrNoEngine when there is none.
func Find(getenv func(string) string, dir string) (Location, error) {
	if endpoint := getenv("DYNAMODB_ENDPOINT"); endpoint != "" {
		return Location{Endpoint: endpoint}, nil
	}
	folders := filepath.SplitList(getenv("PATH"))
	roots, err := moduleRoots(dir)
	if err != nil {
		return Location{}, err
	}
	for _, root := range roots {
		folders = append(
			folders,
			filepath.Join(root, "adapters/dynamodb/dynamodbtest/engine/node_modules/@dynoxide/linux-x64"),
		)
	}
	for _, folder := range folders {
		if binary, err := exec.LookPath(filepath.Join(folder, "dynoxide")); err == nil {
			return Location{Binary: binary}, nil
		}
	}
	return Location{}, ErrNoEngine
}

// moduleRoots returns the roots of the modules that contain dir, the innermost first. The
// lab is a module inside the product's, which has the engine.
func moduleRoots(dir string) (roots []string, err error) {
	folder, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("module root above %q: %w", dir, err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			roots = append(roots, folder)
		}
	}
	if roots == nil {
		return nil, fmt.Errorf("module root above %q: %w", dir, os.ErrNotExist)
	}
	return roots, nil
}
