package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
)

// built is the program with every drift in it, of which the environment switches one on.
// It is compiled once for all tests.
var built = sync.OnceValues(func() (program string, err error) { //nolint:gochecknoglobals // tests share nothing else
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(own) // go test removes it at its end
	plan, err := overlay(dir)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "conform")
	out, err := exec.Command("go", "build", "-overlay", plan, "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

func compiled(t *testing.T) string {
	t.Helper()
	lambdatest.FullOnly(t)
	program, err := built()
	must(t, err)
	return program
}

// conform runs the program in an environment without keys, and returns what it printed.
func conform(t *testing.T, environ []string, args ...string) (out string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), compiled(t), args...)
	run.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...)
	printed, _ := run.CombinedOutput() // tests compare what it says
	return string(printed)
}

// A run that the service ends says why and how to continue. The next one checks the rest.
func TestARunThatAServiceEndsIsContinued(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		fail http.HandlerFunc
		want string
	}{
		"denied":    {answer(401, `{"error":{"message":"Invalid API Key provided."}}`), "401: Invalid API Key provided."},
		"throttled": {answer(429, `{"error":{"code":"rate_limit","message":"Slow down."}}`), "429 rate_limit: Slow down."},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"a page":    {answer(502, "<html>"), "status 502: not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			double, err := stripetest.Serve(stripetest.Options{})
			must(t, err)
			t.Cleanup(func() { _ = double.Close() })
			target := &url.URL{Scheme: "http", Host: strings.TrimPrefix(double.URL, "http://")}
			proxy, healthy := httputil.NewSingleHostReverseProxy(target), atomic.Int64{} // calls until it fails
			healthy.Store(12)
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if healthy.Add(-1) < 0 {
					tt.fail(w, r)
				} else {
					proxy.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(service.Close)
			args := []string{"stripe", "--folder", t.TempDir(), "--only", "stripe/intent-", "--endpoint", service.URL}
			out := conform(t, nil, args...)
			if !strings.Contains(out, tt.want) || !strings.Contains(out, "conform stripe --endpoint="+service.URL+" --resume") {
				t.Errorf("want %q, and how to continue, in\n%s", tt.want, out)
			}
			healthy.Store(1e6)
			resumed := conform(t, nil, append(args, "--resume")...)
			both := strings.Count(resumed, "kept  ") + strings.Count(out, "kept  ")
			if both != 11 || !strings.Contains(resumed, "kept 11, offline 1; ") {
				t.Errorf("want the rest kept, after\n%sgot\n%s", out, resumed)
			}
		})
	}
}

func TestTheCommandLineSaysWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"kafka":                           `service "kafka": want one of stripe`,
		"stripe --endpoint live":          "STRIPE_SECRET_KEY is not set",
		"stripe --endpoint live KEY=live": "a live key would move money",
		"stripe --endpoint live KEY=test": "Type yes to go on: ",
		"stripe --resume":                 "there is no report",
		"stripe --limit 3":                "call limit reached: 3",
	} {
		flags, key, _ := strings.Cut(args, " KEY=")
		environ := []string{}
		if key != "" {
			environ = append(environ, "STRIPE_SECRET_KEY=sk_"+key+"_pretend")
		}
		out := conform(t, environ, append(strings.Fields(flags), "--folder", t.TempDir())...)
		if !strings.Contains(out, want) || strings.Contains(out, "_pretend") {
			t.Errorf("%s: want %q in\n%s", args, want, out)
		}
	}
}

// Ctrl-C ends a run at once, and what it made is removed.
func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	var queues, made atomic.Int64
	begun := make(chan struct{})
	double, err := sqstest.Serve(sqstest.Options{Before: func(c sqstest.Call) {
		switch c.Operation {
		case "CreateQueue":
			if queues.Add(1); made.Add(1) == 4 {
				close(begun)
			}
		case "DeleteQueue":
			queues.Add(-1)
		}
	}})
	must(t, err)
	t.Cleanup(func() { _ = double.Close() })
	run := exec.CommandContext(t.Context(), compiled(t), "sqs", "--folder", t.TempDir(), "--endpoint", double.URL)
	run.Env = []string{"AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=" + sqstest.Region, "HOME=" + t.TempDir()}
	out := &strings.Builder{}
	run.Stdout, run.Stderr = out, out
	must(t, run.Start())
	<-begun
	must(t, run.Process.Signal(os.Interrupt))
	if err := run.Wait(); err == nil || !strings.Contains(out.String(), "--resume") || queues.Load() != 0 {
		t.Errorf("%v, %d of %d queues are left, want none, and how to continue, in\n%s", err, queues.Load(), made.Load(), out)
	}
}

// What waits for a day is continued by another process, and is not begun again.
func TestAWaitIsContinuedByAnotherProcess(t *testing.T) {
	folder := t.TempDir()
	double, err := stripetest.Serve(stripetest.Options{})
	must(t, err)
	t.Cleanup(func() { _ = double.Close() })
	args := []string{"stripe", "--folder", folder, "--only", "stripe/key-life", "--endpoint", double.URL}
	if out := conform(t, nil, args...); !strings.Contains(out, "run it again with --resume") {
		t.Fatalf("want it to wait:\n%s", out)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	must(t, err)
	text, err := os.ReadFile(paths[0])
	must(t, err)
	var report map[string]any
	must(t, json.Unmarshal(text, &report))
	result := report["results"].([]any)[0].(map[string]any)
	result["due"] = "2026-01-01T00:00:00Z" // a day later
	text, err = json.Marshal(report)
	must(t, err)
	must(t, os.WriteFile(paths[0], text, 0o600))
	double.Advance(23 * 60 * 60 * 1e9)
	out := conform(t, nil, append(args, "--resume")...)
	if !strings.Contains(out, "kept 1; ") || double.Count(stripetest.Create) != 2 {
		t.Errorf("got %d creations, want the first one and its replay, in\n%s", double.Count(stripetest.Create), out)
	}
}

func TestThePageShowsEveryRuleAndReport(t *testing.T) {
	const path = root + "/docs/reference/conformance.md"
	want := conform(t, nil, "page", "--reports", root+"/docs/reference/conformance.json")
	if os.Getenv("UPDATE_PAGES") != "" {
		must(t, os.WriteFile(path, []byte(want), 0o600))
	}
	got, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")); diff != "" {
		t.Errorf("(-page +conform); write it anew with UPDATE_PAGES=1:\n%s", diff)
	}
}

// A later report of the same endpoint takes the notes of what still looks the same.
func TestALaterReportKeepsNotes(t *testing.T) {
	dir := t.TempDir()
	all, later := filepath.Join(dir, "all.json"), filepath.Join(dir, "later.json")
	const form = `{"service":"ses","endpoint":"x","at":"2026-01-02T03:04:05Z","results":[` +
		`{"rule":"ses/tag","outcome":"broken","detail":"d"%s},{"rule":"ses/twice","outcome":"broken","detail":"%s"%s}]}`
	must(t, os.WriteFile(all, fmt.Appendf(nil, "["+form+"]", `,"note":"first"`, "old", `,"note":"second"`), 0o600))
	must(t, os.WriteFile(later, fmt.Appendf(nil, form, "", "new", ""), 0o600))
	conform(t, nil, "page", "--reports", all, "--add", later)
	got, err := os.ReadFile(all)
	must(t, err)
	if text := string(got); !strings.Contains(text, "first") || strings.Contains(text, "second") || strings.Count(text, "ses/tag") != 1 {
		t.Errorf("got %s, want one report with the first note alone", text)
	}
}

// What is named in the question before a run at a service is what a run makes, about.
func TestAServiceSaysHowManyCallsItMakes(t *testing.T) {
	out := conform(t, nil, "stripe", "sqs", "eventbridge", "ses", "apigateway", "--folder", t.TempDir())
	for line := range strings.Lines(out) {
		_, calls, found := strings.Cut(line, "; ")
		if !found || !strings.Contains(line, " at double: ") {
			continue
		}
		name, made := strings.Fields(line)[0], 0
		_, err := fmt.Sscan(calls, &made)
		must(t, err)
		keys := strings.Fields("STRIPE_SECRET_KEY=sk_test_pretend AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x AWS_REGION=x")
		ask := conform(t, keys, name, "--endpoint", "live", "--folder", t.TempDir())
		said := 0
		if _, err := fmt.Sscanf(ask, name+" about %d calls", &said); err != nil || made > said || said > 3*made {
			t.Errorf("%s makes %d calls, and asks:\n%s", name, made, ask)
		}
	}
}
