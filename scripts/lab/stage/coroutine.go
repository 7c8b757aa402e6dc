package stage

import (
	"iter"
	"runtime"
)

// Pool has idle coroutines. A new one would have to grow its stack again for each actor.
// A pool is not safe for concurrent use.
type Pool struct{ idle *idle }

type idle struct{ all []*Coroutine }

// Coroutine runs one function after the other, each until it yields or ends.
type Coroutine struct {
	work   func() // nil if it has ended
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	stop   func() // nil of a goroutine
}

// NewPool returns an empty pool. Its coroutines end when nobody uses it any more.
func NewPool() *Pool {
	p := &Pool{idle: new(idle)}
	runtime.AddCleanup(p, func(i *idle) {
		for _, c := range i.all {
			c.stop()
		}
	}, p.idle)
	return p
}

// Start returns a coroutine that is to run a function.
func (p *Pool) Start(work func()) *Coroutine {
	all := &p.idle.all
	if len(*all) == 0 {
		*all = append(*all, newCoroutine())
	}
	last := len(*all) - 1
	c := (*all)[last]
	*all, c.work = (*all)[:last], work
	return c
}

// Resume runs the function to its next yield. It returns false at its end; then the pool
// has the coroutine again.
func (p *Pool) Resume(c *Coroutine) (alive bool) {
	c.resume()
	if c.work != nil {
		return true
	}
	if c.stop != nil {
		p.idle.all = append(p.idle.all, c)
	}
	return false
}

// Yield stops the running function until the next Resume.
func (c *Coroutine) Yield() {
	if !c.yield(struct{}{}) {
		c.Die()
	}
}

// killed unwinds the stack of what does not go on.
type killed struct{}

// Die ends the running function. The goroutine of a StartGoroutine exits, because the
// function may recover from a panic.
func (c *Coroutine) Die() {
	if c.stop == nil {
		runtime.Goexit()
	}
	panic(killed{})
}

func newCoroutine() *Coroutine {
	c := &Coroutine{}
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			c.run()
		}
	})
	return c
}

func (c *Coroutine) run() {
	defer func() {
		if p := recover(); p != nil && p != (killed{}) {
			panic(p)
		}
		c.work = nil
	}()
	c.work()
}

// StartGoroutine is Start for a function that starts goroutines. One of them runs at a
// time: they hand over a turn, where a coroutine could not be resumed from another
// goroutine.
func StartGoroutine(work func()) *Coroutine {
	turn, waiting, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c, started := &Coroutine{work: work}, false
	c.yield = func(struct{}) bool {
		waiting <- struct{}{}
		<-turn
		return true
	}
	c.resume = func() (none struct{}, alive bool) {
		if started {
			turn <- struct{}{}
		} else {
			started = true
			go func() {
				defer close(over)
				work()
			}()
		}
		select {
		case <-waiting:
		case <-over:
			c.work = nil
		}
		return none, true
	}
	return c
}
