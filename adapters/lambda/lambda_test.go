package lambda_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda"
)

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
			var line map[string]any
			err := json.Unmarshal([]byte(text), &line)
			got = append(got, fmt.Sprint(line["level"]))
			_, timeErr := time.Parse(time.RFC3339Nano, fmt.Sprint(line["timestamp"]))
			if err = errors.Join(err, timeErr); err != nil || line["message"] != "order parked" || line["order_id"] != "ORD1" || len(line) != 4 {
				t.Errorf("line = %v, %v, want a level, the message, the order id and a timestamp", line, err)
			}
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("levels of a logger at %s (-got +want):\n%s", level, diff)
		}
	}
}

// What Start and Fail do is shown by lambdatest, whose function calls them.
func TestRequestIDOutsideOfAnInvocation(t *testing.T) {
	if got := lambda.RequestID(t.Context()); got != "" {
		t.Errorf("RequestID = %q, want the empty string", got)
	}
}
