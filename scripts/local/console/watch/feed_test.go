package watch_test

import (
	"context"
	"errors"
	"testing"

	"orderonce/scripts/local/console/watch"
)

func TestAFollowerGetsTheLatestPicture(t *testing.T) {
	f := watch.NewFeed()
	publish := func(n int) { f.Publish(watch.Picture{Queue: watch.Queue{Waiting: n}}) }
	for n := range 3 {
		publish(n)
	}
	p, last, err := f.Next(t.Context(), 0)
	must(t, err)
	if p.Queue.Waiting != 2 {
		t.Errorf("a new follower got %+v, want the latest picture", p.Queue)
	}
	publish(2) // the same
	next := make(chan watch.Picture)
	go func() {
		p, _, _ := f.Next(context.WithoutCancel(t.Context()), last)
		next <- p
	}()
	publish(3)
	if p := <-next; p.Queue.Waiting != 3 {
		t.Errorf("then it got %+v, want the next one", p.Queue)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Next(ctx, last+1); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}
