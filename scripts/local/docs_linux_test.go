package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system/systemtest"
)

// TestTheCommandsOfTheDocumentsPrintWhatTheDocumentsShow runs every sh block of a page
// from the top, in a copy of the repository, and compares what it prints with the text
// block that follows it. A block that is marked is checked and not run.
func TestTheCommandsOfTheDocumentsPrintWhatTheDocumentsShow(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	dynamodbtest.Locate(t)
	systemtest.Must(t, lambdatest.OpenSources(t.Context(), "scripts/local"))
	tool := filepath.Join(t.TempDir(), "orders")
	systemtest.Must(t, lambdatest.Build(t.Context(), "scripts/orders", tool))
	for _, page := range pages(t) {
		blocks := commandBlocks(t, filepath.Join(repository, page))
		if len(blocks) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			reader, checked := newReader(t), 0
			for _, b := range blocks {
				switch {
				case mark.MatchString(b.commands):
					checked++
					reader.check(t, tool, b.commands)
				case strings.HasPrefix(b.commands, "make up"):
					reader.makeUp(t)
				default:
					reader.follow(t, b)
				}
			}
			t.Logf("%d blocks run, %d checked", len(blocks)-checked, checked)
		})
	}
}

func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{
		"README.md", "CONTRIBUTING.md", "docs/tutorial.md", "docs/guides/*.md", "docs/build/*.md", "docs/spec/README.md",
		"examples/*/README.md",
	} {
		found, err := fs.Glob(os.DirFS(repository), pattern)
		systemtest.Must(t, err)
		all = append(all, found...)
	}
	return all
}

// mark is the first line of a block that is not run here.
var mark = regexp.MustCompile(`^# (needs (an AWS account|a Stripe account|make up in another terminal|` +
	`an emulator at that address)|takes (a minute|minutes|half an hour))\b.*\n`)

// block is an sh block of a page and the text block that follows it, or "".
type block struct{ commands, output string }

// commandBlocks returns the blocks of a page. TestEveryRunbook of scripts/orders runs
// those of the language console.
func commandBlocks(t *testing.T, path string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	systemtest.Must(t, err)
	for _, fence := range regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1) {
		content := regexp.MustCompile("(?m)^"+fence[1]).ReplaceAllString(fence[3], "")
		switch language := fence[2]; language {
		case "sh":
			all = append(all, block{commands: content})
		case "crontab":
			commands := regexp.MustCompile(`(?m)^(\S+ +){5}cd \S+ && |~/go/bin/`).ReplaceAllString(content, "")
			all = append(all, block{commands: "# needs an AWS account\n" + commands})
		case "text":
			if len(all) > 0 && all[len(all)-1].output == "" {
				all[len(all)-1].output = content
			} else if len(all) > 0 {
				t.Errorf("%s: output without a command:\n%s", path, content)
			}
		case "plaintext", "mermaid", "console", "go", "hcl", "json", "diff": // neither commands nor output
		default:
			t.Errorf("%s: block of %q: want a language that this test knows:\n%s", path, language, content)
		}
	}
	return all
}

// matches compares what was printed with what a page shows, apart from times and ids. A
// line "..." of the page matches any lines.
func matches(got, want string) bool {
	pattern := regexp.QuoteMeta(neutral(want))
	pattern = regexp.MustCompile(`(?m)^\\\.\\\.\\\.\n`).ReplaceAllString(pattern, "(?s:.*)")
	return regexp.MustCompile("^" + pattern + "$").MatchString(neutral(got))
}

func neutral(text string) string {
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+`, "TIME"},
		{`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "UUID"},
		{`\d+\.\d s`, "SECONDS"},
		{`\d+ms at \d+ traces/second`, "SPEED"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// reader follows a page: a copy of the repository, and what the commands so far have
// exported.
type reader struct{ dir string }

// newReader copies the repository, because a page's commands write into it. What npm has
// installed is linked.
func newReader(t *testing.T) reader {
	t.Helper()
	// tar keeps the times, by which make knows whether npm has to install.
	const clone = `set -eo pipefail
		tar -c --exclude=./.git --exclude=./build --exclude=node_modules . | tar -x -C "$0"
		find . -path ./build -prune -o -name node_modules -prune -exec ln -s "$PWD/{}" "$0/{}" ';'`
	r := reader{t.TempDir()}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", clone, r.dir)
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// command runs a script in the reader's folder, without an environment for AWS or Stripe
// but with free ports for make up.
func (r reader) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "STRIPE_") || strings.HasPrefix(v, "MAKE")
	})
	cmd.Env = append(cmd.Env, "DYNAMODB_PORT=0", "SQS_PORT=0", "STRIPE_PORT=0", "API_PORT=0", "CONSOLE_PORT=0",
		"AWS_PAGER=")
	return cmd
}

func (r reader) follow(t *testing.T, b block) {
	t.Helper()
	got := r.run(t, b.commands)
	for i := 0; i < 2 && b.commands == "make run\n" && !matches(got, b.output); i++ {
		got = r.run(t, b.commands) // a busy machine delivers a message more often
	}
	if b.output != "" && !matches(got, b.output) {
		t.Errorf(
			"%s\ngot\n%s\nwant\n%s\n- got, + want:\n%s", b.commands, got, b.output,
			cmp.Diff(neutral(got), neutral(b.output)),
		)
	}
}

// run returns what the commands print. Each sleep is longer than the page says, for a
// busy machine.
func (r reader) run(t *testing.T, commands string) string {
	t.Helper()
	session := filepath.Join(r.dir, ".session")
	script := "set -e; sleep() { command sleep $(($1 + 2)); }\n[ ! -f .session ] || . ./.session\n" + commands + "\nexport -p >" + session
	out, err := r.command(t.Context(), "bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", commands, err, out)
	}
	return string(out)
}

// makeUp starts make up in a terminal and waits until it has printed its commands. At the
// end of the test it types Ctrl-C, which ends make with status 0.
func (r reader) makeUp(t *testing.T) {
	t.Helper()
	terminal := systemtest.StartTerminal(t, r.command(context.WithoutCancel(t.Context()), "make", "up"))
	t.Cleanup(func() {
		text, err := terminal.End("\x03")
		if err != nil || strings.Contains(text, "Error") || !strings.Contains(text, "Ending ...") {
			t.Errorf("make up ended with %v and printed\n%s\nwant status 0 and no Error", err, text)
		}
	})
	terminal.Await("Ctrl-C ends everything")
}

// pretend replaces the programs of a marked block. What make would run must have a
// target and variables, a command of orders its flags, and a file of the repository must
// exist. Another program is not found. Every complaint goes to the standard error.
const pretend = `
programs=$PATH PATH=/nonexistent root=$PWD
complain() { echo "$*" >&2; }
known() {
  for word; do
    case ${word##*=} in
    *build/*|*://*|../[a-z]*) ;;
    [a-z.]*/*) [ -e "${word##*=}" ] || complain "no such file: ${word##*=}" ;;
    esac
  done
}
make() {
  plan=$(PATH=$programs command make -n "$@")
  case $plan in *'Nothing to be done'*) complain "$plan" ;; esac
  for word; do
    case $word in
    *=*) [[ $(<"$root/Makefile") == *"\$(${word%%=*})"* ]] || complain "make: no variable ${word%%=*}" ;;
    esac
  done
}
orders() { known "$@"; PATH=$programs "$TOOL" "$@" --help >/dev/null; }
terraform() (
  case $1 in -chdir=*) cd "${1#*=}"; shift ;; esac
  compgen -G '*.tf' >/dev/null || complain "terraform: no module in $PWD"
  known "$@"
)
cp() { known "$1"; case $1 in *build/*) ;; *) PATH=$programs command cp "$@" ;; esac; }
cd() { known "$1"; case $1 in build/*|../[a-z]*) ;; *) builtin cd "$1" ;; esac; }
.() { case $1 in ./build/up/env|./build/deploy/env) ;; *) known "$1" ;; esac; }
git() { PATH=$programs command ln -s "$PWD" "$3"; } # worktree add
read() { :; }
for program in aws curl jq stripe head awk sed tee sh; do eval "$program() { :; }"; done
`

func (r reader) check(t *testing.T, tool, commands string) {
	t.Helper()
	cmd := r.command(t.Context(), "bash", "-c", "set -e\n"+pretend+commands)
	cmd.Env = append(cmd.Env, "TOOL="+tool)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s\n%v\n%s", commands, err, out)
	}
	for _, name := range r.undeclared(t, commands) {
		t.Errorf("%s\ninfra/terraform has no %s", commands, name)
	}
}

// undeclared returns the variables, outputs and resources that the commands name and the
// Terraform module lacks.
func (r reader) undeclared(t *testing.T, commands string) (names []string) {
	t.Helper()
	const root = "infra/terraform/*.tf"
	for _, kind := range []struct{ named, declared, in string }{
		{`(?:TF_VAR_|-var[ =]'?)(\w+)`, `variable "$1" `, root},
		{`terraform \S+ output (?:-\w+ )?(\w+)`, `output "$1" `, root},
		{`module\.orderonce\.(\w+)\.(\w+)`, `resource "$1" "$2" `, "infra/terraform/modules/orderonce/*.tf"},
	} {
		files, err := filepath.Glob(filepath.Join(r.dir, kind.in))
		systemtest.Must(t, err)
		var module strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(filepath.Clean(file))
			systemtest.Must(t, err)
			module.Write(text)
		}
		named := regexp.MustCompile(kind.named)
		for _, match := range named.FindAllString(commands, -1) {
			if name := named.ReplaceAllString(match, kind.declared); !strings.Contains(module.String(), name) {
				names = append(names, name)
			}
		}
	}
	return names
}
