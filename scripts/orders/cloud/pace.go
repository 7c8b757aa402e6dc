package cloud

import (
	"context"
	"time"
)

// Pace keeps calls apart.
type Pace struct {
	every time.Duration
	next  time.Time
}

// NewPace returns a pace of at most so many calls in a second; 0 is no limit.
func NewPace(perSecond float64) *Pace {
	if perSecond <= 0 {
		return &Pace{}
	}
	return &Pace{every: time.Duration(float64(time.Second) / perSecond)}
}

// Wait waits until the next n calls may be made, or ctx ends.
func (p *Pace) Wait(ctx context.Context, n int) error {
	now := time.Now()
	free := p.next
	if free.Before(now) {
		free = now
	}
	p.next = free.Add(time.Duration(n) * p.every)
	return pause(ctx, free.Sub(now))
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Until calls look again and again, every so often, until it is done or fails, or the
// context ends.
func Until(ctx context.Context, every time.Duration, look func() (done bool, err error)) error {
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		if err := pause(ctx, every); err != nil {
			return err
		}
	}
}
