package watch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/local/console/watch"
)

// counted returns a feed whose picture and frames carry a number: that of the latest
// frame. publish adds so many frames.
func counted() (f *watch.Feed, publish func(n int)) {
	latest := 0
	frame := func(n int) watch.Frame { return watch.Frame{Queue: &watch.Queue{Waiting: n}} }
	f = watch.NewFeed(func() watch.Frame { return frame(latest) })
	return f, func(n int) {
		for range n {
			f.Publish(func() (watch.Frame, bool) {
				latest++
				return frame(latest), true
			})
		}
	}
}

func TestAFollowerGetsWhatItMissedOrThePicture(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		published int
		after     uint64
		want      []int
		picture   bool
	}{
		"a new one":                {3, 0, []int{3}, true},
		"one that saw the first":   {3, 1, []int{2, 3}, false},
		"a slow one":               {3000, 5, []int{3000}, true},
		"one of an earlier feed":   {2, 700, []int{2}, true},
		"one before the first one": {0, 0, []int{0}, true},
	} {
		f, publish := counted()
		publish(tt.published)
		frames, last, err := f.Next(t.Context(), tt.after)
		must(t, err)
		var got []int
		for _, frame := range frames {
			got = append(got, frame.Queue.Waiting)
		}
		if frames[0].Reset != tt.picture || !cmp.Equal(got, tt.want) {
			t.Errorf("%s: got %v, picture %t; want %v, %t", claim, got, frames[0].Reset, tt.want, tt.picture)
		}
		next := make(chan []watch.Frame)
		go func() {
			frames, _, _ := f.Next(context.WithoutCancel(t.Context()), last)
			next <- frames
		}()
		publish(1)
		if got := <-next; len(got) != 1 || got[0].Reset || got[0].Queue.Waiting != tt.published+1 {
			t.Errorf("%s: then got %+v, want the next frame", claim, got)
		}
	}
}

func TestAFollowerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f, publish := counted()
	publish(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Next(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}
