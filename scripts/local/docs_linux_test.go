package main

import (
	"context"
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
// from the top, in the root of the repository, and compares what it prints with the text
// block that follows it.
func TestTheCommandsOfTheDocumentsPrintWhatTheDocumentsShow(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	dynamodbtest.Locate(t)
	systemtest.Must(t, lambdatest.OpenSources(t.Context(), "scripts/local", "scripts/orders"))
	for _, page := range []string{"README.md", "docs/tutorial.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			reader := newReader(t)
			for _, b := range commandBlocks(t, filepath.Join(repository, page)) {
				if missing := notInstalled(b.commands); missing != "" {
					t.Logf("not run, %s is not installed:\n%s", missing, b.commands)
					continue
				}
				if strings.HasPrefix(b.commands, "make up") {
					reader.makeUp(t)
					continue
				}
				got := reader.run(t, b.commands)
				for i := 0; i < 2 && b.commands == "make run\n" && !matches(got, b.output); i++ {
					got = reader.run(t, b.commands) // a busy machine delivers a message more often
				}
				if b.output != "" && !matches(got, b.output) {
					t.Errorf(
						"%s\ngot\n%s\nwant\n%s\n- got, + want:\n%s", b.commands, got, b.output,
						cmp.Diff(neutral(got), neutral(b.output)),
					)
				}
			}
		})
	}
}

// block is an sh block of a page and the text block that follows it, or "".
type block struct{ commands, output string }

func commandBlocks(t *testing.T, path string) (all []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	systemtest.Must(t, err)
	for _, fence := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		switch language, content := fence[1], fence[2]; language {
		case "sh":
			all = append(all, block{commands: content})
		case "text":
			if len(all) == 0 || all[len(all)-1].output != "" {
				t.Fatalf("%s: output without a command:\n%s", path, content)
			}
			all[len(all)-1].output = content
		case "plaintext", "mermaid": // neither commands nor output
		default:
			t.Fatalf("%s: block of %q: want sh, text, plaintext or mermaid:\n%s", path, language, content)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no sh block", path)
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
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}

// notInstalled returns a program that the commands need and this machine lacks, or "".
func notInstalled(commands string) string {
	for _, program := range []string{"aws", "curl"} {
		if _, err := exec.LookPath(program); err != nil && strings.Contains(commands, program+" ") {
			return program
		}
	}
	return ""
}

// reader follows a page: a folder that looks like a clone of the repository, and what the
// commands so far have exported.
type reader struct{ dir string }

func newReader(t *testing.T) reader {
	t.Helper()
	return reader{systemtest.Folder(t, repository)}
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

// run returns what the commands print. Each sleep is longer than the page says, for a
// busy machine.
func (r reader) run(t *testing.T, commands string) string {
	t.Helper()
	script := "set -e; sleep() { command sleep $(($1 + 2)); }\n[ ! -f .session ] || . ./.session\n" + commands + "\nexport -p >.session\n"
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
