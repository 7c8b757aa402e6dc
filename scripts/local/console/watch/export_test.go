package watch

import (
	"context"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/local/system"
)

// Write is a parsed request to DynamoDB.
type Write struct {
	Order, Owner, Text string
	Step               Step
}

// ParseWrite parses a request.
func ParseWrite(c dynamodbtest.Call) Write {
	p := parseWrite(c)
	return Write{Order: p.order, Owner: p.owner, Text: p.text, Step: p.step}
}

// Audit checks every order that has come to rest.
func (w *Watch) Audit(ctx context.Context, s *system.System) { w.audit(ctx, s) }
