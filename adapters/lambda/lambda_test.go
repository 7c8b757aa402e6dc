package lambda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda"
	"orderonce/adapters/lambda/lambdatest"
)

func TestFunction(t *testing.T) {
	lambdatest.FullOnly(t)
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdatest.Build(t.Context(), "./internal/minimal", binary); err != nil {
		t.Fatal(err)
	}

	t.Run("a handler gets the event and the invocation's id", func(t *testing.T) {
		body, _, err := invoke(t, binary, map[string]string{"GREETING": "hello"})
		if want := `{"Text":"hello, world","RequestID":"00000000-0000-4000-8000-000000000001"}`; err != nil ||
			string(body) != want {
			t.Errorf("response = %s, %v, want %s", body, err, want)
		}
	})
	t.Run("a function that cannot start logs its error in one line and exits", func(t *testing.T) {
		_, output, err := invoke(t, binary, nil)
		var exit *lambdatest.ExitError
		if !errors.Is(err, lambdatest.ErrInit) || !errors.As(err, &exit) || exit.Status != "exit status 1" {
			t.Fatalf("error = %v, want an exit during init", err)
		}
		line := decode(t, output)
		if line["level"] != "ERROR" || line["error"] != "GREETING: missing" {
			t.Errorf("line = %v, want level ERROR and error %q", line, "GREETING: missing")
		}
	})
}

func invoke(t *testing.T, binary string, env map[string]string) (body []byte, printed string, err error) {
	t.Helper()
	var output bytes.Buffer
	host, err := lambdatest.Start(lambdatest.Options{Binary: binary, Env: env, Output: &output, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	body, err = host.Invoke(t.Context(), []byte(`"world"`))
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	return body, output.String(), err
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	if strings.Count(text, "\n") != 1 {
		t.Fatalf("output = %q, want one line", text)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestLoggerWritesLinesOfItsLevelAndAbove(t *testing.T) {
	for level, want := range map[slog.Level][]string{
		slog.LevelDebug: {"DEBUG", "INFO", "WARN", "ERROR"},
		slog.LevelInfo:  {"INFO", "WARN", "ERROR"},
		slog.LevelError: {"ERROR"},
	} {
		var out bytes.Buffer
		logger := lambda.NewLogger(&out, level)
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			logger.Log(t.Context(), level, "order parked", slog.String("order_id", "ORD1"))
		}
		var got []string
		for text := range strings.Lines(out.String()) {
			line := decode(t, text)
			got = append(got, fmt.Sprint(line["level"]))
			_, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["timestamp"]))
			if err != nil || line["message"] != "order parked" || line["order_id"] != "ORD1" || len(line) != 4 {
				t.Errorf("line = %v, %v, want a level, the message, the order id and a timestamp", line, err)
			}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("levels of a logger at %s (-got +want):\n%s", level, diff)
		}
	}
}

func TestRequestIDOutsideOfAnInvocation(t *testing.T) {
	if got := lambda.RequestID(t.Context()); got != "" {
		t.Errorf("RequestID = %q, want the empty string", got)
	}
}
