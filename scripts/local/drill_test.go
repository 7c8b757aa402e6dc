package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system/systemtest"
)

// TestADrillSaysWhatIsLeft works the outage of Stripe, which needs no command.
// TestEveryRunbook of scripts/orders works all incidents.
func TestADrillSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	for _, test := range []struct {
		typed, want string
		code        int
	}{
		{"nonsense\n2\n", `no event "nonsense".*BROKEN I3 .*message waits, or is lost.*order ORD-3001 is "open", want "paid"`, 2},
		{
			"2\nStripe answers again\n2\n1\ndone\n",
			`you resume processing.*\(happened\).*no event "Stripe answers again".*ok     I3 .*ok     end`, 0,
		},
	} {
		t.Run(test.typed, func(t *testing.T) {
			t.Parallel()
			i, err := incidents.Runbooks()[2].Start(t.Context(), incidents.Setup{
				Patience: time.Minute, Engine: kit.Engine,
				Build: func(function string) (string, error) { return kit.Build(t, "functions/"+function), nil },
			})
			systemtest.Must(t, err)
			t.Cleanup(func() { systemtest.Must(t, i.Close()) })
			var out strings.Builder
			err = listen(t.Context(), i, strings.NewReader(test.typed), &out)
			code := 0
			if coded := kong.ExitCoder(nil); errors.As(err, &coded) {
				code = coded.ExitCode()
			}
			if code != test.code {
				t.Errorf("exit code %d (%v), want %d", code, err, test.code)
			}
			if !regexp.MustCompile("(?s)" + test.want).MatchString(out.String()) {
				t.Errorf("no %q in\n%s", test.want, out.String())
			}
		})
	}
}
