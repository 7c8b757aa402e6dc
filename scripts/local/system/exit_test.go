package system_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestAWaitForAFunctionThatExitsEndsAtOnce runs the function of lambdatest's tests, which
// exits at the point that its environment names.
func TestAWaitForAFunctionThatExitsEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := world{systemtest.WithFunction(t, "adapters/lambda/lambdatest/internal/subject")}
	for claim, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"at its start":         {map[string]string{"INIT": "exit"}, "exit status 3: STRIPE_KEY is missing"},
		"during an invocation": {map[string]string{"DO": "exit"}, "exit status 4"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := w.start(t, system.Options{Env: tt.env})
			s.post(body("never"))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err := s.Drained(ctx)
			if !errors.Is(err, lambdatest.ErrExited) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want ErrExited with %q", err, tt.want)
			}
		})
	}
}
