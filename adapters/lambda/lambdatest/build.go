package lambdatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Program is a main package and what it is compiled for. It is the one way to compile a
// binary, for tests, for tools and for Lambda, so that what was tested is what is
// deployed.
type Program struct {
	Package string // a folder of the repository, functions/order; or ./ and a folder below Root
	Root    string // a folder of the repository; "" is the working directory
	Arch    string // a GOARCH, for Linux; "" is this machine, whatever its system
	Overlay string // a file for go build -overlay; "" compiles the module as it is
}

// Build compiles a program for this machine; pkg is as in Program. The error has the
// compiler's output.
func Build(ctx context.Context, pkg, out string) error { return Program{Package: pkg}.Build(ctx, out) }

// Build compiles the program into the file out. The same source, Go release and Arch make
// the same bytes on every machine and in every folder. The error has the compiler's
// output.
//
// It opens the sources as [OpenSources] does, so that a test that builds a binary runs
// again when they change. Call it from a test and not from TestMain: go test records only
// what is opened during m.Run.
func (p Program) Build(ctx context.Context, out string) error {
	out, err := filepath.Abs(out) // the command runs in p.Root
	if err != nil {
		return fmt.Errorf("build %s: %w", p.Package, err)
	}
	cmd, err := p.command(ctx, "build",
		"-trimpath",         // no path of this machine
		"-ldflags", "-s -w", // no symbols: a panic's trace has its names without them
		"-o", out,
	)
	if err != nil {
		return err
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.Package, err, output)
	}
	return p.openSources(ctx)
}

// Module returns the path of the product's module, which whoever adopts it renames.
func Module() string {
	return strings.TrimSuffix(reflect.TypeFor[Program]().PkgPath(), "/adapters/lambda/lambdatest")
}

// folder returns the module of the package, which is the innermost one around it, and the
// package relative to it. A package is compiled in its own module, whoever asks, because
// another module may choose other versions of what it imports.
func (p Program) folder() (module, pkg string, err error) {
	root, err := filepath.Abs(p.Root)
	if err != nil {
		return "", "", fmt.Errorf("build %s: %w", p.Package, err)
	}
	if !strings.HasPrefix(p.Package, "./") {
		if root, err = above(root, func(goMod string) bool {
			return strings.HasPrefix(goMod, "module "+Module()+"\n")
		}); err != nil {
			return "", "", fmt.Errorf("build %s: no go.mod of module %s: %w", p.Package, Module(), err)
		}
	}
	whole := filepath.Join(root, p.Package)
	module, err = above(strings.TrimSuffix(whole, "..."), func(string) bool { return true })
	if err != nil {
		return "", "", fmt.Errorf("build %s: no go.mod: %w", p.Package, err)
	}
	pkg, err = filepath.Rel(module, whole)
	return module, "./" + filepath.ToSlash(pkg), err
}

// above returns the innermost of a folder and those above it whose go.mod is accepted.
func above(folder string, accept func(goMod string) bool) (string, error) {
	for ; ; folder = filepath.Dir(folder) {
		text, err := os.ReadFile(filepath.Join(folder, "go.mod")) //nolint:gosec // G304: a module of the caller
		if err == nil && accept(string(text)) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", os.ErrNotExist
		}
	}
}

// command returns a go command for the package in its module, with the tags of a release
// and the program's architecture.
func (p Program) command(ctx context.Context, verb string, args ...string) (*exec.Cmd, error) {
	module, pkg, err := p.folder()
	if err != nil {
		return nil, err
	}
	tags := []string{
		"lambda.norpc",           // without the retired go1.x protocol
		"validator_novalidatefn", // without a method call by name, which keeps every exported method linked
	}
	args = slices.Concat([]string{
		verb, "-tags", strings.Join(tags, ","), "-overlay", p.Overlay,
		"-buildvcs=false", // a clone and an archive of one commit make the same bytes
	}, args, []string{pkg})
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the caller chooses the package
	cmd.Dir = module
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if p.Arch != "" {
		cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+p.Arch)
	}
	return cmd, nil
}

// OpenSources opens the files that the go command reads for the packages, which are as in
// Program, and their dependencies, in this module and in modules that it replaces by
// folders: the folder of each package, its embedded files, go.mod and go.sum.
//
// Call it in a test that runs go build, go list or go test. The cache of go test compares
// what the test opened through package os, and of a folder the names, sizes and times of
// its files; it does not see what a child process reads. Without this, the test of a
// binary would pass from the cache after a change of the binary's sources.
func OpenSources(ctx context.Context, packages ...string) error {
	for _, pkg := range packages {
		if err := (Program{Package: pkg}).openSources(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p Program) openSources(ctx context.Context) error {
	const sources = `{{$dir := .Dir}}{{with .Module}}{{if or .Main .Replace}}` +
		`{{$dir}}{{"\n"}}{{.GoMod}}{{"\n"}}` +
		`{{range $.EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	cmd, err := p.command(ctx, "list", "-deps", "-f", sources)
	if err != nil {
		return err
	}
	listed, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the sources of %s: %w", p.Package, err)
	}
	paths := strings.FieldsFunc(string(listed), func(r rune) bool { return r == '\n' })
	for _, path := range paths {
		if filepath.Base(path) == "go.mod" {
			paths = append(paths, strings.TrimSuffix(path, "mod")+"sum")
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		file, err := os.Open(filepath.Clean(path))
		if errors.Is(err, os.ErrNotExist) { // a module without dependencies has no go.sum
			continue
		}
		if err != nil {
			return fmt.Errorf("open a source of %s: %w", p.Package, err)
		}
		_ = file.Close() // nothing was read
	}
	return nil
}

// FullOnly skips a test that compiles binaries, runs other processes or takes more than a
// second, unless ORDERONCE_ALL=1. `go test ./...` is quick and offline without these
// tests; `make test` and CI set the variable, and count a skip as a failure.
func FullOnly(tb testing.TB) {
	tb.Helper()
	if os.Getenv("ORDERONCE_ALL") != "1" { //nolint:forbidigo // a test has no composition root; FullOnly is one
		tb.Skip("compiles binaries, or takes more than a second: set ORDERONCE_ALL=1, or run make test")
	}
}
