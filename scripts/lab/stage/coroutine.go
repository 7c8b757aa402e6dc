package stage

import (
	"iter"
	"runtime"
)

// Pool has idle coroutines. A new one would have to grow its stack again for each actor. A
// pool is not safe for concurrent use.
type Pool struct{ idle *idle }

type idle struct{ all []*Coroutine }

// Coroutine runs one function after the other, each until it yields or ends.
type Coroutine struct {
	work   func()
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
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

// Killed is the value of the panic that unwinds the stack of what does not go on.
type Killed struct{}

// Start returns a coroutine that is to run a function, which may panic with Killed.
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
	if c.work == nil {
		p.idle.all = append(p.idle.all, c)
		return false
	}
	return true
}

// Yield stops the running function until the next Resume.
func (c *Coroutine) Yield() {
	if !c.yield(struct{}{}) {
		panic(Killed{})
	}
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
		if p := recover(); p != nil && p != (Killed{}) {
			panic(p)
		}
		c.work = nil
	}()
	c.work()
}
