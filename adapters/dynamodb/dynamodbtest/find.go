// Package dynamodbtest provides tests and the local system with a DynamoDB-compatible
// engine, the orders table in it, and a proxy that counts, delays, rejects or loses
// calls. It does not know what the calls are for: it imports neither the store nor the
// domain.
package dynamodbtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoEngine reports that Find found no engine. Its text describes how to get one.
var ErrNoEngine = errors.New("no DynamoDB engine found; do one of these:\n" +
	"  make engine    (linux x64, needs npm: installs the pinned binary with npm ci --ignore-scripts)\n" +
	"  put dynoxide on PATH    (macOS, arm64: https://github.com/nubo-db/dynoxide)\n" +
	"  docker run -d -p 127.0.0.1:8000:8000 amazon/dynamodb-local && " +
	"export DYNAMODB_ENDPOINT=http://127.0.0.1:8000")

// Location is the place of an engine. Exactly one field is set.
type Location struct {
	Endpoint string // URL of a running engine
	Binary   string // path of a dynoxide binary to start
}

// Find looks for an engine: $DYNAMODB_ENDPOINT, then dynoxide on $PATH, then the npm
// package in this folder, relative to the module that contains dir. It returns
// ErrNoEngine if there is none.
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
		npm := "adapters/dynamodb/dynamodbtest/engine/node_modules/@dynoxide/linux-x64"
		folders = append(folders, filepath.Join(root, npm))
	}
	for _, folder := range folders {
		if binary, err := exec.LookPath(filepath.Join(folder, "dynoxide")); err == nil {
			return Location{Binary: binary}, nil
		}
	}
	return Location{}, ErrNoEngine
}

// moduleRoots returns the roots of the modules that contain dir, the innermost first: the
// engine is in the root module, and scripts/lab is a module inside it.
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
