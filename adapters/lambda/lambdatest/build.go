package lambdatest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Build compiles a main package the way it is released, but for this machine's system and processor.
// Dir is a package path as `go build` takes it, such as ./functions/order; the working directory must be in the module.
// Tags are added to those of a release.
func Build(ctx context.Context, dir, out string, tags ...string) error {
	// lambda.norpc leaves out the retired go1.x protocol. validator_novalidatefn leaves out a method call by name, which
	// would keep the linker from dropping any exported method.
	tags = append([]string{"lambda.norpc", "validator_novalidatefn"}, tags...)
	//nolint:gosec // building the caller's package is the purpose
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", strings.Join(tags, ","), "-ldflags", "-s -w",
		"-o", out, dir)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, output)
	}
	return nil
}
