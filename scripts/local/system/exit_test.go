package system_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system"
)

// TestAWaitForAFunctionThatExitsEndsAtOnce runs the function of lambdatest's tests, which
// exits as it is told.
func TestAWaitForAFunctionThatExitsEndsAtOnce(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	engine, binary := dynamodbtest.Locate(t), filepath.Join(t.TempDir(), "bootstrap")
	const subject = "orderonce/adapters/lambda/lambdatest/internal/subject"
	if err := lambdatest.Build(t.Context(), subject, binary); err != nil {
		t.Fatal(err)
	}
	for claim, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"at its start":         {map[string]string{"INIT": "exit"}, "exit status 3: STRIPE_KEY is missing"},
		"during an invocation": {map[string]string{"DO": "exit"}, "exit status 4"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := world{engine: engine, binary: binary}.start(t, system.Options{Env: tt.env})
			s.post(body("never"))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := s.Drained(ctx)
			if !errors.Is(err, lambdatest.ErrExited) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want ErrExited with %q", err, tt.want)
			}
		})
	}
}
