package world

import "orderonce/scripts/lab/simulation/oracle"

// goroutine runs a worker whose task starts goroutines. One of them runs at a time, so
// the world and the task hand over a turn, where a coroutine could not be resumed from
// another goroutine.
type goroutine struct {
	turn    chan bool // false kills the worker
	waiting chan oracle.Call
	over    chan struct{}
}

// startGoroutine gives a worker a goroutine of its own.
func (k *Worker) startGoroutine() {
	g := &goroutine{turn: make(chan bool), waiting: make(chan oracle.Call), over: make(chan struct{})}
	k.exits = true
	k.yield = func(c oracle.Call) bool {
		g.waiting <- c
		return <-g.turn
	}
	started := false
	k.resume = func() (oracle.Call, bool) {
		if started {
			g.turn <- true
		} else {
			started = true
			go func() {
				defer close(g.over)
				k.task.run(k)
			}()
		}
		return g.next()
	}
	k.stop = func() {
		select {
		case <-g.over:
		default:
			k.dead = true
			g.turn <- false
			<-g.over
		}
	}
}

// next returns the call before which the worker waits, and false at its end.
func (g *goroutine) next() (oracle.Call, bool) {
	select {
	case c := <-g.waiting:
		return c, true
	case <-g.over:
		return oracle.Call{}, false
	}
}
