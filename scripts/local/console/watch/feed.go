package watch

import (
	"context"
	"reflect"
	"sync"
)

// Feed keeps the latest picture for its followers. A slow follower never delays who
// publishes: it misses pictures.
type Feed struct {
	mu      sync.Mutex
	latest  Picture
	number  uint64        // of the latest picture; 1 for none
	changed chan struct{} // closed by the next picture
}

// NewFeed returns a feed with an empty picture.
func NewFeed() *Feed { return &Feed{number: 1, changed: make(chan struct{})} }

// Publish replaces the picture if the next one differs. Nothing in it may change later.
func (f *Feed) Publish(next Picture) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reflect.DeepEqual(next, f.latest) {
		return
	}
	f.latest = next
	f.number++
	close(f.changed)
	f.changed = make(chan struct{})
}

// Next waits for another picture than that with a number, and returns it with its number.
// The first call has the number 0, and does not wait. It returns the context's error when
// that ends.
func (f *Feed) Next(ctx context.Context, after uint64) (p Picture, number uint64, err error) {
	for {
		f.mu.Lock()
		p, number, changed := f.latest, f.number, f.changed
		f.mu.Unlock()
		if number != after {
			return p, number, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Picture{}, after, context.Cause(ctx)
		}
	}
}
