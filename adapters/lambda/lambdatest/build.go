package lambdatest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Program is a main package and what it is compiled for. There is one way to compile a function, for tests and for Lambda alike,
// so that what was tested is what is deployed.
type Program struct {
	Package string   // as go build takes it, such as ./functions/order
	Root    string   // a folder of its module; "" is the working directory
	Arch    string   // a GOARCH, for Linux; "" is this machine, whatever its system
	Tags    []string // beside those of a release
	Overlay string   // a file for go build -overlay; "" compiles the module as it is
}

// Build compiles a program for this machine. The error holds what the compiler says.
func Build(ctx context.Context, pkg, out string) error { return Program{Package: pkg}.Build(ctx, out) }

// Build compiles the program into the file out. The same source, Go release and Arch make the same bytes on every machine and in
// every folder. The error holds what the compiler says.
func (p Program) Build(ctx context.Context, out string) error {
	tags := append([]string{
		"lambda.norpc",           // without the retired go1.x protocol
		"validator_novalidatefn", // without a method call by name, which keeps the linker from dropping any exported method
	}, p.Tags...)
	args := []string{
		"build",
		"-trimpath",       // no path of this machine
		"-buildvcs=false", // no state of the working tree: a clone and an archive of one commit make the same bytes
		"-tags", strings.Join(tags, ","),
		"-ldflags", "-s -w", // no symbols: a panic's trace has its names without them
		"-overlay", p.Overlay,
		"-o", out, p.Package,
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // building the caller's package is the purpose
	cmd.Dir = p.Root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if p.Arch != "" {
		cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+p.Arch)
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.Package, err, output)
	}
	return nil
}
