package world

import (
	"iter"
	"runtime"

	"orderonce/scripts/lab/simulation/oracle"
)

// coroutine runs workers, one after the other: the stack of a new one would have to grow
// again for each worker. It yields before each call of its worker.
type coroutine struct {
	worker *Worker // nil if it is idle
	resume func() (oracle.Call, bool)
	stop   func()
}

// coroutines are the idle coroutines of a lab.
type coroutines struct{ idle []*coroutine }

func newCoroutines(l *Lab) *coroutines {
	s := &coroutines{}
	runtime.AddCleanup(l, (*coroutines).stop, s)
	return s
}

func (s *coroutines) stop() {
	for _, c := range s.idle {
		c.stop()
	}
}

// start gives a worker a coroutine, until the worker ends or is stopped.
func (s *coroutines) start(k *Worker) {
	if len(s.idle) == 0 {
		s.idle = append(s.idle, newCoroutine())
	}
	last := len(s.idle) - 1
	c := s.idle[last]
	s.idle, c.worker = s.idle[:last], k
	k.resume = func() (oracle.Call, bool) {
		next, _ := c.resume()
		alive := c.worker == k
		if !alive {
			s.idle = append(s.idle, c)
		}
		return next, alive
	}
	k.stop = func() {
		if c.worker == k {
			k.dead = true
			k.resume()
		}
	}
}

func newCoroutine() *coroutine {
	c := &coroutine{}
	c.resume, c.stop = iter.Pull(func(yield func(oracle.Call) bool) {
		for more := true; more; more = yield(oracle.Call{}) {
			c.run(yield)
		}
	})
	return c
}

// killed unwinds the stack of a worker that is dead.
type killed struct{}

func (c *coroutine) run(yield func(oracle.Call) bool) {
	defer func() {
		if p := recover(); p != nil && p != (killed{}) {
			panic(p)
		}
		c.worker = nil
	}()
	k := c.worker
	k.yield = func(next oracle.Call) bool { return yield(next) && !k.dead }
	k.task.run(k)
}
