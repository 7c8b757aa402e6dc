package stage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/stage"
)

func TestMermaidDrawsCallsAndNotesAndEscapesItsSyntax(t *testing.T) {
	t.Parallel()
	h := stage.History{
		{Who: "queue", To: "A", What: "delivers message 1 to A"},
		{Who: "A", To: "Stripe", What: "confirm pi_1; now", Answer: "pi_1 succeeded"},
		{Who: "bank", What: "charges #1"},
	}
	want := `sequenceDiagram
  participant queue
  participant A
  participant Stripe
  participant bank
  queue->>A: delivers message 1 to A
  A->>Stripe: confirm pi_1, now
  Stripe-->>A: pi_1 succeeded
  Note over bank: charges #35;1
`
	if diff := cmp.Diff(h.Mermaid(), want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
