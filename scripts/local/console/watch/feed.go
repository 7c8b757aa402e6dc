package watch

import (
	"context"
	"sync"
)

// kept is how many frames a Feed keeps: about two minutes of a busy system.
const kept = 1024

// Feed keeps the latest frames for its followers. A slow follower never delays who
// publishes: it misses frames, and then gets the whole picture instead.
type Feed struct {
	mu      sync.Mutex
	ring    [kept]Frame
	last    uint64        // number of the latest frame
	changed chan struct{} // closed by the next frame
	picture func() Frame
}

// NewFeed returns a feed without frames. picture returns everything that the frames so
// far have said. It is called while no frame is published, and must not publish one.
func NewFeed(picture func() Frame) *Feed {
	return &Feed{changed: make(chan struct{}), picture: picture}
}

// Publish adds a frame. next is called while no follower gets the whole picture, so that
// a change is part of either the picture or a later frame. It publishes nothing if next
// returns false.
func (f *Feed) Publish(next func() (Frame, bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame, ok := next(); ok {
		f.add(frame)
	}
}

func (f *Feed) add(frame Frame) {
	f.last++
	f.ring[f.last%kept] = frame
	close(f.changed)
	f.changed = make(chan struct{})
}

// Next waits for frames after the given number, and returns them, oldest first, with the
// number of the last one. The first call has the number 0. Next returns the whole picture
// for 0, for a number whose successor is not kept, and for one that is not of this feed.
// It returns the context's error when that ends.
func (f *Feed) Next(ctx context.Context, after uint64) (frames []Frame, last uint64, err error) {
	for {
		frames, last, changed := f.since(after)
		if len(frames) > 0 {
			return frames, last, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, after, context.Cause(ctx)
		}
	}
}

func (f *Feed) since(after uint64) (frames []Frame, last uint64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after == 0 || after > f.last || f.last-after > kept {
		picture := f.picture()
		picture.Reset = true
		if f.last == 0 { // 0 would ask for the picture again
			f.add(Frame{})
		}
		return []Frame{picture}, f.last, f.changed
	}
	for n := after + 1; n <= f.last; n++ {
		frames = append(frames, f.ring[n%kept])
	}
	return frames, f.last, f.changed
}
