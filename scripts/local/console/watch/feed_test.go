package watch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/local/console/watch"
)

// counted returns a feed whose picture and frames carry a number: that of the latest
// frame.
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

// next returns the numbers of the next frames, and whether the first one is the picture.
func next(t *testing.T, f *watch.Feed, after uint64) (numbers []int, reset bool, last uint64) {
	t.Helper()
	frames, last, err := f.Next(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range frames {
		numbers = append(numbers, frame.Queue.Waiting)
	}
	return numbers, frames[0].Reset, last
}

func TestAFollowerGetsThePictureAndThenEachFrame(t *testing.T) {
	t.Parallel()
	f, publish := counted()
	publish(3)
	numbers, reset, last := next(t, f, 0)
	if !reset || !cmp.Equal(numbers, []int{3}) {
		t.Errorf("a new follower got %v, reset %v; want the picture after frame 3", numbers, reset)
	}
	publish(2)
	numbers, reset, last = next(t, f, last)
	if reset || !cmp.Equal(numbers, []int{4, 5}) {
		t.Errorf("then it got %v, reset %v; want frames 4 and 5", numbers, reset)
	}
	if again, _, _ := next(t, f, last-1); !cmp.Equal(again, []int{5}) {
		t.Errorf("a follower that resumes after frame 4 got %v, want frame 5", again)
	}
}

func TestAFollowerThatMissedFramesGetsThePicture(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		published int
		after     uint64
		want      int
	}{
		"a slow one":             {published: 3000, after: 5, want: 3000},
		"one of an earlier feed": {published: 2, after: 700, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, publish := counted()
			publish(tt.published)
			numbers, reset, _ := next(t, f, tt.after)
			if !reset || !cmp.Equal(numbers, []int{tt.want}) {
				t.Errorf("got %v, reset %v; want the picture after frame %d", numbers, reset, tt.want)
			}
		})
	}
}

func TestAFollowerWaitsForAFrame(t *testing.T) {
	t.Parallel()
	f, publish := counted()
	_, _, last := next(t, f, 0)
	got := make(chan []int)
	go func() {
		frames, _, _ := f.Next(context.WithoutCancel(t.Context()), last)
		got <- []int{frames[0].Queue.Waiting}
	}()
	publish(1)
	if numbers := <-got; !cmp.Equal(numbers, []int{1}) {
		t.Errorf("got %v, want frame 1", numbers)
	}
}

func TestAFollowerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f, _ := counted()
	_, _, last := next(t, f, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Next(ctx, last); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that of the context", err)
	}
}
