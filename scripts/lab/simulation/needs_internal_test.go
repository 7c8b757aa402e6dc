package simulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A story that needs little is told with little: here an order is canceled where none may
// be.
func TestAStoryNamesTheTroubleThatItNeeds(t *testing.T) {
	t.Parallel()
	c := Case{
		Messages: []Message{
			sold(takesDays),
			sold(takesDays),
			another("ORD-2", declined),
		}, People: true, Strict: true, KeyLife: -1,
		Gap: visibility + 1, Name: "strict",
	}
	r := Run([]Search{{Case: c, Most: 1}}, nil)
	if r.Worst == nil {
		t.Fatal("no order was canceled")
	}
	f := NewLab().Shortest(r.Worst.Case, r.Worst.Tape, r.Worst.Violation)
	if d := cmp.Diff(f.Needs(), []string{"cancel in the Dashboard"}); d != "" {
		t.Errorf("(-got +want)\n%s\n%s", d, f)
	}
	if !strings.Contains(f.String(), "\nNeeds: cancel in the Dashboard\n") {
		t.Errorf("got\n%s", f)
	}
}

// Everything that a world can have beyond the usual has a name, or a story that needs it
// would seem to need nothing.
func TestEveryOddityHasAName(t *testing.T) {
	t.Parallel()
	poison := Message{ID: "POISON", Poison: "{"}
	for want, c := range map[string]Case{
		"delivered again after 0s":                  {Messages: []Message{sold(visa)}},
		"a pause of 1h0m0s":                         {Messages: []Message{sold(visa)}, Gap: 10 * visibility},
		"keys that live 1ns":                        {Messages: []Message{sold(visa)}, Gap: visibility, KeyLife: 1},
		"keys that are never kept":                  {Messages: []Message{sold(visa)}, Gap: visibility, KeyLife: -1},
		"few receives before the dead-letter queue": {Messages: []Message{sold(visa)}, Gap: visibility, Receives: 3},
		"a batch":                           {Messages: []Message{sold(visa)}, Gap: visibility, Batch: 2},
		"a FIFO group":                      {Messages: []Message{sold(visa)}, Gap: visibility, Batch: 2, FIFO: true},
		"a message that is no order":        {Messages: []Message{poison}, Gap: visibility},
		"a declined card":                   {Messages: []Message{sold(declined)}, Gap: visibility},
		"a bank that wants the customer":    {Messages: []Message{sold(wantsMe)}, Gap: visibility},
		"a bank that takes days":            {Messages: []Message{sold(takesDays)}, Gap: visibility},
		"a card that does not exist":        {Messages: []Message{sold(noSuchCard)}, Gap: visibility},
		"an order sent twice":               {Messages: []Message{sold(visa), sold(visa)}, Gap: visibility},
		"another content under the same id": {Messages: []Message{sold(visa), sold(visa).but(payerField)}, Gap: visibility},
		"another order":                     {Messages: []Message{sold(visa), another("ORD-2", visa)}, Gap: visibility},
	} {
		if got := c.oddities(); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q alone", got, want)
		}
	}
}

// What a plainer world lacks is one thing, and the others stay.
func TestAPlainerWorldLacksOneThing(t *testing.T) {
	t.Parallel()
	c := Case{Messages: []Message{sold(declined), sold(declined)}, Gap: 10 * visibility, KeyLife: -1, Receives: 3, Batch: 2, FIFO: true}
	before := len(c.oddities())
	for _, plain := range c.plainer() {
		if after := len(plain.oddities()); after >= before {
			t.Errorf("got %q, want less than %q", plain.oddities(), c.oddities())
		}
	}
	if got := len(c.plainer()); got != 6 {
		t.Errorf("got %d plainer worlds, want one for the pause, the keys, the receives, the group and each method", got)
	}
	if c.Messages[0].Method != declined || c.Gap != 10*visibility {
		t.Error("the world itself has changed")
	}
}
