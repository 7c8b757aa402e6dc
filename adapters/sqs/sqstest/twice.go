package sqstest

import (
	"context"
	"sync"
)

// Twice says whether a message is delivered twice, as at-least-once delivery allows.
type Twice int

// The ways to deliver a message twice.
const (
	Once         Twice = iota
	InSameBatch        // a second record after the first
	AtOnceBeside       // a second invocation in parallel
)

// duplicate delivers messages twice, as Duplicate says: it adds them to the batch, or
// invokes the function with them in parallel. Lambda would split a batch of more than
// 6 MB.
func (m *Mapping) duplicate(ctx context.Context, messages *[]Message) (beside *sync.WaitGroup) {
	beside = new(sync.WaitGroup)
	if m.Duplicate == nil {
		return beside
	}
	var batch []Message
	for _, message := range *messages {
		batch = append(batch, message)
		switch m.Duplicate(message) {
		case Once:
		case InSameBatch:
			batch = append(batch, message)
		case AtOnceBeside:
			beside.Go(func() { m.invoke(ctx, []Message{message}) })
		}
	}
	*messages = batch
	return beside
}
