package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestADrillSaysWhatIsLeft works the outage of Stripe, which needs no command.
// TestEveryRunbook of scripts/orders works all incidents.
func TestADrillSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	outage := func() (b incidents.Runbook) {
		for _, b = range incidents.Runbooks() {
			if name, _ := b.Name(); name == "3" {
				break
			}
		}
		return b
	}
	for _, test := range []struct {
		typed, want string
		code        int
	}{
		{"nonsense\n2\n", "no event \"nonsense\"\n*BROKEN I3 *order ORD-3001 is \"open\", want \"paid\"", 2},
		{"2\nStripe answers again\n1\ndone\n", "happened: processing is resumed.\n*ok     I3 *ok     end", 0},
	} {
		t.Run(test.typed, func(t *testing.T) {
			t.Parallel()
			i, err := outage().Start(t.Context(), incidents.Setup{
				Patience: time.Minute,
				Start: func(o system.Options) (*system.System, *system.Log, error) {
					s, log := kit.Start(t, o)
					return s, log, nil
				},
			})
			must(t, err)
			var out strings.Builder
			err = listen(t.Context(), i, strings.NewReader(test.typed), &out)
			code := 0
			if coded := kong.ExitCoder(nil); errors.As(err, &coded) {
				code = coded.ExitCode()
			}
			if code != test.code {
				t.Errorf("exit code %d (%v), want %d", code, err, test.code)
			}
			left := out.String()
			for part := range strings.SplitSeq(test.want, "*") {
				_, after, found := strings.Cut(left, part)
				if !found {
					t.Errorf("%q is not in\n%s", part, out.String())
				}
				left = after
			}
		})
	}
}
