// Command tf is `make tf`: it formats, validates, lints and tests infra/terraform without an account, then plants mistakes and
// sees each of them found. With --tofu it also runs the tests with OpenTofu. It works in a copy, so that it leaves no lock
// file behind and ignores one that is there.
//
// What this machine cannot do is said and skipped: without Terraform all but tflint, without a provider registry all but
// formatting and tflint. A mirror of the registry is named in Terraform's own way, by TF_CLI_CONFIG_FILE.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

const (
	module = "infra/terraform"
	tflint = "github.com/terraform-linters/tflint@v0.64.0"
	// canary is the key in tests/secrets.tftest.hcl.
	canary = "sk_test_canary"
)

// examples are files that users copy, and the names under which terraform fmt looks at them.
var examples = map[string]string{ //nolint:gochecknoglobals // constant
	"backend.tf.example":                "backend_example.tf",
	"environments/example.s3.tfbackend": "backend_example.tfvars",
	"environments/example.tfvars":       "example.tfvars",
}

// options are the arguments of the command line.
type options struct {
	Tofu string `help:"OpenTofu executable, to run the tests with it as well." type:"path" placeholder:"PATH"`
}

func main() {
	var o options
	k := kong.Parse(&o, kong.Name("tf"), kong.UsageOnError(), kong.Description(
		"Format, validate, lint and test infra/terraform without an account, then plant mistakes and see each of them found. It works "+
			"in a copy. It needs Terraform 1.11 or newer on PATH, and a provider registry or a mirror of it, which TF_CLI_CONFIG_FILE "+
			"names; what this machine cannot do is said and skipped."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o, os.Stdout)
	stop()
	k.FatalIfErrorf(err)
}

func run(ctx context.Context, o options, out io.Writer) error {
	c, closeCopy, err := newChecker(out)
	if err != nil {
		return err
	}
	defer closeCopy()
	if err := c.lint(ctx); err != nil {
		return err
	}
	if _, err := exec.LookPath(c.program); err != nil {
		c.say("SKIPPED fmt, init, validate, test and planted mistakes: there is no terraform on PATH. Install Terraform 1.11 or newer.")
		return nil
	}
	if err := c.format(ctx); err != nil {
		return err
	}
	if why, err := c.start(ctx); why != "" || err != nil {
		if why != "" {
			c.say("SKIPPED validate, test and planted mistakes: the provider registry cannot be reached (%s). "+
				"Connect this machine, or name a mirror in the file of TF_CLI_CONFIG_FILE.", why)
		}
		return err
	}
	withOpenTofu := func(ctx context.Context) error { return testWithOpenTofu(ctx, o.Tofu, out) }
	for _, check := range []func(context.Context) error{
		c.validate, c.test, c.findNoKey, c.destroyFreely, withOpenTofu, c.plantMistakes,
	} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newChecker copies the module into a temporary folder, which closeCopy removes.
func newChecker(out io.Writer) (c checker, closeCopy func(), err error) {
	dir, err := os.MkdirTemp("", "orderonce-tf")
	if err != nil {
		return checker{}, nil, err
	}
	root, err := os.OpenRoot(dir)
	if err == nil {
		err = copyModule(root)
	}
	closeCopy = func() {
		if root != nil {
			_ = root.Close()
		}
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		closeCopy()
		return checker{}, nil, err
	}
	return checker{program: "terraform", dir: dir, root: root, out: out}, closeCopy, nil
}

// copyModule leaves out what is the user's own: the state's place, values of variables, and what an earlier init wrote.
func copyModule(to *os.Root) error {
	files, err := filepath.Glob(module + "/*.tf")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s holds no module: run this in the root of the clone: %w", module, errors.Join(err, fs.ErrNotExist))
	}
	for file := range examples {
		files = append(files, module+"/"+file)
	}
	for _, file := range append(files, module+"/.tflint.hcl") {
		if filepath.Base(file) == "backend.tf" {
			continue
		}
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return err
		}
		if err := to.WriteFile(filepath.Base(file), text, 0o600); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(to.Name(), "tests"), os.DirFS(module+"/tests"))
}

// checker runs tools in a copy of the module.
type checker struct {
	program string   // terraform, or the path of OpenTofu
	env     []string // of the program; nil for our own
	dir     string
	root    *os.Root // of dir
	out     io.Writer
}

// name is what the program is called in messages.
func (c checker) name() string { return filepath.Base(c.program) }

func (c checker) say(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format+"\n", args...) }

// terraform runs one command of the program in the copy and returns what it printed.
func (c checker) terraform(ctx context.Context, args ...string) (string, error) {
	return c.exec(ctx, c.program, append([]string{"-chdir=" + c.dir}, args...)...)
}

func (c checker) exec(ctx context.Context, name string, args ...string) (string, error) {
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: constants, and a folder of our own
	cmd.Stdout, cmd.Stderr, cmd.Env = &printed, &printed, c.env
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &printed)
	}
	return printed.String(), err
}

func (c checker) lint(ctx context.Context) error {
	_, err := c.exec(ctx, "go", "run", tflint, "--chdir="+c.dir)
	return c.passed("tflint, preset all", err)
}

// format also looks at the examples that users copy.
func (c checker) format(ctx context.Context) error {
	for from, to := range examples {
		if err := c.root.Rename(filepath.Base(from), to); err != nil {
			return err
		}
	}
	_, err := c.terraform(ctx, "fmt", "-check", "-diff", "-recursive", "-no-color")
	for _, name := range examples {
		err = errors.Join(err, c.root.Remove(name))
	}
	return c.passed("terraform fmt", err)
}

// start downloads the provider, and returns why if the registry cannot be reached.
func (c checker) start(ctx context.Context) (why string, err error) {
	printed, err := c.terraform(ctx, "init", "-backend=false", "-input=false", "-no-color")
	if why := unreachable(printed); err != nil && why != "" {
		return why, nil
	}
	return "", c.passed(c.name()+" init", err)
}

// unreachable is the registry that init could not connect to, or "".
func unreachable(printed string) string {
	_, registry, _ := strings.Cut(strings.Join(strings.Fields(printed), " "), "could not connect to ")
	registry, _, _ = strings.Cut(registry, ":")
	return registry
}

func (c checker) validate(ctx context.Context) error {
	_, err := c.terraform(ctx, "validate", "-no-color")
	return c.passed(c.name()+" validate", err)
}

func (c checker) test(ctx context.Context) error {
	printed, err := c.terraform(ctx, "test", "-no-color")
	return c.passed(c.name()+" test: "+lastLine(printed), err)
}

// findNoKey prints every plan and state of the tests that are given a Stripe key, as text and as JSON, and looks for it.
func (c checker) findNoKey(ctx context.Context) error {
	for _, format := range []string{"-no-color", "-json"} {
		printed, err := c.terraform(ctx, "test", "-verbose", format, "-filter=tests/secrets.tftest.hcl")
		if err == nil && !strings.Contains(printed, "secret_string_wo_version") {
			err = errors.New("the plans were not printed, so there was nothing to look at")
		}
		if err == nil && strings.Contains(printed, canary) {
			err = fmt.Errorf("terraform test -verbose %s prints the Stripe key", format)
		}
		if err != nil {
			return err
		}
	}
	return c.passed("no plan, state, output or log line holds the Stripe key", nil)
}

func (c checker) plantMistakes(ctx context.Context) error {
	var missed []string
	for _, m := range mistakes() {
		found, err := c.finds(ctx, m)
		if err != nil {
			return err
		}
		if !found {
			missed = append(missed, m.name)
		}
		c.say("  %-5s  %-58s  %s", map[bool]string{true: "found", false: "MISSED"}[found], m.name, m.run)
	}
	if len(missed) > 0 {
		return fmt.Errorf("no test finds: %s", strings.Join(missed, "; "))
	}
	return c.passed(fmt.Sprintf("%d planted mistakes, each found by the test that is for it", len(mistakes())), nil)
}

// finds plants one mistake, reports whether the run that is for it fails, and takes the mistake away.
func (c checker) finds(ctx context.Context, m mistake) (bool, error) {
	before, err := c.root.ReadFile(m.file)
	if err != nil {
		return false, err
	}
	tests, err := c.root.ReadFile(m.tests())
	if err != nil {
		return false, err
	}
	wrong, err := m.plant(string(before))
	if err != nil {
		return false, err
	}
	test, err := m.alone(string(tests))
	if err != nil {
		return false, err
	}
	const planted = "tests/planted.tftest.hcl"
	if err := errors.Join(c.root.WriteFile(m.file, []byte(wrong), 0o600), c.root.WriteFile(planted, []byte(test), 0o600)); err != nil {
		return false, err
	}
	printed, failed := c.terraform(ctx, "test", "-no-color", "-filter="+planted)
	return failed != nil && strings.Contains(printed, "run \""+m.run+"\"... fail"), c.root.WriteFile(m.file, before, 0o600)
}

func (c checker) passed(what string, err error) error {
	if err != nil {
		return err
	}
	c.say("ok     %s", what)
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
