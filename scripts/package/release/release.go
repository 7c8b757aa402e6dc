// Package release turns functions into what is deployed: a Linux executable and its zip
// for Lambda. Each zip has a bill of materials. The same source and the same Go release
// always make the same bytes, on any machine and in any folder, so that a reviewer can
// build a release again and compare. It refuses to know where a zip goes and what a
// function does.
package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"orderonce/adapters/lambda/lambdatest"
)

// Artifact is one packaged function.
type Artifact struct {
	Name   string // of its folder under functions/
	Bytes  int    // of the zip
	SHA256 string // of the zip, in hexadecimal
}

// The names of files beside the zips. `sha256sum --check` reads Sums. Terraform compares
// the processor in Arch with the one that it asks Lambda for.
const (
	Sums = "SHA256SUMS"
	Arch = "GOARCH"
)

// Package builds every function of the module at root for Linux on arch, arm64 or amd64,
// and writes NAME.zip for each into dir, and [Sums] and [Arch]. It writes the [BOM] of
// each zip as NAME.cdx.json. It leaves other files in dir alone. The artifacts are in the
// order of their names. Nothing is written unless every function could be built.
func Package(ctx context.Context, root, arch, dir string) ([]Artifact, error) {
	names, err := functions(root)
	if err != nil {
		return nil, err
	}
	var artifacts []Artifact
	files := map[string][]byte{Arch: []byte(arch)}
	for _, name := range names {
		executable, err := compile(ctx, root, arch, name)
		if err != nil {
			return nil, err
		}
		zipped, err := Zip(executable)
		if err != nil {
			return nil, fmt.Errorf("zip %s: %w", name, err)
		}
		artifacts = append(artifacts, Artifact{Name: name, Bytes: len(zipped), SHA256: sumOf(zipped)})
		files[name+".zip"] = zipped
		if err := addBOM(files, name, executable); err != nil {
			return nil, err
		}
	}
	files[Sums] = sums(files)
	return artifacts, write(dir, files)
}

// Build compiles every function of the module at root for this machine into dir, each
// under its name, with the flags of a release.
func Build(ctx context.Context, root, dir string) error {
	names, err := functions(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		program := lambdatest.Program{Package: "./functions/" + name, Root: root}
		if err := program.Build(ctx, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// sums returns the checksums in the format of sha256sum.
func sums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s  %s\n", sumOf(files[name]), name)
	}
	return b.Bytes()
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// functions lists the folders under functions/. Each is one function.
func functions(root string) ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(root, "functions", "*", "main.go"))
	if err != nil || len(mains) == 0 {
		return nil, fmt.Errorf("%q holds no functions/NAME/main.go: %w", root, os.ErrNotExist)
	}
	var names []string
	for _, main := range mains {
		names = append(names, filepath.Base(filepath.Dir(main)))
	}
	slices.Sort(names)
	return names, nil
}

// compile returns the executable of a function for Lambda.
func compile(ctx context.Context, root, arch, name string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system cleans its temporary folder too
	out := filepath.Join(dir, Executable)
	p := lambdatest.Program{Package: "./functions/" + name, Root: root, Arch: arch}
	if err := p.Build(ctx, out); err != nil {
		return nil, fmt.Errorf("for %s: %w", arch, err)
	}
	return os.ReadFile(out) //nolint:gosec // it was just built
}

// write replaces each file by a rename, so that no half-written file is deployed.
func write(dir string, files map[string][]byte) error {
	//nolint:gosec // G301: a release is no secret, and others deploy it
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".part", data, 0o644); err != nil { //nolint:gosec // G306: as above
			return err
		}
		if err := os.Rename(path+".part", path); err != nil {
			return err
		}
	}
	return nil
}
